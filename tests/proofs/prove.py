"""make prove: proves the scalar conversions of mixprec.h for every input, with clang and z3.

    python3 tests/proofs/prove.py [--filter TEXT]        from the repository's root

converters.c is compiled to LLVM IR, llvm.py turns that into formulas, specification.py says what the result must be,
and the solver looks for an input where the two differ or the behaviour is undefined. None: proved. wrong.c has
converters with one mistake each: there an input must be found, and the compiled function must return for it what the
formula says. The last line is `N passed, M failed, K skipped`. Without clang or z3 nothing can be proved: skipped;
with CI=true that is a failure. The environment variable CLANG names another clang; BUILD the folder for what is
built.
"""

import concurrent.futures
import ctypes
import os
import re
import shutil
import subprocess
import sys
import time
from collections import namedtuple

import llvm
from specification import (BF16, E4M3, E5M2, E8M0, F16, F32, F64, I8, MODES, NARROW, SATURATE, SATURATE_KEEP_INF,
                           narrowing, widening)

SECONDS_PER_PROOF = 300  # of which the longest takes 4, where nothing else runs
HERE = os.path.dirname(os.path.relpath(__file__))
BUILD = os.path.join(os.environ.get("BUILD", "build"), "proofs")

INTEGERS = "integers_"  # begins the names of functions as compiled for a CPU without a floating-point unit

Theorem = namedtuple("Theorem", "name function specification")


def theorems():
    for mode in MODES:
        for function, source, targets in (("narrow", F32, [F32] + NARROW),
                                          ("encode", F64, [F32] + NARROW + [E8M0, I8])):
            for target in targets:
                yield Theorem(f"{source.name} -> {target.name}, {mode.replace('_', ' ')}, every overflow policy",
                              f"{function}_{source.name}_to_{target.name}_{mode}",
                              narrowing(source, target, mode, SATURATE_KEEP_INF))
    for source in (F32, F64):
        for target in NARROW + [E8M0]:
            yield Theorem(f"mixprec_{source.name}_to_{target.name} and _sat", f"public_{source.name}_to_{target.name}",
                          narrowing(source, target, "nearest_even", SATURATE))
    for source in NARROW + [E8M0]:
        for target in (F32, F64):
            yield Theorem(f"mixprec_{source.name}_to_{target.name}", f"public_{source.name}_to_{target.name}",
                          widening(source, target))
    for source in NARROW:  # to f64 takes two minutes each, and adds what the proof of mixprec_decode of f32 has
        yield Theorem(f"mixprec_{source.name}_to_f32, without a floating-point unit",
                      f"{INTEGERS}public_{source.name}_to_f32", widening(source, F32))
    for source in [F32] + NARROW + [E8M0]:
        yield Theorem(f"mixprec_decode of {source.name}", f"decode_{source.name}_to_f64", widening(source, F64))


def wrong_claims():
    def claim(name, function, source, target, mode="nearest_even"):
        return Theorem(name, "wrong_" + function, narrowing(source, target, mode, SATURATE_KEEP_INF))

    yield claim("f64 -> f16 by way of f32", "by_way_of_f32", F64, F16)
    yield claim("f32 -> bf16 with ties away from zero", "ties_away", F32, BF16)
    yield claim("f32 -> e4m3 with 464 too large", "e4m3_464", F32, E4M3)
    yield claim("f32 -> f16 with overflow before rounding", "overflow_before_rounding", F32, F16)
    yield claim("f32 -> e5m2 with Inf not kept", "inf_not_kept", F32, E5M2)
    yield claim("f32 -> e4m3 stochastic, off by one", "stochastic_by_one", F32, E4M3, "stochastic")
    yield claim("f32 -> f16 with a NaN turned Inf", "nan_to_inf", F32, F16)
    yield claim("f64 -> e5m2 upward without -0", "minus_zero", F64, E5M2, "up")
    yield claim("f32 -> f16 with an undefined shift", "shift_too_far", F32, F16, "toward_zero")
    yield Theorem("e4m3 -> f32 without subnormals", "wrong_flushed_to_zero", widening(E4M3, F32))
    yield Theorem("f32 -> f64 with an endless loop", "wrong_endless_loop", widening(F32, F64))


