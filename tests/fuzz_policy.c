/* Policies from any text: nothing beyond its end is read, what is accepted prints, and parses again to the same; texts
   of the grammar mean what they say. How to run it: see fuzz.h. */
#include "fuzz.h"

typedef struct word {
    const char *text;
    int meaning;
} word;
static const word keys[] = {{"p", 0},      {"params", 0}, {"c", 1},        {"compute", 1}, {"o", 2},
                            {"output", 2}, {"g", 3},      {"gradient", 3}, {"x", -1},      {"param", -1}};
static const word dtypes[] = {{"float32", MIXPREC_F32},
                              {"f32", MIXPREC_F32},
                              {"full", MIXPREC_F32},
                              {"float16", MIXPREC_F16},
                              {"f16", MIXPREC_F16},
                              {"half", MIXPREC_F16},
                              {"bfloat16", MIXPREC_BF16},
                              {"bf16", MIXPREC_BF16},
                              {"float64", MIXPREC_F64},
                              {"f64", MIXPREC_F64},
                              {"float8_e4m3fn", MIXPREC_E4M3},
                              {"e4m3", MIXPREC_E4M3},
                              {"float8_e5m2", MIXPREC_E5M2},
                              {"e5m2", MIXPREC_E5M2},
                              {"", MIXPREC_NONE},
                              {"f", MIXPREC_NONE},
                              {"f322", MIXPREC_NONE},
                              {" f32", MIXPREC_NONE},
                              {"f32 ", MIXPREC_NONE},
                              {"F32", MIXPREC_NONE}};

/* A list of pairs, and what it means: 0 in want[0] where it means nothing. */
static void write_pairs(char *text, int want[4]) {
    size_t count = 1 + fuzz_below(5), i;
    int wrong = 0;
    memset(want, 0, 4 * sizeof *want);
    *text = 0;
    for (i = 0; i < count; i++) {
        const word *key = &FUZZ_PICK(keys), *dtype = &FUZZ_PICK(dtypes);
        strcat(text, i ? "," : "");
        strcat(text, key->text);
        strcat(text, "=");
        strcat(text, dtype->text);
        if (key->meaning < 0 || dtype->meaning == MIXPREC_NONE || want[key->meaning])
            wrong = 1;
        else
            want[key->meaning] = dtype->meaning;
    }
    want[0] = want[0] ? want[0] : MIXPREC_F32;
    want[1] = want[1] ? want[1] : want[0];
    want[2] = want[2] ? want[2] : want[1];
    want[3] = want[3] ? want[3] : want[1];
    if (wrong)
        want[0] = 0;
}

static void check_same(const mixprec_policy *a, const mixprec_policy *b, const char *text) {
    FUZZ_CHECK(a->param == b->param && a->compute == b->compute && a->output == b->output && a->gradient == b->gradient,
               "\"%s\" prints as something else", text);
}

static void check_text(const char *text) {
    mixprec_policy policy, before, again;
    mixprec_status status;
    char printed[64], *exact; /* the first block of memory is the text */
    size_t length, i;
    int kind;
    memset(&policy, 0x5A, sizeof policy);
    before = policy;
    status = mixprec_policy_parse(&policy, text);
    kind = (int)mixprec_autocast_of(text);
    FUZZ_CHECK(kind >= MIXPREC_AUTOCAST_UNLISTED && kind <= MIXPREC_AUTOCAST_PROMOTE, "autocast_of");
    if (status != MIXPREC_OK) {
        FUZZ_CHECK(status == MIXPREC_ERR_POLICY, "status %d for \"%s\"", (int)status, text);
        FUZZ_CHECK(!memcmp(&policy, &before, sizeof policy), "written to although \"%s\" is refused", text);
        return;
    }
    FUZZ_CHECK(mixprec_policy_print(printed, sizeof printed, &policy) == MIXPREC_OK, "\"%s\" does not print", text);
    length = strlen(printed);
    for (i = 0; i <= length; i++) { /* not a byte more than there is room for, and nothing on an error */
        exact = (char *)fuzz_memory(i, 0x5A);
        FUZZ_CHECK(mixprec_policy_print(exact, i, &policy) == MIXPREC_ERR_RANGE, "%zu bytes were enough", i);
        FUZZ_CHECK(i == 0 || (exact[0] == 0x5A && exact[i - 1] == 0x5A), "written to although refused");
        fuzz_free(1);
    }
    exact = (char *)fuzz_memory(length + 1, 0x5A);
    FUZZ_CHECK(mixprec_policy_print(exact, length + 1, &policy) == MIXPREC_OK && !strcmp(exact, printed), "print");
    FUZZ_CHECK(mixprec_policy_parse(&again, exact) == MIXPREC_OK, "\"%s\" prints as \"%s\"", text, printed);
    check_same(&policy, &again, text);
    for (i = 0; i < MIXPREC_DTYPE_COUNT; i++) {
        mixprec_dtype dtype = mixprec_policy_operation(&policy, text, (mixprec_dtype)i);
        FUZZ_CHECK((dtype == MIXPREC_NONE) == (i == MIXPREC_NONE || i > MIXPREC_E5M2), "an operation in %d",
                   (int)dtype);
    }
}

static int is_sound(mixprec_dtype dtype) {
    return dtype >= MIXPREC_F32 && dtype <= MIXPREC_E5M2;
}

/* Any policy: prints, and parses to the same, when its dtypes are those that a policy can have. */
static void check_policy(void) {
    mixprec_policy policy, again;
    mixprec_status status;
    char printed[64];
    memset(&policy, 0, sizeof policy);
    policy.param = (mixprec_dtype)fuzz_enum(0, MIXPREC_E5M2);
    policy.compute = (mixprec_dtype)fuzz_enum(0, MIXPREC_E5M2);
    policy.output = (mixprec_dtype)fuzz_enum(0, MIXPREC_E5M2);
    policy.gradient = (mixprec_dtype)fuzz_enum(0, MIXPREC_E5M2);
    status = mixprec_policy_print(printed, sizeof printed, &policy);
    if (!is_sound(policy.param) || !is_sound(policy.compute) || !is_sound(policy.output) || !is_sound(policy.gradient))
        FUZZ_CHECK(status == MIXPREC_ERR_DTYPE, "status %d for an unsound policy", (int)status);
    else {
        FUZZ_CHECK(status == MIXPREC_OK && mixprec_policy_parse(&again, printed) == MIXPREC_OK, "does not print");
        check_same(&policy, &again, printed);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char pairs[256], *text;
    fuzz_begin(data, size);
    check_policy();
    if (fuzz_one_in(2)) {
        mixprec_policy policy;
        mixprec_status status;
        int want[4];
        write_pairs(pairs, want);
        text = (char *)fuzz_memory(strlen(pairs) + 1, 0);
        strcpy(text, pairs);
        status = mixprec_policy_parse(&policy, text);
        FUZZ_CHECK((status == MIXPREC_OK) == (want[0] != 0), "status %d for \"%s\"", (int)status, text);
        FUZZ_CHECK(status != MIXPREC_OK || ((int)policy.param == want[0] && (int)policy.compute == want[1] &&
                                            (int)policy.output == want[2] && (int)policy.gradient == want[3]),
                   "\"%s\" is misread", text);
    } else {
        text = (char *)fuzz_memory(fuzz_left + 1, 0);
        memcpy(text, fuzz_data, fuzz_left);
    }
    check_text(text);
    fuzz_free(0);
    return 0;
}
