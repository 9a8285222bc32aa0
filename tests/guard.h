/* Memory between pages that may not be touched, and what to say when a test touches one or crashes in another way.
   POSIX and Windows. */
#ifndef MIXPREC_TEST_GUARD_H
#define MIXPREC_TEST_GUARD_H

#include "test.h"

#include <signal.h>
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/mman.h>
#endif

#define GUARD_PAGE ((size_t)1 << 16) /* a multiple of any page size */

/* `bytes`, a multiple of GUARD_PAGE, of zeros; never freed. */
static unsigned char *guarded(size_t bytes) {
    unsigned char *memory;
#if defined(_WIN32)
    memory = (unsigned char *)VirtualAlloc(NULL, bytes + 2 * GUARD_PAGE, MEM_RESERVE, PAGE_NOACCESS);
    memory = memory ? (unsigned char *)VirtualAlloc(memory + GUARD_PAGE, bytes, MEM_COMMIT, PAGE_READWRITE) : NULL;
#else
    memory = mmap(NULL, bytes + 2 * GUARD_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = memory == MAP_FAILED ? NULL : memory + GUARD_PAGE;
    if (memory && mprotect(memory, bytes, PROT_READ | PROT_WRITE))
        memory = NULL;
#endif
    if (!memory) {
        perror("guarded memory");
        exit(2);
    }
    return memory;
}

/* A crash then counts as a failed test, shows what `describe` returns, and ends the program. */
static const char *(*guard_describe_)(void);
static void guard_crash_(int signal_number) {
    printf("FAIL  %s in: %s\n",
           signal_number == SIGFPE   ? "a floating-point exception"
           : signal_number == SIGILL ? "an illegal instruction"
                                     : "an access outside the arrays",
           guard_describe_());
    test_failed++;
    test_summary();
    fflush(stdout);
    _Exit(1);
}
static void TEST_UNUSED_ guard_crashes(const char *(*describe)(void)) {
    guard_describe_ = describe;
    signal(SIGSEGV, guard_crash_);
    signal(SIGFPE, guard_crash_);
    signal(SIGILL, guard_crash_);
#if defined(SIGBUS)
    signal(SIGBUS, guard_crash_);
#endif
}

#endif
