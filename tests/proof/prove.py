#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Proves the theorems of proofs.rs of the compiled code, for all values of all arguments.

usage: prove.py FILE.ll proofs.rs    (LLVM IR of it and itself, see `scripts/lab prove`)

Each function proof_* is run symbolically, path by path: on each path it must return true, and
no path may reach a panic. z3 decides about bit-vectors of full width, so nothing is sampled or
bounded, except that the argument `order` takes each of its 16 values. Functions wrong_* are
false theorems that must be refuted; without them a prover that proves anything would pass.
Instructions that this script does not know end it: nothing is skipped.
"""

import re
import sys
import time

import z3

ORDERS = range(14, 30)


class Failure(Exception):
    """A theorem that does not hold; the message says for which arguments."""


def functions(text):
    """The functions of a module: name -> (arguments, {label: [instruction]}, first label)."""
    found = {}
    for match in re.finditer(r"^define [^@]*@(\w+)\((.*?)\)[^\n]*\{\n(.*?)^\}", text, re.M | re.S):
        name, args, body = match.groups()
        if not name.startswith(("proof_", "wrong_")):
            continue
        args = [(a.split()[0], a.split()[-1]) for a in clean(args).split(", ")]
        blocks, label, first = {}, None, None
        for line in re.sub(r"\[\n(.*?)\n\s*\]", join, body, flags=re.S).splitlines():
            line = line.split(";")[0].rstrip()
            head = re.match(r'^("[^"]+"|[\w.$-]+):', line)
            if head:
                label = "%" + head.group(1)
                first = first or label
                blocks[label] = []
            elif line.strip():
                blocks[label].append(clean(line.strip()))
        found[name] = (args, blocks, first)
    return found


def join(match):
    """The cases of a switch in one line."""
    return "[ " + " ".join(match.group(1).split()) + " ]"


def clean(line):
    """An instruction without attributes and flags. A flag promises that something does not
    happen; whoever relies on none of them proves no less."""
    line = re.sub(r"range\([^)]*\)|captures\([^)]*\)|dereferenceable\(\d+\)|align \d+", "", line)
    line = re.sub(r"\b(noundef|nuw|nsw|nneg|exact|disjoint|samesign|tail|zeroext|noalias)\b", "", line)
    line = re.sub(r", ![\w.]+.*$|#\d+$", "", line)
    return re.sub(r"\s+", " ", line).strip()


def width(kind):
    """Bits of a type."""
    if not re.fullmatch(r"i\d+", kind):
        raise NotImplementedError(f"type {kind}")
    return int(kind[1:])


def as_bool(bit):
    return bit == z3.BitVecVal(1, 1)


def as_bit(condition):
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "ult": z3.ULT,
    "ule": z3.ULE,
    "ugt": z3.UGT,
    "uge": z3.UGE,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}

BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "lshr": z3.LShR,
    "ashr": lambda a, b: a >> b,
    "udiv": z3.UDiv,
    "urem": z3.URem,
}


def overflow(name, a, b):
    """The result of an addition, subtraction or multiplication, and whether it is wrong."""
    bits = a.size()
    extend = z3.ZeroExt if name[0] == "u" else z3.SignExt
    how = BINARY[name[1:]]
    return how(a, b), as_bit(how(extend(bits, a), extend(bits, b)) != extend(bits, how(a, b)))


def intrinsic(name, args):
    """The result of a call of LLVM's own."""
    a = args[0]
    bits = a.size()
    if name == "umin":
        return z3.If(z3.ULT(a, args[1]), a, args[1])
    if name == "umax":
        return z3.If(z3.UGT(a, args[1]), a, args[1])
    if name == "smin":
        return z3.If(a < args[1], a, args[1])
    if name == "smax":
        return z3.If(a > args[1], a, args[1])
    if name == "usub.sat":
        return z3.If(z3.ULT(a, args[1]), z3.BitVecVal(0, bits), a - args[1])
    if name == "uadd.sat":
        return z3.If(z3.ULT(a + args[1], a), z3.BitVecVal(-1, bits), a + args[1])
    if name == "ctpop":
        return sum(
            (z3.ZeroExt(bits - 1, z3.Extract(i, i, a)) for i in range(bits)),
            z3.BitVecVal(0, bits),
        )
    if name in ("cttz", "ctlz"):
        order = range(bits - 1, -1, -1) if name == "cttz" else range(bits)
        result = z3.BitVecVal(bits, bits)
        for i in order:
            count = i if name == "cttz" else bits - 1 - i
            bit = z3.Extract(i, i, a) == 1
            result = z3.If(bit, z3.BitVecVal(count, bits), result)
        return result
    raise NotImplementedError(f"llvm.{name}")


