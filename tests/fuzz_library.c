/* The implementation that the fuzzers link, so that it is compiled once. */
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"
