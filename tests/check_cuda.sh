#!/bin/sh
# mixprec_cuda.cuh without a GPU: it compiles for every architecture without a warning, a spill or local memory, the
# machine code is what the source says. The time it takes is shown.
#
#     check_cuda.sh              all of that
#     check_cuda.sh --quick      only what needs no nvcc
#     check_cuda.sh --device     the tests of tests/cuda on this machine's GPU, then under compute-sanitizer
#
# Needs nvcc; reading machine code needs cuobjdump and nvdisasm (they may come from the packages nvidia-cuda-cuobjdump and
# nvidia-cuda-nvdisasm).

. tests/check.sh
archs=${CUDA_ARCHS:-75 80 86 89 90 90a 100 120}
cxx=$(cxx_of "$CC")

# ---- on a GPU ----

# The program may come from another machine: make build/test_cuda_device CUDA_ARCH=sm_90 there, and --device here needs no
# nvcc. It links the CUDA runtime statically.
if [ "${1-}" = --device ]; then
    PATH=$PATH:/usr/local/cuda/bin
    program=$BUILD/test_cuda_device
    if ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
        skip "cuda: everything on a GPU" "NOTHING HAS RUN: no GPU here"
        summary
    elif have nvcc; then
        check "cuda: the tests compile for the GPU" "${MAKE:-make}" -s "$program" || summary
    elif [ ! -x "$program" ]; then
        skip "cuda: everything on a GPU" "NOTHING HAS RUN: no nvcc, and no $program"
        summary
    fi
    "$program" >"$work/output" 2>&1
    grep -v ' passed, ' "$work/output"
    case $(tail -n 1 "$work/output") in
    *" passed, "*" skipped")
        read -r p _ f _ s _ <<END
$(tail -n 1 "$work/output")
END
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        ;;
    *) fail "cuda: the tests on the GPU" "the program ended before its last line" ;;
    esac
    for tool in memcheck racecheck synccheck initcheck; do
        name="cuda: compute-sanitizer $tool"
        if ! have compute-sanitizer; then
            skip "$name" "not installed"
        elif timeout 60 compute-sanitizer --tool $tool "$program" --quick --filter "fp8 scales" 2>&1 |
            grep -q -i 'not supported'; then
            skip "$name" "it does not know this device"
        else
            timeout 200 compute-sanitizer --tool $tool --error-exitcode 1 "$program" --quick >"$work/output" 2>&1
            status=$?
            case $status in
            0) pass "$name" ;;
            124) skip "$name" "not done after 200 s" ;;
            *) fail "$name" "$(grep -m 1 -e '=* Error' -e Invalid -e hazard -e FAIL "$work/output")" ;;
            esac
        fi
    done
    summary
fi

# ---- compilers without CUDA ----

printf '#include "../../mixprec_cuda.cuh"\n' >"$work/plain.c"
if $CC -fsyntax-only "$work/plain.c" 2>"$work/output"; then
    fail "cuda: without nvcc" "compiles"
elif [ "$(grep -c 'error' "$work/output")" -ge 1 ] && [ "$(grep -c ' error: ' "$work/output")" -eq 1 ] &&
    grep -q 'needs nvcc' "$work/output"; then
    pass "cuda: without nvcc there is one clear error"
else
    fail "cuda: without nvcc" "not one clear error: $(head -n 3 "$work/output")"
fi
printf '#define MIXPREC_CUDA_API_ONLY\n#define MIXPREC_CUDA_IMPLEMENTATION\n#include "../../mixprec_cuda.cuh"\n' \
    >"$work/both.c"
$CC -fsyntax-only "$work/both.c" 2>&1 | grep -q 'error: #error.* exclude each other' &&
    pass "cuda: the declarations alone and the implementation exclude each other" ||
    fail "cuda: the declarations alone and the implementation" "no clear error"
cat >"$work/api.c" <<'END'
#define MIXPREC_CUDA_API_ONLY
#include "../../mixprec_cuda.cuh"
mixprec_status use(void *p);
mixprec_status use(void *p) {
    return mixprec_cuda_convert(p, MIXPREC_F16, p, MIXPREC_BF16, 1, NULL);
}
END
check "cuda: the declarations in C99" $CC -std=c99 $warnings -c -o "$work/api_c.o" "$work/api.c"
check "cuda: the declarations in C++11" "$cxx" -std=c++11 $warnings -x c++ -c -o "$work/api_cpp.o" "$work/api.c"
if ! have nm; then
    missing "cuda: the declarations alone" nm
elif [ "$(nm -u "$work/api_c.o" | sed 's/ *U //')" = mixprec_cuda_convert ]; then
    pass "cuda: the declarations alone refer to nothing else"
