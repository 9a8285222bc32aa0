/* The implementation alone, for what compiles it once and links it to several programs: tests, in the Makefile and the
   shell checks, and fuzzers. With TEST_LAYERS_HERE the tests that look at private functions, too. */
#include "library.h"

#ifdef TEST_LAYERS_HERE
int test_layers(int argc, char **argv);
#define main test_layers
#include "test_layers.c"
#endif
