/* Tests of mixprec_policy_parse, mixprec_policy_print, mixprec_autocast_of, mixprec_policy_operation.

       cc -O2 -std=gnu11 tests/test_policy.c -lm && ./a.out [--quick] [--filter TEXT]

   The expected values are written out from jmp's, apex's, Keras' and PyTorch's sources; PyTorch's lists are in
   golden_policy.h. */
#include "test.h"
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"
#include "golden_policy.h"

#define F32 MIXPREC_F32
#define F64 MIXPREC_F64
#define F16 MIXPREC_F16
#define BF16 MIXPREC_BF16
#define E4M3 MIXPREC_E4M3
#define E5M2 MIXPREC_E5M2
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void test_parse(void) {
    static const struct {
        const char *text, *printed;
        mixprec_policy policy;
    } rows[] = {
        {"params=float32,compute=bfloat16,output=float32", "p=full,c=bf16,o=full", {F32, BF16, F32, BF16, 1, 0, 0}},
        {"p=f32,c=f16,o=f32", "p=full,c=f16,o=full", {F32, F16, F32, F16, 1, 0, 1}},
        {"c=f16", "p=full,c=f16,o=f16", {F32, F16, F16, F16, 1, 0, 1}},
        {"p=f16,c=bf16", "p=f16,c=bf16,o=bf16", {F16, BF16, BF16, BF16, 1, 0, 0}},
        {"p=bf16", "p=bf16,c=bf16,o=bf16", {BF16, BF16, BF16, BF16, 1, 0, 0}},
        {"o=float64,p=full", "p=full,c=full,o=f64", {F32, F32, F64, F32, 1, 0, 0}},
        {"half", "p=f16,c=f16,o=f16", {F16, F16, F16, F16, 1, 0, 1}},
        {"float32", "p=full,c=full,o=full", {F32, F32, F32, F32, 1, 0, 0}},
        {"c=e4m3,gradient=float8_e5m2,output=bf16", "p=full,c=e4m3,o=bf16,g=e5m2", {F32, E4M3, BF16, E5M2, 1, 0, 0}},
        {"compute=float8_e4m3fn,g=f16", "p=full,c=e4m3,o=e4m3,g=f16", {F32, E4M3, E4M3, F16, 1, 0, 1}},
        {"O0", "p=full,c=full,o=full", {F32, F32, F32, F32, 0, 0, 0}},
        {"O1", "p=full,c=f16,o=f16", {F32, F16, F16, F16, 1, 0, 1}},
        {"O2", "p=full,c=f16,o=f16", {F32, F16, F16, F16, 0, 1, 1}},
        {"O3", "p=f16,c=f16,o=f16", {F16, F16, F16, F16, 0, 0, 0}},
        {"mixed_float16", "p=full,c=f16,o=f16", {F32, F16, F16, F16, 0, 2, 1}},
        {"mixed_bfloat16", "p=full,c=bf16,o=bf16", {F32, BF16, BF16, BF16, 0, 2, 0}},
        {"fp8_hybrid", "p=full,c=e4m3,o=bf16,g=e5m2", {F32, E4M3, BF16, E5M2, 1, 0, 0}},
    };
    size_t i;
    for (i = 0; i < COUNT_OF(rows); i++) {
        mixprec_policy got;
        char text[64];
        memset(&got, 0xFF, sizeof got);
        CHECK(mixprec_policy_parse(&got, rows[i].text) == MIXPREC_OK, "%s: refused", rows[i].text);
        CHECK(!memcmp(&got, &rows[i].policy, sizeof got), "%s: p %d c %d o %d g %d, %d %d %d", rows[i].text,
              (int)got.param, (int)got.compute, (int)got.output, (int)got.gradient, (int)got.per_operation,
              (int)got.f32_norms, (int)got.loss_scaling);
        CHECK(mixprec_policy_print(text, sizeof text, &got) == MIXPREC_OK && !strcmp(text, rows[i].printed),
              "%s: printed %s", rows[i].text, text);
        memset(text, '#', sizeof text);
        CHECK(mixprec_policy_print(text, strlen(rows[i].printed), &got) == MIXPREC_ERR_RANGE && text[0] == '#',
              "%s: printed to too few bytes", rows[i].text);
        CHECK(mixprec_policy_print(text, strlen(rows[i].printed) + 1, &got) == MIXPREC_OK &&
                  text[strlen(rows[i].printed) + 1] == '#',
              "%s: wrote beyond the end", rows[i].text);
    }
}