else
    fail "cuda: the declarations alone" "refer to something else: $(nm -u "$work/api_c.o")"
fi
# Names that the implementation leaves behind besides the public ones: all private, ending in an underscore.
echo '#define MIXPREC_CUDA_EMULATION "tests/cuda/emulation.h"
#define MIXPREC_CUDA_IMPLEMENTATION
#include "mixprec_cuda.cuh"' | "$cxx" -std=c++17 -I. -x c++ -E -dM - >"$work/emulation.macros"
left=$(sed -n 's/^#define \(MIXPREC_CUDA_[A-Z0-9_]*\).*/\1/p' "$work/emulation.macros" |
    grep -v -x -e MIXPREC_CUDA_EMULATION -e MIXPREC_CUDA_IMPLEMENTATION -e MIXPREC_CUDA_IMPLEMENTED_ -e MIXPREC_CUDA_CUH \
        -e MIXPREC_CUDA_EMULATED_ARCH)
grep -q MIXPREC_CUDA_CUH "$work/emulation.macros" && [ -z "$left" ] && pass "cuda: no macro is left behind" || fail "cuda: macros left behind" "$left"

[ "${1-}" = --quick ] && summary

# ---- nvcc ----

PATH=$PATH:/usr/local/cuda/bin
if ! have nvcc; then
    skip "cuda: $archs" "no nvcc: no architecture was compiled"
    summary
fi
# after another header that wanted the declarations alone
printf '#include "../../mixprec_cuda.cuh"\n#define MIXPREC_CUDA_IMPLEMENTATION\n#include "../../mixprec_cuda.cuh"\n' \
    >"$work/all.cu"
cat >"$work/user.cu" <<'END'
#include "../../mixprec_cuda.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#define SAME_LAYOUT(a, b) static_assert(sizeof(a) == sizeof(b) && alignof(a) == alignof(b), #a " and " #b)
SAME_LAYOUT(mixprec_f16, __half);
SAME_LAYOUT(mixprec_bf16, __nv_bfloat16);
SAME_LAYOUT(mixprec_e4m3, __nv_fp8_e4m3);
SAME_LAYOUT(mixprec_e5m2, __nv_fp8_e5m2);
__global__ void kernel(const float *x, mixprec_f16 *y) {
    y[threadIdx.x] = mixprec_cuda_f32_to_f16(x[threadIdx.x]);
}
int main() {
    return (int)mixprec_cuda_check();
}
END
if have cuobjdump && have nvdisasm; then disassemble=1; else disassemble=0; fi
[ $disassemble = 1 ] || skip "cuda: machine code" "no cuobjdump or no nvdisasm: it was not read"

# The same as nvcc sees it, with the code that the emulation leaves out.
printf '#include "../../mixprec.h"\n#include <cuda.h>\n#include <cuda_runtime.h>\n#include <mma.h>\n' >"$work/before.cu"
for file in before all; do
    nvcc -std=c++14 -arch=sm_90 -E -Xcompiler -dM "$work/$file.cu" | awk '$1 == "#define" { sub(/\(.*/, "", $2); print $2 }' |
        sort -u >"$work/$file.macros"
done
left=$(comm -13 "$work/before.macros" "$work/all.macros" |
    grep -v -x -e MIXPREC_CUDA_IMPLEMENTATION -e MIXPREC_CUDA_IMPLEMENTED_ -e MIXPREC_CUDA_CUH)
[ -s "$work/all.macros" ] && [ -z "$left" ] && pass "cuda: no macro is left behind by nvcc" ||
    fail "cuda: macros left behind by nvcc" "$left"

# One line for each kernel: name, tensor instructions, LDSM, generic loads, local loads and stores, loads of pairs of words
# of shared memory, 16-byte cp.async, warpgroup products, copies of the copy engine.
count_sass() {
    cuobjdump -sass "$1" | awk '
        function print_kernel() { if (name) print name, tensor, ldsm, generic, spilled, pairs, copies, group, boxes }
        /Function :/ { print_kernel(); name = $3; tensor = ldsm = generic = spilled = pairs = copies = group = boxes = 0 }
        / (HMMA|IMMA|QMMA)\./ { tensor++ }
        / (HGMMA|IGMMA|QGMMA)\./ { group++ }
        / LDSM\./ { ldsm++ }
        / LD(\.[A-Z0-9]+)* / { generic++ }
        / (LDL|STL)(\.[A-Z0-9]+)* / { spilled++ }
        / LDS\.64 / { pairs++ }
        / LDGSTS\.E\.BYPASS\.128/ { copies++ }
        / UTMALDG\.3D/ { boxes++ }
        END { print_kernel() }'
}

