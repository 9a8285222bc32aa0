/* The scalar conversions on a CPU too small for the rest: int and size_t of 16 bits, no FPU, double no wider than
   float. For each format a hash of all its codes widened, classified and stepped to their neighbours, and one of floats
   narrowed. make check-targets compares what an emulated AVR prints with what this machine does.

       cc -O2 tests/same_scalars.c && ./a.out */
#define MIXPREC_NO_STDLIB
#include "../mixprec.h"

#include "same.h"

#include <stdio.h>

#ifdef __AVR__
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

static int uart_put(char c, FILE *stream) {
    (void)stream;
    while (!(UCSR0A & 1 << UDRE0))
        ;
    UDR0 = (uint8_t)c;
    return 0;
}
#endif

static uint32_t hash;

static void add(uint32_t word) { /* FNV-1a */
    int i;
    for (i = 0; i < 4; i++, word >>= 8)
        hash = (hash ^ (word & 0xFF)) * 16777619u;
}

#define PRINT(name) printf("%s %08lx\n", name, (unsigned long)hash)
#define FORMAT(name, dtype, bits_, mantissa, bias, max_code, overflow_code, nan_code, special)                         \
    {                                                                                                                  \
        mixprec_##name x = {0};                                                                                        \
        uint32_t i;                                                                                                    \
        hash = 2166136261u;                                                                                            \
        for (i = 0; i < (uint32_t)1 << (bits_); i++, x.bits++) {                                                       \
            add(mixprec_f32_bits_(mixprec_##name##_to_f32(x)));                                                        \
            add((uint32_t)(mixprec_##name##_isnan(x) + 2 * mixprec_##name##_isinf(x) +                                 \
                           4 * mixprec_##name##_issubnormal(x) + 8 * mixprec_##name##_signbit(x)));                    \
            add(mixprec_##name##_next_up(x).bits);                                                                     \
            add(mixprec_##name##_next_down(x).bits);                                                                   \
        }                                                                                                              \
        PRINT(#name " to f32");                                                                                        \
        hash = 2166136261u;                                                                                            \
        for (i = 0; i < 2000; i++)                                                                                     \
            add(mixprec_f32_to_##name(mixprec_f32_from_bits_(bits_of_number(i))).bits);                                \
        PRINT("f32 to " #name);                                                                                        \
    }

int main(void) {
#ifdef __AVR__
    static FILE uart;
    fdev_setup_stream(&uart, uart_put, NULL, _FDEV_SETUP_WRITE);
    stdout = &uart;
    UCSR0B = 1 << TXEN0;
#endif
    MIXPREC_NARROW_FORMATS_(FORMAT)
#ifdef __AVR__
    cli(); /* asleep without interrupts: the emulator ends */
    sleep_mode();
#endif
    return 0;
}
