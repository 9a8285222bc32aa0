/* The caller's floating-point environment, as the tests of what must not depend on it set it: get_environment,
   set_environment, and a list of environments. HAVE_ENVIRONMENT is 0 where the library does not set it aside (tcc,
   other CPUs), and for x87. */
#ifndef MIXPREC_TEST_ENVIRONMENT_H
#define MIXPREC_TEST_ENVIRONMENT_H

#if defined(__x86_64__) && !defined(__TINYC__)
#define HAVE_ENVIRONMENT 1
#include <xmmintrin.h>
/* MXCSR: bits 13-14 rounding, 15 FTZ, 6 DAZ, 7-12 exception masks, 0-5 flags. Some flag is set, to be kept. */
static const unsigned environments[] = {0x1F80, 0x3F80, 0x5F80, 0x7F80, 0x9FC0, 0xFFC1, 0x1FC0,
                                        0x9F80, 0x1FA0, 0x0000, 0x8040, 0x2000, 0x1F9F};
typedef unsigned environment;
static environment get_environment(void) {
    return _mm_getcsr();
}
static void set_environment(environment value) {
    _mm_setcsr(value);
}
#elif defined(__aarch64__)
/* FPCR: bits 22-23 rounding, 24 flush to zero, 25 default NaN. */
typedef uint64_t environment;
static const environment environments[] = {0, 1u << 22, 2u << 22, 3u << 22, 1u << 24, 7u << 22, 2u << 24};
#define GET_ENVIRONMENT "mrs %0, fpcr"
#define SET_ENVIRONMENT "msr fpcr, %0"
#elif defined(__arm__) && defined(__ARM_FP)
/* FPSCR: bits 0-4 and 7 flags, 22-23 rounding, 24 flush to zero, 25 default NaN. */
typedef unsigned environment;
static const environment environments[] = {0, 1u << 22, 2u << 22, 3u << 22, 1u << 24, 7u << 22, 2u << 24, 0x9F};
#define GET_ENVIRONMENT "vmrs %0, fpscr"
#define SET_ENVIRONMENT "vmsr fpscr, %0"
#elif defined(__riscv_flen)
/* fcsr: bits 0-4 flags, 5-7 rounding. */
typedef unsigned long environment;
static const environment environments[] = {0, 1u << 5, 2u << 5, 3u << 5, 4u << 5, 0x1F, 0x7F};
#define GET_ENVIRONMENT "frcsr %0"
#define SET_ENVIRONMENT "fscsr %0"
#else
#define HAVE_ENVIRONMENT 0
#endif

#ifdef GET_ENVIRONMENT
#define HAVE_ENVIRONMENT 1
static environment get_environment(void) {
    environment value;
    __asm__ volatile(GET_ENVIRONMENT : "=r"(value));
    return value;
}
static void set_environment(environment value) {
    __asm__ volatile(SET_ENVIRONMENT : : "r"(value) : "memory");
}
#endif

#endif
