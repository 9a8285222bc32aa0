/* The training benchmark: a character-level language model, trained in fp32, fp16, bf16 and fp8, with and without what
   each of them needs. `make train` builds and runs it; --help lists the options. It prints a table and writes
   results.csv and report.html.

   Two models. An MLP: 8 characters of context, embeddings of 16 numbers, three hidden layers of 128 tanh units, a
   softmax over the characters that occur. A transformer: windows of 32 characters, a pre-norm block of causal attention
   with four heads and an MLP with GELU, 64 channels. Adam, 512 characters to predict in a step, 300 steps of a cosine
   schedule.

   Every number that a real program would keep in low precision is kept in it: weights, activations and gradients have
   the storage type of their mode. What PyTorch's autocast keeps in fp32 is fp32: the transformer's residual stream,
   normalisation and its parameters, embeddings, what is inside softmax and the loss. */
#ifdef __linux__
#define _GNU_SOURCE /* for host.h */
#else
#define _POSIX_C_SOURCE 200809L
#endif
#define MIXPREC_IMPLEMENTATION
#include "host.h"
#include "train.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONTEXT = 8, LAYERS = 4 };                                                   /* the MLP */
enum { WINDOW = 32, CHANNELS = 64, HEADS = 4, HEAD = CHANNELS / HEADS, NORMS = 3 }; /* the transformer */
enum { BATCH = 512, VALIDATION = 8192, CURVE = 2048 };

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
    const char *name, *about;
    int by_default;
    int transformer, width, hidden; /* the MLP's embedding and layers */
    double learning_rate;
    int steps;
    int micro_batches; /* the loss is divided by this besides the batch, and the gradients are added up in fp32 */
    int every_one;     /* run them all, not one in the place of all */
    const char *only;  /* the modes that are worth it; NULL: all */
} task;
#define BF16_MODES "fp32 bf16 bf16-pure-nearest bf16-pure-stochastic bf16-pure-kahan"
#define SCALING_MODES "fp32 fp16-unscaled fp16-dynamic bf16 fp8-current fp8-unscaled"
static const task tasks[] = {
    {"plain", "MLP of three hidden layers of 128; the mean loss over a batch of 512; learning rate 0.002.", 1, 0, 16,
     128, 2e-3, 300, 1, 0, NULL},
    {"accumulated-1024",
     "The same MLP; the loss is divided by 1,024 besides, as with so many micro-batches whose gradients are added up "
     "in "
     "fp32. One micro-batch runs in the place of all of them: accumulated-real runs every one.",
     1, 0, 16, 128, 2e-3, 300, 1024, 0, NULL},
    {"small-rate",
     "The same MLP, learning rate 0.0002: updates that are smaller than half a unit in the last place of a bf16 weight "
     "are lost when it is rounded to nearest.",
     1, 0, 16, 128, 2e-4, 300, 1, 0, BF16_MODES},
    {"transformer",
     "A pre-norm transformer block: windows of 32 characters, 64 channels, four heads; the mean loss over 512 "
     "characters; learning rate 0.003.",
     1, 1, 0, 0, 3e-3, 300, 1, 0, NULL},
    {"accumulated-real",
     "MLP of three hidden layers of 48; 1,024 micro-batches of 512 a step, each with its own forward and backward "
     "pass; "
     "the loss is divided by 1,024, gradients are added up in fp32; learning rate 0.03.",
     0, 0, 4, 48, 3e-2, 32, 1024, 1, SCALING_MODES},
    {"accumulated-small", "accumulated-real with one micro-batch in the place of all 1,024.", 0, 0, 4, 48, 3e-2, 32,
     1024, 0, SCALING_MODES},
};
#define TASK_COUNT ((int)(sizeof tasks / sizeof *tasks))

static struct {
    const char *data, *out, *task, *mode;
    int steps, seeds, threads;
} option = {NULL, "build/train", NULL, NULL, 0, 3, 0};

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

/* n characters to predict, at random: targets[i] follows the CONTEXT ones at inputs[i * CONTEXT]; or, in windows, the
   ones from the start of its window to inputs[i]. */
static void draw(const int32_t *text, size_t size, uint64_t seed, uint64_t first, size_t n, int windows,
                 int32_t *inputs, int32_t *targets) {
    size_t length = windows ? WINDOW : CONTEXT, count = windows ? n / WINDOW : n, i, j;
    for (i = 0; i < count; i++) {
        size_t at = (size_t)((uint64_t)mixprec_random_bits(seed, first + i) * (size - length) >> 32);
        for (j = 0; j < length; j++) {
            inputs[i * length + j] = text[at + j];
            if (windows)
                targets[i * length + j] = text[at + j + 1];
        }
        if (!windows)
            targets[i] = text[at + length];
    }
}

/* ---- a run ---- */

