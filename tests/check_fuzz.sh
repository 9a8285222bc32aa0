#!/bin/sh
# Builds and runs the fuzzers, tests/fuzz_*.c, in two ways: by the C compiler with its sanitizers, over a fixed sequence of
# inputs, and by clang's libFuzzer, which looks for inputs that reach new code, for FUZZ_SECONDS (20) each. What libFuzzer
# finds is left in $BUILD/check_fuzz. Two at once: FUZZ_JOBS. Run from the repository's root: sh tests/check_fuzz.sh

. tests/check.sh

: "${FUZZ_SECONDS:=20}" "${FUZZ_JOBS:=2}"
fuzzers="checkpoint policy convert gemm"
libfuzzer=
for compiler in clang clang-19; do
    if [ -z "$libfuzzer" ] && have $compiler &&
        printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const char *p, size_t n) { return !p && n; }\n' |
        $compiler -fsanitize=fuzzer,address,undefined -x c -o "$work/probe" - 2>"$work/output"; then
        libfuzzer=$compiler
    fi
done
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"

# build KIND COMPILER LIBRARY_OPTIONS OPTIONS: the implementation once, then each fuzzer
build() {
    $2 $3 $sanitize -c -o "$work/$1_library.o" tests/implementation.c || return
    for fuzzer in $fuzzers; do
        # shellcheck disable=SC2086
        $2 -std=gnu11 $warnings -O1 $4 $sanitize -o "$work/$1_$fuzzer" "tests/fuzz_$fuzzer.c" "$work/$1_library.o" -lm ||
            return
    done
}
# run NAME: one fuzzer in both ways, in a directory of its own
run() {
    mkdir -p "$work/$1"
    "$work/plain_$1" --seconds "$((FUZZ_SECONDS / 4 + 1))" >"$work/$1/plain" 2>&1
    echo $? >"$work/$1/plain.status"
    if [ "$libfuzzer" ]; then
        "$work/libfuzzer_$1" -max_total_time="$FUZZ_SECONDS" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix="$work/$1/" >"$work/$1/libfuzzer" 2>&1
        echo $? >"$work/$1/libfuzzer.status"
    fi
}
# result NAME KIND: what `run` has left, as a check
result() {
    show() {
        grep -v -e '^#' -e '^0x' "$work/$1/$2"
        return "$(cat "$work/$1/$2.status")"
    }
    check "fuzz: $1, $2: $(grep -o -e '^[0-9]* inputs' -e 'Done [0-9]* runs' "$work/$1/$2" || echo failed)" show "$1" "$2"
}

build plain "$CC" -O1 -DFUZZ_MAIN >"$work/plain.txt" 2>&1 &
plain=$!
if [ "$libfuzzer" ]; then # -O0: clang 14 needs two minutes of -O1 and all that is asked for
    check "fuzz: builds for libFuzzer, $libfuzzer" build libfuzzer $libfuzzer \
        "-O0 -fsanitize=fuzzer-no-link" -fsanitize=fuzzer || libfuzzer=
else
    missing "fuzz: libFuzzer" "clang with libclang-rt-14-dev or libclang-rt-19-dev"
fi
if wait $plain; then
    pass "fuzz: builds, $CC"
else
    fail "fuzz: builds, $CC" "see below"
    sed 's/^/      /' "$work/plain.txt" | head -n 12
    summary
fi
count=0
for fuzzer in $fuzzers; do
    run "$fuzzer" &
    count=$((count + 1))
    [ $((count % FUZZ_JOBS)) -ne 0 ] || wait
done
wait
for fuzzer in $fuzzers; do
    result "$fuzzer" plain
    [ -z "$libfuzzer" ] || result "$fuzzer" libfuzzer
done

summary
