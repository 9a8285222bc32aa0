/* The benchmark's harness. A room of the library is measured by a function bench_<room>() in bench_<room>.c, which

     - asks bench_wanted() whether --filter lets a case through,
     - fills an array of bench_timing, one for each implementation that is compared, and calls bench_measure(), which
       runs them in turn, round after round, there and back, so that a drift of the clock or a noisy neighbour hits
       all of them alike,
     - names the limit that a figure is set against, a bench_limit: it runs right before and right after each sample,
       for a limit measured once is soon false: clocks change, and neighbours on a shared machine come and go,
     - hands every figure to bench_record(), from which the tables, results.csv, results.json and report.html are made.

   Rates are decimal (GB/s = 10^9 bytes read plus bytes written, per second); FMA counts as two operations. */
#ifndef MIXPREC_BENCH_H
#define MIXPREC_BENCH_H

#include "../mixprec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (int)(sizeof(array) / sizeof((array)[0]))

/* ---- options and machine ---- */

typedef struct bench_options {
    int quick;          /* smaller DRAM arrays and fewer rounds */
    int threads;        /* 1, unless --threads */
    double seconds;     /* time spent on one figure, about */
    const char *filter; /* NULL: everything */
    char command[512];  /* as it was typed */
} bench_options;
extern bench_options bench_option;

typedef struct bench_machine_info {
    char cpu[128], system[256], compiler[128], date[40];
    int cores;
    size_t l1_bytes, l2_bytes, l3_bytes, memory_bytes;
} bench_machine_info;
extern bench_machine_info bench_machine;

#define BENCH_MAX_THREADS 256

/* The order in which formats are measured and shown. */
extern const mixprec_dtype bench_dtypes[6];

/* Vectors for loops that only move bytes. */
#ifdef __GNUC__
typedef uint64_t words_16 __attribute__((vector_size(16), may_alias));
typedef uint64_t words_32 __attribute__((vector_size(32), may_alias));
typedef uint64_t words_64 __attribute__((vector_size(64), may_alias));
#else
typedef uint64_t words_16;
#endif

/* ---- results ---- */

typedef struct bench_key {
    const char *suite, *name, *dtype, *isa;
    int threads;
    const char *impl; /* "mixprec", or a peer's name */
} bench_key;

typedef struct bench_result {
    bench_key key; /* its strings are copies, or literals */
    const char *metric;
    double value;
} bench_result;

extern bench_result *bench_results;
extern int bench_result_count;

bench_key bench_key_of(const char *suite, const char *name, mixprec_dtype dtype, mixprec_isa isa);
void bench_record(const bench_key *key, const char *metric, double value);
double bench_find(const bench_key *key, const char *metric); /* NaN when there is none */

/* The machine's limits as they were when the program started: the best path's multiply-adds, DRAM. */
double bench_peak(mixprec_dtype accumulator, int threads);  /* GFLOP/s */
double bench_bandwidth(const char *direction, int threads); /* GB/s; "read" or "copy" */
size_t bench_dram_bytes(void);                              /* of data that no cache of this machine holds */

/* ---- measuring ---- */

typedef struct bench_limit {
    void (*run)(void *context); /* about a millisecond, or less */
    void *context;
    double work; /* of one run: operations, bytes or cycles */
} bench_limit;

/* The clock's on one thread, the others on 1, 2 or bench_option.threads. They live as long as the program. */
const bench_limit *bench_multiply_add_limit(mixprec_dtype accumulator, int threads); /* f32 or f64, on the best path */
const bench_limit *bench_read_limit(int threads);                                    /* DRAM, in bytes */
const bench_limit *bench_clock_limit(void); /* dependent additions, in cycles */

/* So many calls share arrays in DRAM of bench_parts_bytes() in all. Each moves more than caches hold, so that the
   library writes around them where it would; not with --quick. */
#define BENCH_PARTS 6
size_t bench_parts_bytes(void);

typedef struct bench_timing {
    void (*run)(void *context);
    void (*check)(void *context); /* NULL, or called once after the warm-up, outside the clock */
    void *context;
    bench_key key;
    const bench_limit *limit; /* NULL: none */
    int *part, parts;         /* not NULL: run does this part of the work, of so many, at most BENCH_PARTS */
    const int *refused;       /* not NULL: run sets it where it cannot do the work; then nothing is recorded */
    /* Filled in by bench_measure, which records the first two: */
    double best, median;  /* seconds for one run; with parts, for all of them: the sum of the best time of each */
    double limit_seconds; /* for one run of the limit, best */
    double limit_work;    /* what the limit does in the best time of one run */
} bench_timing;

double bench_now(void);
int bench_wanted(const char *suite, const char *name, const char *dtype);
void bench_measure(bench_timing *timings, int count);

/* Splits [0, n) into at most `threads` ranges that begin at multiples of `grain`, and runs them at the same time. */
void bench_parallel(int threads, size_t n, size_t grain, void (*work)(void *context, size_t begin, size_t end),
                    void *context);

/* Paths of the library that this CPU can run, C first; returns their number. */
int bench_paths(mixprec_isa paths[4]);

/* 64-byte aligned; ends the program with a message when there is no memory. */
void *bench_alloc(size_t bytes);

/* Normal random numbers with mean 0 and standard deviation 0.5: neither Inf nor NaN in any format. */
void bench_normals(double *x, size_t n, uint64_t seed);