static void test_refused(void) {
    static const char *const texts[] = {"",          " ",           "float",       "O4",
                                        "O",         "mixed",       "p=",          "=f32",
                                        "p=f32,",    ",p=f32",      "p=f32;c=f16", "p=f31",
                                        "q=f32",     "p=f32,p=f32", "p= f32",      "P=f32",
                                        "p=f32=f32", "float32 f16", "f32 float32", "p=f32 f32",
                                        "i8",        "p=f32,c",     "param=f32",   "bf",
                                        "f320",      "c=e4m3fnuz"};
    mixprec_policy policy = {F16, F16, F16, F16, 1, 1, 1}, before = policy, bad;
    char text[64] = "#";
    size_t i;
    for (i = 0; i < COUNT_OF(texts); i++)
        CHECK(mixprec_policy_parse(&policy, texts[i]) == MIXPREC_ERR_POLICY && !memcmp(&policy, &before, sizeof policy),
              "\"%s\": accepted, or the policy was written", texts[i]);
    CHECK(mixprec_policy_parse(NULL, "f32") == MIXPREC_ERR_NULL, "policy NULL");
    CHECK(mixprec_policy_parse(&policy, NULL) == MIXPREC_ERR_NULL, "text NULL");
    CHECK(mixprec_policy_print(NULL, 64, &policy) == MIXPREC_ERR_NULL, "text NULL");
    CHECK(mixprec_policy_print(text, 64, NULL) == MIXPREC_ERR_NULL && text[0] == '#', "policy NULL");
    for (i = 0; i < 4; i++) {
        bad = before;
        *(i == 0   ? &bad.param
          : i == 1 ? &bad.compute
          : i == 2 ? &bad.output
                   : &bad.gradient) = i % 2 ? MIXPREC_I8 : MIXPREC_NONE;
        CHECK(mixprec_policy_print(text, 64, &bad) == MIXPREC_ERR_DTYPE && text[0] == '#', "bad dtype %zu", i);
        CHECK(mixprec_policy_operation(&bad, "linear", F32) == MIXPREC_NONE, "bad dtype %zu", i);
    }
}

