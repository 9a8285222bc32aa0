"""Translates functions of LLVM IR, as clang prints it, to SMT-LIB terms over bit-vectors.

    functions = parse(text)
    smt = translate(functions["mixprec_f"])

The SMT text declares one constant per argument, under the argument's name, and defines
    got    what the function returns
    trap   true where its behaviour is undefined: it returns poison or branches on it, reaches `unreachable`, or takes
           more than LOOP_LIMIT turns in its loops
A value is its bits and whether it is poison (the result of an out-of-range shift, of a sum that overflows although
its flags say that it does not, and of all that is computed from such values). Floats travel as their bits; arithmetic
on them, but for making them of integers below 2^24, memory and calls are not translated. Whatever is not known here is
an error, never a guess.
"""

import re
from collections import namedtuple

LOOP_LIMIT = 30


class Untranslatable(Exception):
    pass


# arguments: (type, name) of each; blocks: label -> instructions, the entry first
Function = namedtuple("Function", "result_type name arguments blocks")

# bits: a term of sort (_ BitVec width); poison: a term of sort Bool
Value = namedtuple("Value", "bits poison width")


def parse(text):
    """The functions that a module defines, by name."""
    functions, function, block = {}, None, None
    text = re.sub(r"\[\n(.*?)\n\s*\]", lambda m: "[ " + " ".join(m[1].split()) + " ]", text, flags=re.S)  # switch
    for line in text.splitlines():
        line = line.split(";")[0].rstrip()
        line = re.sub(r"(, ![\w.]+ ![\d]+|, !\w+)+$", "", line)  # metadata
        header = re.match(r"define (.*?)@([\w.]+)\((.*?)\)[^()]*\{$", line)
        if header:
            arguments = [(a.split()[0], a.split()[-1]) for a in header[3].split(", ") if a]
            function = Function(header[1].split()[-1], header[2], arguments, {})
            functions[function.name] = function
        elif line == "}":
            function = None
        elif function and re.match(r"[\w.]+:$", line):
            block = function.blocks.setdefault(line[:-1], [])
        elif function and line:
            block.append(line.strip())
    return functions


# ---- terms: strings, with the folding that keeps them small ----

def any_of(*conditions):
    if "true" in conditions:
        return "true"
    rest = sorted(set(conditions) - {"false"})
    return "(or " + " ".join(rest) + ")" if len(rest) > 1 else rest[0] if rest else "false"


def all_of(*conditions):
    if "false" in conditions:
        return "false"
    rest = sorted(set(conditions) - {"true"})
    return "(and " + " ".join(rest) + ")" if len(rest) > 1 else rest[0] if rest else "true"


def negation(condition):
    return {"true": "false", "false": "true"}.get(condition, f"(not {condition})")


def choice(condition, then, otherwise):
    return then if then == otherwise or condition == "true" else f"(ite {condition} {then} {otherwise})"


def constant(value, width):
    return f"(_ bv{value % 2**width} {width})"


def width_of(type_name):
    if type_name in ("float", "double"):
        return {"float": 32, "double": 64}[type_name]
    if not re.fullmatch(r"i\d+", type_name):
        raise Untranslatable(f"type {type_name}")
    return int(type_name[1:])


# ---- instructions ----

BINARY = {"add": "bvadd", "sub": "bvsub", "and": "bvand", "or": "bvor", "xor": "bvxor",
          "shl": "bvshl", "lshr": "bvlshr", "ashr": "bvashr"}
COMPARE = {"ult": "bvult", "ule": "bvule", "ugt": "bvugt", "uge": "bvuge",
           "slt": "bvslt", "sle": "bvsle", "sgt": "bvsgt", "sge": "bvsge"}
CHOOSE = {"umin": "bvult", "umax": "bvugt", "smin": "bvslt", "smax": "bvsgt"}
EXTEND = {"nuw": "zero_extend", "nsw": "sign_extend"}
CAST_FLAGS = {"zext": {"nneg"}, "sext": set(), "trunc": {"nuw", "nsw"}, "bitcast": set(), "sitofp": set(),
              "uitofp": {"nneg"}}


def operand(text, width, values):
    if text in values:
        return values[text]
    if text in ("undef", "poison"):  # undef allows less than poison does: to take it for poison is the stricter reading
        return Value(constant(0, width), "true", width)
    number = {"true": "1", "false": "0"}.get(text, text)
    if not re.fullmatch(r"-?\d+", number):
        raise Untranslatable(f"operand {text}")
    return Value(constant(int(number), width), "false", width)


def binary(operation, flags, a, b, width):
    """The result, and the condition under which the operation itself makes poison."""
    result = f"({BINARY[operation]} {a} {b})"
    poison = [f"(bvuge {b} {constant(width, width)})"] if operation in ("shl", "lshr", "ashr") else []
    for flag in flags:
        if flag in EXTEND and operation in ("add", "sub"):
            wide = [f"((_ {EXTEND[flag]} 1) {term})" for term in (a, b, result)]
            poison.append(f"(distinct ({BINARY[operation]} {wide[0]} {wide[1]}) {wide[2]})")
        elif flag in EXTEND and operation == "shl":
            poison.append(f"(distinct ({'bvlshr' if flag == 'nuw' else 'bvashr'} {result} {b}) {a})")
        elif flag == "exact" and operation in ("lshr", "ashr"):
            poison.append(f"(distinct (bvshl {result} {b}) {a})")
        elif flag == "disjoint" and operation == "or":
            poison.append(f"(distinct (bvand {a} {b}) {constant(0, width)})")
        else:
            raise Untranslatable(f"flag {flag} of {operation}")
    return result, any_of(*poison)


