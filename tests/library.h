/* The library as the tests get it, with its implementation unless MIXPREC_IMPLEMENTED_ says that the test is linked to
   tests/implementation.c, and with four handles. The allocator and the handles are for one thread at a time.

   Its allocator counts the blocks, fails when told to, and fills what it gives with NaN, should anything be used before
   it is written; MemorySanitizer finds that itself. With MIXPREC_NO_STDLIB the library has none, the counts stay 0.

       library_hide_units(1); ... library_hide_units(0);

   CPUs with AVX512_VBMI look 8-bit floats up, those with AVX512_BF16 round to bf16 by it; between the calls the library
   does without, as on those that have only the rest of AVX-512. Returns 0 and does nothing where there is neither.

       library_write_around();

   From then on x86 writes what is larger than the caches around them, as AMD's and newer Intel CPUs do by themselves.

       library_multiply_pairs(); ... library_hide_units(0);

   Between the calls bf16 and fp8 are multiplied in pairs wherever the CPU can, as only AMD's CPUs do by themselves.

       library_take_for_amd(1); ... library_take_for_amd(0); ... library_hide_units(0);

   From the one call on loops prefetch and few rows are multiplied as on AMD's CPUs, from the other on as on others. */
#ifndef TESTS_LIBRARY_H
#define TESTS_LIBRARY_H

#include <stdlib.h>
#include <string.h>

extern int allocations, allocations_live, allocator_fails;
void *counting_malloc(size_t size);
void counting_free(void *memory);
int library_hide_units(int hide);
void library_write_around(void);
void library_multiply_pairs(void);
void library_take_for_amd(int amd);

#ifndef MIXPREC_NO_STDLIB
#define MIXPREC_MALLOC(size) counting_malloc(size)
#define MIXPREC_FREE(memory) counting_free(memory)
#endif

#ifdef MIXPREC_IMPLEMENTED_
#include "../mixprec.h"
#else
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#define ALLOCATOR_FILLS 0
#endif
#endif
#ifndef ALLOCATOR_FILLS
#define ALLOCATOR_FILLS 1
#endif

int allocations, allocations_live, allocator_fails;

void *counting_malloc(size_t size) {
    void *memory;
    allocations++;
    memory = allocator_fails ? NULL : malloc(size);
    if (memory) {
        if (ALLOCATOR_FILLS)
            memset(memory, 0xFF, size);
        allocations_live++;
    }
    return memory;
}

void counting_free(void *memory) {
    allocations_live -= memory != NULL;
    free(memory);
}

int library_hide_units(int hide) {
#ifdef MIXPREC_HAS_AVX512_
    mixprec_features_found_ = 0; /* not asked yet */
    if (mixprec_features_() & (MIXPREC_UNIT_VBMI_ | MIXPREC_UNIT_BF16_)) {
        if (hide)
            mixprec_features_found_ &= ~(MIXPREC_UNIT_VBMI_ | MIXPREC_UNIT_BF16_);
        return 1;
    }
#endif
    (void)hide;
    return 0;
}

void library_write_around(void) {
#ifdef MIXPREC_HAS_AVX2_
    mixprec_features_found_ = mixprec_features_() | MIXPREC_UNIT_AROUND_;
#endif
}

void library_multiply_pairs(void) {
#ifdef MIXPREC_HAS_AVX512_BF16_
    if (mixprec_features_() & MIXPREC_UNIT_BF16_ && mixprec_is_fused_())
        mixprec_features_found_ |= MIXPREC_UNIT_PAIRS_;
#endif
}

void library_take_for_amd(int amd) {
#ifdef MIXPREC_HAS_AVX2_
    mixprec_features_found_ = (mixprec_features_() & ~MIXPREC_UNIT_AMD_) | (amd ? MIXPREC_UNIT_AMD_ : 0);
#endif
    (void)amd;
}
#endif

#endif /* TESTS_LIBRARY_H */
