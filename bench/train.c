/* The training benchmark: a character-level language model, trained in fp32, fp16, bf16 and fp8, with and without what
   each of them needs. `make train` builds and runs it; --help lists the options. It prints a table and writes results.csv
   and report.html.

   The model: 8 characters of context, embeddings of 16 numbers, three hidden layers of 128 tanh units, a softmax over
   the characters that occur. Adam, batches of 512, 300 steps of a cosine schedule. Every number that a real program
   would keep in low precision is kept in it: weights, activations and gradients have the storage type of their mode. */
#define _POSIX_C_SOURCE 200809L
#define MIXPREC_IMPLEMENTATION
#include "train.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONTEXT = 8, WIDTH = 16, HIDDEN = 128, LAYERS = 4, BATCH = 512, VALIDATION = 8192, CURVE = 2048 };

/* ---- what is compared ---- */

typedef enum scaling { UNSCALED, STATIC_SCALE, DYNAMIC_SCALE } scaling;
typedef enum weights { MASTER, PURE_NEAREST, PURE_STOCHASTIC, PURE_KAHAN } weights;
typedef enum fp8 { NO_FP8, FP8_UNSCALED, FP8_CURRENT, FP8_DELAYED } fp8;

typedef struct mode {
    const char *name;
    mixprec_dtype dtype; /* of activations and gradients, and of the weights that products read */
    weights weights;
    scaling scaling;
    fp8 fp8; /* products read E4M3 (forward) and E5M2 (gradients) */
} mode;
static const mode modes[] = {
    {"fp32", MIXPREC_F32, MASTER, UNSCALED, NO_FP8},
    {"fp16-unscaled", MIXPREC_F16, MASTER, UNSCALED, NO_FP8},
    {"fp16-static", MIXPREC_F16, MASTER, STATIC_SCALE, NO_FP8},
    {"fp16-dynamic", MIXPREC_F16, MASTER, DYNAMIC_SCALE, NO_FP8},
    {"bf16", MIXPREC_BF16, MASTER, UNSCALED, NO_FP8},
    {"bf16-pure-nearest", MIXPREC_BF16, PURE_NEAREST, UNSCALED, NO_FP8},
    {"bf16-pure-stochastic", MIXPREC_BF16, PURE_STOCHASTIC, UNSCALED, NO_FP8},
    {"bf16-pure-kahan", MIXPREC_BF16, PURE_KAHAN, UNSCALED, NO_FP8},
    {"fp8-current", MIXPREC_BF16, MASTER, UNSCALED, FP8_CURRENT},
    {"fp8-delayed", MIXPREC_BF16, MASTER, UNSCALED, FP8_DELAYED},
    {"fp8-unscaled", MIXPREC_BF16, MASTER, UNSCALED, FP8_UNSCALED},
};
#define MODE_COUNT ((int)(sizeof modes / sizeof *modes))

typedef struct task {
    const char *name;
    double learning_rate;
    double divisor; /* the loss is divided by this, besides the batch: micro-batches that are accumulated */
    int only_bf16;  /* compare the ways to hold weights */
} task;
static const task tasks[] = {
    {"plain", 2e-3, 1, 0},
    {"accumulated-1024", 2e-3, 1024, 0},
    {"small-rate", 2e-4, 1, 1},
};
#define TASK_COUNT ((int)(sizeof tasks / sizeof *tasks))

static struct {
    const char *data, *out, *task, *mode;
    int steps, seeds, threads;
} option = {NULL, "build/train", NULL, NULL, 300, 3, 0};

static void fail(const char *format, const char *text) {
    fprintf(stderr, "train: ");
    fprintf(stderr, format, text);
    fputc('\n', stderr);
    exit(2);
}
static void check(mixprec_status status) {
    if (status != MIXPREC_OK)
        fail("mixprec: %s", mixprec_status_string(status));
}

/* ---- the text ---- */

static int32_t *train_text, *validation_text; /* characters as indices */
static size_t train_size, validation_size, vocabulary;