def cast(operation, flags, a, width, to_width):
    if not CAST_FLAGS[operation].issuperset(flags):
        raise Untranslatable(f"flags {flags} of {operation}")
    if operation == "zext":
        nonnegative = f"(bvslt {a} {constant(0, width)})" if flags else "false"
        return f"((_ zero_extend {to_width - width}) {a})", nonnegative
    if operation == "sext":
        return f"((_ sign_extend {to_width - width}) {a})", "false"
    if operation == "trunc":
        result = f"((_ extract {to_width - 1} 0) {a})"
        return result, any_of(*(f"(distinct ((_ {EXTEND[flag]} {width - to_width}) {result}) {a})" for flag in flags))
    if operation.endswith("itofp"):
        if width > 32 or to_width != 32:
            raise Untranslatable(f"{operation} from {width} to {to_width} bits")
        bits, poison = exact_float(f"((_ {'sign' if operation[0] == 's' else 'zero'}_extend {32 - width}) {a})")
        return bits, any_of(poison, f"(bvslt {a} {constant(0, width)})" if flags else "false")
    if width != to_width:
        raise Untranslatable(f"{operation} from {width} to {to_width} bits")
    return a, "false"


def exact_float(a):
    """The bits of an integer as a float, by the place of its leading bit. Poison where rounding would be called for, or
    a sign."""
    bits = constant(0, 32)
    for place in range(24):
        mantissa = f"((_ extract 22 0) (bvshl {a} {constant(23 - place, 32)}))"
        bits = choice(f"(= ((_ extract {place} {place}) {a}) #b1)", f"(concat {constant(127 + place, 9)} {mantissa})",
                      bits)
    return bits, f"(bvuge {a} {constant(2 ** 24, 32)})"


def evaluate(text, values):
    """The value of the right-hand side of an instruction."""
    words = text.replace(",", " ").split()
    operation = words[0]
    if operation in BINARY:
        *flags, type_name, a, b = words[1:]
        width = width_of(type_name)
        a, b = operand(a, width, values), operand(b, width, values)
        result, poison = binary(operation, flags, a.bits, b.bits, width)
        return Value(result, any_of(poison, a.poison, b.poison), width)
    if operation in CAST_FLAGS:
        *flags, type_name, a, _, to_type = words[1:]
        a = operand(a, width_of(type_name), values)
        result, poison = cast(operation, flags, a.bits, a.width, width_of(to_type))
        return Value(result, any_of(poison, a.poison), width_of(to_type))
    if operation == "icmp" and len(words) == 5:
        a, b = (operand(word, width_of(words[2]), values) for word in words[3:])
        relation = {"eq": "=", "ne": "distinct"}.get(words[1]) or COMPARE[words[1]]
        return Value(f"(ite ({relation} {a.bits} {b.bits}) #b1 #b0)", any_of(a.poison, b.poison), 1)
    if operation == "select" and len(words) == 7:
        decider = operand(words[2], 1, values)
        a, b = (operand(words[i], width_of(words[3]), values) for i in (4, 6))
        taken = f"(= {decider.bits} #b1)"
        return Value(choice(taken, a.bits, b.bits), any_of(decider.poison, choice(taken, a.poison, b.poison)), a.width)
    call = re.match(r"(?:tail )?call (\w+) @llvm\.([a-z.]+)\.i\d+\((.*?)\)( #\d+)?$", text)
    if call and (call[2] in CHOOSE or call[2] == "usub.sat"):
        a, b = (operand(argument.split()[-1], width_of(call[1]), values) for argument in call[3].split(", "))
        if call[2] == "usub.sat":
            result = f"(ite (bvult {a.bits} {b.bits}) {constant(0, a.width)} (bvsub {a.bits} {b.bits}))"
        else:
            result = f"(ite ({CHOOSE[call[2]]} {a.bits} {b.bits}) {a.bits} {b.bits})"
        return Value(result, any_of(a.poison, b.poison), a.width)
    raise Untranslatable(text)


# ---- control flow ----

def successors(text, values):
    """(condition, label) of each way out of a block, and the condition under which the branch is undefined."""
    labels = re.findall(r"label %([\w.]+)", text)
    if text.startswith("br label"):
        return [("true", labels[0])], "false"
    head = re.match(r"(br|switch) (i\d+) (\S+),", text)
    if not head:
        raise Untranslatable(text)
    value = operand(head[3], width_of(head[2]), values)
    if head[1] == "br":
        taken = f"(= {value.bits} #b1)"
        return [(taken, labels[0]), (negation(taken), labels[1])], value.poison
    cases = re.findall(r"i\d+ (-?\d+), label", text)
    ways = [(f"(= {value.bits} {constant(int(case), value.width)})", label) for case, label in zip(cases, labels[1:])]
    return ways + [(negation(any_of(*(condition for condition, _ in ways))), labels[0])], value.poison