for arch in $archs; do
    object=$work/sm_$arch.o
    times >"$work/times" # not in a pipe, whose shell has other children
    check "cuda sm_$arch: compiles without a warning, a spill or local memory" \
        nvcc -std=c++14 -arch=sm_"$arch" -Werror all-warnings -Xcompiler -Wall,-Wextra -Xptxas \
        -v,--warn-on-spills,--warn-on-local-memory-usage,-Werror -c -o "$object" "$work/all.cu" || continue
    cp "$work/output" "$work/sm_$arch.txt"
    # processor time of children, "1m2.345s 0m1.234s", before and after
    times >>"$work/times"
    seconds=$(awk 'NR % 2 == 0 { line++; for (i = 1; i <= 2; i++) {
        split($i, t, /[ms]/); sum[line] += t[1] * 60 + t[2] } } END { print int(sum[2] - sum[1] + 0.5) }' \
        "$work/times")
    printf '      cuda sm_%s: compiled in %s s of processor time\n' "$arch" "$seconds" # shown, not judged: machines differ
    worst=$(sed -n "s/.*Compiling entry function '\([^']*\)'.*/name \1/p; s/.*Used \([0-9]*\) registers.*/used \1/p" "$work/sm_$arch.txt" |
        awk '$1 == "name" { name = $2 }
            $1 == "used" { # of 65,536: optimisers, quantising in blocks, and transposing (convert_transpose below sm_89)
                # have two blocks of 256 threads a multiprocessor, others three
                limit = name ~ /gemm_(mma|wgmma)_/ ? 254 : name ~ /gemm/ ? 160 : \
                    name ~ /optimizer|quantize_blocks|transpose/ ? 128 : 80
                if ($2 > limit) print name, "uses", $2 }')
    [ -z "$worst" ] && pass "cuda sm_$arch: registers below the ceilings" || fail "cuda sm_$arch: registers" "$worst"
    # ptxas says so, as a mere remark, where a product waits for the one before (C7510 to C7514), or a warpgroup does not
    # get the registers that it asks for (C7508)
    serial=$(grep -c -e 'wgmma.*serialized' -e 'setmaxnreg.*ignored' "$work/sm_$arch.txt")
    [ "$serial" -eq 0 ] && pass "cuda sm_$arch: no products that wait for each other" ||
        fail "cuda sm_$arch: serialized" "$serial kernels"
    undefined=$(nm -u "$object" | grep ' cu[A-Z]')
    [ -z "$undefined" ] && pass "cuda sm_$arch: nothing of the driver API" || fail "cuda sm_$arch: undefined" "$undefined"
    # all of the runtime that it calls: nothing that waits, allocates, or cannot be captured into a graph; of the driver
    # one function by its name
    other=$(nm -u "$object" | sed -n 's/.* \(cuda[A-Z]\)/\1/p' | grep -v -x -e cudaGetDevice -e cudaDeviceGetAttribute \
        -e cudaFuncGetAttributes -e cudaFuncSetAttribute -e cudaGetErrorString -e cudaLaunchKernel -e cudaLaunchKernelExC \
        -e cudaMemcpyAsync -e cudaMemsetAsync -e cudaGetDriverEntryPointByVersion -e cudaGetDriverEntryPoint \
        -e cudaDriverGetVersion -e cudaPeekAtLastError -e cudaGetLastError)
    [ -z "$other" ] && pass "cuda sm_$arch: the runtime is asked for launches alone" || fail "cuda sm_$arch: calls" "$other"
    [ $disassemble = 1 ] || continue
    count_sass "$object" >"$work/sass_$arch.txt"
    bad=$(awk -v arch="$arch" '
        /gemm_mma_/ && $2 == 0 { empty++ }
        # TF32 has LDS.64 where lines are k, the second and third parameter, and LDS in WMMA
        /gemm_(mma|wmma)_/ && $2 > 0 && $3 == 0 && !/wmma_ILi2E/ && !/mma_ILi2ELb1ELb1E/ { print $1, "has no LDSM" }
        /gemm_mma_ILi2E/ && /Lb1E/ && $2 > 0 && $6 < 32 { print $1, "has", $6, "LDS.64" }
        /gemm_mma_/ && $2 > 0 && $7 == 0 { print $1, "has no LDGSTS" }
        /gemm_(mma|wmma|wgmma)_/ && $4 > 0 { print $1, "has", $4, "generic loads" }
        /gemm_mma_/ && $2 > 0 { full++ }
        /gemm_wmma_/ && $2 > 0 { wmma++ }
        /gemm_wgmma_/ && $8 > 0 { group++; if ($7 == 0 || $9 == 0) print $1, "has no LDGSTS, or no UTMALDG" }
        $5 > 0 { print $1, "spills" }
        END {
            # two 16-bit types in 4 layouts, which the large tile doubles; TF32, int8 and decoded fp8 in 3; the fp8 units
            # have 4 pairs of types in 2
            want = arch == 75 ? 0 : arch == 86 ? 17 : 25
            if (full + 0 != want) print full + 0, "mma.sync kernels have a body, not", want
            if (wmma + 0 != (arch == 75 ? 2 : 4)) print wmma + 0, "WMMA kernels have a body"
            # two widths of 16-bit types and decoded fp8 in 4 layouts, of TF32, int8 and 4 pairs of fp8 in one
            if (group + 0 != (arch == "90a" ? 36 : 0)) print group + 0, "wgmma kernels have a body"
        }' "$work/sass_$arch.txt")
    [ -z "$bad" ] && pass "cuda sm_$arch: HMMA and LDSM where they should be, no generic load" ||
        fail "cuda sm_$arch: machine code" "$bad"
done

# ---- what runs on a GPU only: it compiles, for the architecture that takes least time ----

check "cuda: the tests for a GPU build" "${MAKE:-make}" -s "$work/test_cuda_device" BUILD="$work" CUDA_ARCH=sm_75
[ -x "$work/test_cuda_device" ] && check "cuda: without a GPU they say that nothing has run" \
    sh -c "$work/test_cuda_device | grep -q -e '^SKIP ' -e '^ok '"
check "cuda: the benchmark builds" "${MAKE:-make}" -s "$work/bench/bench_cuda" BUILD="$work" CUDA_ARCH=sm_75
[ -x "$work/bench/bench_cuda" ] && check "cuda: without a GPU it says that nothing was measured" \
    sh -c "$work/bench/bench_cuda --quick --out $work/cuda | grep -q -e '^SKIP ' -e ' wrote '"

# ---- several translation units, one program ----

if [ -f "$work/sm_80.o" ]; then
    check "cuda: a program of several units links" sh -c "
        nvcc -std=c++14 -arch=sm_80 -Werror all-warnings -c -o $work/user.o $work/user.cu &&
        $CC -c -o $work/api_c.o $work/api.c && nvcc -arch=sm_80 -o $work/user $work/user.o $work/sm_80.o $work/api_c.o"
    if [ -x "$work/user" ]; then
        "$work/user"
        status=$?
        case $(nvidia-smi -L 2>/dev/null) in
        GPU*) [ $status -eq 0 ] && pass "cuda: the device is usable" || fail "cuda: the device" "status $status" ;;
        *) [ $status -ne 0 ] && pass "cuda: without a device there is a status" || fail "cuda: no device" "no status" ;;
        esac
    fi
