"""What the conversions must give, over the solver's theory of floating-point numbers (IEEE 754-2019), as SMT-LIB text.

narrowing() and widening() return definitions of one constant `want` over the declared arguments of the converter;
nothing here knows how mixprec.h computes it. fp.to_ieee_bv is z3's: the bits of a number.

A format that is not IEEE's differs in its bias and in where its numbers end. Its numbers are the first ones of an IEEE
format with more exponent bits, all times a power of two, and have the same codes.
"""

from collections import namedtuple

# special: what the format has beside finite numbers. "ieee": Inf and NaN. "no inf": one NaN of each sign. "fnuz": one
# NaN, in the place of -0. "finite": nothing, and NaN becomes the largest number.
Format = namedtuple("Format", "name exponent_bits mantissa_bits bias special")
F64 = Format("f64", 11, 52, 1023, "ieee")
F32 = Format("f32", 8, 23, 127, "ieee")
F16 = Format("f16", 5, 10, 15, "ieee")
BF16 = Format("bf16", 8, 7, 127, "ieee")
E4M3 = Format("e4m3", 4, 3, 7, "no inf")
E5M2 = Format("e5m2", 5, 2, 15, "ieee")
NARROW = [F16, BF16, E4M3, E5M2,
          Format("e4m3fnuz", 4, 3, 8, "fnuz"), Format("e5m2fnuz", 5, 2, 16, "fnuz"),
          Format("e4m3ieee", 4, 3, 7, "ieee"), Format("e3m4", 3, 4, 3, "ieee"),
          Format("e2m3", 2, 3, 1, "finite"), Format("e3m2", 3, 2, 3, "finite"), Format("e2m1", 2, 1, 1, "finite")]

E8M0 = Format("e8m0", 8, 0, 127, "powers of two from 2^-127 to 2^127, and NaN")
I8 = Format("i8", 0, 7, 0, "an integer")

# The theory's modes. Stochastic rounding is not among them.
MODES = {"nearest_even": "RNE", "toward_zero": "RTZ", "up": "RTP", "down": "RTN", "nearest_away": "RNA",
         "stochastic": None}
IEEE, SATURATE, SATURATE_KEEP_INF = range(3)


def bits_of(f):
    return 1 + f.exponent_bits + f.mantissa_bits


def sort(f):
    return f"(_ FloatingPoint {f.exponent_bits} {f.mantissa_bits + 1})"


def number(f, bits):
    return f"((_ to_fp {f.exponent_bits} {f.mantissa_bits + 1}) {bits})"


def rounded(f, mode, x):
    return f"((_ to_fp {f.exponent_bits} {f.mantissa_bits + 1}) {mode} {x})"


def power_of_two(f, exponent):
    return rounded(f, "RNE", f"{2 ** exponent}.0" if exponent >= 0 else f"(/ 1.0 {2 ** -exponent}.0)")


def extract(high, low, bits):
    return f"((_ extract {high} {low}) {bits})"


def as_u32(width, bits):
    return f"((_ zero_extend {32 - width}) {bits})"


def u32(value):
    return f"(_ bv{value} 32)"


def with_room(f):
    """The IEEE format of which f's numbers are the first ones, and the power of two."""
    return Format(f"{f.name} with room", 6, f.mantissa_bits, 31, "ieee"), 31 - f.bias


def magnitude(f, mode):
    """The code of |x| rounded to the IEEE format f by the mode for x, in 32 bits."""
    width = bits_of(f)
    if mode:
        return as_u32(width - 1, extract(width - 2, 0, f"(fp.to_ieee_bv {rounded(f, mode, 'x')})"))
    # In a format with 32 more bits, cut off there, the code consists of the lower neighbour's code and of
    # floor(fraction * 2^32); rounding up takes the code after the lower neighbour's.
    longer = f._replace(mantissa_bits=f.mantissa_bits + 32)
    cut = f"(fp.to_ieee_bv {rounded(longer, 'RTZ', '(fp.abs x)')})"
    return stochastic(as_u32(width - 1, extract(width + 30, 32, cut)), extract(31, 0, cut))


def stochastic(lower, fraction):
    """One more than lower when fraction + random reaches 2^32; all of 32 bits."""
    total = f"(bvadd ((_ zero_extend 1) {fraction}) ((_ zero_extend 1) random))"
    return f"(bvadd {lower} {as_u32(1, extract(32, 32, total))})"


