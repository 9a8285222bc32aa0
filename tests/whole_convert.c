/* All 2^32 floats to every narrow format on every path of this CPU, a little-endian one, in every mode but stochastic
   and with every overflow policy, in each of environment.h's floating-point environments in turn. The results' digests
   must be those of portable C on x86-64, which the proofs and test_convert.c compare with specifications. Too long for
   `make test`: half an hour or more on a machine, hours in an emulator.

       cc -O2 -std=gnu11 -pthread tests/whole_convert.c && ./a.out [--filter TEXT]

   Runs on all CPUs. Shows how far it is, a line for each path, mode and policy, and a summary as tests/test.h does. */
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

#include <pthread.h>
#include <unistd.h>

#include "environment.h"
#include "test.h"

#define BLOCK 65536u
#define BLOCKS 65536u /* of floats: 2^32 in all */

static const char *const rounds[] = {"nearest even", "toward zero", "up", "down", "nearest away"};
static const char *const policies[] = {"IEEE", "saturate", "saturate, keep Inf"};

static const struct {
    mixprec_dtype dtype;
    uint64_t digests[5][3]; /* of a mode and a policy, in the order of the names above */
} rows[] = {
    {MIXPREC_F16,
     {{0xDA0FB20D3B65BC91, 0xAD211636F5D0EFD4, 0x02B195798AAD71FE},
      {0x7C1D22CC38619EA8, 0x268CA389A3851C7E, 0x7C1D22CC38619EA8},
      {0x44D65023D2269331, 0x62229805A2A95231, 0xB7B317483785D45B},
      {0xB92B84316C91EABC, 0x68598ABF8B271253, 0xBDEA0A022003947D},
      {0xE7DA36933E35DE01, 0xAFEC72DC20699003, 0x057CF21EB546122D}}},
    {MIXPREC_BF16,
     {{0x0FEE838616D4C5D6, 0xAEBAB8158A7B7A78, 0x83EF6D96E570F36B},
      {0xEE49FF7C7ED53F7F, 0x191549FB23DFC68C, 0xEE49FF7C7ED53F7F},
      {0xFBF5DE11979376B9, 0x9E531AA1D0223C2C, 0x7387D0232B17B51F},
      {0xD35EB17F42DC79AA, 0x21CB50BCE155D543, 0xF700063E3C4B4E36},
      {0x970B59F6D4618ABF, 0x35D78E8648083F61, 0x0B0C4407A2FDB854}}},
    {MIXPREC_E4M3,
     {{0xE07513517936A150, 0x4EBCB4C4E474E94F, 0x833573C8B5001ED9},
      {0xEE1B26492E404A6F, 0xB9A267455DB514E5, 0xEE1B26492E404A6F},
      {0xE8016CC79BC44D63, 0xE640C0751191C5D0, 0x1AB97F78E21CFB5A},
      {0xCF195CC21B5676D5, 0x5853D57D92C4C9E6, 0x8CCC9481634FFF70},
      {0xFDB688420BE554DB, 0x2378445607DEC6E4, 0x57F10359D869FC6E}}},
    {MIXPREC_E5M2,
     {{0x3002CF44E9E0EBE0, 0xD6F3453DF8B0023E, 0x135AE565F3ADDB3B},
      {0x6FD72A6945D3792B, 0x336F8A414AD5A02E, 0x6FD72A6945D3792B},
      {0x3910BF25F98EE54C, 0xB6D4F8F24CFC53D0, 0xF33C991A47FA2CCD},
      {0x05665631D16B6268, 0x0915D908421840AA, 0x457D79303D1619A7},
      {0x95FA93DA439B5F10, 0x3CEB09D3526A756E, 0x7952A9FB4D684E6B}}},
    {MIXPREC_E4M3FNUZ,
     {{0xF319C638749A9C44, 0xE6F66FFD0A5CA468, 0x5F79529491442C1C},
      {0x205C5FF4935C5429, 0xA7D97D5D0C74CC75, 0x205C5FF4935C5429},
      {0xFCBF47DFAEDC2668, 0xD631BE07F17E9C1A, 0x4EB4A09F786623CE},
      {0x34A7BEA316372119, 0x0C8443E314F36DC4, 0x8507267A9BDAF578},
      {0xE00EC195405B5088, 0xD3EB6B59D61D58AC, 0x4C6E4DF15D04E060}}},
    {MIXPREC_E5M2FNUZ,
     {{0x9CC8FAFB4465E483, 0x48304B59D237BD6D, 0xC0B32DF1591F4521},
      {0xCD7CF0F27EEFDCE8, 0x54FA0E5AF8085534, 0xCD7CF0F27EEFDCE8},
      {0xF3693254449C3C9E, 0x2CD7133593EF9A0B, 0xA559F5CD1AD721BF},
      {0xB5DEDE0F382A9B24, 0x660B35983F75A3D7, 0xDE8E182FC65D2B8B},
      {0x3046FADB022ED9EB, 0xDBAE4B399000B2D5, 0x54312DD116E83A89}}},
    {MIXPREC_E4M3IEEE,
     {{0x43AB3C02A7FCE7BE, 0x27D61ECFCEDBC98B, 0x994AA195D42704B4},
      {0xB6D16AABC8B5A0DC, 0x455CE7E5C36A65B3, 0xB6D16AABC8B5A0DC},
      {0x32B50C5C5E1EF32E, 0xFDCF6917B8A57A55, 0x6F43EBDDBDF0B57E},
      {0x1A88C446F396887C, 0x89B0DEEC65990024, 0xFB2561B26AE43B4D},
      {0x3A4723F49D2393FF, 0x1E7206C1C40275CC, 0x8FE68987C94DB0F5}}},
    {MIXPREC_E3M4,
     {{0xF401C2E095695D5D, 0x1B8ED7585E94677E, 0x3E4D246B971AFDF6},
      {0x4FEC678400E9B0F6, 0x2D2E1A70C8631A7E, 0x4FEC678400E9B0F6},
      {0xC6FCDD0EAB7FADBC, 0x04F7DB470310EF7F, 0x27B6285A3B9785F7},
      {0x4D87D6A00078D492, 0xB850FFB9621B8E69, 0xDB0F4CCC9AA224E1},
      {0x291ED50691BB5198, 0x50ABE97E5AE65BB9, 0x736A3691936CF231}}},
    {MIXPREC_E2M3,
     {{0xE028DF8F50D1CCE5, 0xE028DF8F50D1CCE5, 0xE028DF8F50D1CCE5},
      {0x2833B26176CC6C89, 0x2833B26176CC6C89, 0x2833B26176CC6C89},
      {0x0A083F2D63489D29, 0x0A083F2D63489D29, 0x0A083F2D63489D29},
      {0xC7DCFD55C5D4A38C, 0xC7DCFD55C5D4A38C, 0xC7DCFD55C5D4A38C},
      {0xE3727F3B6497705B, 0xE3727F3B6497705B, 0xE3727F3B6497705B}}},
    {MIXPREC_E3M2,
     {{0x38472120CEBF97E3, 0x38472120CEBF97E3, 0x38472120CEBF97E3},
      {0xFD38820E0DE94632, 0xFD38820E0DE94632, 0xFD38820E0DE94632},
      {0x4930585D8296D881, 0x4930585D8296D881, 0x4930585D8296D881},
      {0x359176A6B29F23D1, 0x359176A6B29F23D1, 0x359176A6B29F23D1},
      {0x0667631BF545CFE0, 0x0667631BF545CFE0, 0x0667631BF545CFE0}}},
    {MIXPREC_E2M1,
     {{0x7622007375448E0F, 0x7622007375448E0F, 0x7622007375448E0F},
      {0x037B98BCA30FCF4A, 0x037B98BCA30FCF4A, 0x037B98BCA30FCF4A},
      {0x8009038294491809, 0x8009038294491809, 0x8009038294491809},
      {0x268A36270080D034, 0x268A36270080D034, 0x268A36270080D034},
      {0xCA6B9E77F1C0D75F, 0xCA6B9E77F1C0D75F, 0xCA6B9E77F1C0D75F}}},
    {MIXPREC_E8M0,
     {{0x00E13E06B49D2BB5, 0x8C82E6BE0E8D7D4B, 0xD90DADFCDD4A6DAD},
      {0x1860BC3E144B12EE, 0xCBD5F4FF458E228C, 0x1860BC3E144B12EE},
      {0x6DE83F4DD7C7BCED, 0x703980FFE12896DE, 0xBCC4483EAFE58740},
      {0x1860BC3E144B12EE, 0xCBD5F4FF458E228C, 0x1860BC3E144B12EE},
      {0x00E13E06B49D2BB5, 0x8C82E6BE0E8D7D4B, 0xD90DADFCDD4A6DAD}}},
    {MIXPREC_I8,
     {{0x5F7D5F830C7D0325, 0x5F7D5F830C7D0325, 0x5F7D5F830C7D0325},
      {0xCCA32C0FB9A818FE, 0xCCA32C0FB9A818FE, 0xCCA32C0FB9A818FE},
      {0xD880B10F48133B9A, 0xD880B10F48133B9A, 0xD880B10F48133B9A},
      {0x90EEB9ED7A17FBCC, 0x90EEB9ED7A17FBCC, 0x90EEB9ED7A17FBCC},
      {0x028E47DFF6F7C786, 0x028E47DFF6F7C786, 0x028E47DFF6F7C786}}},
};

