/* What the fuzzers share. A fuzzer is a file tests/fuzz_<name>.c with one function,

       int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

   that reads the input with the functions below, as if it had zeros without end, and ends the program by FUZZ_CHECK
   when something is wrong. It runs in two ways:

       clang -g -fsanitize=fuzzer,address,undefined -I. -o fuzz tests/fuzz_<name>.c tests/implementation.c
       ./fuzz -max_total_time=60                       libFuzzer: inputs that reach new code are kept and changed

       cc -g -fsanitize=address,undefined -DFUZZ_MAIN -I. -o fuzz tests/fuzz_<name>.c tests/implementation.c
       ./fuzz [--seconds N] [--runs N] [--first N]     inputs 0, 1, 2 ... of a fixed pseudo-random sequence
       ./fuzz FILE...                                  these inputs: what libFuzzer has left behind

   `make fuzz` does both. The last line of the second is that of a test program (see test.h). When an input fails, its
   number is printed: --first N --runs 1 repeats it. */
#ifndef MIXPREC_FUZZ_H
#define MIXPREC_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../mixprec.h"
#include "oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition, ...)                                                                                     \
    ((condition) ? (void)0                                                                                             \
                 : (fflush(stdout), fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__),      \
                    fputc('\n', stderr), abort()))

#if defined(__GNUC__)
#define FUZZ_FUNCTION static __attribute__((unused))
#else
#define FUZZ_FUNCTION static
#endif

/* ---- the input ---- */

static const uint8_t *fuzz_data;
static size_t fuzz_left;

FUZZ_FUNCTION void fuzz_begin(const uint8_t *data, size_t size) {
    fuzz_data = data;
    fuzz_left = size;
}
FUZZ_FUNCTION uint64_t fuzz_bits(int bytes) {
    uint64_t value = 0;
    while (bytes-- && fuzz_left) {
        value = value << 8 | *fuzz_data++;
        fuzz_left--;
    }
    return value;
}
/* From 0 to n - 1. */
FUZZ_FUNCTION size_t fuzz_below(size_t n) {
    return (size_t)(fuzz_bits(n > 256 ? 4 : 1) % n);
}
/* 1 once in n: never, when the input has ended. */
FUZZ_FUNCTION int fuzz_one_in(size_t n) {
    return fuzz_below(n) == n - 1;
}
#define FUZZ_PICK(list) ((list)[fuzz_below(sizeof(list) / sizeof *(list))])

/* An enumerator from `first` to `last`, or now and then no such thing. */
FUZZ_FUNCTION int fuzz_enum(int first, int last) {
    static const int wrong[] = {-1, 100, INT32_MAX, INT32_MIN};
    if (fuzz_one_in(60))
        return fuzz_one_in(2) ? last + 1 : FUZZ_PICK(wrong);
    return first + (int)fuzz_below((size_t)(last - first) + 1);
}

/* ---- memory, of exactly so many bytes, so that AddressSanitizer sees every one beyond ---- */

static void *fuzz_blocks[64];
static size_t fuzz_sizes[64], fuzz_block_count;

FUZZ_FUNCTION unsigned char *fuzz_memory(size_t bytes, int fill) {
    unsigned char *memory = (unsigned char *)malloc(bytes ? bytes : 1);
    FUZZ_CHECK(memory && fuzz_block_count < 64, "the fuzzer lacks memory");
    fuzz_sizes[fuzz_block_count] = bytes;
    fuzz_blocks[fuzz_block_count++] = memory;
    memset(memory, fill, bytes);
    return bytes ? memory : memory + 1; /* what has no byte begins where the block ends */
}
/* All blocks but the first `kept`. */
FUZZ_FUNCTION void fuzz_free(size_t kept) {
    while (fuzz_block_count > kept)
        free(fuzz_blocks[--fuzz_block_count]);
}

/* ---- codes ---- */