def reverse_postorder(blocks):
    """But for the edges that close a loop, every edge leads forward in this order of the labels."""
    finished, seen = [], set()

    def visit(label):
        seen.add(label)
        for successor in re.findall(r"label %([\w.]+)", blocks[label][-1]):
            if successor not in seen:
                visit(successor)
        finished.append(label)

    visit(next(iter(blocks)))
    return finished[::-1]


class Translation:
    """Follows all paths at once. A block is translated once for each number of loop turns taken before it, from its
    edges: (condition, label of the source, values there) of each way in."""

    def __init__(self, function):
        self.function = function
        self.lines = [f"(declare-const {name[1:]} (_ BitVec {width_of(type_name)}))"
                      for type_name, name in function.arguments]
        self.traps = []
        self.returns = []  # (condition, value)

    def named(self, name, sort, term):
        """A name for a term, so that it is written once."""
        if not term.startswith("(") or term.startswith("(_ bv"):
            return term
        name = f"|{name} {len(self.lines)}|"
        self.lines.append(f"(define-fun {name} () {sort} {term})")
        return name

    def named_value(self, name, value):
        return Value(self.named(name, f"(_ BitVec {value.width})", value.bits),
                     self.named(name + " poison", "Bool", value.poison), value.width)

    def merged(self, name, choices):
        """The value of the (condition, value) whose condition holds."""
        bits, poison, width = choices[-1][1]
        for condition, value in choices[-2::-1]:
            bits, poison = choice(condition, value.bits, bits), choice(condition, value.poison, poison)
        return self.named_value(name, Value(bits, poison, width))

    def values_at_entry(self, edges):
        """What has a value on every way in."""
        values = {}
        for name, value in edges[0][2].items():
            versions = [(condition, edge_values.get(name)) for condition, _, edge_values in edges]
            if all(version == value for _, version in versions):
                values[name] = value
            elif all(version for _, version in versions):
                values[name] = self.merged(name, versions)
        return values

    def phi(self, name, text, edges):
        type_name, sources = re.match(r"phi (\w+) (.*)", text).groups()
        texts = {label: value for value, label in re.findall(r"\[ (\S+), %([\w.]+) \]", sources)}
        return self.merged(name, [(condition, operand(texts[label], width_of(type_name), edge_values))
                                  for condition, label, edge_values in edges])

    def freeze(self, text, values):
        """In the place of poison comes some value, the same one wherever the result is used."""
        _, type_name, frozen = text.split()
        a = operand(frozen, width_of(type_name), values)
        any_value = f"|{frozen} frozen {len(self.lines)}|"
        self.lines.append(f"(declare-const {any_value} (_ BitVec {a.width}))")
        return Value(choice(a.poison, any_value, a.bits), "false", a.width)

    def block(self, label, edges):
        """Translates a block; returns (target, edge) of each way out."""
        reached = self.named(label + " reached", "Bool", any_of(*(condition for condition, _, _ in edges)))
        values = self.values_at_entry(edges)
        *body, last = self.function.blocks[label]
        for text in body:
            name, right = text.split(" = ", 1) if " = " in text else (None, text)
            if not name:
                raise Untranslatable(text)
            if right.startswith("phi "):
                value = self.phi(name, right, edges)
            elif right.startswith("freeze "):
                value = self.freeze(right, values)
            else:
                value = evaluate(right, values)
            values[name] = self.named_value(name, value)
        if last == "unreachable":
            self.traps.append(reached)
            return []
        if last.startswith("ret "):
            value = operand(last.split()[-1], width_of(last.split()[1]), values)
            self.traps.append(all_of(reached, value.poison))
            self.returns.append((reached, value))
            return []
        ways, poison = successors(last, values)
        self.traps.append(all_of(reached, poison))
        return [(target, (self.named(f"{label} to {target}", "Bool", all_of(reached, condition)), label, values))
                for condition, target in ways]

    def run(self):
        order = reverse_postorder(self.function.blocks)
        values = {name: Value(name[1:], "false", width_of(type_name)) for type_name, name in self.function.arguments}
        edges = {order[0]: [("true", None, values)]}
        for _ in range(LOOP_LIMIT + 1):
            next_turn = {}
            for position, label in enumerate(order):
                if label not in edges:
                    continue
                for target, edge in self.block(label, edges[label]):
                    turn = edges if order.index(target) > position else next_turn
                    turn.setdefault(target, []).append(edge)
            edges = next_turn
        self.traps += [condition for ways in edges.values() for condition, _, _ in ways]
        if not self.returns:
            raise Untranslatable("a function that does not return")
        got = self.merged("returned", self.returns)
        self.lines.append(f"(define-fun got () (_ BitVec {got.width}) {got.bits})")
        self.lines.append(f"(define-fun trap () Bool {any_of(*self.traps)})")
        return "\n".join(self.lines)


def translate(function):
    return Translation(function).run()