static void test_operations(void) {
    static const struct {
        const char *operation;
        mixprec_autocast autocast;
    } rows[] = {{"pow.Tensor_Tensor_out", MIXPREC_AUTOCAST_F32},
                {"mm.", MIXPREC_AUTOCAST_LOW},
                {".mm", MIXPREC_AUTOCAST_UNLISTED},
                {"addmm_", MIXPREC_AUTOCAST_UNLISTED},
                {"relu", MIXPREC_AUTOCAST_UNLISTED},
                {"batch_norm", MIXPREC_AUTOCAST_UNLISTED},
                {"rms_norm", MIXPREC_AUTOCAST_F32}, /* newer than the table: pytorch pull request 174824 */
                {"", MIXPREC_AUTOCAST_UNLISTED},
                {"conv", MIXPREC_AUTOCAST_UNLISTED},
                {"linear ", MIXPREC_AUTOCAST_UNLISTED},
                {"mm mv", MIXPREC_AUTOCAST_UNLISTED},
                {"softmaxx", MIXPREC_AUTOCAST_UNLISTED},
#define ROW(name, category) {name, category},
                GOLDEN_AUTOCAST(ROW)
#undef ROW
    };
    static const struct {
        const char *policy, *operation;
        mixprec_dtype widest, want;
    } answers[] = {{"O1", "linear", F32, F16},
                   {"O1", "softmax", F16, F32},
                   {"O1", "relu", F16, F16},
                   {"O1", "relu", F32, F32},
                   {"O1", "dot", F32, F32},
                   {"O1", "dot", F16, F16},
                   {"O1", "softmax", F64, F64},
                   {"O2", "linear", F32, F16},
                   {"O2", "softmax", F16, F16},
                   {"O2", "batch_norm", F16, F32},
                   {"O2", "layer_norm", F16, F16},
                   {"O1", "linear", F64, F64},
                   {"O1", "dot", F64, F64},
                   {"O1", "linear.out", BF16, F16},
                   {"O3", "layer_norm", F16, F16},
                   {"O0", "linear", F16, F32},
                   {"mixed_bfloat16", "matmul", F32, BF16},
                   {"mixed_bfloat16", "addcmul", F32, BF16},
                   {"mixed_float16", "softmax", F16, F16},
                   {"mixed_float16", "layer_norm", F16, F32},
                   {"mixed_float16", "batch_norm", F16, F32},
                   {"mixed_float16", "layer_norm.out", F16, F32},
                   {"mixed_float16", "cudnn_batch_norm", F16, F32},
                   {"mixed_float16", "group_norm", F16, F32},
                   {"mixed_float16", "native_group_norm", F16, F32},
                   {"mixed_float16", "instance_norm", F16, F32},
                   {"mixed_float16", "rms_norm", F16, F32},
                   {"mixed_float16", "native_layer_norm", F16, F32},
                   {"mixed_float16", "softmax.out", F16, F16},
                   {"O2", "native_batch_norm.out", F16, F32},
                   {"O2", "native_layer_norm", F16, F16},
                   {"c=bf16", "addcmul", BF16, BF16},
                   {"c=bf16", "addcmul", F32, F32},
                   {"c=bf16", "addcmul", F16, F32},
                   {"c=f16", "addcmul", BF16, F32},
                   {"c=f16", "addcmul", F64, F64},
                   {"c=e4m3,o=e5m2", "addcmul", E4M3, F32},
                   {"c=e4m3,o=e5m2", "addcmul", E5M2, E5M2},
                   {"p=f32,c=bf16,o=f32", "dot", BF16, BF16},
                   {"p=f32,c=bf16,o=f32", "dot", F32, F32},
                   {"fp8_hybrid", "linear", BF16, E4M3},
                   {"fp8_hybrid", "dot", E4M3, BF16},
                   {"fp8_hybrid", "layer_norm", BF16, F32}};
    mixprec_policy policy;
    size_t i;
    for (i = 0; i < COUNT_OF(rows); i++)
        CHECK(mixprec_autocast_of(rows[i].operation) == rows[i].autocast, "%s: %d", rows[i].operation,
              (int)mixprec_autocast_of(rows[i].operation));
    CHECK(mixprec_autocast_of(NULL) == MIXPREC_AUTOCAST_UNLISTED, "NULL");
    for (i = 0; i < COUNT_OF(answers); i++) {
        mixprec_dtype got;
        CHECK(mixprec_policy_parse(&policy, answers[i].policy) == MIXPREC_OK, "%s", answers[i].policy);
        got = mixprec_policy_operation(&policy, answers[i].operation, answers[i].widest);
        CHECK(got == answers[i].want, "%s, %s of %s: %s", answers[i].policy, answers[i].operation,
              mixprec_dtype_name(answers[i].widest), mixprec_dtype_name(got));
    }
    CHECK(mixprec_policy_operation(NULL, "linear", F32) == MIXPREC_NONE, "policy NULL");
    CHECK(mixprec_policy_operation(&policy, NULL, F32) == MIXPREC_NONE, "operation NULL");
    CHECK(mixprec_policy_operation(&policy, "linear", MIXPREC_I8) == MIXPREC_NONE, "widest i8");
}

int main(int argc, char **argv) {
    test_init(argc, argv);
    if (test_begin("policy: the grammar of jmp, and presets")) {
        test_parse();
        test_end();
    }
    if (test_begin("policy: what is refused")) {
        test_refused();
        test_end();
    }
    if (test_begin("policy: which dtype for an operation")) {
        test_operations();
        test_end();
    }
    return test_summary();
}
