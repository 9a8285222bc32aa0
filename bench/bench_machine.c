/* The machine and its limits: who it is, how many fused multiply-adds a second its cores can do, what its memory
   delivers, how fast its clock is, and the table of the formats. The limits are shown once at the start, and handed out
   to be measured again beside each figure that is set against them. */
#ifdef __linux__
#define _GNU_SOURCE /* for host.h */
#else
#define _POSIX_C_SOURCE 200809L
#endif
#include "bench.h"
#include "host.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

bench_machine_info bench_machine;

/* ---- who it is ---- */

/* The value of the first line of /proc/cpuinfo or the like that begins with `field`. */
static void read_field(const char *path, const char *field, char *value, size_t size) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, field, strlen(field)) || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file)
        fclose(file);
}

/* Of the data cache of a level that core 0 uses, from Linux: sysconf adds up all third-level caches of a chip. */
static size_t cache_bytes(int level, size_t otherwise) {
    int index;
    for (index = 0; index < 8; index++) {
        char path[96], type[16] = "";
        int found_level = 0, kibibytes = 0, field, found;
        const char *const names[3] = {"level", "type", "size"};
        for (field = 0; field < 3; field++) {
            FILE *file;
            snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, names[field]);
            file = fopen(path, "r");
            if (!file)
                return otherwise;
            found = field == 1 ? fscanf(file, "%15s", type) : fscanf(file, "%d", field ? &kibibytes : &found_level);
            fclose(file);
            if (found != 1)
                return otherwise;
        }
        if (found_level == level && strcmp(type, "Instruction") && kibibytes > 0)
            return (size_t)kibibytes << 10;
    }
    return otherwise;
}

void bench_identify(void) {
    bench_machine_info *machine = &bench_machine;
    struct utsname system;
    time_t now = time(NULL);
    uname(&system);
    snprintf(machine->cpu, sizeof(machine->cpu), "%s", system.machine);
    read_field("/proc/cpuinfo", "model name", machine->cpu, sizeof(machine->cpu));
    snprintf(machine->system, sizeof(machine->system), "%s %s %s", system.sysname, system.release, system.machine);
#ifdef __clang__
    snprintf(machine->compiler, sizeof(machine->compiler), "clang %s", __clang_version__);
#elif defined(__VERSION__)
    snprintf(machine->compiler, sizeof(machine->compiler), "gcc %s", __VERSION__);
#else
    snprintf(machine->compiler, sizeof(machine->compiler), "unknown");
#endif
    strftime(machine->date, sizeof(machine->date), "%Y-%m-%d %H:%M UTC", gmtime(&now));
    machine->cores = host_cores();
    machine->l1_bytes = cache_bytes(1, (size_t)32 << 10);
    machine->l2_bytes = cache_bytes(2, (size_t)512 << 10);
    machine->l3_bytes = cache_bytes(3, (size_t)16 << 20);
    machine->memory_bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGE_SIZE);
}

size_t bench_dram_bytes(void) {
    size_t bytes = bench_option.quick ? (size_t)64 << 20 : (size_t)128 << 20, factor = bench_option.quick ? 2 : 4;
    if (bytes < factor * bench_machine.l3_bytes)
        bytes = factor * bench_machine.l3_bytes;
    if (bytes > (size_t)512 << 20)
        bytes = (size_t)512 << 20;
    return bytes < bench_machine.memory_bytes / 8 ? bytes : bench_machine.memory_bytes / 8;
}

size_t bench_parts_bytes(void) {
    return (bench_option.quick ? 1 : 4) * bench_dram_bytes();
}

/* ---- multiply-add: twelve independent chains hide the latency of two units ---- */

#define PEAK_CHAINS 12
#define PEAK_STEPS 20000

/* x = x * factor + term stays near 1: no overflow, no subnormals. The chains come from memory that bench_use() might
   have changed: a compiler that knows them to be equal computes one for all. */
