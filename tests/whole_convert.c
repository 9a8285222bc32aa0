/* All 2^32 floats to every narrow format on every path of this CPU, a little-endian one: to the formats that GEMM takes,
   E8M0 and int8 in every mode but stochastic and with every overflow policy, to the others to nearest even. The
   results' digests must be those of portable C on x86-64, which the proofs and test_convert.c compare with
   specifications. Too long for `make test`: twenty minutes on a machine, more than an hour in an emulator.

       cc -O2 -std=gnu11 -pthread tests/whole_convert.c && ./a.out [--filter TEXT]

   Runs on all CPUs. Shows how far it is, a line for each path, mode and policy, and a summary as tests/test.h does. */
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

#include <pthread.h>
#include <unistd.h>

#include "test.h"

#define BLOCK 65536u
#define BLOCKS 65536u /* of floats: 2^32 in all */

static const char *const rounds[] = {"nearest even", "toward zero", "up", "down", "nearest away"};
static const char *const policies[] = {"IEEE", "saturate", "saturate, keep Inf"};

static const struct {
    mixprec_dtype dtype;
    uint64_t digests[5][3]; /* of a mode and a policy, in the order of the names above; 0: not here */
} rows[] = {
    {MIXPREC_F16,
     {{0x4E6C38F9013A570A, 0x31011232643F69CD, 0x75DFE9BA26FEFE4F},
      {0x464B4020AAD37255, 0x016C6898E813DDD3, 0x464B4020AAD37255},
      {0x73CD75682F30A70A, 0xB2A0A5290D69CBB4, 0xF77F7CB0D0296036},
      {0xDFEC63B54877C60F, 0x41E412985D7FEFFA, 0x86C2EA20203F847C},
      {0x2BFE612784C63464, 0x5561ABDA3E89380E, 0x9A4083620148CC90}}},
    {MIXPREC_BF16,
     {{0x06BC53B927AD3888, 0x35EF627DFC64FEA0, 0xCB44198DD79D19CD},
      {0xE08696F5D2AB29CA, 0x4B31DFE5F7730E9D, 0xE08696F5D2AB29CA},
      {0xBFDF0DCCB116A253, 0x3C7D95BF4DE0A134, 0xD1D24CCF2918BC61},
      {0x292C6933656DCAB1, 0xA62C3FC1C9367EB4, 0x3B80F6D1A46E99E1},
      {0xD76E39CE3F990470, 0x06A148931450CA88, 0x9BF5FFA2EF88E5B5}}},
    {MIXPREC_E4M3,
     {{0xF2D2DE123891EDF0, 0x7208A8610A8A064B, 0x944FDC61660355AD},
      {0xB481408B010569CB, 0x923A0C8AA58C1A69, 0xB481408B010569CB},
      {0x1D718940F54CFF8A, 0xBA42E05BB495E40D, 0xDC8A145C100F336F},
      {0x633797D44DA64611, 0x809DEF28F5FD4746, 0xA2E52329517696A8},
      {0x165848D260299EC4, 0x7883E974577530B4, 0x9ACB1D74B2EE8016}}},
    {MIXPREC_E5M2,
     {{0x1BD68EA492915562, 0x2D5C756B0CFED7D6, 0x5EAB416CA1FB3066},
      {0x6CD77643BE944798, 0x3B88AA422997EF08, 0x6CD77643BE944798},
      {0xD1BDF92D2107A7AC, 0x20268E91063C2233, 0x51755A929B387AC3},
      {0x276F45F4226DF682, 0x626470611742B18E, 0x93B33C62AC3F0A1E},
      {0xE4B6B862AA7A1A59, 0xF63C9F2924E79CCD, 0x278B6B2AB9E3F55D}}},
    {MIXPREC_E4M3FNUZ, {{0xA8033AF61225FFC1}}},
    {MIXPREC_E5M2FNUZ, {{0x4E47FBD58B821E30}}},
    {MIXPREC_E4M3IEEE, {{0x49E60272959D02AF}}},
    {MIXPREC_E3M4, {{0xCBB59C322076D207}}},
    {MIXPREC_E2M3, {{0x11619D773502B952}}},
    {MIXPREC_E3M2, {{0xB89CCDB674BD7C45}}},
    {MIXPREC_E2M1, {{0xE7645EDE3842927E}}},
    {MIXPREC_E8M0,
     {{0x3355E2C291B1D912, 0xCEFC824DB6F50AED, 0xE609C34DF8DC7AD5},
      {0x8554B478891D83CF, 0x6E477378473613E7, 0x8554B478891D83CF},
      {0x18330B46A22BD871, 0xF6B9EEDCC6923FF7, 0x0DC72FDD0879AFDF},
      {0x8554B478891D83CF, 0x6E477378473613E7, 0x8554B478891D83CF},
      {0x3355E2C291B1D912, 0xCEFC824DB6F50AED, 0xE609C34DF8DC7AD5}}},
    {MIXPREC_I8,
     {{0x9E70C0B223E64B22, 0x9E70C0B223E64B22, 0x9E70C0B223E64B22},
      {0xE539BF70C0133068, 0xE539BF70C0133068, 0xE539BF70C0133068},
      {0x80C9D892CF848EF9, 0x80C9D892CF848EF9, 0x80C9D892CF848EF9},
      {0xD50E76FCA0C13501, 0xD50E76FCA0C13501, 0xD50E76FCA0C13501},
      {0x4B94868753AF0DC7, 0x4B94868753AF0DC7, 0x4B94868753AF0DC7}}},
};