fi
# The scalars on the host are mixprec.h's in any rounding mode (those of a device have none): every 2^12+1st float.
cat >"$work/host.cu" <<'END'
#include "../../mixprec_cuda.cuh"
#include <cfenv>
#define DIFFER(name)                                                                                                   \
    (mixprec_cuda_f32_to_##name(x).bits != mixprec_f32_to_##name(x).bits ||                                            \
     mixprec_cuda_f32_to_##name##_sat(x).bits != mixprec_f32_to_##name##_sat(x).bits)
int main() {
    const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int mode : modes)
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 4097) {
            const float x = mixprec_f32_from_bits_((uint32_t)bits);
            std::fesetround(mode);
            const bool differ = DIFFER(f16) || DIFFER(bf16) || DIFFER(e4m3) || DIFFER(e5m2) || DIFFER(e2m1);
            std::fesetround(FE_TONEAREST);
            if (differ)
                return 1;
        }
    return 0;
}
END
check "cuda: the host's scalars, in any rounding mode" sh -c "
    nvcc -std=c++14 -O1 -arch=sm_75 -o $work/host $work/host.cu && $work/host"
printf '#define MIXPREC_IMPLEMENTATION\n#include "../../mixprec.h"\n' >"$work/cpu.cu"
check "cuda: the CPU's functions in a .cu file, without a warning" \
    nvcc -std=c++14 -arch=sm_75 -Werror all-warnings -Xcompiler -Wall,-Wextra -c -o "$work/cpu.o" "$work/cpu.cu"
check "cuda: the same with relocatable device code" sh -c "
    nvcc -std=c++14 -arch=sm_75 -rdc=true -Werror all-warnings -c -o $work/all_rdc.o $work/all.cu &&
    nvcc -std=c++14 -arch=sm_75 -rdc=true -Werror all-warnings -c -o $work/user_rdc.o $work/user.cu &&
    nvcc -arch=sm_75 -rdc=true -o $work/user_rdc $work/user_rdc.o $work/all_rdc.o"
summary