#define PEAK_KERNEL(name, attribute, vector, half, multiply_add)                                                       \
    attribute static void peak_##name(void) {                                                                          \
        vector factor = half, term = half, sums[PEAK_CHAINS];                                                          \
        vector s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11;                                                       \
        int i;                                                                                                         \
        for (i = 0; i < PEAK_CHAINS; i++)                                                                              \
            sums[i] = term;                                                                                            \
        bench_use(sums);                                                                                               \
        s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3], s4 = sums[4], s5 = sums[5];                            \
        s6 = sums[6], s7 = sums[7], s8 = sums[8], s9 = sums[9], s10 = sums[10], s11 = sums[11];                        \
        for (i = 0; i < PEAK_STEPS; i++) {                                                                             \
            s0 = multiply_add(s0, factor, term), s1 = multiply_add(s1, factor, term);                                  \
            s2 = multiply_add(s2, factor, term), s3 = multiply_add(s3, factor, term);                                  \
            s4 = multiply_add(s4, factor, term), s5 = multiply_add(s5, factor, term);                                  \
            s6 = multiply_add(s6, factor, term), s7 = multiply_add(s7, factor, term);                                  \
            s8 = multiply_add(s8, factor, term), s9 = multiply_add(s9, factor, term);                                  \
            s10 = multiply_add(s10, factor, term), s11 = multiply_add(s11, factor, term);                              \
        }                                                                                                              \
        sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5;                            \
        sums[6] = s6, sums[7] = s7, sums[8] = s8, sums[9] = s9, sums[10] = s10, sums[11] = s11;                        \
        bench_use(sums);                                                                                               \
    }

/* What every CPU has: 16-byte vectors where the compiler knows them, a multiplication, then an addition. */
#define PLAIN_MULTIPLY_ADD(x, factor, term) ((x) * (factor) + (term))
#ifdef __GNUC__
typedef float plain_f32 __attribute__((vector_size(16)));
typedef double plain_f64 __attribute__((vector_size(16)));
#define PLAIN_HALF_F32 ((plain_f32){0.5f, 0.5f, 0.5f, 0.5f})
#define PLAIN_HALF_F64 ((plain_f64){0.5, 0.5})
#else
typedef float plain_f32;
typedef double plain_f64;
#define PLAIN_HALF_F32 0.5f
#define PLAIN_HALF_F64 0.5
#endif
PEAK_KERNEL(c_f32, , plain_f32, PLAIN_HALF_F32, PLAIN_MULTIPLY_ADD)
PEAK_KERNEL(c_f64, , plain_f64, PLAIN_HALF_F64, PLAIN_MULTIPLY_ADD)

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
#define TARGET(features) __attribute__((target(features)))
PEAK_KERNEL(avx2_f32, TARGET("avx2,fma"), __m256, _mm256_set1_ps(0.5f), _mm256_fmadd_ps)
PEAK_KERNEL(avx2_f64, TARGET("avx2,fma"), __m256d, _mm256_set1_pd(0.5), _mm256_fmadd_pd)
PEAK_KERNEL(avx512_f32, TARGET("avx512f"), __m512, _mm512_set1_ps(0.5f), _mm512_fmadd_ps)
PEAK_KERNEL(avx512_f64, TARGET("avx512f"), __m512d, _mm512_set1_pd(0.5), _mm512_fmadd_pd)
#elif defined(__aarch64__)
#define NEON_MULTIPLY_ADD_F32(x, factor, term) vfmaq_f32(term, x, factor)
#define NEON_MULTIPLY_ADD_F64(x, factor, term) vfmaq_f64(term, x, factor)
PEAK_KERNEL(neon_f32, , float32x4_t, vdupq_n_f32(0.5f), NEON_MULTIPLY_ADD_F32)
PEAK_KERNEL(neon_f64, , float64x2_t, vdupq_n_f64(0.5), NEON_MULTIPLY_ADD_F64)
#endif

typedef struct peak_row {
    mixprec_isa isa;
    mixprec_dtype dtype;
    size_t vector_bytes;
    void (*kernel)(void);
} peak_row;

static const peak_row peak_rows[] = {
    {MIXPREC_ISA_C, MIXPREC_F32, sizeof(plain_f32), peak_c_f32},
    {MIXPREC_ISA_C, MIXPREC_F64, sizeof(plain_f64), peak_c_f64},
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    {MIXPREC_ISA_AVX2, MIXPREC_F32, 32, peak_avx2_f32},
    {MIXPREC_ISA_AVX2, MIXPREC_F64, 32, peak_avx2_f64},
    {MIXPREC_ISA_AVX512, MIXPREC_F32, 64, peak_avx512_f32},
    {MIXPREC_ISA_AVX512, MIXPREC_F64, 64, peak_avx512_f64},
#elif defined(__aarch64__)
    {MIXPREC_ISA_NEON, MIXPREC_F32, 16, peak_neon_f32},
    {MIXPREC_ISA_NEON, MIXPREC_F64, 16, peak_neon_f64},
#endif
};

