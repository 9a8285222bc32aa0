/* The benchmark: what fp64, fp32, fp16, bf16 and fp8 cost and what they lose on this machine. `make bench` builds and
   runs it; it prints tables and writes results.csv, results.json and report.html beside the program. --help lists the
   options. This file holds the options, the clock, the threads and the results; bench.h tells how to measure. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_setaffinity */
#else
#define _POSIX_C_SOURCE 200809L
#endif
#define MIXPREC_IMPLEMENTATION
#include "bench.h"
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

bench_options bench_option = {0, 1, 0.13, NULL, ""};
bench_result *bench_results;
int bench_result_count;

const mixprec_dtype bench_dtypes[6] = {MIXPREC_F64, MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};

/* ---- memory and data ---- */

void *bench_alloc(size_t bytes) {
    void *memory;
    if (posix_memalign(&memory, 64, bytes ? bytes : 64)) {
        fprintf(stderr, "bench: no memory for %.0f MiB\n", (double)bytes / 1048576);
        exit(1);
    }
    memset(memory, 0, bytes); /* so that no page is first touched under the clock */
    return memory;
}

static char *copy_of(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (!copy) {
        fprintf(stderr, "bench: no memory\n");
        exit(1);
    }
    return memcpy(copy, text, size);
}

/* Steele, Lea and Flood's SplitMix generator: uniform in (0, 1). */
static double uniform(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return ((double)((x ^ x >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

/* Box and Muller's method: two uniform numbers make two normal ones. */
void bench_normals(double *x, size_t n, uint64_t seed) {
    size_t i;
    for (i = 0; i < n; i += 2) {
        double radius = 0.5 * sqrt(-2 * log(uniform(&seed)));
        double angle = 6.283185307179586 * uniform(&seed);
        x[i] = radius * cos(angle);
        if (i + 1 < n)
            x[i + 1] = radius * sin(angle);
    }
}

void bench_fill(void *array, mixprec_dtype type, size_t n, bench_numbers numbers) {
    enum { PIECE = 4096 };
    double values[PIECE];
    size_t i;
    bench_normals(values, PIECE, 1);
    for (i = 0; i < PIECE && numbers == BENCH_SQUARES; i++)
        values[i] *= values[i];
    for (i = 0; i < n; i += PIECE) {
        if (i && numbers == BENCH_OTHERS)
            bench_normals(values, PIECE, i + 1);
        bench_check(mixprec_convert((unsigned char *)array + mixprec_dtype_bytes(type, i), type, values, MIXPREC_F64,
                                    n - i < PIECE ? n - i : PIECE));
    }
}

void bench_use(const void *memory) {
#ifdef __GNUC__
    __asm__ volatile("" : : "r"(memory) : "memory");
#else
    static const void *volatile sink;
    sink = memory;
#endif
}

void bench_check(mixprec_status status) {
    if (status != MIXPREC_OK) {
        fprintf(stderr, "bench: the library says: %s\n", mixprec_status_string(status));
        exit(1);
    }
}

int bench_paths(mixprec_isa paths[4]) {
    static const mixprec_isa all[4] = {MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512, MIXPREC_ISA_NEON};
    int i, count = 0;
    for (i = 0; i < 4; i++)
        if (mixprec_isa_available(all[i]))
            paths[count++] = all[i];
    return count;
}

/* ---- threads: helpers that sleep until there is a range to compute ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t done, start[BENCH_MAX_THREADS]; /* one for each: a call wakes no more helpers than it needs */
    int helpers, running, called[BENCH_MAX_THREADS];
    void (*work)(void *context, size_t begin, size_t end);
    void *context;
    size_t bounds[BENCH_MAX_THREADS + 1];
} pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

#ifdef __linux__
static cpu_set_t all_cores;
#endif

static void *helper_main(void *argument) {
    int index = (int)(size_t)argument;
#ifdef __linux__
    sched_setaffinity(0, sizeof(all_cores), &all_cores); /* it inherited the main thread's pin */
#endif
    for (;;) {
        size_t begin, end;
        pthread_mutex_lock(&pool.mutex);
        while (!pool.called[index])
            pthread_cond_wait(&pool.start[index], &pool.mutex);
        pool.called[index] = 0;
        begin = pool.bounds[index];
        end = pool.bounds[index + 1];
        pthread_mutex_unlock(&pool.mutex);
        pool.work(pool.context, begin, end);
        pthread_mutex_lock(&pool.mutex);
        if (--pool.running == 0)
            pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.mutex);
    }
    return NULL;
}

void bench_parallel(int threads, size_t n, size_t grain, void (*work)(void *context, size_t begin, size_t end),
                    void *context) {
    size_t blocks = (n + grain - 1) / grain;
    int i;
    if ((size_t)threads > blocks)
        threads = (int)blocks;
    if (threads <= 1) {
        work(context, 0, n);
        return;
    }
    pthread_mutex_lock(&pool.mutex);
    while (pool.helpers < threads - 1) {
        pthread_t thread;
        if (pthread_cond_init(&pool.start[pool.helpers + 1], NULL) ||
            pthread_create(&thread, NULL, helper_main, (void *)(size_t)(pool.helpers + 1))) {
            fprintf(stderr, "bench: cannot start a thread\n");
            exit(1);
        }
        pthread_detach(thread);
        pool.helpers++;
    }
    for (i = 0; i <= threads; i++) {
        size_t block = blocks * (size_t)i / (size_t)threads;
        pool.bounds[i] = block * grain < n ? block * grain : n;
    }
    pool.work = work;
    pool.context = context;
    pool.running = threads - 1;
    for (i = 1; i < threads; i++) {
        pool.called[i] = 1;
        pthread_cond_signal(&pool.start[i]);
    }
    pthread_mutex_unlock(&pool.mutex);
    work(context, 0, pool.bounds[1]);
    pthread_mutex_lock(&pool.mutex);
    while (pool.running)
        pthread_cond_wait(&pool.done, &pool.mutex);
    pthread_mutex_unlock(&pool.mutex);
}

/* One thread stays on one core, so that neither caches nor clocks change under it. Several are left to the system:
   threads that the peers start inherit a pin, and would then share the core. */
static void pin(void) {
#ifdef __linux__
    cpu_set_t one;
    int core = sched_getcpu();
    sched_getaffinity(0, sizeof(all_cores), &all_cores);
    if (core < 0 || bench_option.threads > 1)
        return;
    CPU_ZERO(&one);
    CPU_SET((unsigned)core, &one);
    sched_setaffinity(0, sizeof(one), &one);
#endif
}

/* ---- results ---- */

bench_key bench_key_of(const char *suite, const char *name, mixprec_dtype dtype, mixprec_isa isa) {
    bench_key key;
    key.suite = suite;
    key.name = name;
    key.dtype = mixprec_dtype_name(dtype);
    key.isa = mixprec_isa_name(isa);
    key.threads = bench_option.threads;
    key.impl = "mixprec";
    return key;
}

static int same_key(const bench_key *a, const bench_key *b) {
    return !strcmp(a->suite, b->suite) && !strcmp(a->name, b->name) && !strcmp(a->dtype, b->dtype) &&
           !strcmp(a->isa, b->isa) && a->threads == b->threads && !strcmp(a->impl, b->impl);
}

static bench_result *find_result(const bench_key *key, const char *metric) {
    int i;
    for (i = 0; i < bench_result_count; i++)
        if (!strcmp(bench_results[i].metric, metric) && same_key(&bench_results[i].key, key))
            return &bench_results[i];
    return NULL;
}

void bench_record(const bench_key *key, const char *metric, double value) {
    static int capacity;
    bench_result *result;
    if (bench_result_count == capacity) {
        capacity = capacity ? 2 * capacity : 1024;
        bench_results = realloc(bench_results, (size_t)capacity * sizeof(*bench_results));
        if (!bench_results) {
            fprintf(stderr, "bench: no memory\n");
            exit(1);
        }
    }
    result = &bench_results[bench_result_count++];
    result->key = *key;
    result->key.name = copy_of(key->name); /* the others are literals, or live as long as the program */
    result->metric = metric;
    result->value = value;
}

double bench_find(const bench_key *key, const char *metric) {
    bench_result *result = find_result(key, metric);
    return result ? result->value : (double)NAN;
}

/* ---- measuring ---- */

double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double program_start;
static int cases_wanted;

int bench_wanted(const char *suite, const char *name, const char *dtype) {
    char text[128];
    snprintf(text, sizeof(text), "%s/%s/%s", suite, name, dtype);
    if (bench_option.filter && !strstr(text, bench_option.filter))
        return 0;
    cases_wanted++;
    return 1;
}

static void progress(const bench_key *key) {
    static int is_terminal = -1;
    if (is_terminal < 0)
        is_terminal = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
    if (!is_terminal)
        return;
    if (key)
        fprintf(stderr, "\r\033[K[%3.0f s] %s %s %s", bench_now() - program_start, key->suite, key->name, key->dtype);
    else
        fprintf(stderr, "\r\033[K");
    fflush(stderr);
}

static double time_of(void (*run)(void *context), void *context, int repeats) {
    double start = bench_now();
    int i;
    for (i = 0; i < repeats; i++)
        run(context);
    return (bench_now() - start) / repeats;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define MAX_ROUNDS 15

typedef struct sampling {
    double samples[MAX_ROUNDS], parts[BENCH_PARTS];
    int repeats, rounds, taken;
} sampling;

static void time_limit(bench_timing *timing) {
    if (timing->limit)
        timing->limit_seconds = fmin(timing->limit_seconds, time_of(timing->limit->run, timing->limit->context, 1));
}

static void take_sample(bench_timing *timing, sampling *plan) {
    double *sample = &plan->samples[plan->taken++];
    int i;
    time_limit(timing);
    if (timing->part)
        for (i = 0, *sample = 0; i < timing->parts; i++) {
            int part = *timing->part = (i + plan->taken * timing->parts / 4) % timing->parts;
            double seconds = time_of(timing->run, timing->context, 1);
            *sample += seconds;
            plan->parts[part] = fmin(plan->parts[part], seconds);
        }
    else
        *sample = time_of(timing->run, timing->context, plan->repeats);
    time_limit(timing);
}

/* What others do with the memory of a machine that is shared slows down most passes over 128 MiB, but not each part of
   each: so the best times of the parts are added up. A pass starts at another part than the one before; its first parts
   pay for what is written back from the third-level cache, which is not its own. In three runs the shares
   that tensors take of the bandwidth agreed within 9 % (half of them; all within 35 %), as best times of passes within
   31 % (96 %).

   Best is set against best: in four runs on a busy machine the cycles of conversions agreed within 3 % (half of them;
   all within 21 %), while medians of the ratios of single samples, which a pause of either side spoils, agreed within
   18 % (33 %). */
void bench_measure(bench_timing *timings, int count) {
    sampling *plans = calloc((size_t)count + 1, sizeof(*plans));
    int i, round, part;
    if (!plans) {
        fprintf(stderr, "bench: no memory\n");
        exit(1);
    }
    for (i = 0; i < count; i++) {
        sampling *plan = &plans[i];
        double once;
        progress(&timings[i].key);
        timings[i].limit_seconds = (double)INFINITY;
        plan->repeats = 1;
        for (part = 0; part < BENCH_PARTS; part++)
            plan->parts[part] = (double)INFINITY;
        take_sample(&timings[i], plan);
        once = plan->samples[0];
        if (once > 2 * bench_option.seconds) { /* too slow to be thrown away as a warm-up */
            plan->rounds = once > 4 * bench_option.seconds ? 2 : 3;
        } else {
            plan->taken = 0;
            take_sample(&timings[i], plan);
            once = plan->samples[--plan->taken];
            plan->repeats = 1 + (int)fmin(bench_option.seconds / MAX_ROUNDS / once, 1e6);
            plan->rounds = (int)fmin(MAX_ROUNDS, fmax(3, bench_option.seconds / (once * plan->repeats)));
        }
        if (timings[i].refused && *timings[i].refused)
            plan->rounds = plan->taken = 0;
        else if (timings[i].check)
            timings[i].check(timings[i].context);
    }
    for (round = 0; round < MAX_ROUNDS; round++)
        for (i = 0; i < count; i++) {
            const int next = round % 2 ? count - 1 - i : i; /* none runs behind the same other one every time */
            if (plans[next].taken < plans[next].rounds) {
                progress(&timings[next].key);
                take_sample(&timings[next], &plans[next]);
            }
        }
    for (i = 0; i < count; i++) {
        double *samples = plans[i].samples;
        int n = plans[i].taken;
        if (!n)
            continue;
        qsort(samples, (size_t)n, sizeof(*samples), compare_doubles);
        timings[i].best = samples[0];
        if (timings[i].part)
            for (timings[i].best = 0, part = 0; part < timings[i].parts; part++)
                timings[i].best += plans[i].parts[part];
        timings[i].median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
        if (timings[i].limit)
            timings[i].limit_work = timings[i].limit->work * timings[i].best / timings[i].limit_seconds;
        bench_record(&timings[i].key, "seconds_best", timings[i].best);
        bench_record(&timings[i].key, "seconds_median", timings[i].median);
    }
    free(plans);
    progress(NULL);
}

/* ---- the program ---- */

static const char usage[] =
    "usage: bench [options]\n"
    "  --quick        fewer rounds, smaller arrays, less steady figures\n"
    "  --filter TEXT  only the cases whose suite/case/dtype contains TEXT, such as gemm/1024 or f16\n"
    "  --threads N    with N threads (1 to 256); default 1, pinned to a core\n"
    "  --seconds S    time for one figure (0.001 to 60); default 0.13, with --quick 0.03\n"
    "  --help         this text\n"
    "Writes results.csv, results.json and report.html beside the program; into the current directory when it was\n"
    "found through PATH.\n";

static void bad_option(const char *what, const char *argument) {
    fprintf(stderr, "bench: %s '%s'; see --help\n", what, argument);
    exit(2);
}

static void parse(int argc, char **argv) {
    const char *core = getenv("OPENBLAS_CORETYPE"); /* see bench_restart_for_peers */
    int i, seconds_given = 0;
    if (core)
        snprintf(bench_option.command, sizeof(bench_option.command), "OPENBLAS_CORETYPE=%s ", core);
    for (i = 0; i < argc; i++) {
        size_t used = strlen(bench_option.command);
        snprintf(bench_option.command + used, sizeof(bench_option.command) - used, i ? " %s" : "%s", argv[i]);
    }
    for (i = 1; i < argc; i++) {
        const char *option = argv[i], *value;
        char *end;
        if (!strcmp(option, "--help")) {
            fputs(usage, stdout);
            exit(0);
        }
        if (!strcmp(option, "--quick")) {
            bench_option.quick = 1;
            continue;
        }
        if (strcmp(option, "--filter") && strcmp(option, "--threads") && strcmp(option, "--seconds"))
            bad_option("unknown option", option);
        if (i + 1 == argc)
            bad_option("no value after", option);
        value = argv[++i];
        if (!strcmp(option, "--filter")) {
            bench_option.filter = value;
        } else if (!strcmp(option, "--threads")) {
            long threads = strtol(value, &end, 10);
            if (end == value || *end || threads < 1 || threads > BENCH_MAX_THREADS)
                bad_option("--threads wants a number from 1 to 256, not", value);
            bench_option.threads = (int)threads;
        } else {
            bench_option.seconds = strtod(value, &end);
            if (end == value || *end || !(bench_option.seconds >= 0.001 && bench_option.seconds <= 60))
                bad_option("--seconds wants a number from 0.001 to 60, not", value);
            seconds_given = 1;
        }
    }
    if (bench_option.quick && !seconds_given)
        bench_option.seconds = 0.03;
}

static const struct {
    const char *name;
    void (*write)(FILE *file);
} reports[] = {{"results.csv", bench_write_csv}, {"results.json", bench_write_json}, {"report.html", bench_write_html}};

static void path_of(const char *program, const char *name, char path[4096]) {
    const char *slash = strrchr(program, '/');
    snprintf(path, 4096, "%.*s%s", slash ? (int)(slash - program + 1) : 0, program, name);
}

static void cannot_write(const char *path) {
    fprintf(stderr, "bench: cannot write %s: %s\n", path, strerror(errno));
    exit(1);
}

static void write_report(const char *program, const char *name, void (*write)(FILE *file)) {
    char path[4096];
    FILE *file;
    int failed;
    path_of(program, name, path);
    file = fopen(path, "w");
    if (!file)
        cannot_write(path);
    write(file);
    failed = ferror(file);
    failed |= fclose(file);
    if (failed)
        cannot_write(path);
    printf("  %s\n", path);
}

int main(int argc, char **argv) {
    int i;
    parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_restart_for_peers(argv);
    for (i = 0; i < COUNT_OF(reports); i++) {
        char path[4096];
        path_of(argv[0], reports[i].name, path);
        if (!host_can_write(path))
            cannot_write(path);
    }
    program_start = bench_now();
    bench_identify();
    pin();
    bench_limits();
    bench_formats();
    bench_scalar();
    bench_convert();
    bench_gemm();
    bench_scaler();
    bench_reduce();
    bench_optim();
    bench_quant();
    bench_layers();
    if (!cases_wanted)
        bad_option("no case matches --filter", bench_option.filter);
    printf("\n%.0f seconds. Written:\n", bench_now() - program_start);
    for (i = 0; i < COUNT_OF(reports); i++)
        write_report(argv[0], reports[i].name, reports[i].write);
    return 0;
}