static char *read_files(const char *const *names, int count, size_t *size) {
    char *text = NULL;
    int i;
    *size = 0;
    for (i = 0; i < count; i++) {
        FILE *file = fopen(names[i], "rb");
        size_t got;
        if (!file)
            fail("cannot open %s (the default text needs the repository's root; see --data)", names[i]);
        do {
            text = (char *)realloc(text, *size + 65536);
            if (!text)
                fail("no memory for %s", names[i]);
            got = fread(text + *size, 1, 65536, file);
            *size += got;
        } while (got);
        fclose(file);
    }
    return text;
}

/* Every tenth block of 2,000 characters is for validation. */
static void prepare_text(void) {
    static const char *const own[] = {"README.md", "mixprec.h", "bench/bench.c", "tests/test_scaler.c"};
    int32_t index[256];
    size_t size, i;
    unsigned char *text =
        (unsigned char *)(option.data ? read_files(&option.data, 1, &size) : read_files(own, 4, &size));
    for (i = 0; i < 256; i++)
        index[i] = -1;
    for (i = 0; i < size; i++)
        if (index[text[i]] < 0)
            index[text[i]] = (int32_t)vocabulary++;
    train_text = (int32_t *)malloc((size + 1) * sizeof *train_text);
    validation_text = (int32_t *)malloc((size + 1) * sizeof *validation_text);
    if (!train_text || !validation_text)
        fail("no memory for %s", "the text");
    for (i = 0; i < size; i++)
        if (i / 2000 % 10 == 9)
            validation_text[validation_size++] = index[text[i]];
        else
            train_text[train_size++] = index[text[i]];
    free(text);
    if (validation_size < 2000)
        fail("%s is too short: 20,000 characters are the least", option.data ? option.data : "the text");
}

/* n windows of a text at random: their contexts, and the characters that follow. */
static void draw(const int32_t *text, size_t size, uint64_t seed, uint64_t first, size_t n, int32_t *contexts,
                 int32_t *targets) {
    size_t i, j;
    for (i = 0; i < n; i++) {
        size_t at = (size_t)((uint64_t)mixprec_random_bits(seed, first + i) * (size - CONTEXT) >> 32);
        for (j = 0; j < CONTEXT; j++)
            contexts[i * CONTEXT + j] = text[at + j];
        targets[i] = text[at + CONTEXT];
    }
}

/* ---- a run ---- */

/* A tensor of weights with its gradient and the optimiser's state. */
typedef struct parameter {
    size_t n;
    float *master, *moment1, *moment2, *sum; /* sum: the gradient accumulated over micro-batches */
    void *model, *compensation, *grad;
} parameter;

/* A tensor in fp8, and how its scale is found. */
typedef struct quantised {
    void *data;
    mixprec_dtype dtype;
    float scale; /* what an element is multiplied by to get the number it stands for */
    mixprec_delayed_scaling delayed;
    float history[16];
} quantised;

typedef struct run {
    const mode *mode;
    const task *task;
    uint64_t seed;
    mixprec_dtype dtype; /* the mode's */
    parameter embedding, weight[LAYERS], bias[LAYERS];
    void *input[LAYERS], *linear[LAYERS]; /* of a layer: what it reads, and before the activation */
    quantised q_input[LAYERS], q_weight[LAYERS], q_gradient[LAYERS];
    void *gradient, *next_gradient; /* of linear[l], and of input[l] */
    float *scratch, *losses, *sums;
    mixprec_scaler scaler;
    mixprec_adam adam;
    int measuring;
    double nonzero, flushed;
    size_t bytes;
    train_result *result;
} run;

static size_t inputs_of(int layer) {
    (void)layer; /* CONTEXT * WIDTH == HIDDEN */
    return HIDDEN;
}
static size_t outputs_of(int layer) {
    return layer == LAYERS - 1 ? vocabulary : HIDDEN;
}

static void *allocate(run *r, size_t bytes, int counts) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory)
        fail("no memory for %s", r->mode->name);
    if (counts)
        r->bytes += bytes;
    return memory;
}

