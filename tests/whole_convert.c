/* Every float to f16, bf16, e4m3 and e5m2, in every mode but stochastic and with every overflow policy, on the best
   path of this CPU against portable C, which the proofs and test_convert.c compare with specifications. Hours in an
   emulator, minutes on a machine: so it is no part of `make test`.

       cc -O2 -std=gnu11 -pthread tests/whole_convert.c && ./a.out [--quick] [--filter TEXT]

   Runs on all CPUs (--quick: one block of floats in 61). Shows how far it is, a line for each mode and policy, and a
   summary as tests/test.h does. */
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

#include <pthread.h>
#include <unistd.h>

#include "test.h"

#define BLOCK 65536u
#define BLOCKS 65536u /* of floats: 2^32 in all */

static struct {
    mixprec_dtype dtype;
    mixprec_convert_options options;
    unsigned next;             /* the block to be done next */
    unsigned different, first; /* blocks that differ, and the least of them */
    pthread_mutex_t lock;
} work;

static unsigned take_block(void) {
    unsigned block;
    pthread_mutex_lock(&work.lock);
    block = work.next;
    work.next += test_quick ? 61 : 1;
    pthread_mutex_unlock(&work.lock);
    if (block < BLOCKS && !test_quick && block % 4096 == 0)
        fprintf(stderr, "\r%3u %%", block * 100 / BLOCKS);
    return block;
}

static void *run_blocks(void *unused) {
    uint32_t *bits = malloc(BLOCK * sizeof *bits), i;
    unsigned char *want = malloc(BLOCK * 2), *got = malloc(BLOCK * 2);
    size_t bytes = mixprec_dtype_bytes(work.dtype, BLOCK);
    mixprec_convert_options reference = work.options;
    unsigned block;
    reference.isa = MIXPREC_ISA_C;
    if (!bits || !want || !got) {
        perror("whole_convert");
        exit(2);
    }
    while ((block = take_block()) < BLOCKS) {
        for (i = 0; i < BLOCK; i++)
            bits[i] = block * BLOCK + i;
        memset(got, 0xA5, bytes);
        if (mixprec_convert_ex(want, work.dtype, bits, MIXPREC_F32, BLOCK, &reference) != MIXPREC_OK ||
            mixprec_convert_ex(got, work.dtype, bits, MIXPREC_F32, BLOCK, &work.options) != MIXPREC_OK ||
            memcmp(want, got, bytes)) {
            pthread_mutex_lock(&work.lock);
            if (!work.different++ || block < work.first)
                work.first = block;
            pthread_mutex_unlock(&work.lock);
        }
    }
    free(bits);
    free(want);
    free(got);
    return unused;
}

int main(int argc, char **argv) {
    static const mixprec_dtype dtypes[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static const char *const rounds[] = {"nearest even", "toward zero", "up", "down", "nearest away"};
    static const char *const policies[] = {"IEEE", "saturate", "saturate, keep Inf"};
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN), dtype, round, policy, i;
    pthread_t others[64];
    test_init(argc, argv);
    pthread_mutex_init(&work.lock, NULL);
    if (mixprec_isa_best() == MIXPREC_ISA_C) {
        test_skip("whole: every float", "this CPU has portable C only");
        return test_summary();
    }
    for (dtype = 0; dtype < 4; dtype++)
        for (round = 0; round < MIXPREC_ROUND_STOCHASTIC; round++)
            for (policy = 0; policy < 3; policy++) {
                char name[120];
                time_t start = time(NULL);
                snprintf(name, sizeof name, "whole: every float to %s on %s, %s, %s", mixprec_dtype_name(dtypes[dtype]),
                         mixprec_isa_name(mixprec_isa_best()), rounds[round], policies[policy]);
                work.dtype = dtypes[dtype];
                work.options.round = (mixprec_round)round;
                work.options.overflow = (mixprec_overflow)policy;
                work.next = work.different = 0;
                if (!test_begin(name))
                    continue;
                for (i = 1; i < threads && i < 64; i++)
                    if (pthread_create(&others[i], NULL, run_blocks, NULL)) {
                        perror("whole_convert");
                        return 2;
                    }
                run_blocks(NULL);
                for (i = 1; i < threads && i < 64; i++)
                    pthread_join(others[i], NULL);
                fprintf(stderr, "\r%lds ", (long)(time(NULL) - start));
                CHECK(work.different == 0, "%u blocks of 65536 floats differ, the first at 0x%08lX", work.different,
                      (unsigned long)work.first * BLOCK);
                test_end();
            }
    return test_summary();
}