def quiet_nan(source, target):
    """Sign, quiet bit, and the payload's upper bits, cut or filled up with zeros."""
    kept = min(target.mantissa_bits, source.mantissa_bits) - 1
    parts = [extract(bits_of(source) - 1, bits_of(source) - 1, "input"), "#b" + "1" * (target.exponent_bits + 1)]
    if kept:
        parts.append(extract(source.mantissa_bits - 2, source.mantissa_bits - 1 - kept, "input"))
    if target.mantissa_bits > kept + 1:
        parts.append("#b" + "0" * (target.mantissa_bits - 1 - kept))
    return f"(concat {' '.join(parts)})"


def narrowing_to_float(source, target, mode_name, last_policy):
    """From `bits`, `random`, and `overflow`, which is one of the policies up to the last one named."""
    mode, all_ones = MODES[mode_name], 2**(bits_of(target) - 1) - 1
    largest = {"ieee": all_ones - 2**target.mantissa_bits, "no inf": all_ones - 1}.get(target.special, all_ones)
    beyond = largest if target.special == "finite" else largest + 1  # the code of an overflow
    wide, x = source, number(source, "bits")
    # z3 4.8.12 rounds to few exponent and many mantissa bits wrongly: with 5 it can.
    if target.special == "ieee" and target.exponent_bits >= 5:
        code = magnitude(target, mode)
        overflowed, to_largest = f"(= code {u32(beyond)})", "false"  # what a mode keeps finite is so by the theory
        if not mode:
            overflowed = f"(or {overflowed} (fp.geq (fp.abs x) {power_of_two(source, target.bias + 1)}))"
    else:
        roomy, exponent = with_room(target)
        wide = source._replace(exponent_bits=source.exponent_bits + 2)  # the product is exact
        x = f"(fp.mul RNE {rounded(wide, 'RNE', x)} {power_of_two(wide, -exponent)})"
        code = magnitude(roomy, mode)
        overflowed = f"(bvugt code {u32(largest)})"
        # IEEE 754-2019, 7.4: what a mode rounds toward zero stays finite.
        to_largest = {"RTZ": "true", "RTP": "(fp.isNegative x)", "RTN": "(fp.isPositive x)"}.get(mode, "false")
    sign = u32(all_ones + 1)
    nan = {"ieee": as_u32(bits_of(target), quiet_nan(source, target)), "no inf": f"(bvor sign {u32(all_ones)})",
           "fnuz": sign, "finite": u32(largest)}[target.special]
    unsigned_zero = f"(= code {u32(0)})" if target.special == "fnuz" else "false"
    return f"""
(assert (bvule overflow {u32(last_policy)}))
(define-fun input () (_ BitVec {bits_of(source)}) bits)
(define-fun x () {sort(wide)} {x})
(define-fun code () (_ BitVec 32) {code})
(define-fun sign () (_ BitVec 32)
  (ite (= {extract(bits_of(source) - 1, bits_of(source) - 1, 'input')} #b1) {sign} {u32(0)}))
(define-fun unsigned () (_ BitVec 32)
  (ite (fp.isInfinite x) (ite (= overflow {u32(SATURATE)}) {u32(largest)} {u32(beyond)})
    (ite {overflowed} (ite (or (distinct overflow {u32(IEEE)}) {to_largest}) {u32(largest)} {u32(beyond)})
      code)))
(define-fun want () (_ BitVec 32)
  (ite (fp.isNaN x) {nan} (ite {unsigned_zero} {u32(0)} (bvor sign unsigned))))
"""


def widening_from_float(source, target):
    """From the lower bits of `code`. Every value is exact, so that the mode does not matter."""
    width = bits_of(source)
    sign, rest = extract(width - 1, width - 1, "input"), extract(width - 2, 0, "input")
    value = rounded(target, "RNE", number(source, "input"))
    nan = quiet_nan(source, target)
    if source.special == "ieee":
        is_nan = f"(fp.isNaN {number(source, 'input')})"
    else:
        roomy, exponent = with_room(source)
        zeros = "#b" + "0" * (roomy.exponent_bits - source.exponent_bits)
        roomy_value = rounded(target, "RNE", number(roomy, f"(concat {sign} {zeros} {rest})"))
        value = f"(fp.mul RNE {roomy_value} {power_of_two(target, exponent)})"
        is_nan = {"no inf": f"(= {rest} (bvnot (_ bv0 {width - 1})))", "finite": "false",
                  "fnuz": f"(= input (_ bv{2**(width - 1)} {width}))"}[source.special]
        if source.special == "fnuz":
            nan = f"(concat #b0 {'#b' + '1' * (target.exponent_bits + 1)} (_ bv0 {target.mantissa_bits - 1}))"
    return f"""
(define-fun input () (_ BitVec {width}) {extract(width - 1, 0, 'code')})
(define-fun want () (_ BitVec {bits_of(target)}) (ite {is_nan} {nan} (fp.to_ieee_bv {value})))
"""


