"""Every example in C - in the comments of the public headers, README.md and docs/*.md - compiles as C99 and as C++17.

An example is
  in a header   a paragraph of a comment four columns further in than the comment's text, behind an empty line or a ":";
  in a page     a block ```c.
What an example leaves out, such as the array x, comes from GIVEN. A line that looks like C and stands in no example is
an error, as nothing would compile it.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ["include/tally.h", "mpi/tally_mpi.h", "nccl/tally_nccl.h"]
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
# Files known to have examples, and how many at least.
KNOWN = {"include/tally.h": 2, "mpi/tally_mpi.h": 1, "nccl/tally_nccl.h": 1, "README.md": 1, "docs/c.md": 1, "docs/shapes.md": 1,
         "docs/states.md": 1, "docs/cluster.md": 2}
OTHER_LANGUAGES = {"console", "python", "cmake", "sh", "fortran", "text",
                   "cuda"}  # test_listings.py compiles these
FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILERS = [(compiler, language) for language, names in (("c99", ("gcc", "clang")), ("c++17", ("g++", "clang++")))
             for compiler in names if shutil.which(compiler)]
# Declared for an example that uses the name and does not declare it.
GIVEN = {"x": "const float *x", "y": "const float *y", "n": "size_t n", "device": "tally_device *device",
         "gpu": "tally_device *gpu", "offsets": "const int64_t *offsets", "ids": "const int32_t *ids",
         "count": "size_t count", "out": "double *out", "value": "tally_value value", "sum": "tally_problem sum",
         "mean": "tally_problem mean", "a": "tally_state *a", "b": "tally_state *b", "state": "tally_state *state",
         "bytes": "size_t bytes",
         "comm": "tally_nccl_comm comm", "call": "tally_nccl_call call"}
# Calls, declarations and designated initialisers. A tally_...() in a sentence has no semicolon behind it.
LOOKS_LIKE_C = re.compile(r"\btally_\w+\([^()]*\w[^()]*\);|^(const )?tally_\w+ \**\w+( = .*)?;|\{\.\w+ = |^#include <tally")


def of_header(text):
    """[(line, example)] of a header's comments, and [(line, text)] of their other lines."""
    examples, others, inside, before = [], [], None, ""
    comment = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = comment or line.startswith("/*")
        body = re.sub(r"^ \*/?|^/\*", "", line).split("*/")[0].rstrip() if comment else ""
        if inside and (not body or body.startswith("     ")):
            inside[1].append(body[5:])
        elif re.match(r"     \S", body) and (not before or before.endswith(":")):
            inside = (number, [body[5:]])
            examples.append(inside)
        else:
            inside = None
            others.append((number, body.strip()))
        if not comment or "*/" in line:
            comment, inside = False, None
        before = body
    return examples, others


def of_page(text):
    """The same of a page."""
    examples, others, fence = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        label = re.match(r"```(.*)", line)
        if label and fence is None:
            fence = label[1]
            assert fence in OTHER_LANGUAGES | {"", "c"}, f"line {number}: a block in an unknown language: {fence}"
            if fence == "c":
                examples.append((number + 1, []))
        elif label:
            fence = None
        elif fence == "c":
            examples[-1][1].append(line)
        elif not fence:
            others.append((number, line.strip()))
    assert fence is None, "a block without an end"
    return examples, others


def examples_of(name):
    text = (ROOT / name).read_text()
    return of_header(text) if name in HEADERS else of_page(text)


def declares(text, name):
    return re.search(rf"[\w>]\**\s+\**{name}\s*(=|;|,|\[)|,\s*\**{name}\s*;", text)


def program(name, line, lines):
    """A translation unit with the example in it; messages of the compiler name the line of the page."""
    includes = [text for text in lines if text.startswith("#include")]
    body = ["" if text in includes else text for text in lines]
    text = "\n".join(body)
    header = name if name in HEADERS else "mpi/tally_mpi.h" if "tally_mpi" in text else "nccl/tally_nccl.h" if "tally_nccl" in text else HEADERS[0]
    start = "\n".join(includes + [f'#include "{pathlib.Path(header).name}"'])
    if not re.search(r"\bmain\(", text):
        code = re.sub(r"//.*|/\*.*?\*/", "", text)
        given = [GIVEN[word] for word in GIVEN if re.search(rf"(?<![\w.]){word}\b(?!\()", code) and not declares(code, word)]
        return f'{start}\nvoid example({", ".join(given) or "void"});\nvoid example({", ".join(given) or "void"}) {{\n#line {line} "{name}"\n{text}\n}}\n'
    return f'{start}\n#line {line} "{name}"\n{text}\n'


def mpi_includes():
    for command in ("mpicc.openmpi", "mpicc.mpich", "mpicc"):
        if shutil.which(command):
            for option in ("--showme:compile", "-show"):
                said = subprocess.run([command, option], capture_output=True, text=True)
                if said.returncode == 0:
                    return [f"-isystem{word[2:]}" for word in said.stdout.split() if word.startswith("-I")]
    return None


def compile_as(compiler, language, source):
    flags = ["-x", "c" if language == "c99" else "c++", f"-std={language}", *FLAGS]
    for folder in ("include", "mpi", "nccl"):
        flags.append(f"-I{ROOT / folder}")
    if "tally_mpi.h" in source:
        found = mpi_includes()
        if found is None:
            pytest.skip("no MPI is here")
        flags += found + ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
    done = subprocess.run([compiler, *flags, "-"], input=source, capture_output=True, text=True,
                          env=dict(os.environ, LC_ALL="C"))
    return done.stderr if done.returncode else ""


def check(compiler, language, source):
    errors = compile_as(compiler, language, source)
    if errors:
        pytest.fail(errors, pytrace=False)


ALL = [(name, line, lines) for name in HEADERS + PAGES for line, lines in examples_of(name)[0]]


@pytest.mark.parametrize("compiler, language", COMPILERS)
@pytest.mark.parametrize("name, line, lines", ALL, ids=[f"{name}-{line}" for name, line, _ in ALL])
def test_example(name, line, lines, compiler, language):
    check(compiler, language, program(name, line, lines))


@pytest.mark.parametrize("compiler, language", COMPILERS)
@pytest.mark.parametrize("name", HEADERS)
def test_header(name, compiler, language):
    check(compiler, language, f'#include "{pathlib.Path(name).name}"\n')


@pytest.mark.parametrize("name", HEADERS + PAGES)
def test_nothing_is_left_out(name):
    examples, others = examples_of(name)
    assert len(examples) >= KNOWN.get(name, 0)
    assert [f"{name}:{line}: {text}" for line, text in others if LOOKS_LIKE_C.search(text)] == []


def test_what_is_wrong_is_noticed():
    comment = "/* A text:\n *     tally_value v;\n *     f(\n * and more: tally_close(d);\n */\n"
    examples, others = of_header(comment)
    assert examples == [(2, ["tally_value v;", "f("])]
    assert [line for line, text in others if LOOKS_LIKE_C.search(text)] == [4]
    examples, others = of_page("```c\nint x;\n```\n\n    tally_close(device);\n")
    assert examples == [(2, ["int x;"])]
    assert [line for line, text in others if LOOKS_LIKE_C.search(text)] == [5]
    with pytest.raises(AssertionError):
        of_page("```cobol\n```\n")
    for compiler, language in COMPILERS:
        for wrong in ("tally_problem p = {.op = TALLY_SUM, .type = 7, .nothing = 0};", "tally_close(1.5);", "int unused;"):
            assert "README.md:7" in compile_as(compiler, language, program("README.md", 7, [wrong]))
