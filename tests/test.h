/* The tests' harness. A test program is

       #include "test.h"
       int main(int argc, char **argv) {
           test_init(argc, argv);
           if (test_begin("convert: every f16 decodes")) {
               CHECK(got == want, "code %04x: got %g, want %g", code, got, want);
               test_end();
           }
           if (!cpu_has_it) test_skip("convert: AVX-512 path", "this CPU has no AVX-512");
           return test_summary();
       }

   Each test_begin .. test_end counts as one test, whatever the number of CHECKs in it; without any it fails, or counts
   as skipped where it has called test_needs. Its first five failures are printed. Arguments: --quick sets test_quick,
   where a test may use a sample instead of all inputs; --filter TEXT runs only the tests whose names contain TEXT. The
   last line is `N passed, M failed, K skipped`; the exit status is 1 if any failed. */
#ifndef MIXPREC_TEST_H
#define MIXPREC_TEST_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int test_quick, test_passed, test_failed, test_skipped;
static const char *test_filter;
static struct {
    const char *name, *needs;
    long failures, checks;
    clock_t start;
} test_now;

#if defined(__GNUC__)
#define TEST_PRINTF_ __attribute__((format(printf, 3, 4), unused))
#define TEST_UNUSED_ __attribute__((unused))
#else
#define TEST_PRINTF_
#define TEST_UNUSED_
#endif

static void TEST_UNUSED_ test_init(int argc, char **argv) {
    int i;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick"))
            test_quick = 1;
        else if (!strcmp(argv[i], "--filter") && i + 1 < argc)
            test_filter = argv[++i];
        else {
            fprintf(stderr, "usage: %s [--quick] [--filter TEXT]\n", argv[0]);
            exit(2);
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static int TEST_UNUSED_ test_begin(const char *name) {
    if (test_filter && !strstr(name, test_filter))
        return 0;
    test_now.name = name;
    test_now.needs = NULL;
    test_now.failures = test_now.checks = 0;
    test_now.start = clock();
    return 1;
}

/* The reason when the test that runs has nothing to CHECK here. */
static void TEST_UNUSED_ test_needs(const char *what) {
    test_now.needs = what;
}

static void TEST_UNUSED_ test_end(void) {
    double seconds = (double)(clock() - test_now.start) / CLOCKS_PER_SEC;
    if (!test_now.checks && test_now.needs)
        test_skipped++, printf("SKIP  %s: %s\n", test_now.name, test_now.needs);
    else if (test_now.failures || !test_now.checks)
        test_failed++,
            printf("FAIL  %s: %ld of %ld checks failed\n", test_now.name, test_now.failures, test_now.checks);
    else
        test_passed++, printf("ok    %s (%.1f s)\n", test_now.name, seconds);
}

static void TEST_UNUSED_ test_skip(const char *name, const char *reason) {
    if (test_filter && !strstr(name, test_filter))
        return;
    test_skipped++;
    printf("SKIP  %s: %s\n", name, reason);
}

static void TEST_PRINTF_ test_fail_(const char *file, int line, const char *format, ...) {
    if (test_now.failures++ < 5) {
        va_list arguments;
        printf("      %s:%d: ", file, line);
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
    }
}
#define CHECK(condition, ...) (test_now.checks++, (condition) ? (void)0 : test_fail_(__FILE__, __LINE__, __VA_ARGS__))

/* A call that returns a status, or another whole number: it is made once, so what is printed is what was compared. */
#define CHECK_STATUS(what, call, want) test_status_(__FILE__, __LINE__, what, (int)(call), (int)(want))
static void TEST_UNUSED_ test_status_(const char *file, int line, const char *what, int got, int want) {
    test_now.checks++;
    if (got != want)
        test_fail_(file, line, "%s: got %d, want %d", what, got, want);
}

static int TEST_UNUSED_ test_summary(void) {
    printf("%d passed, %d failed, %d skipped\n", test_passed, test_failed, test_skipped);
    return test_failed != 0;
}

#endif