def narrowing_to_e8m0(source, mode_name, last_policy):
    """In an f64, which every source fits: the power of two at or below x, or the next one, from the middle on."""
    mode = MODES[mode_name]
    power = number(F64, f"(concat {extract(63, 52, '(fp.to_ieee_bv x)')} (_ bv0 52))")
    lower = f"(bvsub {as_u32(11, extract(62, 52, '(fp.to_ieee_bv x)'))} {u32(F64.bias - E8M0.bias)})"
    if mode:
        middle = f"(fp.mul RNE {rounded(F64, 'RNE', '1.5')} {power})"
        nearest = f"(fp.geq x {middle})"
        up = {"RNE": nearest, "RNA": nearest, "RTP": f"(fp.gt x {power})"}.get(mode, "false")
        code = f"(bvadd {lower} (ite {up} {u32(1)} {u32(0)}))"
    else:
        cut = f"(fp.to_ieee_bv {rounded(F64._replace(mantissa_bits=32), 'RTZ', 'x')})"
        code = stochastic(lower, extract(31, 0, cut))
    to_largest = "true" if mode in ("RTZ", "RTN") else "false"
    return f"""
(assert (bvule overflow {u32(last_policy)}))
(define-fun x () {sort(F64)} {rounded(F64, 'RNE', number(source, 'bits'))})
(define-fun code () (_ BitVec 32) {code})
(define-fun want () (_ BitVec 32)
  (ite (or (fp.isNaN x) (fp.isZero x) (fp.isNegative x)) {u32(0xFF)}
    (ite (fp.isInfinite x) (ite (= overflow {u32(SATURATE)}) {u32(0xFE)} {u32(0xFF)})
      (ite (fp.lt x {power_of_two(F64, -127)}) {u32(0)}
        (ite (bvugt code {u32(0xFE)}) (ite (or (distinct overflow {u32(IEEE)}) {to_largest}) {u32(0xFE)} {u32(0xFF)})
          code)))))
"""


def narrowing_to_i8(source, mode_name, last_policy):
    """In an f64, which every source fits. Always saturated, NaN to 0; the result is sign-extended."""
    mode = MODES[mode_name]
    if mode:
        code = f"((_ fp.to_ubv 32) RTZ (fp.abs (fp.roundToIntegral {mode} x)))"
    else:
        fixed_point = f"((_ fp.to_ubv 40) RTZ (fp.mul RTZ {power_of_two(F64, 32)} (fp.abs x)))"
        code = stochastic(as_u32(8, extract(39, 32, fixed_point)), extract(31, 0, fixed_point))
    return f"""
(assert (bvule overflow {u32(last_policy)}))
(define-fun x () {sort(F64)} {rounded(F64, 'RNE', number(source, 'bits'))})
(define-fun limit () (_ BitVec 32) (ite (fp.isNegative x) {u32(128)} {u32(127)}))
(define-fun code () (_ BitVec 32) {code})
(define-fun unsigned () (_ BitVec 32)
  (ite (or (fp.geq (fp.abs x) {power_of_two(F64, 8)}) (bvugt code limit)) limit code))
(define-fun want () (_ BitVec 32)
  (ite (fp.isNaN x) {u32(0)} (ite (fp.isNegative x) (bvneg unsigned) unsigned)))
"""


def widening_from_e8m0(target):
    power = number(F64, f"(concat #b0 (bvadd ((_ zero_extend 3) input) (_ bv{F64.bias - E8M0.bias} 11)) (_ bv0 52))")
    nan = f"(concat #b0 #b{'1' * (target.exponent_bits + 1)} (_ bv0 {target.mantissa_bits - 1}))"
    return f"""
(define-fun input () (_ BitVec 8) {extract(7, 0, 'code')})
(define-fun want () (_ BitVec {bits_of(target)})
  (ite (= input #xFF) {nan} (fp.to_ieee_bv {rounded(target, 'RNE', power)})))
"""


def narrowing(source, target, mode_name, last_policy):
    if target is E8M0:
        return narrowing_to_e8m0(source, mode_name, last_policy)
    if target is I8:
        return narrowing_to_i8(source, mode_name, last_policy)
    return narrowing_to_float(source, target, mode_name, last_policy)


def widening(source, target):
    return widening_from_e8m0(target) if source is E8M0 else widening_from_float(source, target)
