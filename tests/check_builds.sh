#!/bin/sh
# Runs the quick tests as built by other compilers, in other configurations, with sanitizers and as 32-bit programs.
# Run from the repository's root: sh tests/check_builds.sh

. tests/check.sh

all="scalar convert gemm gemm_ex scaler reduce quant optim policy checkpoint layers bounds threads"
some="scalar convert gemm optim layers" # where the rest would show nothing new
conversions="scalar convert"

# quick_tests LABEL "TESTS" COMPILER OPTIONS...
quick_tests() {
    label=$1 tests=$2
    shift 2
    links "$@" || { missing "builds: $label" "the compiler, and its libraries, of: $*" && return; }
    for test in $tests; do
        check "builds: $label: test_$test compiles" build_test "$test" "$work/test" "$@" || continue
        case $label in
        -O0 | *" conversions alone") some_of "builds: $label" "$test" "$work/test" ;;
        *) check_quick "builds: $label: test_$test" "$work/test" ;;
        esac
    done
}

quick_tests "-O0" "$all" "$CC" -O0
quick_tests "-O3 -march=native" "$some stack" "$CC" -O3 -march=native
quick_tests "-funsigned-char" "convert gemm quant optim" "$CC" -O2 -funsigned-char
quick_tests "MIXPREC_STATIC" "gemm optim layers" "$CC" -O2 -DMIXPREC_STATIC
quick_tests "MIXPREC_NO_SIMD" "$some" "$CC" -O2 -DMIXPREC_NO_SIMD
quick_tests "MIXPREC_NO_STDLIB" "$all stack" "$CC" -O2 -DMIXPREC_NO_STDLIB
quick_tests "MIXPREC_NO_STDLIB, MIXPREC_NO_SIMD" stack "$CC" -O2 -DMIXPREC_NO_STDLIB -DMIXPREC_NO_SIMD
quick_tests "MIXPREC_ASSERT" "$some" "$CC" -O2 -include assert.h "-DMIXPREC_ASSERT(x)=assert(x)"
quick_tests "MIXPREC_MAX_ISA=2" "$some quant" "$CC" -O2 -DMIXPREC_MAX_ISA=2

# levels at which nothing else runs: an optimiser's mistake shows in conversions, which must be right to the bit. What
# they do not need is left out, for it takes most of the compiler's time.
alone=
for room in GEMM SCALER REDUCE QUANT OPTIM POLICY CHECKPOINT LAYERS; do
    alone="$alone -DMIXPREC_NO_$room"
done
for level in "gcc -O1" "gcc -O3" "gcc -Os" "clang -O0" "clang -O1" "clang -O3" "clang -Os"; do
    # shellcheck disable=SC2086
    quick_tests "$level, conversions alone" "$conversions" $level $alone
done

# fast_math COMPILER OPTIONS...: conversions whole; of the rest, compiled so, what a test that needs NaN expects
fast_math() {
    quick_tests "fast math: $*" "$conversions" "$@" -ffast-math
    [ "$* -ffast-math" = "$(cat "$work/implementation.options" 2>/dev/null)" ] || return # it is not there, or did not compile
    check "builds: fast math: $*: the test compiles" "$CC" -std=gnu11 $warnings -O1 -o "$work/fast_math" \
        tests/fast_math.c "$work/implementation.o" -lm && check_quick "builds: fast math: $*" "$work/fast_math"
}
fast_math gcc -O2
fast_math gcc -O2 -DMIXPREC_NO_SIMD
fast_math clang -O2
fast_math clang-19 -O3 -march=native # which drops NaN that functions return

quick_tests "clang" "$all stack" clang -O2
quick_tests "clang-19" "$some stack" clang-19 -O2
quick_tests "-fopenmp" gemm_ex gcc -O2 -fopenmp
quick_tests "tcc" "$some" tcc
quick_tests "32 bits, x87" "$conversions scaler quant layers" gcc -O2 -m32 -mfpmath=387
quick_tests "32 bits, x87, -O3" convert gcc -O3 -m32 -mfpmath=387
[ "$(uname -m)" != x86_64 ] || quick_tests "64 bits, x87" "convert quant" gcc -O1 -mfpmath=387
quick_tests "32 bits, SSE" "$conversions gemm gemm_ex stack" gcc -O2 -m32 -msse2 -mfpmath=sse
# without -g, which doubles the time: the sanitizers name the functions, and undefined behaviour its line
quick_tests "address and undefined-behaviour sanitizers" "$all" \
    gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all

# what only clang finds: uninitialised memory, which gets into results by way of padding and tails; offsets from NULL
quick_tests "memory and clang's undefined-behaviour sanitizers" "gemm gemm_ex reduce quant optim checkpoint layers" \
    clang-19 -O1 -fsanitize=memory,undefined -fno-sanitize-recover=all -Werror
# parts of a product that touch what another thread writes, and memory that calls share
quick_tests "thread sanitizer" "gemm_ex threads" clang-19 -O1 -fsanitize=thread

# of the digests of `make check-floats` that of one mode
if [ "$(uname -m)" = x86_64 ]; then
    check "builds: whole_convert compiles" "$CC" -std=gnu11 $warnings -O2 -pthread -o "$work/whole" tests/whole_convert.c -lm &&
        check_quick "builds: every float up to e5m2, AVX2" "$work/whole" --filter "e5m2, avx2, up, IEEE"
else
    skip "builds: every float up to e5m2, AVX2" "this machine is no x86-64"
fi

summary