def compiled(clang):
    """The functions as LLVM IR, and the same ones to call."""
    os.makedirs(BUILD, exist_ok=True)
    sources = [os.path.join(HERE, name) for name in ("converters.c", "wrong.c")]
    functions = {}
    for source, prefix, options in ((sources[0], "", []), (sources[1], "", []), (sources[0], INTEGERS, ["-U__SSE2__"])):
        # Scalar code with its names. All calls are inlined before anything else, and no two reads are folded into one
        # of a chosen address, so that no access to the table of formats is left.
        ir = subprocess.run([clang, "-std=c99", "-O2", "-Dinline=inline __attribute__((always_inline))", "-I.",
                             "-mllvm", "-phi-node-folding-threshold=0", "-fno-vectorize", "-fno-slp-vectorize",
                             "-fno-discard-value-names", "-S", "-emit-llvm", "-o", "-", *options, source],
                            check=True, stdout=subprocess.PIPE, text=True).stdout
        with open(os.path.join(BUILD, prefix + os.path.basename(source) + ".ll"), "w") as file:
            file.write(ir)
        functions.update({prefix + name: function._replace(name=prefix + name)
                          for name, function in llvm.parse(ir).items()})
    library = os.path.join(BUILD, "converters.so")
    subprocess.run([clang, "-std=c99", "-O2", "-shared", "-fPIC", "-I.", "-o", library] + sources, check=True)
    return functions, ctypes.CDLL(os.path.abspath(library))


def solve(z3, function, specification):
    """None when no input violates the claim, else the input and what it gives."""
    formula = f"""{llvm.translate(function)}
{specification}
(assert (or trap (distinct got want)))
(check-sat)
(get-value ({' '.join(name[1:] for _, name in function.arguments)} got want trap))
"""
    with open(os.path.join(BUILD, function.name + ".smt2"), "w") as file:
        file.write(formula)
    answer = subprocess.run([z3, f"-T:{SECONDS_PER_PROOF}", file.name], stdout=subprocess.PIPE, text=True).stdout
    verdict = answer.split("\n", 1)[0]
    if verdict == "unsat":
        return None
    if verdict != "sat":
        raise RuntimeError("z3: " + answer.strip().split("\n")[0])
    pairs = re.findall(r"\(([\w.]+) (#x[0-9a-f]+|#b[01]+|true|false)\)", answer)
    found = {name: value == "true" if value in ("true", "false") else int("0" + value[1:], 0) for name, value in pairs}
    if not found["trap"] and found["got"] == found["want"]:
        raise RuntimeError("z3 contradicts itself: " + described(function, found))
    return found


def described(function, found):
    arguments = ", ".join(f"{name[1:]} 0x{found[name[1:]]:X}" for _, name in function.arguments)
    return f"{arguments}: undefined" if found["trap"] else f"{arguments}: 0x{found['got']:X}, not 0x{found['want']:X}"


def compiled_agrees(library, function, found):
    c_type = {"i32": ctypes.c_uint32, "i64": ctypes.c_uint64}
    callee = getattr(library, function.name)
    callee.restype = c_type[function.result_type]
    callee.argtypes = [c_type[type_name] for type_name, _ in function.arguments]
    return callee(*(found[name[1:]] for _, name in function.arguments)) == found["got"]


def outcome(z3, functions, library, theorem, right):
    """Is it as it should be: right ones proved, wrong ones refuted? And the line that says so."""
    start, function = time.monotonic(), functions.get(theorem.function)
    try:
        if not function:
            raise llvm.Untranslatable(f"the definition of {theorem.function}")
        found = solve(z3, function, theorem.specification)
    except llvm.Untranslatable as error:
        success, text = False, f"{theorem.name}: cannot translate {error}"
    except RuntimeError as error:
        success, text = False, f"{theorem.name}: {error}"
    else:
        example = described(function, found) if found else "no counterexample"
        if right:
            success, text = not found, theorem.name + ("" if not found else ": " + example)
        else:
            success, text = bool(found), f"wrong converter, {theorem.name}: {example}"
            if found and not found["trap"] and not compiled_agrees(library, function, found):
                success, text = False, text + "; but the compiled function returns something else"
    return success, f"{'ok  ' if success else 'FAIL'}  {text} ({time.monotonic() - start:.1f} s)"


def main():
    if len(sys.argv) not in (1, 3) or sys.argv[1:2] not in ([], ["--filter"]):
        sys.exit(f"usage: {sys.argv[0]} [--filter TEXT]")
    wanted = sys.argv[2] if len(sys.argv) == 3 else ""
    claims = [(theorem, True) for theorem in theorems()] + [(theorem, False) for theorem in wrong_claims()]
    claims = [(theorem, right) for theorem, right in claims if wanted in theorem.name]
    clang = next(filter(shutil.which, [os.environ.get("CLANG", "clang"), "clang-19", "clang-14"]), None)
    z3 = shutil.which("z3")
    if not clang or not z3:
        failure = os.environ.get("CI") == "true"
        print(f"{'FAIL' if failure else 'SKIP'}  prove: {'clang' if not clang else 'z3'} is not installed")
        print(f"0 passed, {len(claims) if failure else 0} failed, {0 if failure else len(claims)} skipped")
        return failure
    try:
        functions, library = compiled(clang)
    except subprocess.CalledProcessError:
        print(f"FAIL  prove: does not compile\n0 passed, {len(claims)} failed, 0 skipped")
        return True
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for success, line in pool.map(lambda claim: outcome(z3, functions, library, *claim), claims):
            passed, failed = passed + success, failed + (not success)
            print(line, flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