/* ---- memory ---- */

typedef struct limit_run {
    unsigned char *data; /* for "copy" its upper half goes to the lower one */
    size_t bytes;
    int threads, is_copy;
    int wide;             /* reading: with vectors of 64 bytes, or of 32, where the CPU has both */
    const peak_row *peak; /* not NULL: arithmetic instead */
    size_t peak_calls;    /* of its kernel, in each thread */
} limit_run;

/* A wide load takes fewer instructions for a line of the cache, so that the CPU asks for more lines ahead: on a Zen 5
   core 44 GB/s with 64-byte loads, 35 with 8-byte ones. But on Zen 4 loads of 32 bytes read 5 to 14 % more than those
   of 64: where the CPU has both, the better one counts. */
#define READ_KERNEL(name, attribute, vector)                                                                           \
    attribute static void read_##name(const unsigned char *data, size_t bytes) {                                       \
        const vector *x = (const vector *)(const void *)data;                                                          \
        size_t i, n = bytes / sizeof(vector);                                                                          \
        vector sums[2] = {x[0], x[1]};                                                                                 \
        for (i = 2; i + 2 <= n; i += 2)                                                                                \
            sums[0] += x[i], sums[1] += x[i + 1];                                                                      \
        bench_use(sums);                                                                                               \
    }

READ_KERNEL(plain, , words_16)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
READ_KERNEL(avx2, TARGET("avx2"), words_32)
READ_KERNEL(avx512, TARGET("avx512f"), words_64)
#endif

static void read_range(const limit_run *run, size_t begin, size_t end) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    if (mixprec_isa_available(MIXPREC_ISA_AVX512) && run->wide) {
        read_avx512(run->data + begin, end - begin);
        return;
    }
    if (mixprec_isa_available(MIXPREC_ISA_AVX2)) {
        read_avx2(run->data + begin, end - begin);
        return;
    }
#endif
    read_plain(run->data + begin, end - begin);
}

static void limit_range(void *context, size_t begin, size_t end) {
    const limit_run *run = context;
    if (run->peak)
        for (; begin < end; begin++)
            run->peak->kernel();
    else if (run->is_copy)
        memcpy(run->data + begin, run->data + run->bytes / 2 + begin, end - begin);
    else
        read_range(run, begin, end);
}

static void run_limit(void *context) {
    limit_run *run = context;
    size_t n = run->peak ? (size_t)run->threads * run->peak_calls : run->is_copy ? run->bytes / 2 : run->bytes;
    bench_parallel(run->threads, n, run->peak ? run->peak_calls : 4096, limit_range, run);
}

static double peak_flops(const limit_run *run) {
    size_t lanes = run->peak->vector_bytes / mixprec_dtype_size(run->peak->dtype);
    return 2.0 * PEAK_CHAINS * PEAK_STEPS * (double)(lanes * run->peak_calls) * run->threads;
}

/* ---- the limits that are measured beside a figure ---- */

#define PEAK_CALLS 32 /* on a core that starts two multiply-adds per cycle: 4 million cycles, a millisecond */

static int thread_index(int threads) {
    return threads == 1 ? 0 : threads == 2 ? 1 : 2;
}

const bench_limit *bench_multiply_add_limit(mixprec_dtype accumulator, int threads) {
    static limit_run runs[COUNT_OF(peak_rows)][3];
    static bench_limit limits[COUNT_OF(peak_rows)][3];
    const int j = thread_index(threads);
    int i = 0;
    while (peak_rows[i].isa != mixprec_isa_best() || peak_rows[i].dtype != accumulator)
        i++;
    runs[i][j].peak = &peak_rows[i];
    runs[i][j].peak_calls = PEAK_CALLS;
    runs[i][j].threads = threads;
    limits[i][j].run = run_limit;
    limits[i][j].context = &runs[i][j];
    limits[i][j].work = peak_flops(&runs[i][j]);
    return &limits[i][j];
}

#define READ_SLICES 4

/* A part of the memory in each turn: when a part's turn comes again, the others have pushed it out of the caches. The
   width is drawn (a linear congruential generator's top bit), so that no row of a table meets one only. */