class Run:
    """The symbolic execution of one function."""

    def __init__(self, function, fixed):
        self.args, self.blocks, self.first = function
        self.solver = z3.SolverFor("QF_BV")
        self.symbols = []
        self.env = {}
        for kind, name in self.args:
            if name == "%order" and fixed is not None:
                self.env[name] = z3.BitVecVal(fixed, width(kind))
            else:
                self.env[name] = z3.BitVec(name, width(kind))
                self.symbols.append(self.env[name])
        self.paths = 0

    def value(self, kind, token, env):
        """The value of an operand."""
        if token.startswith("%"):
            return env[token]
        if token in ("undef", "poison"):
            # Anything, and not the same the next time.
            self.symbols.append(z3.FreshConst(z3.BitVecSort(width(kind)), "any"))
            return self.symbols[-1]
        if token in ("true", "false"):
            return z3.BitVecVal(int(token == "true"), 1)
        return z3.BitVecVal(int(token), width(kind))

    def possible(self, condition):
        """Whether a condition can hold on the path."""
        condition = z3.simplify(condition)
        if z3.is_false(condition):
            return False
        self.solver.push()
        self.solver.add(condition)
        answer = self.solver.check()
        self.solver.pop()
        if answer == z3.unknown:
            raise Failure("the solver does not know")
        return answer == z3.sat

    def never(self, condition, what):
        """Fails, with an example, if a condition can hold on the path."""
        self.solver.push()
        self.solver.add(condition)
        answer = self.solver.check()
        if answer != z3.unsat:
            model = self.solver.model() if answer == z3.sat else "?"
            values = {str(s): model.eval(s, True) for s in self.symbols} if model != "?" else "?"
            raise Failure(f"{what}: {values}")
        self.solver.pop()

    def run(self):
        self.block(self.first, None, dict(self.env))
        return self.paths

    def fork(self, condition, label, source, env):
        """Goes on at another block if that is possible."""
        if not self.possible(condition):
            return
        self.solver.push()
        self.solver.add(condition)
        self.block(label, source, dict(env))
        self.solver.pop()

    def block(self, label, source, env):
        """Runs a block that was entered from another."""
        phis = {}
        for line in self.blocks[label]:
            phi = re.match(r"(\S+) = phi (\S+) (.*)", line)
            if phi:
                name, kind, cases = phi.groups()
                for value, origin in re.findall(r"\[ (\S+), (\S+) \]", cases):
                    if origin == source:
                        phis[name] = self.value(kind, value, env)
                continue
            env.update(phis)
            phis = {}
            if self.last(line, label, env):
                return
        raise NotImplementedError("a block without an end")

    def last(self, line, label, env):
        """Runs an instruction; whether it was the last of the path or block."""
        if match := re.match(r"ret i1 (\S+)", line):
            self.never(z3.Not(as_bool(self.value("i1", match.group(1), env))), "false for")
            self.paths += 1
            return True
        if match := re.match(r"br label (\S+)", line):
            self.block(match.group(1), label, env)
            return True
        if match := re.match(r"br i1 (\S+), label (\S+), label (\S+)", line):
            condition = as_bool(self.value("i1", match.group(1), env))
            self.fork(condition, match.group(2), label, env)
            self.fork(z3.Not(condition), match.group(3), label, env)
            return True
        if match := re.match(r"switch (\S+) (\S+), label (\S+) \[(.*)\]", line):
            kind, token, default, cases = match.groups()
            value, others = self.value(kind, token, env), []
            for case, target in re.findall(r"i\d+ (-?\w+), label (\S+)", cases):
                condition = value == self.value(kind, case, env)
                others.append(z3.Not(condition))
                self.fork(condition, target, label, env)
            self.fork(z3.And(others), default, label, env)
            return True
        if line == "unreachable" or re.match(r"call void @_", line):
            # A panic, or what the compiler takes for impossible.
            self.never(z3.BoolVal(True), f"reaches {line!r}")
            self.paths += 1
            return True
        if re.match(r"call void @llvm\.assume", line):
            return False
        name, right = line.split(" = ", 1)
        result = self.compute(right, env)
        env[name] = result if isinstance(result, tuple) else z3.simplify(result)
        return False

    def compute(self, text, env):
        """The value of an instruction."""
        if match := re.fullmatch(r"icmp (\w+) (\S+) (\S+), (\S+)", text):
            how, kind, a, b = match.groups()
            return as_bit(COMPARE[how](self.value(kind, a, env), self.value(kind, b, env)))
        if match := re.fullmatch(r"select i1 (\S+), (\S+) (\S+), (\S+) (\S+)", text):
            c, kind, a, _, b = match.groups()
            condition = as_bool(self.value("i1", c, env))
            return z3.If(condition, self.value(kind, a, env), self.value(kind, b, env))
        if match := re.fullmatch(r"(zext|sext|trunc) (\S+) (\S+) to (\S+)", text):
            how, kind, a, to = match.groups()
            value, more = self.value(kind, a, env), width(to) - width(kind)
            if how == "trunc":
                return z3.Extract(width(to) - 1, 0, value)
            return z3.ZeroExt(more, value) if how == "zext" else z3.SignExt(more, value)
        if match := re.fullmatch(r"call (\S+) @llvm\.([a-z.]+)\.i\d+\((.*)\)", text):
            _, name, args = match.groups()
            args = [(a.split()[0], a.split()[-1]) for a in args.split(", ")]
            return intrinsic(name, [self.value(k, t, env) for k, t in args])
        if match := re.fullmatch(r"call .* @llvm\.(\w+)\.with\.overflow\.i\d+\((.*)\)", text):
            name, args = match.groups()
            args = [(a.split()[0], a.split()[-1]) for a in args.split(", ")]
            return overflow(name, *(self.value(k, t, env) for k, t in args))
        if match := re.fullmatch(r"extractvalue \{.*\} (\S+), (\d)", text):
            return env[match.group(1)][int(match.group(2))]
        if match := re.fullmatch(r"freeze (\S+) (\S+)", text):
            return self.value(*match.groups(), env)
        if match := re.fullmatch(r"(\w+) (\S+) (\S+), (\S+)", text):
            how, kind, a, b = match.groups()
            left, right = self.value(kind, a, env), self.value(kind, b, env)
            if how in ("shl", "lshr", "ashr"):
                self.never(z3.UGE(right, width(kind)), "shifted too far")
            return BINARY[how](left, right)
        raise NotImplementedError(text)


def theorem(name, function):
    """Proves or refutes one; whether that is as it should be."""
    start, paths = time.monotonic(), 0
    orders = ORDERS if any(arg == "%order" for _, arg in function[0]) else [None]
    try:
        for order in orders:
            paths += Run(function, order).run()
    except Failure as failure:
        good = name.startswith("wrong_")
        print(f"{'ok' if good else 'FAILED'}: {name}: refuted (order {order}): {failure}")
        return good
    good = name.startswith("proof_") and paths > 0
    spent = time.monotonic() - start
    print(f"{'ok' if good else 'FAILED'}: {name}: proved, {paths} paths, {spent:.1f} s", flush=True)
    return good


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = functions(file.read())
    with open(sys.argv[2], encoding="utf-8") as file:
        wanted = re.findall(r"fn ((?:proof|wrong)_\w+)", file.read())
    if sorted(found) != sorted(wanted) or not wanted:
        sys.exit(f"not found in the code: {set(wanted) - set(found)}")
    results = [theorem(name, found[name]) for name in wanted]
    print(f"{results.count(True)} as they should be, {results.count(False)} not")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    sys.exit(main())
