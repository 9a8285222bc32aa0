#!/bin/sh
# What the object file of the implementation holds and needs, what the macros of its rooms leave out, how large it is,
# whether several units link.
# Run from the repository's root: sh tests/check_symbols.sh

. tests/check.sh

# -fno-stack-protector: some systems turn on by default what a freestanding build cannot link.
compile="$CC -std=c99 $warnings -O2 -fno-stack-protector -I."
external=TDBRCVWGS writable=DdBbCGgSs # types as nm prints them
printf '#define MIXPREC_IMPLEMENTATION\n#include "mixprec.h"\n' >"$work/implementation.c"
printf '#include "mixprec.h"\n' >"$work/header.c"
printf '#include <stddef.h>\n#include <stdint.h>\n' >"$work/empty.c"

# names OBJECT TYPES
names() {
    nm "$1" | awk -v types="$2" 'NF == 3 && index(types, $2) { print $3 }'
}
only_prefixed() {
    names "$1" $external >"$work/names"
    [ -s "$work/names" ] && ! grep -v '^mixprec_' "$work/names"
}
no_external_name() {
    ! names "$1" $external | grep .
}
one_writable_global() {
    names "$1" $writable >"$work/names"
    cat "$work/names"
    [ "$(wc -l <"$work/names")" -le 1 ]
}
# all of those that plain.o has
exports_all() {
    names "$work/plain.o" TW >"$work/names"
    nm -D "$1" | awk '$2 == "T" || $2 == "W" { print $3 }' | grep '^mixprec_' | cmp - "$work/names"
}
# A compiler may call these four in any build.
needs_no_library() {
    ! nm "$1" | awk '$1 == "U" && $2 != "_GLOBAL_OFFSET_TABLE_" { print $2 }' |
        grep -vxE 'memcpy|memmove|memset|memcmp'
}
macros() {
    $CC -std=c99 -I. -dM -E -DMIXPREC_NO_STDLIB $2 "$1" | sed 's/^#define \([A-Za-z0-9_]*\).*/\1/' | sort
}
# NAME OPTION: besides those of the headers in file NAME
prefixed_macros() {
    macros "$1" "$2" >"$work/macros_without"
    macros "$work/implementation.c" "$2" >"$work/macros_with"
    grep -q '^MIXPREC_H$' "$work/macros_with" &&
        ! comm -13 "$work/macros_without" "$work/macros_with" | grep -v '^MIXPREC_'
}

if ! have nm; then
    missing "symbols" nm
    summary
fi
# -fno-pic: else tables of constants that hold addresses count as writable until they are relocated.
check "symbols: the implementation compiles" $compile -fno-pic -c "$work/implementation.c" -o "$work/plain.o"
check "symbols: every external name begins with mixprec_" only_prefixed "$work/plain.o"
check "symbols: at most one writable global" one_writable_global "$work/plain.o"
check "symbols: MIXPREC_STATIC compiles" $compile -DMIXPREC_STATIC -c "$work/implementation.c" -o "$work/static.o"
check "symbols: MIXPREC_STATIC defines no external name" no_external_name "$work/static.o"
check "symbols: a shared library whose names are hidden" $compile -fpic -fvisibility=hidden -shared \
    '-DMIXPREC_EXPORT=__attribute__((visibility("default")))' "$work/implementation.c" -o "$work/shared.so"
check "symbols: MIXPREC_EXPORT shows every function there" exports_all "$work/shared.so"
check "symbols: every macro begins with MIXPREC_" prefixed_macros "$work/empty.c" -DMIXPREC_NO_SIMD
case $($CC -dumpmachine) in
x86_64*)
    # stdlib.h's are allowed, mm_malloc.h's own guard is not there: what includes it later gets it
    {
        cat "$work/empty.c"
        printf '#include <stdlib.h>\n#include <cpuid.h>\n#include <immintrin.h>\n'
        printf '#undef _MM_MALLOC_H_INCLUDED\n#undef __MM_MALLOC_H\n'
    } >"$work/intrinsics.c"
    check "symbols: every macro begins with MIXPREC_, with vectors" prefixed_macros "$work/intrinsics.c" ""
    ;;
esac