static void make_parameter(run *r, parameter *p, size_t n, double spread, uint64_t stream) {
    size_t size = mixprec_dtype_size(r->dtype), i;
    p->n = n;
    p->moment1 = (float *)allocate(r, n * 4, 1);
    p->moment2 = (float *)allocate(r, n * 4, 1);
    p->grad = allocate(r, n * size, 1);
    if (r->task->divisor > 1)
        p->sum = (float *)allocate(r, n * 4, 1);
    p->master = (float *)allocate(r, n * 4, r->mode->weights == MASTER);
    for (i = 0; i < n; i++) { /* uniform, of standard deviation `spread` */
        double u = mixprec_random_bits(r->seed << 8 | stream, i) / 4294967296.0 * 2 - 1;
        p->master[i] = (float)(u * spread * 1.7320508075688772);
    }
    if (r->dtype == MIXPREC_F32 || r->mode->fp8)
        return; /* products read the master weights, or a quantised copy of them */
    p->model = allocate(r, n * size, 1);
    check(mixprec_convert(p->model, r->dtype, p->master, MIXPREC_F32, n));
    if (r->mode->weights == PURE_KAHAN)
        p->compensation = allocate(r, n * size, 1);
}
static const void *values_of(const run *r, const parameter *p, mixprec_dtype *dtype) {
    *dtype = p->model ? r->dtype : MIXPREC_F32;
    return p->model ? p->model : p->master;
}

static void make_quantised(run *r, quantised *q, mixprec_dtype dtype, size_t n) {
    q->dtype = dtype;
    q->data = allocate(r, n, 1);
    q->scale = 1;
    check(mixprec_delayed_scaling_init(&q->delayed, dtype, q->history, 16));
}

static void start(run *r, const mode *m, const task *t, int seed, train_result *result) {
    size_t widest = vocabulary > HIDDEN ? vocabulary : HIDDEN, size = mixprec_dtype_size(m->dtype);
    int l;
    memset(r, 0, sizeof *r);
    r->mode = m;
    r->task = t;
    r->seed = (uint64_t)seed;
    r->dtype = m->dtype;
    r->result = result;
    make_parameter(r, &r->embedding, vocabulary * WIDTH, 1, 100);
    for (l = 0; l < LAYERS; l++) {
        make_parameter(r, &r->weight[l], inputs_of(l) * outputs_of(l), 1 / sqrt((double)inputs_of(l)), (uint64_t)l);
        make_parameter(r, &r->bias[l], outputs_of(l), 0, 50);
        r->linear[l] = allocate(r, BATCH * outputs_of(l) * size, 1);
        r->input[l] = m->fp8 && l > 0 ? r->input[0] : allocate(r, BATCH * inputs_of(l) * size, 1);
        if (m->fp8) {
            make_quantised(r, &r->q_input[l], MIXPREC_E4M3, BATCH * inputs_of(l));
            make_quantised(r, &r->q_weight[l], MIXPREC_E4M3, inputs_of(l) * outputs_of(l));
            make_quantised(r, &r->q_gradient[l], MIXPREC_E5M2, BATCH * outputs_of(l));
        }
    }
    r->gradient = allocate(r, BATCH * widest * size, 1);
    r->next_gradient = allocate(r, BATCH * widest * size, 1);
    r->losses = (float *)allocate(r, BATCH * sizeof(float), 0);
    r->sums = (float *)allocate(r, (vocabulary * WIDTH + widest) * sizeof(float), 1);
    r->scratch = (float *)allocate(r, (BATCH + HIDDEN) * widest * sizeof(float), 0);
    mixprec_adam_init(&r->adam);
    mixprec_scaler_init(&r->scaler);
    r->scaler.growth_interval = 50; /* of 300 steps, not of 100,000 */
    if (m->scaling == STATIC_SCALE)
        check(mixprec_scaler_init_static(&r->scaler, 65536));
}