static void read_next_slice(void *context) {
    static uint32_t turn, drawn;
    limit_run slice = *(const limit_run *)context;
    drawn = drawn * 1664525u + 1013904223u;
    turn = (turn + 1) % READ_SLICES;
    slice.data += turn * slice.bytes;
    slice.wide = (int)(drawn >> 31);
    run_limit(&slice);
}

const bench_limit *bench_read_limit(int threads) {
    static unsigned char *data;
    static limit_run runs[3];
    static bench_limit limits[3];
    const int j = thread_index(threads);
    runs[j].bytes = bench_dram_bytes() / READ_SLICES / 4096 * 4096;
    if (!data)
        data = bench_alloc(runs[j].bytes * READ_SLICES);
    runs[j].data = data;
    runs[j].threads = threads;
    limits[j].run = read_next_slice;
    limits[j].context = &runs[j];
    limits[j].work = (double)runs[j].bytes;
    return &limits[j];
}

#define CLOCK_STEPS 20000

/* Each step waits for the one before: sixteen cycles on a core that adds in one. */
static void run_clock(void *context) {
    static volatile uint64_t start = 1, addend = 3;
    uint64_t x = start, y = addend, z = addend;
    int i;
    (void)context;
    for (i = 0; i < CLOCK_STEPS; i++) { /* exclusive or keeps the compiler from adding up the additions */
        x = (x ^ y) + z, x = (x ^ y) + z, x = (x ^ y) + z, x = (x ^ y) + z;
        x = (x ^ y) + z, x = (x ^ y) + z, x = (x ^ y) + z, x = (x ^ y) + z;
    }
    bench_use(&x);
}

const bench_limit *bench_clock_limit(void) {
    static const bench_limit limit = {run_clock, NULL, 16.0 * CLOCK_STEPS};
    return &limit;
}

/* ---- what is printed and kept ---- */

static bench_key limit_key(const char *name, const char *dtype, const char *isa, int threads) {
    bench_key key = {"machine", name, dtype, isa, threads, "machine"};
    return key;
}

#define WIDE_READ "avx512" /* of the read limit with 64-byte vectors, the key's isa */

double bench_peak(mixprec_dtype accumulator, int threads) {
    double best = 0;
    int i;
    for (i = 0; i < COUNT_OF(peak_rows); i++)
        if (peak_rows[i].dtype == accumulator) {
            bench_key key =
                limit_key("fma-peak", mixprec_dtype_name(accumulator), mixprec_isa_name(peak_rows[i].isa), threads);
            best =
                fmax(best, bench_find(&key, "gflops")); /* a path that does not run here has NaN, which fmax ignores */
        }
    return best;
}

double bench_bandwidth(const char *direction, int threads) {
    bench_key key = limit_key(strcmp(direction, "copy") ? "dram-read" : "dram-copy", "-", "-", threads);
    const double narrow = bench_find(&key, "gb_per_s");
    key.isa = WIDE_READ;
    return fmax(narrow, bench_find(&key, "gb_per_s")); /* of a NaN and a number that is the number */
}

/* One line of the table of limits: one column for each number of threads. */
static void measure_limit(limit_run *run, const int *thread_counts, int count) {
    int i;
    for (i = 0; i < count; i++) {
        bench_timing timing;
        memset(&timing, 0, sizeof(timing));
        run->threads = thread_counts[i];
        timing.run = run_limit;
        timing.context = run;
        timing.limit = bench_clock_limit();
        if (run->peak) {
            const char *isa = mixprec_isa_name(run->peak->isa), *dtype = mixprec_dtype_name(run->peak->dtype);
            timing.key = limit_key("fma-peak", dtype, isa, run->threads);
            bench_measure(&timing, 1);
            bench_record(&timing.key, "gflops", 1e-9 * peak_flops(run) / timing.best);
            if (i == 0)
                printf("  multiply-add, %s, %-6s %4.1f a cycle", dtype, isa, peak_flops(run) / 2 / timing.limit_work);
            printf(" %8.1f GFLOP/s", bench_find(&timing.key, "gflops"));
        } else {
            double best = 0;
            const int widths = !run->is_copy && mixprec_isa_available(MIXPREC_ISA_AVX512) ? 2 : 1;
            for (run->wide = 0; run->wide < widths; run->wide++) {
                timing.key =
                    limit_key(run->is_copy ? "dram-copy" : "dram-read", "-", run->wide ? WIDE_READ : "-", run->threads);
                bench_measure(&timing, 1);
                bench_record(&timing.key, "gb_per_s", 1e-9 * (double)run->bytes / timing.best);
                best = fmax(best, bench_find(&timing.key, "gb_per_s"));
            }
            if (i == 0)
                printf("  %-38s", run->is_copy ? "DRAM copy (memcpy, read + written)" : "DRAM read");
            printf(" %8.1f GB/s   ", best);
        }
    }
    printf("\n");
}

