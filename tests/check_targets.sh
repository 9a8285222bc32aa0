#!/bin/sh
# Other machines, emulated: the quick tests on AArch64, with and without its dot-product units, and on Windows; some of
# them on x86-64 CPUs without AVX (Nehalem), AVX2 (IvyBridge) and AVX-512 (Haswell), whose kernels run on this machine,
# too, and on 32-bit ARM, RISC-V and s390x, which run portable C; the size of the scalar conversions on a Cortex-M0+,
# their bits on an AVR; the bits of conversions, products and steps of training in WebAssembly, on a Cortex-M4 and a
# Cortex-M55.
# Run from the repository's root: sh tests/check_targets.sh [--size | --neon]
#     --size: only the Cortex-M0+     --neon: only every float on AArch64, in every mode: hours

. tests/check.sh

aarch64="aarch64-linux-gnu-gcc -std=gnu11 $warnings -O2 -static -pthread"

if [ "${1-}" = --neon ]; then
    if ! have aarch64-linux-gnu-gcc || ! have qemu-aarch64; then
        missing "targets: every float on AArch64" "aarch64-linux-gnu-gcc and qemu-aarch64"
    elif check "targets: AArch64: whole_convert compiles" $aarch64 -o "$work/whole" tests/whole_convert.c -lm; then
        # shows how far it is
        if qemu-aarch64 -cpu cortex-a53 "$work/whole" --filter neon; then
            pass "targets: AArch64: every float in every mode"
        else
            fail "targets: AArch64: every float in every mode" "see above"
        fi
    fi
    summary
fi

size_on_cortexm0() {
    arm-none-eabi-gcc -mthumb -mcpu=cortex-m0plus -Os -std=c99 $warnings -c -o "$work/m0.o" tests/compile_cortexm0.c &&
        bytes=$(arm-none-eabi-size "$work/m0.o" | awk 'NR == 2 { print $1 + $2 + $3 }') &&
        undefined=$(arm-none-eabi-nm -u "$work/m0.o") || return
    echo "text, rodata, data: $bytes bytes; undefined: ${undefined:-none}"
    [ "$bytes" -le 768 ] && [ -z "$undefined" ]
}
if have arm-none-eabi-gcc; then
    check "targets: eight conversions on Cortex-M0+ in 768 bytes, no library" size_on_cortexm0
    head -n 1 "$work/output" | sed 's/^/      /'
else
    missing "targets: size on Cortex-M0+" arm-none-eabi-gcc
fi
[ "${1-}" != --size ] || summary

# ---- other x86-64 CPUs: programs built for none in particular ----

if [ "$(uname -m)" != x86_64 ]; then
    skip "targets: other x86-64 CPUs" "this machine is no x86-64"
elif ! have qemu-x86_64; then
    missing "targets: other x86-64 CPUs" qemu-x86_64
else
    for test in convert gemm gemm_ex scaler reduce quant optim layers bounds; do
        cpus="Nehalem Haswell"
        case $test in convert) cpus="Nehalem IvyBridge Haswell" ;; esac
        check "targets: x86-64: test_$test compiles" \
            build_test "$test" "$work/test" $CC -std=gnu11 -O2 -pthread &&
            for cpu in $cpus; do
                some_of "targets: $cpu" "$test" qemu-x86_64 -cpu "$cpu" "$work/test"
            done
    done
fi

# ---- AArch64 ----

if ! have aarch64-linux-gnu-gcc || ! have qemu-aarch64; then
    missing "targets: AArch64" "aarch64-linux-gnu-gcc and qemu-aarch64"
else
    for test in scalar convert gemm gemm_ex scaler reduce quant optim checkpoint layers stack bounds; do
        check "targets: AArch64: test_$test compiles" build_test "$test" "$work/test_aarch64" $aarch64 &&
            check_quick "targets: AArch64: test_$test" qemu-aarch64 -cpu cortex-a53 "$work/test_aarch64"
        if [ "$test" = gemm ] && [ -x "$work/test_aarch64" ]; then
            for filter in .native dot-product; do
                check_quick "targets: AArch64 with BF16 and FHM: test_gemm, $filter" \
                    qemu-aarch64 -cpu max "$work/test_aarch64" --filter "$filter"
            done
        fi
    done
fi

# ---- Windows ----

# mingw's own printf knows no %zu
windows="x86_64-w64-mingw32-gcc -std=gnu11 -O2 -D__USE_MINGW_ANSI_STDIO=1 -static -pthread"