static void free_parameter(parameter *p) {
    free(p->master), free(p->moment1), free(p->moment2), free(p->sum), free(p->model), free(p->compensation);
    free(p->grad);
}
static void finish(run *r) {
    int l;
    free_parameter(&r->embedding);
    for (l = 0; l < LAYERS; l++) {
        free_parameter(&r->weight[l]);
        free_parameter(&r->bias[l]);
        free(r->linear[l]);
        if (l == 0 || !r->mode->fp8)
            free(r->input[l]);
        free(r->q_input[l].data), free(r->q_weight[l].data), free(r->q_gradient[l].data);
    }
    free(r->gradient), free(r->next_gradient), free(r->losses), free(r->sums), free(r->scratch);
}

/* Counts what narrowing n numbers, times scale, to a dtype does to them. */
static void measure(run *r, const void *x, mixprec_dtype x_type, size_t n, mixprec_dtype to, float scale) {
    mixprec_convert_options options;
    mixprec_statistics stats;
    int i;
    if (!r->measuring)
        return;
    memset(&options, 0, sizeof options);
    options.scale = scale;
    check(mixprec_stats(&stats, x, x_type, n, to, &options));
    r->nonzero += (double)(stats.count - stats.zero - stats.nan);
    r->flushed += (double)stats.underflow;
    for (i = 0; i < 256 && x_type == MIXPREC_F32; i++)
        r->result->exponents[i] += (double)stats.exponents[i];
}

/* C = op(A) op(B), to the mode's dtype; measured, by way of fp32, which has the same bits. */
static void product(run *r, mixprec_gemm_desc *d, int is_gradient) {
    size_t n = d->m * d->n;
    void *c = d->c;
    d->c_type = r->dtype;
    if (!is_gradient || !r->measuring) {
        check(mixprec_gemm_ex(d));
        return;
    }
    d->c = r->scratch;
    d->c_type = MIXPREC_F32;
    check(mixprec_gemm_ex(d));
    measure(r, r->scratch, MIXPREC_F32, n, r->dtype, 0);
    check(mixprec_convert(c, r->dtype, r->scratch, MIXPREC_F32, n));
}

/* A tensor to fp8 as the mode has it. The scales of delayed scaling follow only in training. */
static void quantise(run *r, quantised *q, const void *x, mixprec_dtype x_type, size_t n, int training) {
    static const float one = 1;
    mixprec_quantize_desc d;
    float amax;
    memset(&d, 0, sizeof d);
    d.rows = 1;
    d.columns = n;
    d.src = x;
    d.src_type = x_type;
    d.dst = q->data;
    d.dst_type = q->dtype;
    d.scales = &q->scale;
    d.amax = &amax;
    d.scale = r->mode->fp8 == FP8_UNSCALED ? &one : r->mode->fp8 == FP8_DELAYED ? &q->delayed.scale : NULL;
    check(mixprec_quantize(&d));
    if (q->dtype == MIXPREC_E5M2)
        measure(r, x, x_type, n, q->dtype, 1 / q->scale);
    if (training && r->mode->fp8 == FP8_DELAYED)
        check(mixprec_delayed_scaling_update(&q->delayed, amax));
}

/* An operand of a product: a tensor of the mode's dtype, or its quantised form. */
static void operand(const run *r, const quantised *q, const void *x, mixprec_dtype dtype, const void **data,
                    mixprec_dtype *type, mixprec_scales *scales) {
    *data = r->mode->fp8 ? q->data : x;
    *type = r->mode->fp8 ? q->dtype : dtype;
    if (r->mode->fp8)
        scales->values = &q->scale;
}

