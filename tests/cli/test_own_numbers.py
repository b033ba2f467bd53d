"""Numbers of a student's kernel: elements of arrays, which are classes for the model, behave as C++ has it of plain numbers.

The same expressions stand in a program, which g++ compiles with plain numbers, and in a kernel, whose elements the model
counts. The program's values, sizes, signs and kinds are the kernel's constants."""

import itertools
import os
import random
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="a kernel of one's own needs g++")

INTEGERS = {"i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short", "i32": "int",
            "u32": "unsigned int", "i64": "long long", "u64": "unsigned long long"}
REALS = {"f32": "float", "f64": "double"}
TYPES = {**INTEGERS, **REALS}


def literal(draw, name):
    """A number of that type, in a form that is plain in a kernel, too."""
    if name == "f32":
        return f"{draw.choice([1, -3, 7]) / draw.choice([2, 3, 8])!r}f"
    if name == "f64":
        return repr(draw.choice([1, -3, 7]) / draw.choice([2, 3, 8]))
    bits, signed = int(name[1:]), name[0] == "i"
    most = 2 ** (bits - signed) - 1
    value = draw.choice([most, most - 5, 3, 1, *([-1, -most, -2] if signed else [])])
    return f"(({INTEGERS[name]}){value}{'' if signed else 'u'}{'ll' if bits == 64 else ''})"


def small(draw, name):
    """One whose products, differences and shifts every type holds."""
    if name in REALS:
        return draw.choice(["0.5", "0.25", "0.75"]) + "f" * (name == "f32")
    return f"(({INTEGERS[name]}){draw.choice([1, 2, 3, 5])})"


def expressions(draw, dtype):
    """Pairs of what s[0] and r[0] are set to, and an expression of them. s holds elements of the type, r of another."""
    out = []
    for other, form in itertools.product(TYPES, ["yes ? s[0] : {p}", "no ? s[0] : {p}", "yes ? {p} : s[0]", "no ? {p} : s[0]",
                                                 "no ? s[0] : yes ? {p} : s[0]", "MINE(s[0], {p})"]):
        if "MINE" in form and other != dtype and {other, dtype} & set(REALS):
            continue
        out.append((literal(draw, dtype), literal(draw, other), other, form))
    for other, form in itertools.product(TYPES, ["yes ? s[0] : r[0]", "no ? s[0] : r[0]"]):
        out.append((literal(draw, dtype), literal(draw, other), other, form))
    operators = ["+", "-", "*", "/", "<", ">", "<=", ">=", "==", "!="]
    whole = ["%", "&", "|", "^", "<<", ">>"]
    for other in TYPES:
        both = not {other, dtype} & set(REALS)
        for op in operators + whole * both:
            a, b = (literal(draw, dtype), literal(draw, other)) if op[0] in "<>=!" and op not in ("<<", ">>") else (
                small(draw, dtype), small(draw, other))
            out.append((a, b, other, draw.choice([f"s[0] {op} {{p}}", f"{{p}} {op} s[0]", f"s[0] {op} r[0]"])))
            if op in ("+", "-", "*", "/", *whole):
                out.append((small(draw, dtype), small(draw, other), other, f"(s[1] = s[0], s[1] {op}= {{p}}, s[1])"))
    out += [(literal(draw, dtype), "0", dtype, form) for form in ("-s[0]", "+s[0]", "!s[0]")]
    out += [(literal(draw, dtype), "0", dtype, "~s[0]")] * (dtype not in REALS)
    return out


PROGRAM = """
#include <cstdio>
#define MINE(a, b) ((a) < (b) ? (a) : (b))
template <class T> void show(T v) {
    printf("%d %zu %d ", (double)((v * 0 + 1) / 2) == 0.5, sizeof v, v * 0 - 1 < 0);
    if ((T)0.5 != (T)0 && sizeof(T) > 1) printf("%a\\n", (double)v);
    else printf("%llu\\n", (unsigned long long)v);
}
int main() {
    volatile bool yes = true, no = false;
    (void)yes, (void)no;
"""
KERNEL = """
#define MINE(a, b) ((a) < (b) ? (a) : (b))
__global__ void numbers(const TYPE *in, TYPE *out, int n) {
    bool yes = n > 0, no = n < 0;
    int bad = 0;
    if (threadIdx.x > 0) return;
"""


def needs_plain(dtype, case):
    """Returns whether the text is compiled with plain numbers: C++ makes an int of two arms, neither of which is one, or the
    arms are elements of a float and a double."""
    small = [t for t in INTEGERS if t[1:] in ("8", "16")]
    chooses, other = "?" in case[3] or "MINE" in case[3], case[2]
    return chooses and other != dtype and ({dtype, other} <= {*small} or ("r[0]" in case[3] and {dtype, other} == {*REALS}))


def write_program(dtype, cases):
    text = PROGRAM
    for a, b, other, e in cases:
        text += f"    {{ {TYPES[dtype]} s[2] = {{{a}, 0}}; {TYPES[other]} r[1] = {{{b}}}; (void)s, (void)r; show({e}); }}\n"
    return text + "}\n"


def write_kernel(dtype, cases, said):
    """A sum, to which the number of the first case is added that is not as the program has it."""
    text = KERNEL.replace("TYPE", TYPES[dtype])
    for k, ((a, b, other, e), line) in enumerate(zip(cases, said), 1):
        real, size, negative, value = line.split()
        same = f"(double)({e}) == {value}" if "0x" in value else f"(unsigned long long)({e}) == {value}ull"
        text += (f"    {{ __shared__ {TYPES[dtype]} s[2]; __shared__ {TYPES[other]} r[1]; s[0] = {a}; s[1] = 0; r[0] = {b};\n"
                 f"      if (!({same} && sizeof({e}) == {size} && ((({e}) * 0 - 1 < 0) == {negative}) &&\n"
                 f"            ((double)((({e}) * 0 + 1) / 2) == 0.5) == {real}) && !bad) bad = {k}; }}\n")
    return text + f"    {TYPES[dtype]} sum = 0;\n    for (int i = 0; i < n; i++) sum += in[i];\n    *out = bad ? bad : sum;\n}}\n"


@pytest.mark.parametrize("is_plain", (False, True))
@pytest.mark.parametrize("dtype", TYPES)
def test_elements_are_numbers(tally, tmp_path, dtype, is_plain):
    draw = random.Random(seed := os.environ.get("TALLY_SEED") or str(random.randrange(1 << 32)))
    print("seed", seed)
    cases = [(a, b, other, e.replace("{p}", b)) for a, b, other, e in expressions(draw, dtype)]
    cases = [case for case in draw.sample(cases, len(cases)) if needs_plain(dtype, case) == is_plain][:80]
    if not cases:
        return
    (tmp_path / "plain.cpp").write_text(write_program(dtype, cases))
    subprocess.run(["g++", "-std=c++20", "-w", "-fwrapv", "-o", tmp_path / "plain", tmp_path / "plain.cpp"], check=True)
    said = subprocess.run([tmp_path / "plain"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == len(cases)
    (tmp_path / "mine.cu").write_text(write_kernel(dtype, cases, said))
    found = tally.judged("explain", "--kernel", tmp_path / "mine.cu", "--dtype", dtype, "-n", 7, "--block", 32)
    wraps = 2 ** int(dtype[1:])  # the number of the case, as far as an element holds it
    bad = [(*cases[i], said[i]) for i in range((int(found["value"]) - 1) % wraps, len(cases), wraps)]
    assert found["correct"], bad
    assert is_plain or found["counts"]["operations"] >= 7, "the kernel is compiled with plain numbers"