/* A tensor of weights with its gradient and the optimiser's state. */
typedef struct parameter {
    size_t n;
    mixprec_dtype dtype; /* of the gradient, and of what layers read where `model` is not NULL */
    float *master, *moment1, *moment2;
    float *sum; /* the gradient accumulated over micro-batches */
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

/* y = x W + b. */
typedef struct linear {
    size_t inputs, outputs;
    parameter *weight, *bias;
    quantised q_input, q_weight, q_gradient; /* in the modes of fp8 */
} linear;

typedef struct run {
    const mode *mode;
    const task *task;
    uint64_t seed;
    int steps;
    mixprec_dtype dtype; /* the mode's */
    parameter parameters[32];
    int parameter_count;
    void *memory[256];
    int memory_count;

    /* the MLP */
    parameter *embedding;
    linear layer[LAYERS];
    void *input[LAYERS], *linear[LAYERS]; /* of a layer: what it reads, and before the activation */

    /* the transformer */
    parameter *position, *gamma[NORMS], *beta[NORMS];
    linear qkv, project, up, down, head;
    float *stream[NORMS], *mean[NORMS], *rstd[NORMS]; /* what a norm reads, and its statistics */
    void *normed[NORMS], *qkv_out, *probabilities, *attended, *up_out, *activated;
    float *stream_gradient, *addend;
    void *score_gradient;
    int32_t *positions, *valid;

    void *logits;
    void *gradient, *next_gradient; /* of what a layer writes, and of what it reads */
    float *scratch, *losses, *sums;
    mixprec_scaler scaler;
    mixprec_adam adam;
    int first, measuring; /* first: of a step's micro-batches */
    double nonzero, flushed;
    size_t bytes;
    train_result *result;
} run;

static void *allocate(run *r, size_t bytes, int counts) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory || r->memory_count == (int)(sizeof r->memory / sizeof *r->memory))
        fail("no memory for %s", r->mode->name);
    r->memory[r->memory_count++] = memory;
    if (counts)
        r->bytes += bytes;
    return memory;
}
static void *tensor(run *r, size_t n) {
    return allocate(r, n * mixprec_dtype_size(r->dtype), 1);
}
static float *floats(run *r, size_t n) {
    return (float *)allocate(r, n * sizeof(float), 1);
}

/* Uniform weights of mean `mean` and standard deviation `spread`. low: a matrix product reads them, or everything is in
   low precision. */
static parameter *make_parameter(run *r, size_t n, double mean, double spread, uint64_t stream, int low) {
    parameter *p = &r->parameters[r->parameter_count++];
    size_t i;
    p->n = n;
    p->dtype = low || r->mode->weights != MASTER ? r->dtype : MIXPREC_F32;
    p->moment1 = floats(r, n);
    p->moment2 = floats(r, n);
    p->grad = allocate(r, n * mixprec_dtype_size(p->dtype), 1);
    if (r->task->micro_batches > 1)
        p->sum = floats(r, n);
    p->master = (float *)allocate(r, n * sizeof(float), r->mode->weights == MASTER);
    for (i = 0; i < n; i++) {
        double u = mixprec_random_bits(r->seed << 8 | stream, i) / 4294967296.0 * 2 - 1;
        p->master[i] = (float)(mean + u * spread * 1.7320508075688772);
    }
    if (p->dtype == MIXPREC_F32 || r->mode->fp8)
        return p; /* layers read the master weights, or a quantised copy of them */
    p->model = allocate(r, n * mixprec_dtype_size(p->dtype), 1);
    check(mixprec_convert(p->model, p->dtype, p->master, MIXPREC_F32, n));
    if (r->mode->weights == PURE_KAHAN)
        p->compensation = allocate(r, n * mixprec_dtype_size(p->dtype), 1);
    return p;
}
static const void *values_of(const parameter *p, mixprec_dtype *dtype) {
    *dtype = p->model ? p->dtype : MIXPREC_F32;
    return p->model ? p->model : p->master;
}

static void make_quantised(run *r, quantised *q, mixprec_dtype dtype, size_t n) {
    q->dtype = dtype;
    q->data = allocate(r, n, 1);
    q->scale = 1;
    check(mixprec_delayed_scaling_init(&q->delayed, dtype, q->history, 16));
}

static void make_linear(run *r, linear *l, size_t inputs, size_t outputs, uint64_t stream) {
    l->inputs = inputs;
    l->outputs = outputs;
    l->weight = make_parameter(r, inputs * outputs, 0, 1 / sqrt((double)inputs), stream, 1);
    l->bias = make_parameter(r, outputs, 0, 0, 50, 1);
    if (r->mode->fp8) {
        make_quantised(r, &l->q_input, MIXPREC_E4M3, BATCH * inputs);
        make_quantised(r, &l->q_weight, MIXPREC_E4M3, inputs * outputs);
        make_quantised(r, &l->q_gradient, MIXPREC_E5M2, BATCH * outputs);
    }
}

static void make_mlp(run *r) {
    size_t hidden = (size_t)r->task->hidden, inputs = CONTEXT * (size_t)r->task->width, l;
    r->embedding = make_parameter(r, vocabulary * (size_t)r->task->width, 0, 1, 100, 1);
    for (l = 0; l < LAYERS; l++) {
        make_linear(r, &r->layer[l], l ? hidden : inputs, l < LAYERS - 1 ? hidden : vocabulary, l);
        r->linear[l] = tensor(r, BATCH * r->layer[l].outputs);
        /* fp8 keeps the quantised input only */
        r->input[l] = r->mode->fp8 && l > 0 ? r->input[0] : tensor(r, BATCH * (hidden > inputs ? hidden : inputs));
    }
    r->logits = r->linear[LAYERS - 1];
}