/* From characters to logits, which are in linear[LAYERS - 1]. */
static void forward(run *r, const int32_t *contexts, size_t n, int training) {
    mixprec_dtype dtype;
    const void *values = values_of(r, &r->embedding, &dtype);
    int l;
    check(mixprec_embedding(r->input[0], r->dtype, values, dtype, contexts, n * CONTEXT, vocabulary, WIDTH));
    for (l = 0; l < LAYERS; l++) {
        mixprec_gemm_desc d;
        memset(&d, 0, sizeof d);
        values = values_of(r, &r->weight[l], &dtype);
        if (r->mode->fp8) {
            quantise(r, &r->q_input[l], r->input[l], r->dtype, n * inputs_of(l), training);
            quantise(r, &r->q_weight[l], values, dtype, r->weight[l].n, training);
        }
        d.m = n;
        d.n = outputs_of(l);
        d.k = inputs_of(l);
        operand(r, &r->q_input[l], r->input[l], r->dtype, &d.a, &d.a_type, &d.scale_a);
        operand(r, &r->q_weight[l], values, dtype, &d.b, &d.b_type, &d.scale_b);
        d.bias = values_of(r, &r->bias[l], &d.bias_type);
        d.c = r->linear[l];
        product(r, &d, 0);
        if (l < LAYERS - 1)
            check(mixprec_activate(r->input[l + 1], r->dtype, r->linear[l], r->dtype, n * HIDDEN,
                                   MIXPREC_ACTIVATION_TANH));
    }
}

/* A gradient summed in fp32 goes to where the optimiser reads it. */
static void store_gradient(run *r, parameter *p) {
    measure(r, r->sums, MIXPREC_F32, p->n, r->dtype, 0);
    check(mixprec_convert(p->grad, r->dtype, r->sums, MIXPREC_F32, p->n));
}

static void backward(run *r, const int32_t *contexts, const int32_t *targets) {
    double scale = (double)mixprec_scaler_scale(&r->scaler, 1) / BATCH / r->task->divisor;
    int l;
    if (r->mode->scaling == UNSCALED)
        scale = 1.0 / BATCH / r->task->divisor;
    if (r->measuring) {
        check(mixprec_cross_entropy(r->scratch, MIXPREC_F32, NULL, r->linear[LAYERS - 1], r->dtype, targets, BATCH,
                                    vocabulary, scale));
        measure(r, r->scratch, MIXPREC_F32, BATCH * vocabulary, r->dtype, 0);
    }
    check(mixprec_cross_entropy(r->gradient, r->dtype, NULL, r->linear[LAYERS - 1], r->dtype, targets, BATCH,
                                vocabulary, scale));
    for (l = LAYERS - 1; l >= 0; l--) {
        mixprec_gemm_desc d;
        mixprec_dtype dtype;
        const void *values = values_of(r, &r->weight[l], &dtype);
        void *swap;
        if (r->mode->fp8)
            quantise(r, &r->q_gradient[l], r->gradient, r->dtype, BATCH * outputs_of(l), 1);
        memset(&d, 0, sizeof d); /* dW = X^T dY */
        d.m = inputs_of(l);
        d.n = outputs_of(l);
        d.k = BATCH;
        d.trans_a = MIXPREC_TRANS;
        operand(r, &r->q_input[l], r->input[l], r->dtype, &d.a, &d.a_type, &d.scale_a);
        operand(r, &r->q_gradient[l], r->gradient, r->dtype, &d.b, &d.b_type, &d.scale_b);
        d.c = r->weight[l].grad;
        product(r, &d, 1);
        memset(r->sums, 0, r->bias[l].n * sizeof *r->sums);
        check(mixprec_bias_gradient(r->sums, r->gradient, r->dtype, BATCH, outputs_of(l), 0));
        store_gradient(r, &r->bias[l]);
        memset(&d, 0, sizeof d); /* dX = dY W^T */
        d.m = BATCH;
        d.n = inputs_of(l);
        d.k = outputs_of(l);
        d.trans_b = MIXPREC_TRANS;
        operand(r, &r->q_gradient[l], r->gradient, r->dtype, &d.a, &d.a_type, &d.scale_a);
        operand(r, &r->q_weight[l], values, dtype, &d.b, &d.b_type, &d.scale_b);
        d.c = r->next_gradient;
        product(r, &d, 1);
        if (l > 0)
            check(mixprec_activate_backward(r->next_gradient, r->dtype, r->next_gradient, r->dtype, r->linear[l - 1],
                                            r->dtype, BATCH * HIDDEN, MIXPREC_ACTIVATION_TANH));
        swap = r->gradient;
        r->gradient = r->next_gradient;
        r->next_gradient = swap;
    }
    memset(r->sums, 0, r->embedding.n * sizeof *r->sums);
    check(mixprec_embedding_gradient(r->sums, r->gradient, r->dtype, contexts, BATCH * CONTEXT, vocabulary, WIDTH));
    store_gradient(r, &r->embedding);
}

