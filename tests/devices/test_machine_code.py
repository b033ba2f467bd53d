"""The machine code of sums in floats: no block of it that adds up elements has an operation on doubles, nor a conversion to
one. Needs nvcc and cuobjdump."""

import os
import re
import shutil
import subprocess

import pytest

SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "src")
TOOLS = {tool: shutil.which(tool) or shutil.which(f"/usr/local/cuda/bin/{tool}") for tool in ("nvcc", "cuobjdump")}
FLAGS = ["-x", "cu", "-cubin", "-arch=sm_90", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"]
PROGRAMS = [("columns.cu", "wide", "FOLD_SUM"), ("columns.cu", "wide", "FOLD_SQUARES"), ("vectors.cu", "wide", "FOLD_SUM"),
            ("rows.cu", "rows", ""), ("rows.cu", "rows", "LIFT_MAGNITUDE"), ("rows.cu", "rows", "LIFT_SQUARE")]
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


@pytest.mark.parametrize("floats", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("file, kernel, define", PROGRAMS)
def test_elements_are_added_without_doubles(file, kernel, define, floats, tmp_path):
    image = str(tmp_path / "image.cubin")
    defines = [f"-D{d}" for d in ("IN_FLOATS", "OP_SUM", f"TYPE_{floats}", *define.split())]
    subprocess.run([TOOLS["nvcc"], *FLAGS, *defines, f"-I{SOURCES}", os.path.join(SOURCES, "kernels", file), "-o", image], check=True)
    code = subprocess.run([TOOLS["cuobjdump"], "-sass", image], capture_output=True, text=True, check=True).stdout
    own = re.split(r"Function : ", code)
    code = next(part for part in own if part.split()[0] == kernel)
    adding = [b for b in blocks_of(code) if sum(name.startswith(OF_FLOATS) for name in b) >= ADDS]
    assert adding
    for block in adding:
        assert not [name for name in block if name.startswith(OF_DOUBLES)]