# as_msvc OPTIONS...: the header for MSVC's C library, which has no headers here, to $work/msvc.obj. The rest of the
# program is mingw's, which knows another name for the function that touches new pages of the stack. With -U__clang__
# nothing tells clang from cl.exe but the instruction sets that it wants named; intrin.h is its own.
as_msvc() {
    mkdir -p "$work/msvc" && echo 'typedef int jmp_buf[64];' >"$work/msvc/setjmp.h" &&
        printf '%s\n' '#include <stddef.h>' 'void *malloc(size_t); void free(void *);' >"$work/msvc/stdlib.h" &&
        printf '%s\n' '#include <stddef.h>' 'void *memset(void *, int, size_t);' >"$work/msvc/string.h" &&
        printf '%s\n' '#include "tests/library.h"' 'int _fltused;' >"$work/msvc.c" &&
        clang-19 --target=x86_64-pc-windows-msvc "$@" -O2 -Wall -Wextra -Wno-unused-function -Werror \
            -DMIXPREC_NO_STDLIB -I. -I"$work/msvc" -c -o "$work/msvc.obj" "$work/msvc.c"
}

# Without attributes for functions all of the file is for one kind of CPU. One without AVX-512 needs another file.
msvc_for_this_cpu() {
    grep -q avx512vl /proc/cpuinfo ||
        check "targets: Windows: compiles as for MSVC, AVX2" as_msvc -U__clang__ -march=x86-64-v3 -DMIXPREC_MAX_ISA=2
}

# test_msvc AS TEST
test_msvc() {
    check "targets: Windows, as $1: test_$2 compiles" $windows -DMIXPREC_NO_STDLIB -DMIXPREC_IMPLEMENTED_ \
        -o "$work/test.exe" "tests/test_$2.c" "$work/msvc.obj" -Wl,--defsym,__chkstk=___chkstk_ms -lm &&
        check_quick "targets: Windows, as $1: test_$2" wine "$work/test.exe"
}

# windows.h defines words such as `far` and `small`, and min and max.
after_windows_h() {
    printf '%s\n' '#include <windows.h>' '#define MIXPREC_IMPLEMENTATION' '#include "mixprec.h"' >"$work/windows.c" &&
        $windows -Wall -Wextra -Werror -I. -c -o "$work/windows.o" "$work/windows.c"
}

if ! have x86_64-w64-mingw32-gcc || ! have wine; then
    missing "targets: Windows" "gcc-mingw-w64-x86-64 and wine"
else
    mkdir -p "$work/wine"
    WINEPREFIX=$(cd "$work/wine" && pwd)
    export WINEPREFIX WINEDEBUG=-all
    wineboot --init >"$work/wineboot.out" 2>&1
    check "targets: Windows: compiles after windows.h" after_windows_h
    for test in scalar convert gemm gemm_ex scaler reduce quant optim policy checkpoint layers bounds threads; do
        check "targets: Windows: test_$test compiles" build_test "$test" "$work/test.exe" $windows &&
            check_quick "targets: Windows: test_$test" wine "$work/test.exe"
    done
    if ! have clang-19; then
        missing "targets: Windows, as MSVC" clang-19
    else
        check "targets: Windows: compiles as for MSVC" as_msvc -U__clang__ -march=x86-64-v4 && msvc_for_this_cpu &&
            for test in convert scaler reduce quant; do
                test_msvc MSVC "$test"
            done
        check "targets: Windows: compiles as for clang-cl" as_msvc &&
            for test in gemm gemm_ex; do
                test_msvc clang-cl "$test"
            done
    fi
    wineserver -k
fi

# ---- portable C on other CPUs ----

bits_of_this_machine() {
    $CC -std=gnu11 $warnings -O2 -o "$work/here" tests/same_bits.c && "$work/here" >"$work/here.out" &&
        [ "$(grep -c 'status 0$' "$work/here.out")" -eq 3 ]
}
check "targets: the bits of this machine" bits_of_this_machine
# same_bits EMULATOR PROGRAM...
same_bits() {
    "$@" 2>&1 | tr -d '\r' >"$work/there.out"
    diff "$work/here.out" "$work/there.out"
}

same_bits_on_x87() {
    gcc -std=gnu11 $warnings -O2 -m32 -mfpmath=387 -o "$work/there" tests/same_bits.c && same_bits "$work/there"
}
if [ "$(uname -m)" != x86_64 ]; then
    skip "targets: x87" "this machine is no x86-64"
elif links gcc -m32; then
    check "targets: x87 computes the bits of this machine" same_bits_on_x87
else
    missing "targets: x87" "gcc with the libraries of -m32"
fi

# with and without vectors, which clang makes of the loops of portable C
same_bits_on_wasm() {
    clang --target=wasm32-wasi -std=gnu11 $warnings -O2 "$@" -o "$work/there.wasm" tests/same_bits.c &&
        same_bits node --no-warnings "$work/wasi.cjs" "$work/there.wasm"
}
if links clang --target=wasm32-wasi && have node; then
    cat >"$work/wasi.cjs" <<'END'
