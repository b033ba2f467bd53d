"""The magic %%tally_kernel: what a cell shows, in IPython itself; and the example notebook, run by a kernel of Jupyter's."""

import pathlib
import re
import sys

import pytest

import tally
from tally import notebook

IPython = pytest.importorskip("IPython")
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "python" / "tally_kernel.ipynb"
pytestmark = pytest.mark.skipif(notebook.find_command() is None, reason="the tally command is not here")

TREE = """
__global__ void tree(float *input, float *output, int n) {
    __shared__ float values[256];
    int t = threadIdx.x, i = 2 * blockIdx.x * blockDim.x + t;
    values[t] = (i < n ? input[i] : 0) + (i + blockDim.x < n ? input[i + blockDim.x] : 0);
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) values[t] += values[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = values[0];
}
"""
NO_BARRIER = TREE.replace("        __syncthreads();\n", "")


@pytest.fixture
def shell(tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the shell puts its own there
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))  # without a thread of its own
    made.run_line_magic("load_ext", "tally")
    yield made
    InteractiveShell.clear_instance()


def show(shell, line, cell):
    """[(text, html)] and [svg] that the cell displays."""
    from IPython.utils.capture import capture_output
    with capture_output() as caught:
        done = shell.run_cell(f"%%tally_kernel {line}\n{cell}")
    assert done.error_in_exec is None and done.error_before_exec is None, done.error_in_exec
    shown = [output.data for output in caught.outputs]
    return ([(d["text/plain"], d["text/html"]) for d in shown if "text/html" in d],
            [d["image/svg+xml"] for d in shown if "image/svg+xml" in d])


def test_a_right_kernel(shell):
    verdicts, drawings = show(shell, "", TREE)
    (text, html), (svg,) = verdicts[0], drawings
    assert len(verdicts) == 1 and "the kernel tree is right for all" in text and "tried: " in text and re.search("<strong[^>]*>right</strong>", html)
    assert svg.startswith("<svg") and "cell.cu" in svg and "Step 1" in svg
    assert "16 elements" in svg and "blocks of 8" in svg


def test_a_wrong_kernel_and_its_verdict_as_an_object(shell):
    ((text, html),), drawings = show(shell, "-n 64 --block 32 --as verdict", NO_BARRIER)
    verdict = shell.user_ns["verdict"]
    assert verdict.status == "wrong" and verdict.json["status"] == "wrong" and drawings == [verdict.svg.strip()]
    race = next(fault for fault in verdict.faults if fault["kind"] == "race")
    writes = 1 + NO_BARRIER.splitlines().index("        if (t < stride) values[t] += values[t + stride];")
    assert race["line"] == writes or race["other_line"] == writes
    assert all(race[word] in text for word in ("sentence", "why", "mend", "lesson")) and "mend" in html


def test_what_is_too_long_to_draw_is_drawn_short(shell):
    for line in ("-n 8192 --as verdict", "-n2^14 --block=128 --as verdict"):
        _, drawings = show(shell, line, TREE)
        assert shell.user_ns["verdict"].json["n"] > 1000 and "16 elements" in drawings[0]
    assert notebook.without_sizes(["-n", "4096", "--op", "max", "--block=32", "-n7", "--grid", "2", "--seed", "3"]) == [
        "--op", "max", "--seed", "3"]


def test_what_cannot_be_judged(shell):
    for line, cell, word in (("", "__global__ void f(float *x, float *y) { y[0] = x[0] & \"<b>\"; }", "cell.cu:1"),
                             ("--nonsense", TREE, "--nonsense"), ("", "nothing", "cell.cu")):
        ((text, html),), drawings = show(shell, line, cell)
        assert word in text and "not judged" in html and "<b>" not in html and drawings == []


def test_misuse(shell, monkeypatch):
    from IPython.core.error import UsageError
    for line in ("--as", "-n '4"):
        with pytest.raises(UsageError, match="%%tally_kernel"):
            shell.run_cell_magic("tally_kernel", line, TREE)
    monkeypatch.setattr(notebook, "find_command", lambda: None)
    with pytest.raises(UsageError, match="without the command.*make install"):
        shell.run_cell_magic("tally_kernel", "", TREE)


def test_the_example():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    stored = nbformat.read(EXAMPLE, as_version=4)
    run = nbclient.NotebookClient(nbformat.read(EXAMPLE, as_version=4), timeout=120).execute()

    def gist(book):
        """Of each cell: how it is judged, whether it draws, and what it prints."""
        for cell in book.cells:
            outputs = cell.get("outputs", [])
            data = [output.data for output in outputs if "data" in output]
            yield (re.findall("<strong[^>]*>(.*?)</strong>", "".join(d.get("text/html", "") for d in data)),
                   sum("image/svg+xml" in d for d in data), "".join(output.get("text", "") for output in outputs))
    assert list(gist(run)) == list(gist(stored))
    assert sum(drawn for _, drawn, _ in gist(run)) >= 3 and {"right", "wrong"} <= {s for status, _, _ in gist(run) for s in status}


def test_loading_says_what_it_is_for():
    assert "tally_kernel" in tally.load_ipython_extension.__doc__
