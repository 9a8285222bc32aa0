/* The header beside macros that other headers define without a prefix: compiled, not run, as C and as C++. What
   mixprec.h includes itself comes first. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* windows.h */
#define small char
#define hyper double
#define near
#define far
#define pascal
#define interface struct
#define IN
#define OUT
#define OPTIONAL
#define ERROR 0
#define ABSOLUTE 1
#define RELATIVE 2
#define min(a, b) not_a_function
#define max(a, b) not_a_function
/* complex.h, sys/param.h, GNU compilers */
#define I (1.0iF)
#define complex _Complex
#define MIN(a, b) not_a_function
#define MAX(a, b) not_a_function
#define linux 1
#define unix 1
/* Arduino.h */
#define abs(x) not_a_function
#define round(x) not_a_function
#define bit(x) not_a_function
#define sq(x) not_a_function
#define F(x) not_a_function
#define HIGH 1
#define LOW 0
#define DEFAULT 1
#define PI 3.14
/* X.h, curses.h */
#define None 0
#define Bool int
#define Status int
#define True 1
#define False 0
#define Success 0
#define move(x, y) not_a_function
#define erase() not_a_function
#define timeout(x) not_a_function
#define OK 0
#define ERR 1
/* anybody */
#define X 1
#define Y 2
#define Z 3
#define M 4
#define N 5
#define K 6
#define ALL 7
#define MEAN 8

#define MIXPREC_IMPLEMENTATION
#include "mixprec.h"
