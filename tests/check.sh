# The harness of the shell checks: the counterpart of tests/test.h. A check script is
#
#     . tests/check.sh                          # run from the repository's root
#     check "name" command arguments...         # passes when the command exits with 0; else shows its output, returns 1
#     pass "name" / fail "name" "why" / skip "name" "why"
#     have tool || missing "name" tool          # a skip; under CI=true, where .ci/run installs every tool, a failure
#     some_of "prefix" NAME command...          # runs test_NAME with --quick, or parts of it
#     links compiler options || missing ...     # it makes programs
#     build_test NAME program compiler options  # tests/test_NAME.c; the implementation is compiled once for several tests
#     summary                                   # prints `N passed, M failed, K skipped`, exits with 1 if any failed
#
# $work is a fresh directory of the script. BUILD, CC and CFLAGS come from the Makefile.

set -u
export LC_ALL=C
passed=0 failed=0 skipped=0
: "${BUILD:=build}" "${CC:=cc}" "${CFLAGS=-O2}"
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wdouble-promotion -Werror"
work=$BUILD/$(basename "$0" .sh)
rm -rf "$work"
mkdir -p "$work"

pass() {
    passed=$((passed + 1))
    printf 'ok    %s\n' "$1"
}
fail() {
    failed=$((failed + 1))
    printf 'FAIL  %s: %s\n' "$1" "$2"
}
skip() {
    skipped=$((skipped + 1))
    printf 'SKIP  %s: %s\n' "$1" "$2"
}
have() {
    command -v "$1" >/dev/null 2>&1
}
missing() {
    if [ "${CI-}" = true ]; then
        fail "$1" "needs $2, which .ci/run should have installed"
    else
        skip "$1" "needs $2"
    fi
}
check() {
    name=$1
    shift
    if "$@" >"$work/output" 2>&1; then
        pass "$name"
    else
        fail "$name" "exit status $? of: $*"
        grep -v -e '^ok ' -e '^SKIP ' -e '^qemu.*: warning' "$work/output" | head -n 12 | sed 's/^/      /'
        return 1
    fi
}
# check_quick NAME COMMAND...: runs a test program with --quick; passes when it counts tests and none failed
check_quick() {
    check "$@" --quick || return
    case $(tail -n 1 "$work/output") in
    "0 passed"*) fail "$1" "no test ran" ;;
    esac
}
# some_of PREFIX TEST COMMAND...: the same for tests/test_TEST.c, but of those that take minutes where they are emulated
# or not optimised a part
some_of() {
    prefix=$1 unit=$2
    shift 2
    case $unit in
    convert) filters="to_f16 bf16_to environments" ;;
    gemm) filters="sizes_0 transposes environment" ;;
    gemm_ex) filters="few_options scales triangles pointers status" ;;
    *)
        check_quick "$prefix: test_$unit" "$@"
        return
        ;;
    esac
    for filter in $filters; do
        filter=$(echo "$filter" | tr _ ' ')
        case "$prefix $filter" in *s390x*"environment") continue ;; esac # whose environment is left as it is
        check_quick "$prefix: test_$unit, $filter" "$@" --filter "$filter"
    done
}
# links COMPILER OPTIONS...: it is there, with the libraries that it needs
links() {
    echo 'int main(void) { return 0; }' >"$work/probe.c"
    have "$1" && "$@" -o "$work/probe" "$work/probe.c" 2>/dev/null
}
# build_test TEST PROGRAM COMPILER OPTIONS...: tests/test_TEST.c. Most of the time goes into the implementation, so it is
# compiled once for tests that follow each other with the same options, as if the test had included it before. With
# MIXPREC_STATIC each test holds its own.
build_test() {
    unit=$1 program=$2
    shift 2
    case $* in
    *MIXPREC_STATIC*)
        "$@" -o "$program" "tests/test_$unit.c" -lm
        return
        ;;
    esac
    if [ "$*" != "$(cat "$work/implementation.options" 2>/dev/null)" ]; then
        rm -f "$work/implementation.options"
        layers=-DTEST_LAYERS_HERE
        case $* in *MIXPREC_NO_LAYERS*) layers= ;; esac
        "$@" $layers -c -o "$work/implementation.o" tests/implementation.c || return
        echo "$*" >"$work/implementation.options"
    fi
    "$@" -DMIXPREC_IMPLEMENTED_ -o "$program" "tests/test_$unit.c" "$work/implementation.o" -lm
}
# the C++ compiler that belongs to a C compiler
cxx_of() {
    case $1 in
    *clang*) echo "$1" | sed 's/clang/clang++/' ;;
    *) echo "$1" | sed 's/gcc/g++/; s/^cc$/c++/' ;;
    esac
}
summary() {
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" -eq 0 ]
    exit
}