for simd in "" -DMIXPREC_NO_SIMD; do
    check "freestanding: MIXPREC_NO_STDLIB $simd compiles" \
        $compile -ffreestanding -DMIXPREC_NO_STDLIB $simd -c "$work/implementation.c" -o "$work/freestanding.o"
    check "freestanding: MIXPREC_NO_STDLIB $simd needs no library" needs_no_library "$work/freestanding.o"
    check "freestanding: MIXPREC_NO_STDLIB $simd includes no header but the compiler's own" \
        $compile -fsyntax-only -ffreestanding -nostdinc -isystem "$($CC -print-file-name=include)" \
        -DMIXPREC_NO_STDLIB $simd "$work/implementation.c"
done

# ---- what MIXPREC_NO_<ROOM> leaves out ----

# said HEADER MACRO: the sentence `Leaves out ...` of its [CONFIG], in one line
said() {
    awk -v macro="$2" '/^   MIXPREC_/ { inside = $1 == macro } inside { text = text " " $0 } END {
        gsub(/ +/, " ", text); sub(/.*Leaves out /, "", text); sub(/\..*/, "", text); print text }' "$1"
}
# functions_said HEADER MACRO: a pattern for each thing that it names. `mixprec_x functions` are all that begin so;
# mixprec_x_ex is mixprec_x on one instruction set; `the other layers` are all that the manual has in that part.
functions_said() {
    said "$1" "$2" | tr ',' '\n' | sed 's/^ *//; s/^the //' | while read -r thing; do
        case $thing in
        *mixprec_*functions) echo "$thing" | grep -o 'mixprec_[a-z0-9_]*' | sed 's/$/.*/' ;;
        *mixprec_*) echo "$thing" | grep -o 'mixprec_[a-z0-9_]*' | sed 's/$/(_ex)?/' ;;
        sums) echo 'mixprec_sum(_squares)?|mixprec_dot' ;;
        norms) echo 'mixprec_norm[12]' ;;
        "mean and variance") echo mixprec_mean_variance ;;
        "delayed scaling") echo 'mixprec_delayed_scaling_.*' ;;
        optimisers) echo 'mixprec_(sgd|adam|adamw)_.*' ;;
        softmax) echo 'mixprec_(log_)?softmax.*' ;;
        normalisation) echo 'mixprec_(layer|rms|batch)_norm.*' ;;
        "convolution and the other layers")
            echo 'mixprec_conv2d_.*'
            sed -n '/^\/\* ---- layers ----/,/stop reading here/s/^MIXPREC_API mixprec_status \(mixprec_[a-z0-9_]*\)(.*/\1/p' "$1"
            ;;
        *) echo "not understood: $thing" ;;
        esac
    done
}
# leaves_out HEADER MACRO: the functions that it says are those that are lost, and each thing that it says is one
leaves_out() {
    functions_said "$1" "$2" >"$work/patterns"
    while read -r pattern; do
        grep -qxE -e "$pattern" "$work/all.names" || { echo "no function: $pattern" && return 1; }
    done <"$work/patterns"
    grep -xE -f "$work/patterns" "$work/all.names" | diff - "$work/lost.$2" || { echo "< as said, > as lost" && return 1; }
}
notices() {
    ! leaves_out "$@"
}
# rooms_compile OPTIONS...: the names of all functions, without those made for one kind of CPU, which take long
rooms_compile() {
    $CC -std=c99 -O0 -I. -DMIXPREC_NO_SIMD $openmp "$@" -c "$work/implementation.c" -o "$work/rooms.o" &&
        names "$work/rooms.o" T | sort
}
compare_room() {
    rooms_compile -D"$1" >"$work/left.names" && comm -23 "$work/all.names" "$work/left.names" >"$work/lost.$1" &&
        ! comm -13 "$work/all.names" "$work/left.names" | grep . && leaves_out mixprec.h "$1"
}
openmp=
! links $CC -fopenmp || openmp=-fopenmp # mixprec_parallel_openmp is there with it
rooms_compile >"$work/all.names"
rooms=$(sed -n '/\[CONFIG\] Macros/,/\[TYPES\] Formats/s/^   \(MIXPREC_NO_[A-Z]*\) .*/\1/p' mixprec.h |
    grep -vx -e MIXPREC_NO_SIMD -e MIXPREC_NO_STDLIB)
check "rooms: macros are found" test -n "$rooms"
for macro in $rooms; do
    check "rooms: $macro leaves out what [CONFIG] says" compare_room "$macro"