/* Converts such numbers into an array, 4,096 at a time: the same ones again and again, or the squares of these, or
   others each time, which takes longer. */
typedef enum bench_numbers { BENCH_SAME, BENCH_SQUARES, BENCH_OTHERS } bench_numbers;
void bench_fill(void *array, mixprec_dtype type, size_t n, bench_numbers numbers);

/* Keeps the compiler from removing or hoisting what was computed before. */
void bench_use(const void *memory);

/* Ends the program with a message unless the call succeeded. */
void bench_check(mixprec_status status);

/* ---- arrays that stream through the library: the same tables for conversions and for unscaling ---- */

typedef struct bench_stream {
    const char *name;    /* of the case: "from-f32" */
    mixprec_dtype dtype; /* the format that the case is about */
    mixprec_dtype dst, src;
    mixprec_round round;
    mixprec_overflow overflow;
    float scale; /* 0: none */
} bench_stream;

typedef void bench_stream_fn(const bench_stream *row, void *dst, const void *src, size_t n, mixprec_isa isa);

/* Measures each row in L1, L2 and DRAM, on every path, beside a loop that only loads and stores as many bytes. */
void bench_streams(const char *suite, const char *title, const bench_stream *rows, int count, bench_stream_fn *call);

/* ---- arrays in memory that training goes over: one table for reductions, optimisers and quantisation ---- */

#define BENCH_TENSORS 6

enum { BENCH_READ = 1, BENCH_WRITE = 2, BENCH_UPDATE = 3 };

typedef struct bench_tensor bench_tensor;
typedef struct bench_tensor_run {
    const bench_tensor *row;
    unsigned char *arrays[BENCH_TENSORS];
    size_t n;
    mixprec_isa isa;
    double *partials;
    float *scales;
    int part, parts; /* of the arrays: which, of how many */
    size_t block;    /* of the loop, */
    int wide;        /* which moves 64 bytes at a time, or less */
} bench_tensor_run;

struct bench_tensor {
    const char *name;
    mixprec_dtype dtype; /* of what is not fp32 */
    void (*call)(const bench_tensor_run *run);
    struct {
        size_t size; /* bytes of an element, 0: no more arrays */
        int access;
    } arrays[BENCH_TENSORS];
    size_t block_columns; /* of what is quantised; 0: one scale */
};

/* Measures each row in DRAM or L1, on the best path, beside a loop that only loads and stores the same bytes. */
void bench_tensors(const char *suite, const char *level, const bench_tensor *rows, int count);

/* ---- loops over single numbers ---- */

typedef struct bench_loop {
    size_t n;
    void *out, *x;
} bench_loop;

/* Called by way of a pointer, so it is compiled for itself: as the same loop of a user is. */
#define BENCH_LOOP(name, function, to, from)                                                                           \
    static void name(void *context) {                                                                                  \
        const bench_loop *loop = context;                                                                              \
        const from *x = loop->x;                                                                                       \
        to *out = loop->out;                                                                                           \
        size_t i;                                                                                                      \
        for (i = 0; i < loop->n; i++)                                                                                  \
            out[i] = function(x[i]);                                                                                   \
    }

/* ---- peers: other libraries' GEMM, layers and single numbers, when the build found them ---- */

/* What a peer multiplies: anything, a matrix and a vector, a matrix and its own transpose. */
typedef enum bench_peer_kind { BENCH_GEMM, BENCH_GEMV, BENCH_SYRK } bench_peer_kind;

typedef struct bench_peer {
    const char *name, *core; /* "OpenBLAS", and which of its kernels it chose */
    bench_peer_kind kind;
    mixprec_dtype dtype; /* of A and B; C is f64 for f64, else f32 */
    /* C = A op(B), rows without gaps; returns 0 when it can. The library uses bench_option.threads threads. */
    int (*gemm)(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c);
} bench_peer;

int bench_peers(const bench_peer **peers); /* returns their number */
const char *bench_peers_missing(void);     /* those that the program was not built with, each behind a blank */

/* A layer of bench_layers.c, as other libraries know it: gamma, beta and statistics in f32. */
typedef struct bench_layer {
    const char *name;
    mixprec_dtype dtype;
    size_t rows, columns;
    void *out;
    const void *x, *gradient;
    const float *gamma, *beta;
    float *mean, *variance, *sums[2]; /* one for a row; gradients of gamma and beta */
} bench_layer;

/* Fills in timing's key and run, which holds until the next call; returns 0 when a peer has such a layer. */
int bench_peer_layer(bench_timing *timing, const bench_layer *layer);

/* Sets timing's run and key.impl, and returns 0, when a peer converts single numbers as the case key.name does. */
int bench_peer_scalar(bench_timing *timing);

/* Starts the program again where a peer needs another environment than it has. Call it before anything else. */
void bench_restart_for_peers(char **argv);

/* ---- the rooms, and the reports ---- */

void bench_identify(void); /* before the program is pinned: it counts the cores */
void bench_limits(void);
void bench_formats(void);
void bench_scalar(void);
void bench_convert(void);
void bench_gemm(void);
void bench_scaler(void);
void bench_reduce(void);
void bench_optim(void);
void bench_quant(void);
void bench_layers(void);

/* Milliseconds for dot(A, A^T), A 1024 x 65536, on a T4 GPU as its authors report; NaN for other formats. */
double bench_published(mixprec_dtype dtype);

void bench_write_csv(FILE *file);
void bench_write_json(FILE *file);
void bench_write_html(FILE *file);

#endif
