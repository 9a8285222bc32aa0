/* The implementation alone, for what compiles it once and links it to several programs: tests, in the Makefile and the
   shell checks, and fuzzers. */
#include "library.h"