/* The tensors of weights, one after the other. */
static parameter *parameter_of(run *r, int i) {
    return i == 0 ? &r->embedding : i <= LAYERS ? &r->weight[i - 1] : &r->bias[i - 1 - LAYERS];
}
#define PARAMETERS (1 + 2 * LAYERS)

static void update(run *r, int step) {
    float inverse = r->mode->scaling == UNSCALED ? 1 : mixprec_inverse_scale(r->scaler.scale);
    int i;
    if (r->mode->scaling != UNSCALED) {
        for (i = 0; i < PARAMETERS; i++) {
            parameter *p = parameter_of(r, i);
            double squares;
            check(mixprec_sum_squares(&squares, p->grad, r->dtype, p->n));
            r->scaler.found_inf |= mixprec_found_inf(squares);
        }
        if (!mixprec_scaler_update(&r->scaler)) {
            r->result->skipped++;
            return;
        }
    }
    r->adam.step++;
    r->adam.learning_rate = mixprec_warmup_cosine(r->task->learning_rate, 0, (uint64_t)option.steps / 20,
                                                  (uint64_t)option.steps, (uint64_t)step);
    for (i = 0; i < PARAMETERS; i++) {
        parameter *p = parameter_of(r, i);
        mixprec_parameter tensor;
        memset(&tensor, 0, sizeof tensor);
        tensor.n = p->n;
        tensor.grad = p->grad;
        tensor.grad_type = r->dtype;
        if (p->sum) { /* as if all micro-batches had this gradient */
            memset(p->sum, 0, p->n * sizeof *p->sum);
            check(mixprec_accumulate(p->sum, p->grad, r->dtype, p->n, (float)(r->task->divisor * (double)inverse)));
            tensor.grad = p->sum;
            tensor.grad_type = MIXPREC_F32;
        }
        tensor.master = r->mode->weights == MASTER ? p->master : NULL;
        tensor.model = p->model;
        tensor.model_type = p->model ? r->dtype : MIXPREC_NONE;
        tensor.compensation = p->compensation;
        tensor.moment1 = p->moment1;
        tensor.moment2 = p->moment2;
        if (r->mode->weights == PURE_STOCHASTIC) {
            tensor.round = MIXPREC_ROUND_STOCHASTIC;
            tensor.seed = r->seed << 32 | (uint64_t)step << 8 | (uint64_t)i;
        }
        check(mixprec_adam_step(&r->adam, &tensor, p->sum ? 1 : inverse, 1, 0));
    }
}

/* The loss over n windows of the validation text, the same for all runs; *accuracy may be NULL. */
static double validate(run *r, size_t n, double *accuracy) {
    int32_t contexts[BATCH * CONTEXT], targets[BATCH];
    double total = 0;
    size_t done, correct = 0, i, j;
    for (done = 0; done < n; done += BATCH) {
        double sum;
        draw(validation_text, validation_size, 12345, done, BATCH, contexts, targets);
        forward(r, contexts, BATCH, 0);
        check(mixprec_cross_entropy(NULL, r->dtype, r->losses, r->linear[LAYERS - 1], r->dtype, targets, BATCH,
                                    vocabulary, 1));
        check(mixprec_sum(&sum, r->losses, MIXPREC_F32, BATCH));
        total += sum;
        check(mixprec_convert(r->scratch, MIXPREC_F32, r->linear[LAYERS - 1], r->dtype, BATCH * vocabulary));
        for (i = 0; i < BATCH; i++) {
            size_t best = 0;
            for (j = 1; j < vocabulary; j++)
                if (r->scratch[i * vocabulary + j] > r->scratch[i * vocabulary + best])
                    best = j;
            correct += best == (size_t)targets[i];
        }
    }
    if (accuracy)
        *accuracy = (double)correct / (double)n;
    return total / (double)n;
}

