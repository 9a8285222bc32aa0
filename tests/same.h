/* For programs that must compute the same on every machine: numbers, and a hash of them. Include mixprec.h before. */
#ifndef TESTS_SAME_H
#define TESTS_SAME_H

/* FNV-1a of the bytes of numbers that have `size` each, the lowest first on every machine. */
MIXPREC_INLINE uint64_t hash_numbers(uint64_t hash, const void *data, size_t n, size_t size) {
    static const uint16_t one = 1;
    const size_t flip = *(const unsigned char *)&one ? 0 : size - 1;
    size_t i;
    for (i = 0; i < n * size; i++)
        hash = (hash ^ ((const unsigned char *)data)[i ^ flip]) * 0x100000001B3u;
    return hash;
}

/* The bits of float number i: every exponent, and mantissas on and beside the ties of every format; NaN and Inf too. */
MIXPREC_INLINE uint32_t bits_of_number(uint32_t i) {
    uint32_t bits = mixprec_random_bits(1, i);
    return bits & 1 ? (bits & 0xFFFF0000u) + (bits >> 1 & 1) * 0x8000u + (bits >> 2 & 3) - 1u : bits;
}

#endif /* TESTS_SAME_H */