static struct {
    mixprec_dtype dtype;
    mixprec_convert_options options;
    unsigned next; /* the block to be done next */
    uint64_t digest;
    pthread_mutex_t lock;
} work;

/* Each step maps one to one what was before it and the word read to what is after it: results that differ in one word
   never have the same digest. */
static uint64_t digest_of(const unsigned char *bytes, size_t n, uint64_t seed) {
    uint64_t word;
    for (; n >= 8; n -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        seed = (seed ^ word) * 0x9E3779B97F4A7C15u;
        seed ^= seed >> 32;
    }
    return seed;
}

static unsigned take_block(void) {
    unsigned block;
    pthread_mutex_lock(&work.lock);
    block = work.next++;
    pthread_mutex_unlock(&work.lock);
    if (block < BLOCKS && block % 4096 == 0)
        fprintf(stderr, "\r%3u %%", block / (BLOCKS / 100));
    return block;
}

static uint64_t digest_of_block(unsigned block, mixprec_isa isa) {
    uint32_t bits[BLOCK], i;
    unsigned char got[2 * BLOCK];
    const size_t bytes = mixprec_dtype_bytes(work.dtype, BLOCK);
    mixprec_convert_options options = work.options;
    options.isa = isa;
    for (i = 0; i < BLOCK; i++)
        bits[i] = block * BLOCK + i;
    if (mixprec_convert_ex(got, work.dtype, bits, MIXPREC_F32, BLOCK, &options) != MIXPREC_OK)
        memset(got, 0xA5, bytes);
    return digest_of(got, bytes, block);
}

static void *run_blocks(void *unused) {
    uint64_t sum = 0; /* because threads take the blocks in any order */
    unsigned block;
    while ((block = take_block()) < BLOCKS)
        sum += digest_of_block(block, work.options.isa);
    pthread_mutex_lock(&work.lock);
    work.digest += sum;
    pthread_mutex_unlock(&work.lock);
    return unused;
}

/* The first block that portable C converts to something else; BLOCKS: none. */
static unsigned first_difference(void) {
    unsigned block = 0;
    while (block < BLOCKS && digest_of_block(block, work.options.isa) == digest_of_block(block, MIXPREC_ISA_C))
        block++;
    return block;
}

static void run_all_blocks(void) {
    const int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t others[64];
    int i;
    work.next = 0;
    work.digest = 0;
    for (i = 1; i < threads && i < 64; i++)
        if (pthread_create(&others[i], NULL, run_blocks, NULL)) {
            perror("whole_convert");
            exit(2);
        }
    run_blocks(NULL);
    for (i = 1; i < threads && i < 64; i++)
        pthread_join(others[i], NULL);
}

int main(int argc, char **argv) {
    int row, path, round, policy;
    test_init(argc, argv);
    pthread_mutex_init(&work.lock, NULL);
    for (path = MIXPREC_ISA_C; path <= MIXPREC_ISA_NEON; path++) {
        if (!mixprec_isa_available((mixprec_isa)path))
            continue;
        for (row = 0; row < (int)(sizeof rows / sizeof *rows); row++)
            for (round = 0; round < MIXPREC_ROUND_STOCHASTIC; round++)
                for (policy = 0; policy < 3; policy++) {
                    const uint64_t digest = rows[row].digests[round][policy];
                    time_t start = time(NULL);
                    char name[120];
                    if (!digest)
                        continue;
                    snprintf(name, sizeof name, "whole: f32 to %s, %s, %s, %s", mixprec_dtype_name(rows[row].dtype),
                             mixprec_isa_name((mixprec_isa)path), rounds[round], policies[policy]);
                    work.dtype = rows[row].dtype;
                    work.options.isa = (mixprec_isa)path;
                    work.options.round = (mixprec_round)round;
                    work.options.overflow = (mixprec_overflow)policy;
                    if (!test_begin(name))
                        continue;
                    run_all_blocks();
                    fprintf(stderr, "\r%lds ", (long)(time(NULL) - start));
                    CHECK(work.digest == digest, "digest 0x%016llX", (unsigned long long)work.digest);
                    if (work.digest != digest) {
                        const unsigned block = first_difference();
                        CHECK(block == BLOCKS, "not as portable C at 0x%08lX to 0x%08lX", (unsigned long)block * BLOCK,
                              (unsigned long)block * BLOCK + BLOCK - 1);
                    }
                    test_end();
                }
    }
    return test_summary() || !test_passed; /* a path that is not there is no success */
}