static double seconds(void) { /* of this thread */
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void train(train_result *result, const mode *m, const task *t) {
    int32_t contexts[BATCH * CONTEXT], targets[BATCH];
    int step, every = option.steps / 16 + 1, timed = 0;
    double time = 0;
    run r;
    start(&r, m, t, result->seed, result);
    for (step = 0; step < option.steps; step++) {
        double begun;
        if (step % every == 0) {
            result->steps[result->points] = step;
            result->losses[result->points++] = validate(&r, CURVE, NULL);
        }
        r.measuring = step % every == every / 2;
        draw(train_text, train_size, r.seed + 1000, (uint64_t)step * BATCH, BATCH, contexts, targets);
        begun = seconds();
        forward(&r, contexts, BATCH, 1);
        backward(&r, contexts, targets);
        update(&r, step);
        if (!r.measuring) {
            time += seconds() - begun;
            timed++;
        }
    }
    r.measuring = 0;
    result->val_loss = validate(&r, VALIDATION, &result->val_acc);
    result->steps[result->points] = step;
    result->losses[result->points++] = validate(&r, CURVE, NULL);
    result->ms_per_step = timed ? 1000 * time / timed : 0;
    result->flushed = r.nonzero > 0 ? r.flushed / r.nonzero : 0;
    result->bytes = r.bytes;
    finish(&r);
}

/* ---- all runs ---- */

static train_result *results;
static int result_count, next_result, done_count;
static const mode *mode_of[1024];
static const task *task_of[1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void plan(void) {
    int t, m, seed;
    results = (train_result *)calloc(1024, sizeof *results);
    if (!results)
        fail("no memory for %s", "the results");
    for (t = 0; t < TASK_COUNT; t++)
        for (m = 0; m < MODE_COUNT; m++) {
            if (option.task && strcmp(option.task, tasks[t].name))
                continue;
            if (m > 0 && option.mode && strcmp(option.mode, modes[m].name))
                continue;
            if (tasks[t].only_bf16 && m > 0 && (modes[m].dtype != MIXPREC_BF16 || modes[m].fp8))
                continue;
            for (seed = 1; seed <= option.seeds; seed++) {
                task_of[result_count] = &tasks[t];
                mode_of[result_count] = &modes[m];
                results[result_count].task = tasks[t].name;
                results[result_count].mode = modes[m].name;
                results[result_count++].seed = seed;
            }
        }
}

static void *worker(void *unused) {
    (void)unused;
    for (;;) {
        int i;
        pthread_mutex_lock(&lock);
        i = next_result++;
        pthread_mutex_unlock(&lock);
        if (i >= result_count)
            return NULL;
        train(&results[i], mode_of[i], task_of[i]);
        pthread_mutex_lock(&lock);
        done_count++;
        if (isatty(2)) {
            fprintf(stderr, "\r%3d of %d runs: %s, %s, seed %d: loss %.4f          ", done_count, result_count,
                    results[i].task, results[i].mode, results[i].seed, results[i].val_loss);
            fflush(stderr);
        }
        pthread_mutex_unlock(&lock);
    }
}

static void compare_with_fp32(void) {
    int i, j;
    for (i = 0; i < result_count; i++)
        for (j = 0; j < result_count; j++)
            if (results[j].task == results[i].task && results[j].seed == results[i].seed && mode_of[j] == &modes[0])
                results[i].delta_fp32 = results[i].val_loss - results[j].val_loss;
}

/* ---- options ---- */

static const char help[] =
    "usage: train [options]\n"
    "Trains a small language model in fp32, fp16, bf16 and fp8 and compares the losses.\n"
    "  --data FILE    the text, at least 20,000 characters; default: this repository's own manual and sources\n"
    "  --out DIR      where results.csv and report.html go; default: build/train\n"
    "  --task NAME    only this task: plain, accumulated-1024, small-rate\n"
    "  --mode NAME    only this mode, and fp32 to compare with; a mode is a line of the table\n"
    "  --steps N      of each run; default 300\n"
    "  --seeds N      runs of each mode; default 3, at most 20\n"
    "  --threads N    runs at a time; default: the number of cores\n"
    "  --help         this text\n";

static int number(const char *name, const char *text, long most) {
    char *end;
    long value;
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || *text == 0 || *end || value < 1 || value > most)
        fail("%s takes a whole number from 1 on", name);
    return (int)value;
}

static void read_options(int argc, char **argv) {
    int i, known;
    for (i = 1; i < argc; i++) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--help")) {
            fputs(help, stdout);
            exit(0);
        }
        if (strcmp(name, "--data") && strcmp(name, "--out") && strcmp(name, "--task") && strcmp(name, "--mode") &&
            strcmp(name, "--steps") && strcmp(name, "--seeds") && strcmp(name, "--threads"))
            fail("unknown option %s (see --help)", name);
        if (!value)
            fail("%s needs a value", name);
        i++;
        if (!strcmp(name, "--data"))
            option.data = value;
        else if (!strcmp(name, "--out"))
            option.out = value;
        else if (!strcmp(name, "--task"))
            option.task = value;
        else if (!strcmp(name, "--mode"))
            option.mode = value;
        else if (!strcmp(name, "--steps"))
            option.steps = number(name, value, 1000000);
        else if (!strcmp(name, "--seeds"))
            option.seeds = number(name, value, 20);
        else
            option.threads = number(name, value, 256);
    }
    for (i = 0, known = !option.task; i < TASK_COUNT; i++)
        known |= option.task && !strcmp(option.task, tasks[i].name);
    if (!known)
        fail("unknown task %s (see --help)", option.task);
    for (i = 0, known = !option.mode; i < MODE_COUNT; i++)
        known |= option.mode && !strcmp(option.mode, modes[i].name);
    if (!known)
        fail("unknown mode %s", option.mode);
    if (!option.threads) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        option.threads = cores < 1 ? 1 : cores > 256 ? 256 : (int)cores;
    }
}

