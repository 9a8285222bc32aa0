#!/bin/sh
# Compiles mixprec.h, alone and with the implementation, with warnings as errors. Nothing is run.
# Run from the repository's root:
#     sh tests/check_compile.sh            every installed compiler, language standard and optimisation level
#     sh tests/check_compile.sh --quick    every configuration, with $CC in few standards

. tests/check.sh

echo '#include "mixprec.h"
unsigned header_only(void);
unsigned header_only(void) { return mixprec_f32_to_f16(1.0f).bits; }' >"$work/header.c"
echo '#define MIXPREC_IMPLEMENTATION
#include "mixprec.h"' >"$work/implementation.c"
for unit in header implementation; do
    cp "$work/$unit.c" "$work/$unit.cpp"
done

# both COMPILER SUFFIX OPTIONS...: without and with the implementation
both() {
    driver=$1 suffix=$2
    shift 2
    for unit in header implementation; do
        check "compile: $driver $* $unit.$suffix" \
            "$driver" $warnings -I. "$@" -c "$work/$unit.$suffix" -o "$work/unit.o"
    done
}
# implementation COMPILER OPTIONS...
implementation() {
    driver=$1
    shift
    check "compile: $driver $*" "$driver" $warnings -I. "$@" -c "$work/implementation.c" -o "$work/unit.o"
}
fails() {
    ! "$@"
}
# refused TEXT COMMAND...: fails with an #error of the header that contains the text
refused() {
    reason=$1
    shift
    fails "$@" 2>"$work/refusal" && grep -q "error.*mixprec: .*$reason" "$work/refusal"
}

if [ "${1-}" = --quick ]; then
    cxx=$(cxx_of "$CC")
    both "$CC" c -std=c99 -O0
    both "$CC" c -std=gnu17 -fsyntax-only
    # what wary projects add
    wary="-Wundef -Wcast-align -Wcast-qual -Wfloat-equal -Wswitch-default -Wredundant-decls -Wmissing-declarations"
    # shellcheck disable=SC2086
    both "$CC" c -std=c99 -fsyntax-only $wary -Wstrict-prototypes -Wmissing-prototypes -Wdeclaration-after-statement
    if have "$cxx"; then
        both "$cxx" cpp -std=c++11 -O0
        # shellcheck disable=SC2086
        both "$cxx" cpp -std=c++17 -fsyntax-only $wary -Wold-style-cast -Wzero-as-null-pointer-constant -Wextra-semi
    else
        missing "compile: C++" "$cxx"
    fi

    check "compile: beside macros of other headers" "$CC" $warnings -std=gnu99 -I. -c tests/compile_macros.c -o "$work/unit.o"
    if have "$cxx"; then
        cp tests/compile_macros.c "$work/compile_macros.cpp"
        check "compile: the same in C++" "$cxx" $warnings -std=gnu++11 -I. -c "$work/compile_macros.cpp" -o "$work/unit.o"
    fi

    for option in MIXPREC_STATIC MIXPREC_NO_SIMD MIXPREC_NO_STDLIB MIXPREC_MAX_ISA=1 MIXPREC_MAX_ISA=2 \
        MIXPREC_GEMM_STACK=0 MIXPREC_NO_LAYERS; do
        implementation "$CC" -std=c99 -O1 -D$option
    done
    for convert in "" -DMIXPREC_NO_CONVERT; do
        for gemm in "" -DMIXPREC_NO_GEMM; do
            for scaler in "" -DMIXPREC_NO_SCALER; do
                implementation "$CC" -std=c99 -O0 $convert $gemm $scaler
            done
        done
    done
    all=
    for room in REDUCE QUANT OPTIM POLICY CHECKPOINT; do
        implementation "$CC" -std=c99 -O0 -DMIXPREC_NO_$room
        all="$all -DMIXPREC_NO_$room"
    done
    # shellcheck disable=SC2086
    implementation "$CC" -std=c99 -O0 $all
    # what only an optimiser warns of, where most callers are missing
    implementation "$CC" -std=c99 -O2 -DMIXPREC_NO_GEMM
    # shellcheck disable=SC2086
    implementation "$CC" -std=c99 -O2 $all -DMIXPREC_NO_CONVERT -DMIXPREC_NO_LAYERS
    implementation "$CC" -std=c99 -O1 -DMIXPREC_NO_SIMD -DMIXPREC_NO_STDLIB -DMIXPREC_STATIC
    implementation "$CC" -std=c99 -O1 '-DMIXPREC_MALLOC(bytes)=((void)(bytes),(void *)0)' '-DMIXPREC_FREE(p)=((void)(p))'
    implementation "$CC" -std=c99 -O1 -DMIXPREC_NO_STDLIB '-DMIXPREC_MALLOC(bytes)=((void)(bytes),(void *)0)' '-DMIXPREC_FREE(p)=((void)(p))'
    implementation "$CC" -std=c99 -O1 '-DMIXPREC_ASSERT(x)=((x)?(void)0:__builtin_trap())'
    check "compile: C89 is refused" refused "C99" "$CC" -std=c89 -I. -c "$work/header.c"
    check "compile: MIXPREC_MALLOC alone is refused" refused "both" "$CC" -I. "-DMIXPREC_MALLOC(n)=0" -c "$work/header.c"
    check "compile: MIXPREC_FREE alone is refused" refused "both" "$CC" -I. "-DMIXPREC_FREE(p)=0" -c "$work/header.c"
    printf '%s\n' '#include "mixprec.h"' '#define MIXPREC_STATIC' '#define MIXPREC_IMPLEMENTATION' '#include "mixprec.h"' \
        >"$work/late.c"
    check "compile: MIXPREC_STATIC after the first include is refused" refused "before the first" "$CC" -I. -c "$work/late.c"
