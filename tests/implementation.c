/* The implementation alone, for what compiles it once and links it to several programs: the fuzzers, and the shell
   checks' builds of the tests. */
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"