static void make_transformer(run *r) {
    size_t i;
    r->embedding = make_parameter(r, vocabulary * CHANNELS, 0, 0.5, 100, 0);
    r->position = make_parameter(r, WINDOW * CHANNELS, 0, 0.1, 101, 0);
    for (i = 0; i < NORMS; i++) {
        r->gamma[i] = make_parameter(r, CHANNELS, 1, 0, 50, 0);
        r->beta[i] = make_parameter(r, CHANNELS, 0, 0, 50, 0);
        r->stream[i] = floats(r, BATCH * CHANNELS);
        r->mean[i] = floats(r, BATCH);
        r->rstd[i] = floats(r, BATCH);
        r->normed[i] = r->mode->fp8 && i > 0 ? r->normed[0] : tensor(r, BATCH * CHANNELS);
    }
    make_linear(r, &r->qkv, CHANNELS, 3 * CHANNELS, 1);
    make_linear(r, &r->project, CHANNELS, CHANNELS, 2);
    make_linear(r, &r->up, CHANNELS, 4 * CHANNELS, 3);
    make_linear(r, &r->down, 4 * CHANNELS, CHANNELS, 4);
    make_linear(r, &r->head, CHANNELS, vocabulary, 5);
    r->qkv_out = tensor(r, BATCH * 3 * CHANNELS);
    r->probabilities = tensor(r, HEADS * BATCH * WINDOW);
    r->attended = tensor(r, BATCH * CHANNELS);
    r->up_out = tensor(r, BATCH * 4 * CHANNELS);
    r->activated = tensor(r, BATCH * 4 * CHANNELS);
    r->logits = tensor(r, BATCH * vocabulary);
    r->stream_gradient = floats(r, BATCH * CHANNELS);
    r->addend = floats(r, BATCH * CHANNELS);
    r->score_gradient = tensor(r, HEADS * BATCH * WINDOW);
    r->positions = (int32_t *)allocate(r, BATCH * sizeof *r->positions, 0);
    r->valid = (int32_t *)allocate(r, HEADS * BATCH * sizeof *r->valid, 0);
    for (i = 0; i < BATCH; i++)
        r->positions[i] = (int32_t)(i % WINDOW);
    for (i = 0; i < HEADS * BATCH; i++)
        r->valid[i] = (int32_t)(i % WINDOW + 1);
}

static void start(run *r, const mode *m, const task *t, int seed, train_result *result) {
    size_t widest = 4 * CHANNELS > vocabulary ? 4 * CHANNELS : vocabulary, i, sums, most = HEADS * BATCH * WINDOW;
    memset(r, 0, sizeof *r);
    r->mode = m;
    r->task = t;
    r->seed = (uint64_t)seed;
    r->steps = option.steps ? option.steps : t->steps;
    r->dtype = m->dtype;
    r->result = result;
    if (t->transformer)
        make_transformer(r);
    else {
        widest = (size_t)t->hidden > vocabulary ? (size_t)t->hidden : vocabulary;
        make_mlp(r);
    }
    r->gradient = tensor(r, BATCH * widest);
    r->next_gradient = tensor(r, BATCH * widest);
    r->losses = (float *)allocate(r, BATCH * sizeof(float), 0);
    for (i = 0; i < (size_t)r->parameter_count; i++)
        most = r->parameters[i].n > most ? r->parameters[i].n : most;
    sums = r->embedding->n > widest ? r->embedding->n : widest;
    r->sums = floats(r, r->position && r->position->n > sums ? r->position->n : sums);
    r->scratch = (float *)allocate(r, (most > BATCH * widest ? most : BATCH * widest) * sizeof(float), 0);
    mixprec_adam_init(&r->adam);
    mixprec_scaler_init(&r->scaler);
    r->scaler.growth_interval = 50; /* of 300 steps, not of 100,000 */
    if (m->scaling == STATIC_SCALE)
        check(mixprec_scaler_init_static(&r->scaler, 65536));
}