FUZZ_FUNCTION uint64_t fuzz_load(const void *array, mixprec_dtype type, size_t i) {
    size_t size = mixprec_dtype_size(type);
    const unsigned char *at = (const unsigned char *)array + (type == MIXPREC_E2M1 ? i / 2 : i * size);
    uint16_t half;
    uint32_t word;
    uint64_t wide;
    switch (size) {
    case 1: return type == MIXPREC_E2M1 ? (uint64_t)(*at >> (i % 2 * 4) & 15) : *at;
    case 2: return memcpy(&half, at, 2), half;
    case 4: return memcpy(&word, at, 4), word;
    default: return memcpy(&wide, at, 8), wide;
    }
}
FUZZ_FUNCTION void fuzz_store(void *array, mixprec_dtype type, size_t i, uint64_t code) {
    size_t size = mixprec_dtype_size(type);
    unsigned char *at = (unsigned char *)array + (type == MIXPREC_E2M1 ? i / 2 : i * size);
    uint16_t half = (uint16_t)code;
    uint32_t word = (uint32_t)code;
    if (type == MIXPREC_E2M1)
        *at = (unsigned char)(i % 2 ? (*at & 15) | (code & 15) << 4 : (*at & 0xF0) | (code & 15));
    else if (size == 1)
        *at = (unsigned char)code;
    else if (size == 2)
        memcpy(at, &half, 2);
    else if (size == 4)
        memcpy(at, &word, 4);
    else
        memcpy(at, &code, 8);
}
FUZZ_FUNCTION double fuzz_value(const void *array, mixprec_dtype type, size_t i) {
    uint64_t code = fuzz_load(array, type, i);
    return type == MIXPREC_F64 ? oracle_double(code) : mixprec_decode((uint32_t)code, type);
}
FUZZ_FUNCTION uint64_t fuzz_code(double x, mixprec_dtype type, mixprec_round round, mixprec_overflow overflow,
                                 uint32_t random) {
    return type == MIXPREC_F64 ? oracle_bits(x) : mixprec_encode(x, type, round, overflow, random);
}
/* A code of a type: in half of them any bits, else a number of moderate size. */
FUZZ_FUNCTION uint64_t fuzz_any_code(mixprec_dtype type, uint64_t random, int plain) {
    double x = (double)(int64_t)(random << 8) * 0x1p-62; /* from -2 to 2 */
    if (!plain && random >> 60 < 2)
        return random >> 59 & 1 ? random : (random >> 40 & 1) << (mixprec_dtype_size(type) * 8 - 1);
    return fuzz_code(random >> 58 & 1 ? x * 30 : x, type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
}
/* Equal, or both NaN. */
FUZZ_FUNCTION int fuzz_same(uint64_t a, uint64_t b, mixprec_dtype type) {
    double x = type == MIXPREC_F64 ? oracle_double(a) : mixprec_decode((uint32_t)a, type);
    double y = type == MIXPREC_F64 ? oracle_double(b) : mixprec_decode((uint32_t)b, type);
    return a == b || (x != x && y != y);
}
FUZZ_FUNCTION int fuzz_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
FUZZ_FUNCTION uint64_t fuzz_mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* ---- without libFuzzer ---- */

#ifdef FUZZ_MAIN
#include <signal.h>
#include <time.h>

static unsigned long long fuzz_run;
static void fuzz_stopped(int signal_number) {
    fprintf(stderr, "FAIL  input %llu: signal %d; repeat it with --first %llu --runs 1\n", fuzz_run, signal_number,
            fuzz_run);
    printf("0 passed, 1 failed, 0 skipped\n");
    fflush(stdout);
    _Exit(1);
}
/* So that fuzz_stopped hears of what they find, too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "abort_on_error=1:handle_abort=0";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) {
    return "abort_on_error=1:print_stacktrace=1";
}

static void fuzz_file(const char *name) {
    static uint8_t bytes[1 << 20];
    FILE *file = fopen(name, "rb");
    size_t size;
    if (!file) {
        perror(name);
        exit(2);
    }
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
}

/* Input `run`: up to 4096 bytes, mostly fewer; some of them are, or begin with, small numbers. */
static size_t fuzz_input(unsigned long long run, uint8_t *bytes) {
    uint64_t random = fuzz_mix(run);
    size_t size = (size_t)(random >> 8) % ((size_t)64 << random % 7), i;
    for (i = 0; i < size; i++) {
        random = fuzz_mix(run ^ (uint64_t)(i + 1) << 40);
        bytes[i] = (uint8_t)(random >> 32 & (random % 4 ? 0xFF : 7));
    }
    return size;
}

int main(int argc, char **argv) {
    static uint8_t bytes[4096];
    unsigned long long runs = ~0ull, first = 0;
    double seconds = 5;
    clock_t start = clock();
    int i, files = 0;
    signal(SIGABRT, fuzz_stopped);
#ifndef __SANITIZE_ADDRESS__ /* whose report of these is better, and ends in SIGABRT */
    signal(SIGSEGV, fuzz_stopped);
    signal(SIGFPE, fuzz_stopped);
    signal(SIGILL, fuzz_stopped);
#endif
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            runs = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--first") && i + 1 < argc)
            first = strtoull(argv[++i], NULL, 10);
        else if (argv[i][0] != '-') {
            fuzz_file(argv[i]);
            files++;
        } else {
            fprintf(stderr, "usage: %s [--seconds N] [--runs N] [--first N] [FILE...]\n", argv[0]);
            return 2;
        }
    }
    for (fuzz_run = first; !files && fuzz_run - first < runs; fuzz_run++) {
        if (fuzz_run % 8 == 0 && (double)(clock() - start) > seconds * CLOCKS_PER_SEC)
            break;
        LLVMFuzzerTestOneInput(bytes, fuzz_input(fuzz_run, bytes));
    }
    printf("%llu inputs\n1 passed, 0 failed, 0 skipped\n", files ? (unsigned long long)files : fuzz_run - first);
    return 0;
}
#endif

#endif