done
sed 's/mixprec_convert_ex, mixprec_stats\./mixprec_convert_ex./' mixprec.h >"$work/less.h"
check "rooms: notices a function that is left out in silence" notices "$work/less.h" MIXPREC_NO_CONVERT
sed 's/out mixprec_quantize,/out mixprec_amax, mixprec_quantize,/' mixprec.h >"$work/more.h"
check "rooms: notices a function that is not left out" notices "$work/more.h" MIXPREC_NO_QUANT
sed 's/out mixprec_quantize,/out mixprec_quantise,/' mixprec.h >"$work/other.h"
check "rooms: notices a function that there is not" notices "$work/other.h" MIXPREC_NO_QUANT

# ---- several units ----

printf '#include "mixprec.h"\n' >"$work/unit.c"
cat >>"$work/unit.c" <<'END'
#ifdef __cplusplus
extern "C"
#endif
    size_t size_elsewhere(mixprec_dtype dtype);
#ifdef UNIT_MAIN
int main(void) {
    return mixprec_dtype_size(MIXPREC_F16) == size_elsewhere(MIXPREC_F16) ? 0 : 1;
}
#else
size_t size_elsewhere(mixprec_dtype dtype) {
    return mixprec_dtype_size(dtype);
}
#endif
END
cp "$work/unit.c" "$work/unit.cpp"

# unit NAME COMPILER OPTIONS... FILE: to $work/NAME.o
unit() {
    object=$work/$1.o
    shift
    "$@" -O0 -I. -c -o "$object"
}
# runs LINKER NAME NAME: they make a program, which works
runs() {
    $1 -o "$work/linked" "$work/$2.o" "$work/$3.o" && "$work/linked"
}
implementation=-DMIXPREC_IMPLEMENTATION
in_c() {
    unit c_user $CC -DUNIT_MAIN "$work/unit.c" && unit c_library $CC $implementation "$work/unit.c" &&
        runs "$CC" c_user c_library
}
from_cpp() {
    unit cpp_user $cxx -DUNIT_MAIN "$work/unit.cpp" && runs "$cxx" cpp_user c_library
}
from_c() {
    unit cpp_library $cxx $implementation "$work/unit.cpp" && runs "$cxx" c_user cpp_library
}
static=-DMIXPREC_STATIC
static_in_c() {
    unit c_static_user $CC -DUNIT_MAIN $static $implementation "$work/unit.c" &&
        unit c_static $CC $static $implementation "$work/unit.c" && runs "$CC" c_static_user c_static
}
static_in_cpp() {
    unit cpp_static_user $cxx -DUNIT_MAIN $static $implementation "$work/unit.cpp" &&
        unit cpp_static $cxx $static $implementation "$work/unit.cpp" && runs "$cxx" cpp_static_user cpp_static
}
static_in_both() {
    runs "$cxx" c_static_user cpp_static
}
one_external_name() {
    [ "$(names "$work/cpp_static.o" TDBRCWGS)" = size_elsewhere ] # without V, of g++'s exceptions
}
check "units: C and C, implementation in one" in_c
check "units: MIXPREC_STATIC in both" static_in_c
cxx=$(cxx_of "$CC")
if have "$cxx"; then
    check "units: C++ uses an implementation in C" from_cpp
    check "units: C uses an implementation in C++" from_c
    check "units: C++, MIXPREC_STATIC in both" static_in_cpp
    check "units: C and C++, MIXPREC_STATIC in both" static_in_both
    check "units: C++, MIXPREC_STATIC defines no external name" one_external_name
else
    missing "units: C++" "$cxx"
fi

# ---- what a compiler has to do ----

# Counted, not timed, for machines are shared: gcc 12 takes some 25 ms for each KB of machine code (Zen 4, 3 GHz).
# at_most KB FILE
at_most() {
    test "$(wc -c <"$2")" -le $((1024 * $1))
}
$CC -std=c99 -I. -E -P "$work/header.c" -o "$work/header.i"
check "include: at most 128 KB of declarations, those of the C library included" at_most 128 "$work/header.i"
if have size; then
    code=$(size "$work/plain.o" | awk 'NR == 2 { print int($1 / 1024) }')
    check "implementation: $code KB of code and tables at -O2, at most 520" test "$code" -le 520
else
    missing "implementation: code and tables" size
fi

summary
