/* Elements of arrays as codes, floats as bits, and whether a path is there: what several tests need. Include it after
   mixprec.h and test.h. */
#ifndef MIXPREC_TEST_CODES_H
#define MIXPREC_TEST_CODES_H

static TEST_UNUSED_ uint64_t load_code(const unsigned char *from, size_t size) {
    uint8_t byte;
    uint16_t half;
    uint32_t word;
    uint64_t code;
    switch (size) {
    case 1: return memcpy(&byte, from, 1), byte;
    case 2: return memcpy(&half, from, 2), half;
    case 4: return memcpy(&word, from, 4), word;
    default: return memcpy(&code, from, 8), code;
    }
}

static TEST_UNUSED_ void store_code(unsigned char *to, uint64_t code, size_t size) {
    uint8_t byte = (uint8_t)code;
    uint16_t half = (uint16_t)code;
    uint32_t word = (uint32_t)code;
    switch (size) {
    case 1: memcpy(to, &byte, 1); break;
    case 2: memcpy(to, &half, 2); break;
    case 4: memcpy(to, &word, 4); break;
    default: memcpy(to, &code, 8); break;
    }
}

static TEST_UNUSED_ int runs_here(mixprec_isa isa) {
    return isa == MIXPREC_ISA_AUTO || mixprec_isa_available(isa);
}

static TEST_UNUSED_ uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static TEST_UNUSED_ float float_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static TEST_UNUSED_ uint32_t code_at(const void *x, mixprec_dtype type, size_t i) {
    size_t size = mixprec_dtype_size(type);
    if (type == MIXPREC_E2M1)
        return ((const unsigned char *)x)[i / 2] >> (i % 2 * 4) & 15u;
    return (uint32_t)load_code((const unsigned char *)x + i * size, size);
}

static TEST_UNUSED_ void set_code(void *x, mixprec_dtype type, size_t i, uint32_t code) {
    size_t size = mixprec_dtype_size(type);
    if (type == MIXPREC_E2M1) { /* what follows an even element is 0 until it is set itself */
        unsigned char *pair = (unsigned char *)x + i / 2;
        *pair = (unsigned char)(i % 2 ? (*pair & 15u) | code << 4 : code);
    } else
        store_code((unsigned char *)x + i * size, code, size);
}

#endif