static void finish(run *r) {
    while (r->memory_count)
        free(r->memory[--r->memory_count]);
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

/* Where a gradient of the mode's dtype is computed: in its place; or, to be measured, in fp32, and narrow_measured
   brings it there. The bits are the same: every result is narrowed once from fp32. */
static void *measured(run *r, void *to, mixprec_dtype *dtype) {
    *dtype = r->measuring ? MIXPREC_F32 : r->dtype;
    return r->measuring ? r->scratch : to;
}
static void narrow_measured(run *r, void *to, size_t n) {
    if (!r->measuring)
        return;
    measure(r, r->scratch, MIXPREC_F32, n, r->dtype, 0);
    check(mixprec_convert(to, r->dtype, r->scratch, MIXPREC_F32, n));
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

/* An operand of a product: a tensor, or its quantised form. */
static void operand(const run *r, const quantised *q, const void *x, mixprec_dtype dtype, const void **data,
                    mixprec_dtype *type, mixprec_scales *scales) {
    *data = r->mode->fp8 ? q->data : x;
    *type = r->mode->fp8 ? q->dtype : dtype;
    if (r->mode->fp8)
        scales->values = &q->scale;
}

/* y = x W + b, or, for a residual, y = y + x W + b: rows of x in the mode's dtype. */
static void linear_forward(run *r, linear *l, const void *x, size_t rows, void *y, mixprec_dtype y_type, int residual,
                           int training) {
    static const double one = 1;
    mixprec_dtype dtype;
    const void *values = values_of(l->weight, &dtype);
    mixprec_gemm_desc d;
    if (r->mode->fp8) {
        quantise(r, &l->q_input, x, r->dtype, rows * l->inputs, training);
        if (!training || r->first) /* the weights stay through the micro-batches of a step */
            quantise(r, &l->q_weight, values, dtype, l->weight->n, training);
    }
    memset(&d, 0, sizeof d);
    d.m = rows;
    d.n = l->outputs;
    d.k = l->inputs;
    operand(r, &l->q_input, x, r->dtype, &d.a, &d.a_type, &d.scale_a);
    operand(r, &l->q_weight, values, dtype, &d.b, &d.b_type, &d.scale_b);
    d.bias = values_of(l->bias, &d.bias_type);
    d.beta = residual ? &one : NULL;
    d.c = y;
    d.c_type = y_type;
    check(mixprec_gemm_ex(&d));
}

/* A gradient summed in fp32 goes to where the optimiser reads it. */
static void store_gradient(run *r, parameter *p) {
    measure(r, r->sums, MIXPREC_F32, p->n, p->dtype, 0);
    check(mixprec_convert(p->grad, p->dtype, r->sums, MIXPREC_F32, p->n));
}
static float *zero_sums(run *r, const parameter *p) {
    return (float *)memset(r->sums, 0, p->n * sizeof *r->sums);
}

/* From dy, BATCH rows: dW = x^T dy, db, dx = dy W^T. */
static void linear_backward(run *r, linear *l, const void *x, const void *dy, void *dx) {
    mixprec_gemm_desc d;
    mixprec_dtype dtype;
    const void *values = values_of(l->weight, &dtype);
    if (r->mode->fp8)
        quantise(r, &l->q_gradient, dy, r->dtype, BATCH * l->outputs, 1);
    memset(&d, 0, sizeof d);
    d.m = l->inputs;
    d.n = l->outputs;
    d.k = BATCH;
    d.trans_a = MIXPREC_TRANS;
    operand(r, &l->q_input, x, r->dtype, &d.a, &d.a_type, &d.scale_a);
    operand(r, &l->q_gradient, dy, r->dtype, &d.b, &d.b_type, &d.scale_b);
    d.c = measured(r, l->weight->grad, &d.c_type);
    check(mixprec_gemm_ex(&d));
    narrow_measured(r, l->weight->grad, l->weight->n);
    check(mixprec_bias_gradient(zero_sums(r, l->bias), dy, r->dtype, BATCH, l->outputs, 0));
    store_gradient(r, l->bias);
    memset(&d, 0, sizeof d);
    d.m = BATCH;
    d.n = l->inputs;
    d.k = l->outputs;
    d.trans_b = MIXPREC_TRANS;
    operand(r, &l->q_gradient, dy, r->dtype, &d.a, &d.a_type, &d.scale_a);
    operand(r, &l->q_weight, values, dtype, &d.b, &d.b_type, &d.scale_b);
    d.c = measured(r, dx, &d.c_type);
    check(mixprec_gemm_ex(&d));
    narrow_measured(r, dx, BATCH * l->inputs);
}

static void swap_gradients(run *r) {
    void *swap = r->gradient;
    r->gradient = r->next_gradient;
    r->next_gradient = swap;
}

/* ---- the MLP ---- */

static void mlp_forward(run *r, const int32_t *contexts, int training) {
    mixprec_dtype dtype;
    const void *values = values_of(r->embedding, &dtype);
    int l;
    check(mixprec_embedding(r->input[0], r->dtype, values, dtype, contexts, BATCH * CONTEXT, vocabulary,
                            (size_t)r->task->width));
    for (l = 0; l < LAYERS; l++) {
        linear_forward(r, &r->layer[l], r->input[l], BATCH, r->linear[l], r->dtype, 0, training);
        if (l < LAYERS - 1)
            check(mixprec_activate(r->input[l + 1], r->dtype, r->linear[l], r->dtype, BATCH * r->layer[l].outputs,
                                   MIXPREC_ACTIVATION_TANH));
    }
}

/* From the gradient of the logits, which is in r->gradient. */
static void mlp_backward(run *r, const int32_t *contexts) {
    int l;
    for (l = LAYERS - 1; l >= 0; l--) {
        linear_backward(r, &r->layer[l], r->input[l], r->gradient, r->next_gradient);
        if (l > 0) {
            mixprec_dtype dtype;
            void *to = measured(r, r->next_gradient, &dtype);
            check(mixprec_activate_backward(to, dtype, r->next_gradient, r->dtype, r->linear[l - 1], r->dtype,
                                            BATCH * r->layer[l].inputs, MIXPREC_ACTIVATION_TANH));
            narrow_measured(r, r->next_gradient, BATCH * r->layer[l].inputs);
        }
        swap_gradients(r);
    }
    check(mixprec_embedding_gradient(zero_sums(r, r->embedding), r->gradient, r->dtype, contexts, BATCH * CONTEXT,
                                     vocabulary, (size_t)r->task->width));
    store_gradient(r, r->embedding);
}

/* ---- the transformer ---- */

/* The matrices of all windows and heads inside a tensor: elements from one row to the next, from one window to the
   next, from one head to the next. */
typedef struct view {
    void *data;
    mixprec_dtype dtype;
    size_t ld, window, head;
} view;
static view view_of(void *data, mixprec_dtype dtype, size_t columns, size_t first) {
    view v;
    v.data = (char *)data + first * mixprec_dtype_size(dtype);
    v.dtype = dtype;
    v.ld = columns;
    v.window = WINDOW * columns;
    v.head = HEAD;
    return v;
}
static view scores_of(void *data, mixprec_dtype dtype) {
    view v = view_of(data, dtype, WINDOW, 0);
    v.head = BATCH * WINDOW;
    return v;
}

/* C = alpha op(A) op(B) for every head of every window: a batch for each head. */
static void attend(view c, mixprec_transpose ta, view a, mixprec_transpose tb, view b, size_t n, size_t k, double alpha,
                   mixprec_triangle triangle) {
    size_t h;
    for (h = 0; h < HEADS; h++) {
        mixprec_gemm_desc d;
        memset(&d, 0, sizeof d);
        d.trans_a = ta;
        d.trans_b = tb;
        d.m = WINDOW;
        d.n = n;
        d.k = k;
        d.alpha = &alpha;
        d.a = (char *)a.data + h * a.head * mixprec_dtype_size(a.dtype);
        d.a_type = a.dtype;
        d.lda = a.ld;
        d.b = (char *)b.data + h * b.head * mixprec_dtype_size(b.dtype);
        d.b_type = b.dtype;
        d.ldb = b.ld;
        d.c = (char *)c.data + h * c.head * mixprec_dtype_size(c.dtype);
        d.c_type = c.dtype;
        d.ldc = c.ld;
        d.batch = BATCH / WINDOW;
        d.stride_a = a.window;
        d.stride_b = b.window;
        d.stride_c = c.window;
        d.triangle = triangle; /* of scores the lower half is enough: what is above the diagonal is masked */
        check(mixprec_gemm_ex(&d));
    }
}
#define ATTENTION_SCALE (1 / sqrt((double)HEAD))
static const mixprec_transpose no = MIXPREC_NO_TRANS, yes = MIXPREC_TRANS;

/* Norm i reads a stream and gives what a product reads; the backward pass adds to the stream's gradient. */
static void norm_forward(run *r, int i) {
    mixprec_dtype dtype;
    const void *gamma = values_of(r->gamma[i], &dtype), *beta = values_of(r->beta[i], &dtype);
    check(mixprec_layer_norm(r->normed[i], r->dtype, r->mean[i], r->rstd[i], r->stream[i], MIXPREC_F32, gamma, beta,
                             dtype, BATCH, CHANNELS, 1e-5));
}
static void norm_backward(run *r, int i, const void *dy) {
    mixprec_dtype dtype;
    const void *gamma = values_of(r->gamma[i], &dtype);
    float *dgamma = r->sums, *dbeta = r->sums + CHANNELS;
    memset(r->sums, 0, 2 * CHANNELS * sizeof *r->sums);
    check(mixprec_layer_norm_backward(r->addend, MIXPREC_F32, dgamma, dbeta, dy, r->dtype, r->stream[i], MIXPREC_F32,
                                      gamma, dtype, r->mean[i], r->rstd[i], BATCH, CHANNELS));
    measure(r, r->sums, MIXPREC_F32, 2 * CHANNELS, r->gamma[i]->dtype, 0);
    check(mixprec_convert(r->gamma[i]->grad, r->gamma[i]->dtype, dgamma, MIXPREC_F32, CHANNELS));
    check(mixprec_convert(r->beta[i]->grad, r->beta[i]->dtype, dbeta, MIXPREC_F32, CHANNELS));
    check(mixprec_accumulate(r->stream_gradient, r->addend, MIXPREC_F32, BATCH * CHANNELS, 1));
}

static void transformer_forward(run *r, const int32_t *tokens, int training) {
    const size_t n = BATCH * CHANNELS;
    view q = view_of(r->qkv_out, r->dtype, 3 * CHANNELS, 0), k = view_of(r->qkv_out, r->dtype, 3 * CHANNELS, CHANNELS);
    view v = view_of(r->qkv_out, r->dtype, 3 * CHANNELS, 2 * CHANNELS), p = scores_of(r->probabilities, r->dtype);
    mixprec_dtype dtype;
    const void *values = values_of(r->embedding, &dtype);
    check(mixprec_embedding(r->stream[0], MIXPREC_F32, values, dtype, tokens, BATCH, vocabulary, CHANNELS));
    values = values_of(r->position, &dtype);
    check(mixprec_embedding(r->addend, MIXPREC_F32, values, dtype, r->positions, BATCH, WINDOW, CHANNELS));
    check(mixprec_accumulate(r->stream[0], r->addend, MIXPREC_F32, n, 1));

    norm_forward(r, 0);
    linear_forward(r, &r->qkv, r->normed[0], BATCH, r->qkv_out, r->dtype, 0, training);
    attend(p, no, q, yes, k, WINDOW, HEAD, ATTENTION_SCALE, MIXPREC_LOWER);
    check(mixprec_softmax_masked(r->probabilities, r->dtype, r->probabilities, r->dtype, r->valid, HEADS * BATCH,
                                 WINDOW));
    attend(view_of(r->attended, r->dtype, CHANNELS, 0), no, p, no, v, HEAD, WINDOW, 1, MIXPREC_FULL);
    memcpy(r->stream[1], r->stream[0], n * sizeof(float));
    linear_forward(r, &r->project, r->attended, BATCH, r->stream[1], MIXPREC_F32, 1, training);

    norm_forward(r, 1);
    linear_forward(r, &r->up, r->normed[1], BATCH, r->up_out, r->dtype, 0, training);
    check(mixprec_activate(r->activated, r->dtype, r->up_out, r->dtype, 4 * n, MIXPREC_ACTIVATION_GELU));
    memcpy(r->stream[2], r->stream[1], n * sizeof(float));
    linear_forward(r, &r->down, r->activated, BATCH, r->stream[2], MIXPREC_F32, 1, training);

    norm_forward(r, 2);
    linear_forward(r, &r->head, r->normed[2], BATCH, r->logits, r->dtype, 0, training);
}

/* From the gradient of the logits, which is in r->gradient. */
static void transformer_backward(run *r, const int32_t *tokens) {
    const size_t n = BATCH * CHANNELS;
    view q = view_of(r->qkv_out, r->dtype, 3 * CHANNELS, 0), k = view_of(r->qkv_out, r->dtype, 3 * CHANNELS, CHANNELS);
    view v = view_of(r->qkv_out, r->dtype, 3 * CHANNELS, 2 * CHANNELS), p = scores_of(r->probabilities, r->dtype);
    view d_scores = scores_of(r->score_gradient, r->dtype), d_attended;
    mixprec_dtype dtype;
    void *to;
    linear_backward(r, &r->head, r->normed[2], r->gradient, r->next_gradient);
    memset(r->stream_gradient, 0, n * sizeof(float));
    norm_backward(r, 2, r->next_gradient);

    measure(r, r->stream_gradient, MIXPREC_F32, n, r->dtype, 0);
    check(mixprec_convert(r->gradient, r->dtype, r->stream_gradient, MIXPREC_F32, n));
    linear_backward(r, &r->down, r->activated, r->gradient, r->next_gradient);
    to = measured(r, r->gradient, &dtype);
    check(mixprec_activate_backward(to, dtype, r->next_gradient, r->dtype, r->up_out, r->dtype, 4 * n,
                                    MIXPREC_ACTIVATION_GELU));
    narrow_measured(r, r->gradient, 4 * n);
    linear_backward(r, &r->up, r->normed[1], r->gradient, r->next_gradient);
    norm_backward(r, 1, r->next_gradient);

    measure(r, r->stream_gradient, MIXPREC_F32, n, r->dtype, 0);
    check(mixprec_convert(r->gradient, r->dtype, r->stream_gradient, MIXPREC_F32, n));
    linear_backward(r, &r->project, r->attended, r->gradient, r->next_gradient);
    d_attended = view_of(r->next_gradient, r->dtype, CHANNELS, 0);
    to = measured(r, r->score_gradient, &dtype);
    if (r->measuring)
        memset(to, 0, HEADS * BATCH * WINDOW * mixprec_dtype_size(dtype)); /* above the diagonal nothing is computed */
    attend(scores_of(to, dtype), no, d_attended, yes, v, WINDOW, HEAD, 1, MIXPREC_LOWER);
    narrow_measured(r, r->score_gradient, HEADS * BATCH * WINDOW);
    to = measured(r, r->score_gradient, &dtype);
    check(mixprec_softmax_masked_backward(to, dtype, r->score_gradient, r->dtype, r->probabilities, r->dtype, r->valid,
                                          HEADS * BATCH, WINDOW));
    narrow_measured(r, r->score_gradient, HEADS * BATCH * WINDOW);
    to = measured(r, r->gradient, &dtype); /* of q, k, v */
    attend(view_of(to, dtype, 3 * CHANNELS, 0), no, d_scores, no, k, HEAD, WINDOW, ATTENTION_SCALE, MIXPREC_FULL);
    attend(view_of(to, dtype, 3 * CHANNELS, CHANNELS), yes, d_scores, no, q, HEAD, WINDOW, ATTENTION_SCALE,
           MIXPREC_FULL);
    attend(view_of(to, dtype, 3 * CHANNELS, 2 * CHANNELS), yes, p, no, d_attended, HEAD, WINDOW, 1, MIXPREC_FULL);
    narrow_measured(r, r->gradient, 3 * n);
    linear_backward(r, &r->qkv, r->normed[0], r->gradient, r->next_gradient);
    norm_backward(r, 0, r->next_gradient);

    check(mixprec_embedding_gradient(zero_sums(r, r->embedding), r->stream_gradient, MIXPREC_F32, tokens, BATCH,
                                     vocabulary, CHANNELS));
    store_gradient(r, r->embedding);
    check(mixprec_embedding_gradient(zero_sums(r, r->position), r->stream_gradient, MIXPREC_F32, r->positions, BATCH,
                                     WINDOW, CHANNELS));
    store_gradient(r, r->position);
}

/* ---- a step ---- */

/* From characters to logits. */
static void forward(run *r, const int32_t *inputs, int training) {
    if (r->task->transformer)
        transformer_forward(r, inputs, training);
    else
        mlp_forward(r, inputs, training);
}

static void backward(run *r, const int32_t *inputs, const int32_t *targets) {
    double scale = r->mode->scaling == UNSCALED ? 1 : (double)mixprec_scaler_scale(&r->scaler, 1);
    mixprec_dtype dtype;
    void *to = measured(r, r->gradient, &dtype);
    check(mixprec_cross_entropy(to, dtype, NULL, r->logits, r->dtype, targets, BATCH, vocabulary,
                                scale / BATCH / r->task->micro_batches));
    narrow_measured(r, r->gradient, BATCH * vocabulary);
    if (r->task->transformer)
        transformer_backward(r, inputs);
    else
        mlp_backward(r, inputs);
}

/* Adds a micro-batch's gradients to the step's, in fp32; `times`: as if so many micro-batches had them. */
static void accumulate(run *r, float times) {
    int i;
    for (i = 0; i < r->parameter_count; i++) {
        parameter *p = &r->parameters[i];
        if (r->first)
            memset(p->sum, 0, p->n * sizeof *p->sum);
        check(mixprec_accumulate(p->sum, p->grad, p->dtype, p->n, times));
    }
}

static void update(run *r, int step) {
    float inverse = r->mode->scaling == UNSCALED ? 1 : mixprec_inverse_scale(r->scaler.scale);
    mixprec_parameter tensors[sizeof r->parameters / sizeof *r->parameters];
    int i;
    memset(tensors, 0, sizeof tensors);
    for (i = 0; i < r->parameter_count; i++) {
        parameter *p = &r->parameters[i];
        mixprec_parameter *t = &tensors[i];
        t->n = p->n;
        t->grad = p->sum ? (void *)p->sum : p->grad;
        t->grad_type = p->sum ? MIXPREC_F32 : p->dtype;
        t->master = r->mode->weights == MASTER ? p->master : NULL;
        t->model = p->model;
        t->model_type = p->model ? p->dtype : MIXPREC_NONE;
        t->compensation = p->compensation;
        t->moment1 = p->moment1;
        t->moment2 = p->moment2;
        if (r->mode->weights == PURE_STOCHASTIC) {
            t->round = MIXPREC_ROUND_STOCHASTIC;
            t->seed = r->seed << 32 | (uint64_t)step << 8 | (uint64_t)i;
        }
        if (r->mode->scaling != UNSCALED) {
            double squares;
            check(mixprec_sum_squares(&squares, t->grad, t->grad_type, t->n));
            r->scaler.found_inf |= mixprec_found_inf(mixprec_gradient_norm(squares, inverse));
        }
    }
    if (r->mode->scaling != UNSCALED && !mixprec_scaler_update(&r->scaler)) {
        r->result->skipped++;
        return;
    }
    r->adam.step++;
    r->adam.learning_rate =
        mixprec_warmup_cosine(r->task->learning_rate, 0, (uint64_t)r->steps / 20, (uint64_t)r->steps, (uint64_t)step);
    for (i = 0; i < r->parameter_count; i++)
        check(mixprec_adam_step(&r->adam, &tensors[i], inverse, 1, 0));
}

/* The loss over n characters of the validation text, the same for all runs; *accuracy may be NULL. */
static double validate(run *r, size_t n, double *accuracy) {
    int32_t inputs[BATCH * CONTEXT], targets[BATCH];
    double total = 0;
    size_t done, correct = 0, i, j;
    for (done = 0; done < n; done += BATCH) {
        double sum;
        draw(validation_text, validation_size, 12345, done, BATCH, r->task->transformer, inputs, targets);
        forward(r, inputs, 0);
        check(mixprec_cross_entropy(NULL, r->dtype, r->losses, r->logits, r->dtype, targets, BATCH, vocabulary, 1));
        check(mixprec_sum(&sum, r->losses, MIXPREC_F32, BATCH));
        total += sum;
        check(mixprec_convert(r->scratch, MIXPREC_F32, r->logits, r->dtype, BATCH * vocabulary));
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

static train_result *results;
static int result_count, next_result, done_count;
static const mode *mode_of[1024];
static const task *task_of[1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void progress(const train_result *result, int step, double loss) {
    if (!isatty(2))
        return;
    pthread_mutex_lock(&lock);
    fprintf(stderr, "\r%3d of %d runs done; %s, %s, seed %d: step %d, loss %.3f%20s", done_count, result_count,
            result->task, result->mode, result->seed, step, loss, "");
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

static void train(train_result *result, const mode *m, const task *t) {
    int32_t inputs[BATCH * CONTEXT], targets[BATCH];
    int step, micro, every, timed = 0, runs = t->every_one ? t->micro_batches : 1;
    double time = 0;
    run r;
    start(&r, m, t, result->seed, result);
    every = r.steps / 16 + 1;
    for (step = 0; step < r.steps; step++) {
        double begun;
        if (step % every == 0) {
            result->steps[result->points] = step;
            result->losses[result->points] = validate(&r, CURVE, NULL);
            progress(result, step, result->losses[result->points++]);
        }
        begun = seconds();
        for (micro = 0; micro < runs; micro++) {
            r.first = micro == 0;
            r.measuring = r.first && step % every == every / 2;
            draw(train_text, train_size, r.seed + 1000, ((uint64_t)step * (uint64_t)runs + (uint64_t)micro) * BATCH,
                 BATCH, t->transformer, inputs, targets);
            forward(&r, inputs, 1);
            backward(&r, inputs, targets);
            if (t->micro_batches > 1)
                accumulate(&r, (float)(t->micro_batches / runs));
        }
        update(&r, step);
        if (step % every != every / 2) { /* measuring takes time */
            time += seconds() - begun;
            timed++;
        }
    }
    r.measuring = 0;
    result->val_loss = validate(&r, VALIDATION, &result->val_acc);
    result->steps[result->points] = step;
    result->losses[result->points++] = validate(&r, CURVE, NULL);
    result->ms_per_step = timed ? 1000 * time / timed : (double)NAN;
    result->flushed = r.nonzero > 0 ? r.flushed / r.nonzero : 0;
    result->bytes = r.bytes;
    finish(&r);
}

/* Is a name one of a list? */
static int names(const char *list, const char *name) {
    size_t length = strlen(name);
    const char *at = list;
    while ((at = strstr(at, name)) && !((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' ')))
        at++;
    return at != NULL;
}

static void plan(void) {
    int t, m, seed;
    results = (train_result *)calloc(1024, sizeof *results);
    if (!results)
        fail("no memory for %s", "the results");
    for (t = 0; t < TASK_COUNT; t++)
        for (m = 0; m < MODE_COUNT; m++) {
            if (option.task ? strcmp(option.task, tasks[t].name) != 0 : !tasks[t].by_default)
                continue;
            if (m > 0 && option.mode && strcmp(option.mode, modes[m].name))
                continue;
            if (tasks[t].only && !names(tasks[t].only, modes[m].name))
                continue;
            for (seed = 1; seed <= option.seeds; seed++) {
                task_of[result_count] = &tasks[t];
                mode_of[result_count] = &modes[m];
                results[result_count].task = tasks[t].name;
                results[result_count].about = tasks[t].about;
                results[result_count].mode = modes[m].name;
                results[result_count++].seed = seed;
            }
        }
    for (m = 0; option.mode && m < result_count; m++)
        if (!strcmp(option.mode, results[m].mode))
            return;
    if (option.mode)
        fail("that task has no mode %s", option.mode);
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
    "Trains small language models in fp32, fp16, bf16 and fp8 and compares the losses.\n"
    "  --data FILE    the text, at least 20,000 characters; default: this repository's own manual and sources\n"
    "  --out DIR      where results.csv and report.html go; default: build/train\n"
    "  --task NAME    only this task: plain, accumulated-1024, small-rate, transformer; or one that the default "
    "leaves\n"
    "                 out: accumulated-real, which runs all 1,024 micro-batches of a step (accumulated-1024 runs one\n"
    "                 in the place of all; some ten minutes on two cores), and accumulated-small, the same model\n"
    "                 with one in the place of all\n"
    "  --mode NAME    only this mode, and fp32 to compare with: fp32, fp16-unscaled, fp16-static, fp16-dynamic, bf16,\n"
    "                 bf16-pure-nearest, bf16-pure-stochastic, bf16-pure-kahan, fp8-current, fp8-delayed,\n"
    "                 fp8-unscaled\n"
    "  --steps N      of each run (1 to 1000000); default 300 (accumulated-real and accumulated-small: 32); up to 15\n"
    "                 the time of a step is not known\n"
    "  --seeds N      runs of each mode (1 to 20); default 3\n"
    "  --threads N    runs at a time (1 to 256); default: the number of cores that it may use\n"
    "  --help         this text\n";

static int number(const char *name, const char *text, long most) {
    char *end;
    long value;
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || *text == 0 || *end || value < 1 || value > most) {
        char message[96];
        snprintf(message, sizeof message, "%s takes a whole number from 1 to %ld", name, most);
        fail("%s", message);
    }
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
        fail("unknown mode %s (see --help)", option.mode);
    if (!option.threads)
        option.threads = host_cores() > 256 ? 256 : host_cores();
}

static void path_of(const char *name, char path[4096]) {
    if (snprintf(path, 4096, "%s/%s", option.out, name) >= 4096)
        fail("%s is too long a path", option.out);
}

static FILE *open_output(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        fail("cannot write %s", path);
    return file;
}

int main(int argc, char **argv) {
    pthread_t threads[256];
    char about[512], csv_path[4096], html_path[4096];
    FILE *csv, *html;
    int i;
    read_options(argc, argv);
    prepare_text();
    plan();
    if (mkdir(option.out, 0777) && errno != EEXIST)
        fail("cannot make the directory %s", option.out);
    path_of("results.csv", csv_path);
    path_of("report.html", html_path);
    if (!host_can_write(csv_path) || !host_can_write(html_path))
        fail("cannot write to %s", option.out);
    snprintf(about, sizeof about,
             "%s: %zu characters for training, %zu for validation, %zu different ones. Adam, cosine schedule; kernels: "
             "%s.",
             option.data ? option.data : "This library's manual and sources", train_size, validation_size, vocabulary,
             mixprec_isa_name(mixprec_isa_best()));
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
    csv = open_output(csv_path);
    html = open_output(html_path);
    train_write_csv(csv, results, result_count);
    train_write_html(html, results, result_count, about);
    if (ferror(csv) || ferror(html) || fclose(csv) || fclose(html))
        fail("cannot write to %s", option.out);
    printf("\n%s, %s\n", csv_path, html_path);
    return 0;
}