else
    for compiler in gcc clang clang-19; do
        cxx=$(cxx_of "$compiler")
        if ! have "$compiler" || ! have "$cxx"; then
            missing "compile: $compiler, $cxx" "$compiler and $cxx"
            continue
        fi
        # A standard is a matter of syntax: machine code for one of each language.
        both "$compiler" c -std=c99 -O0
        for standard in c11 c17 c2x gnu99 gnu11 gnu17 gnu2x; do
            both "$compiler" c "-std=$standard" -fsyntax-only
        done
        both "$cxx" cpp -std=c++11 -O0
        for standard in c++14 c++17 c++20; do
            both "$cxx" cpp "-std=$standard" -fsyntax-only
        done
        implementation "$compiler" -std=c99 -O2
        native=-march=native
        # clang 19 finds fault with its own name for a CPU with AVX10.1, in whatever has a target attribute.
        case $compiler in clang*) native="$native -Wno-unknown-warning-option -Wno-invalid-feature-combination" ;; esac
        # shellcheck disable=SC2086
        implementation "$compiler" -std=c99 -O3 $native
        implementation "$compiler" -std=c99 -O3 -Wnull-dereference
        implementation "$compiler" -std=c99 -O2 -ffast-math
        case $compiler in clang*) implementation "$compiler" -std=c99 -Oz ;; esac
    done
    # older ones, that said or did what the others do not
    for compiler in gcc-11 clang-16; do
        if have "$compiler"; then
            implementation "$compiler" -std=c99 -O2
        else
            missing "compile: $compiler" "$compiler"
        fi
    done
    if have tcc; then
        for unit in header implementation; do
            check "compile: tcc $unit.c" tcc -Wall -Werror -I. -c "$work/$unit.c" -o "$work/unit.o"
        done
    else
        missing "compile: tcc" tcc
    fi
fi

# The rig itself: a warning must fail a build.
printf 'unsigned char narrow(int x);\nunsigned char narrow(int x) { return x; }\n' >"$work/warns.c"
check "compile: a warning fails the build" fails "$CC" $warnings -I. -c "$work/warns.c" -o "$work/unit.o"

summary