static struct {
    mixprec_dtype dtype;
    mixprec_convert_options options;
    unsigned next; /* the block to be done next */
    uint64_t digest;
    unsigned changed; /* a block whose conversion left the environment as another one; BLOCKS: none */
    pthread_mutex_t lock;
} work;

/* Austin Appleby's MurmurHash64A, seeded, of whole words. Each step maps one to one the word read, and what was before
   it, to what is after it: results that differ in one word never have the same digest. A word is mixed before it meets
   the others, so that what differs in one is not cancelled by the same few bits of the next. */
static uint64_t digest_of(const unsigned char *bytes, size_t n, uint64_t seed) {
    const uint64_t odd = 0xC6A4A7935BD1E995u;
    uint64_t word;
    for (; n >= 8; n -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        word *= odd;
        word ^= word >> 47;
        word *= odd;
        seed = (seed ^ word) * odd;
    }
    seed = (seed ^ seed >> 47) * odd;
    return seed ^ seed >> 47;
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

/* The environment turns from block to block, and starts with another one in each mode and policy: together they see
   each block in every environment. Nothing between setting it and putting it back is arithmetic but the library's:
   some of the environments trap. */
static mixprec_status convert_in_environment(void *got, const uint32_t *bits, unsigned block,
                                             const mixprec_convert_options *options) {
    mixprec_status status;
#if HAVE_ENVIRONMENT
    const unsigned first = 3 * (unsigned)options->round + (unsigned)options->overflow;
    const environment initial = get_environment();
    environment before, after;
    set_environment(environments[(block + first) % (sizeof environments / sizeof *environments)]);
    before = get_environment();
    status = mixprec_convert_ex(got, work.dtype, bits, MIXPREC_F32, BLOCK, options);
    after = get_environment();
    set_environment(initial);
    if (after != before) {
        pthread_mutex_lock(&work.lock);
        work.changed = block;
        pthread_mutex_unlock(&work.lock);
    }
#else
    (void)block;
    status = mixprec_convert_ex(got, work.dtype, bits, MIXPREC_F32, BLOCK, options);
#endif
    return status;
}

static uint64_t digest_of_block(unsigned block, mixprec_isa isa, int in_environment) {
    uint32_t bits[BLOCK], i;
    unsigned char got[2 * BLOCK];
    const size_t bytes = mixprec_dtype_bytes(work.dtype, BLOCK);
    mixprec_convert_options options = work.options;
    mixprec_status status;
    options.isa = isa;
    for (i = 0; i < BLOCK; i++)
        bits[i] = block * BLOCK + i;
    status = in_environment ? convert_in_environment(got, bits, block, &options)
                            : mixprec_convert_ex(got, work.dtype, bits, MIXPREC_F32, BLOCK, &options);
    if (status != MIXPREC_OK)
        memset(got, 0xA5, bytes);
    return digest_of(got, bytes, block);
}

static void *run_blocks(void *unused) {
    uint64_t sum = 0; /* because threads take the blocks in any order */
    unsigned block;
    while ((block = take_block()) < BLOCKS)
        sum += digest_of_block(block, work.options.isa, 1);
    pthread_mutex_lock(&work.lock);
    work.digest += sum;
    pthread_mutex_unlock(&work.lock);
    return unused;
}

/* The first block that portable C, in the environment of this program, converts to something else; BLOCKS: none. */
static unsigned first_difference(void) {
    unsigned block = 0;
    while (block < BLOCKS && digest_of_block(block, work.options.isa, 1) == digest_of_block(block, MIXPREC_ISA_C, 0))
        block++;
    return block;
}

static void run_all_blocks(void) {
    const int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t others[64];
    int i;
    work.next = 0;
    work.digest = 0;
    work.changed = BLOCKS;
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
                    CHECK(work.changed == BLOCKS, "the environment changed at 0x%08lX",
                          (unsigned long)work.changed * BLOCK);
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