const { WASI } = require('node:wasi');
const wasi = new WASI({ version: 'preview1', returnOnExit: true });
const program = new WebAssembly.Module(require('node:fs').readFileSync(process.argv[2]));
process.exitCode = wasi.start(new WebAssembly.Instance(program, { wasi_snapshot_preview1: wasi.wasiImport }));
END
    check "targets: WebAssembly computes the bits of this machine" same_bits_on_wasm
    check "targets: WebAssembly with SIMD computes the bits of this machine" same_bits_on_wasm -msimd128
else
    missing "targets: WebAssembly" "clang with wasi-libc, libclang-rt-14-dev-wasm32 and lld, and node"
fi

# other_cpu NAME ARCHITECTURE TRIPLE: what is told apart by byte order, size of pointers, arithmetic of NaN, and by how
# the floating-point environment is set
other_cpu() {
    compile="$3-gcc -std=gnu11 $warnings -O2 -static -pthread" emulator=qemu-$2
    if ! links $compile || ! have "$emulator"; then
        missing "targets: $1" "$3-gcc with a C library, and $emulator"
        return
    fi
    check "targets: $1: same_bits compiles" $compile -o "$work/there" tests/same_bits.c &&
        check "targets: $1 computes the bits of this machine" same_bits "$emulator" "$work/there"
    for test in scaler reduce quant optim checkpoint convert gemm layers; do
        check "targets: $1: test_$test compiles" build_test "$test" "$work/test_other" $compile || continue
        some_of "targets: $1" "$test" "$emulator" "$work/test_other"
    done
}
other_cpu "32-bit ARM" arm arm-linux-gnueabihf
other_cpu RISC-V riscv64 riscv64-linux-gnu
other_cpu "s390x, big-endian" s390x s390x-linux-gnu

# ---- microcontrollers, without an operating system ----

same_bits_on_avr() {
    $CC -std=gnu11 $warnings -O2 -o "$work/here_scalars" tests/same_scalars.c && "$work/here_scalars" >"$work/scalars.out" &&
        avr-gcc -std=gnu11 $warnings -Os -mmcu=atmega1284p -o "$work/avr.elf" tests/same_scalars.c || return
    # what it prints comes in colour, with a dot for the end of a line
    timeout 120 simavr -v -v -v -m atmega1284p -f 16000000 "$work/avr.elf" 2>&1 |
        sed -n 's/.*\[32m\(.*\)\..*/\1/p' >"$work/avr.out"
    diff "$work/scalars.out" "$work/avr.out"
}
refused_on_avr() {
    printf '%s\n' "$2" '#include "mixprec.h"' 'unsigned f(double x) { return mixprec_f64_to_f16(x).bits; }' >"$work/avr.c"
    ! avr-gcc -std=gnu11 -mmcu=atmega1284p -I. -c -o "$work/avr.o" "$work/avr.c" 2>"$work/refusal" &&
        grep -q "error.*mixprec: $1" "$work/refusal"
}
if links avr-gcc -mmcu=atmega1284p && have simavr; then
    check "targets: scalar conversions on AVR, int of 16 bits" same_bits_on_avr
    check "targets: AVR refuses the implementation" refused_on_avr "the implementation needs" "#define MIXPREC_IMPLEMENTATION"
    check "targets: AVR refuses f64" refused_on_avr "f64 has 64 bits" ""
else
    missing "targets: AVR" "avr-gcc with avr-libc and simavr"
fi

# same_bits_on_cortex MACHINE CPU OPTIONS...
same_bits_on_cortex() {
    machine=$1 cpu=$2
    shift 2
    arm-none-eabi-gcc -mthumb -mcpu="$cpu" "$@" -mfloat-abi=hard -O2 -std=c99 $warnings \
        --specs=picolibc.specs --oslib=semihost --crt0=hosted \
        -Wl,--defsym=__flash=0x0 -Wl,--defsym=__flash_size=0x40000 \
        -Wl,--defsym=__ram=0x20000000 -Wl,--defsym=__ram_size=0x10000 \
        -o "$work/cortex.elf" tests/same_bits.c &&
        same_bits timeout 60 qemu-system-arm -M "$machine" -nographic \
            -semihosting-config enable=on,target=native -kernel "$work/cortex.elf" </dev/null
}
if links arm-none-eabi-gcc --specs=picolibc.specs && have qemu-system-arm; then
    check "targets: Cortex-M4 computes the bits of this machine" \
        same_bits_on_cortex mps2-an386 cortex-m4 -mfpu=fpv4-sp-d16
    # its loops end by what is in the register of the floating-point modes
    check "targets: Cortex-M55 computes the bits of this machine" same_bits_on_cortex mps3-an547 cortex-m55
else
    missing "targets: Cortex-M4, Cortex-M55" "arm-none-eabi-gcc with picolibc and qemu-system-arm"
fi

summary