static FILE *open_output(const char *name) {
    char path[4096];
    FILE *file;
    if (snprintf(path, sizeof path, "%s/%s", option.out, name) >= (int)sizeof path)
        fail("%s is too long a path", option.out);
    file = fopen(path, "w");
    if (!file)
        fail("cannot write %s", path);
    return file;
}

int main(int argc, char **argv) {
    pthread_t threads[256];
    char about[512];
    FILE *csv, *html;
    int i;
    read_options(argc, argv);
    prepare_text();
    if (mkdir(option.out, 0777) && errno != EEXIST)
        fail("cannot make the directory %s", option.out);
    csv = open_output("results.csv"); /* before the work */
    html = open_output("report.html");
    plan();
    snprintf(about, sizeof about,
             "%s: %zu characters for training, %zu for validation, %zu different ones. %d steps of %d samples, Adam, "
             "cosine schedule; kernels: %s.",
             option.data ? option.data : "This library's manual and sources", train_size, validation_size, vocabulary,
             option.steps, BATCH, mixprec_isa_name(mixprec_isa_best()));
    printf("%s\n", about);
    fflush(stdout);
    for (i = 0; i < option.threads; i++)
        if (pthread_create(&threads[i], NULL, worker, NULL))
            fail("cannot start %s", "a thread");
    for (i = 0; i < option.threads; i++)
        pthread_join(threads[i], NULL);
    if (isatty(2))
        fprintf(stderr, "\r%-79s\r", "");
    compare_with_fp32();
    train_write_table(stdout, results, result_count);
    train_write_csv(csv, results, result_count);
    train_write_html(html, results, result_count, about);
    if (ferror(csv) || ferror(html) || fclose(csv) || fclose(html))
        fail("cannot write to %s", option.out);
    printf("\n%s/results.csv, %s/report.html\n", option.out, option.out);
    return 0;
}