static void measure_clock(void) {
    bench_timing timing;
    memset(&timing, 0, sizeof(timing));
    timing.run = bench_clock_limit()->run;
    timing.key = limit_key("clock", "-", "-", 1);
    bench_measure(&timing, 1);
    bench_record(&timing.key, "ghz", 1e-9 * bench_clock_limit()->work / timing.best);
    printf("  %-38s %8.2f GHz\n", "clock", bench_find(&timing.key, "ghz"));
}

void bench_limits(void) {
    limit_run run = {NULL, 0, 1, 0, 0, NULL, PEAK_CALLS};
    mixprec_isa paths[4];
    int i, path_count = bench_paths(paths), thread_counts[2] = {1, 1}, counts;
    double seconds = bench_option.seconds;
    bench_option.seconds *= 3;
    thread_counts[1] = bench_option.threads > 1                  ? bench_option.threads
                       : bench_machine.cores < BENCH_MAX_THREADS ? bench_machine.cores
                                                                 : BENCH_MAX_THREADS;
    counts = thread_counts[1] > 1 ? 2 : 1;
    printf("mixprec %d.%d.%d benchmark\n\n", MIXPREC_VERSION_MAJOR, MIXPREC_VERSION_MINOR, MIXPREC_VERSION_PATCH);
    printf("  CPU       %s, %d core%s; L1 %.0f KiB, L2 %.0f KiB, L3 %.0f MiB; %.1f GiB of memory\n", bench_machine.cpu,
           bench_machine.cores, bench_machine.cores > 1 ? "s" : "", (double)bench_machine.l1_bytes / 1024,
           (double)bench_machine.l2_bytes / 1024, (double)bench_machine.l3_bytes / 1048576,
           (double)bench_machine.memory_bytes / 1073741824);
    printf("  system    %s\n  compiler  %s\n  date      %s\n  command   %s\n  paths    ", bench_machine.system,
           bench_machine.compiler, bench_machine.date, bench_option.command);
    for (i = 0; i < path_count; i++)
        printf(" %s", mixprec_isa_name(paths[i]));
    printf(" (%s is chosen)\n  threads   %d\n", mixprec_isa_name(mixprec_isa_best()), bench_option.threads);

    printf(
        "\nLimits at the start. They change with the clock: what is set against one below has it measured beside it,\n"
        "right before and right after each sample; a share is the best time against the limit's best.\n");
    printf("%-40s %8d thread", "", 1);
    if (counts == 2)
        printf("%12d threads", thread_counts[1]);
    printf("\n");
    measure_clock();
    for (i = 0; i < COUNT_OF(peak_rows); i++)
        if (mixprec_isa_available(peak_rows[i].isa)) {
            run.peak = &peak_rows[i];
            measure_limit(&run, thread_counts, counts);
        }
    run.peak = NULL;
    run.bytes = bench_dram_bytes();
    run.data = bench_alloc(run.bytes);
    measure_limit(&run, thread_counts, counts);
    run.is_copy = 1;
    measure_limit(&run, thread_counts, counts);
    free(run.data);
    bench_option.seconds = seconds;
}

void bench_formats(void) {
    int i;
    printf("\nFormats\n  %-6s %5s %9s %9s %13s %13s %15s %13s  %s\n", "name", "bits", "exponent", "mantissa", "max",
           "min normal", "min subnormal", "epsilon", "Inf");
    for (i = 0; i < 6; i++) {
        mixprec_format_info info;
        bench_check(mixprec_format(bench_dtypes[i], &info));
        printf("  %-6s %5d %9d %9d %13.6g %13.6g %15.6g %13.6g  %s\n", info.name, info.bits, info.exponent_bits,
               info.mantissa_bits, info.max, info.min_normal, info.min_subnormal, info.epsilon,
               info.has_inf ? "yes" : "no");
    }
}
