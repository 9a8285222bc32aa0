#!/bin/sh
# Runs the benchmark in short: it must end well and write its three files; wrong options must end with one line and exit
# status 2. Speed is not judged. Run from the repository's root: sh tests/check_bench.sh

. tests/check.sh

rm -f "$BUILD"/bench/results.csv "$BUILD"/bench/results.json "$BUILD"/bench/report.html
check "bench: runs" "${MAKE:-make}" bench BENCH_ARGS=--quick
for name in results.csv results.json report.html; do
    check "bench: writes $name" test -s "$BUILD/bench/$name"
done
check "bench: the columns of results.csv" grep -q -x 'suite,case,dtype,isa,threads,impl,metric,value' "$BUILD/bench/results.csv"
for suite in scalar convert gemm batch gram scaler reduce optim quant layers; do
    check "bench: measures $suite" grep -q "^$suite," "$BUILD/bench/results.csv"
done
check "bench: runs with two threads" "$BUILD/bench/bench" --quick --threads 2 --filter stats-f32/L2
check "bench: says that statistics are one thread's" grep -q '^convert,stats-f32/L2,e4m3,c,1,mixprec,' "$BUILD/bench/results.csv"

# wrong OPTIONS...: exit status 2, one line on stderr, nothing on stdout
wrong() {
    refused "$@" && [ ! -s "$work/out" ]
}
# refused OPTIONS...: the same for what is found out after the start, with output
refused() {
    "$BUILD/bench/bench" "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ]
}
for options in --fast "--threads 0" "--seconds x" --threads; do
    # shellcheck disable=SC2086
    check "bench: refuses $options" wrong $options
done
check "bench: refuses a filter that matches nothing" refused --filter nothing-has-this-name

summary
