"""Mutants of the rungs (src/kernels/ladder) and of the lessons: a barrier or a fence deleted, a bound dropped or widened, an index shifted.

A rung is written in the project's dialect, in which a host chooses type and operator. Here a few macros make plain CUDA C of it, of
floats that are added, with the parameters that `tally explain --kernel` takes. The rung's own lines stay as they are."""

import pathlib
import re
from collections import namedtuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
LADDER = ROOT / "src" / "kernels" / "ladder"
LESSONS = ROOT / "lessons"

# Text: a name, whether it is a rung, the text of a kernel, the range of it that is mutated, the options it is explained with.
Text = namedtuple("Text", "name text mutated options")
Mutant = namedtuple("Mutant", "name text options")

DIALECT = """
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float element, accumulator;
typedef u32 word;
#define GLOBAL
#define SHARED
#define WARP 32u
#define BLOCK_MAX 1024u
#define FULL_WARP 0xffffffffu
#define EXCHANGE 1
#define UNIFORM(condition) (condition)
#define to_word(v) __float_as_uint(v)
#define from_word(w) __uint_as_float(w)
#define neutral() 0.0f
#define load(e) (e)
#define combine(a, b) ((a) + (b))
#define deliver(v, place, total) (*(place) = (v))
#define atomicLoad(p) (*(volatile word *)(p))
#define atomicStore(p, v) ((void)(*(volatile word *)(p) = (v)))
#define coarsen 4u
__device__ word board[4097];
__device__ float fetch(const float *x, u64 i, u64 n) { return i < n ? x[i] : 0.0f; }
"""


def rung_text(name):
    """The rung behind the dialect, and behind the files that it is built on."""
    text = (LADDER / f"{name}.cu").read_text()
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    before = ""
    for file in re.findall(r'#include "(\w+)\.cu"', text):
        before += re.sub(r"__global__.*?\n}\n", "", rung_text(file)[0] + rung_text(file)[1], flags=re.S)
    text = re.sub(r"__global__ void \w+\([^)]*\)", "__global__ void reduce(float *x, float *partials, u64 n)", text)
    text = re.sub(r"union pack \{.*?\} pack;", "struct pack { float4 bits; } pack;", text, flags=re.S)
    text = text.replace("p.e[k]", "(&p.bits.x)[k]").replace("uint4 *", "float4 *")
    return before, text


RUNGS = ["interleaved_modulo", "interleaved_mask", "interleaved_index", "contiguous", "shared_modulo", "shared_contiguous", "shared",
         "coarsened", "grid_stride", "vectorized", "shuffle", "single_pass"]


def texts():
    for name in RUNGS:
        before, text = rung_text(name)
        yield Text(name, DIALECT + before + text, range(len(DIALECT + before), len(DIALECT + before + text)), "")
    # A lesson from 14 on is wrong as it stands, and so would all its mutants be: its repaired kernel stands for it.
    lessons = [path for path in sorted(LESSONS.glob("*.cu")) if int(path.stem[:2]) < 14]
    for path in lessons + sorted((LESSONS / "repaired").glob("*.cu")):
        text = path.read_text()
        text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
        of = path.stem if path.parent == LESSONS else f"repaired {path.stem}"
        for kernel in re.findall(r"__global__ void (\w+)", text):
            start = text.index(f"void {kernel}")
            end = text.find("__global__", start)
            yield Text(f"{of}:{kernel}", text, range(start, end if end > 0 else len(text)), kernel)


# What is changed, and into what. An index is what stands in brackets behind a name; a declaration's is a number or a name in capitals.
CHANGES = [
    ("no barrier", r"__syncthreads\(\);", ";"),
    ("no warp barrier", r"__syncwarp\(\);", ";"),
    ("no fence", r"__threadfence\(\);", ";"),
    ("no bound beside a stride", r"&& [\w .+*]+ < n\b", ""),
    ("no bound of a choice", r"\b(\w+) < n \?", "true ?"),
    ("no bound of an if", r"if \(i < n\)", "if (true)"),
    ("no bound of a fetch", r"\bfetch\(x, ([^,]+), n\)", r"x[\1]"),
    ("a wider bound", r"< n\b", "<= n"),
    ("a wider bound of packs", r"< packs\b", "<= packs"),
    ("a narrower bound", r"\b(t|threadIdx\.x) < stride\b", r"\1 + 1 < stride"),
    ("a step less", r"stride > 0", "stride > 1"),
    ("a shifted index", r"(?<=[\w)])\[((?![A-Z0-9_]+\])[^\]]+)\]", r"[\1 + 1]"),
]


def mutants():
    for of in texts():
        for kind, pattern, replacement in CHANGES:
            for number, match in enumerate(m for m in re.finditer(pattern, of.text) if m.start() in of.mutated):
                line_start = of.text.rfind("\n", 0, match.start()) + 1
                line = of.text[line_start:of.text.index("\n", match.start())]
                if "__shared__" in line or line.lstrip().startswith("#"):
                    continue
                text = of.text[: match.start()] + match.expand(replacement) + of.text[match.end():]
                yield Mutant(f"{of.name}: {kind} {number + 1}", text, of.options)


# Mutants that compute the same, and why.
HARMLESS = {
    **{f"{rung}: {change}": "the host launches no block without an element, so that a segment's first is always there"
       for rung in RUNGS[:4] for change in ("no bound of a choice 1", "a wider bound 2")},
    "shared_contiguous: no barrier 1": "in the first step each thread combines the two values that it has stored itself",
    "single_pass: no fence 2": "the board is read by volatile loads, which no cache holds back",
    "01_first_tree:first_tree: a wider bound 1": "one idle step more: no pair is n apart",
    "13_order:growing: a wider bound 1": "one idle step more: no pair is n apart",
    "repaired 13_order:growing: a wider bound 1": "one idle step more: no pair is n apart",
}
WRONG_BEFORE = {f"{n:02}" for n in (2, 3, 4, 5, 7, 8, 9)}  # lessons about what is wrong with them
