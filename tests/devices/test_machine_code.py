"""The machine code of sums in floats: no block of it that adds up elements has an operation on doubles, nor a conversion to
one. Nor has any block of whole sums and norms, and of sums by group. Needs nvcc, cuobjdump and nvdisasm."""

import os
import re
import shutil
import subprocess

import pytest

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "src")
TOOLS = {tool: shutil.which(tool) or shutil.which(f"/usr/local/cuda/bin/{tool}") for tool in ("nvcc", "cuobjdump")}
FLAGS = ["-x", "cu", "-cubin", "-arch=sm_90", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"]
PROGRAMS = [("columns.cu", "wide", "FOLD_SUM"), ("columns.cu", "wide", "FOLD_SQUARES"), ("vectors.cu", "wide", "FOLD_SUM"),
            ("rows.cu", "rows", ""), ("rows.cu", "rows", "LIFT_MAGNITUDE"), ("rows.cu", "rows", "LIFT_SQUARE"),
            ("sum.cu", "reduce", "LIFT_SQUARE")]
WITHOUT_DOUBLES = [("sum.cu", "reduce alone", "IN_FLOATS LIFT_SQUARE"), ("sum.cu", "reduce alone", ""), ("sum.cu", "reduce alone", "LIFT_MAGNITUDE"),
                   ("groups.cu", "many few slices", "")]
OF_FLOATS = ("FADD", "FFMA")
OF_DOUBLES = ("DADD", "DFMA", "DMUL", "F2F.F64")
ADDS = 24  # operations on floats of a block that adds up elements, at least

pytestmark = pytest.mark.skipif(not all(TOOLS.values()), reason="nvcc or cuobjdump is not here")


def blocks_of(code):
    """The basic blocks of a kernel's code: the names of their instructions."""
    found = [(int(at, 16), name, rest) for at, name, rest in
             re.findall(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)([^;]*);", code)]
    targets = {int(to, 16) for _, name, rest in found if name.startswith(("BRA", "BSSY", "CALL")) for to in re.findall("0x([0-9a-f]+)", rest)}
    block = []
    for at, name, _ in found:
        if at in targets and block:
            yield block
            block = []
        block.append(name)
        if name.startswith(("BRA", "EXIT", "CALL", "RET")):
            yield block
            block = []


def kernels_of(file, defines, folder):
    """The code of a file's kernels, by name."""
    image = str(folder / "image.cubin")
    subprocess.run([TOOLS["nvcc"], *FLAGS, *(f"-D{d}" for d in defines), f"-I{SOURCES}", os.path.join(SOURCES, "kernels", file), "-o", image],
                   check=True)
    code = subprocess.run([TOOLS["cuobjdump"], "-sass", image], capture_output=True, text=True, check=True).stdout
    return {part.split()[0]: part for part in re.split(r"Function : ", code)[1:]}


@pytest.mark.parametrize("floats", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("file, kernel, define", PROGRAMS)
def test_elements_are_added_without_doubles(file, kernel, define, floats, tmp_path):
    code = kernels_of(file, ["IN_FLOATS", "OP_SUM", f"TYPE_{floats}", *define.split()], tmp_path)[kernel]
    adding = [b for b in blocks_of(code) if sum(name.startswith(OF_FLOATS) for name in b) >= ADDS]
    assert adding
    for block in adding:
        assert not [name for name in block if name.startswith(OF_DOUBLES)]


@pytest.mark.parametrize("floats", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("file, kernels, defines", WITHOUT_DOUBLES)
def test_kernels_without_doubles(file, kernels, defines, floats, tmp_path):
    """No operation at all: elements are integers, or their squares are chains of floats that are rounded as integers."""
    code = kernels_of(file, ["OP_SUM", f"TYPE_{floats}", *defines.split()], tmp_path)
    for kernel in kernels.split():
        names = [name for block in blocks_of(code[kernel]) for name in block]
        assert sum(name.startswith(("ATOM", "RED")) for name in names) >= 1
        assert not [name for name in names if name.startswith(OF_DOUBLES) or ".F64" in name]
