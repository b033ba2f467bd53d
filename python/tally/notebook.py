"""A notebook's magic: `%load_ext tally`, then a cell that begins with `%%tally_kernel` is a CUDA kernel.

    %%tally_kernel -n 1024
    __global__ void kernel(float *input, float *output, int n) { ... }

The tally command runs the kernel on its model of a GPU. The cell shows the verdict and a drawing of the kernel's steps. The
options are those of `tally explain --kernel`; `--as NAME` keeps the verdict under that name.
"""

from __future__ import annotations

import html
import importlib
import json
import os
import shlex
import subprocess
import tempfile
from typing import Any

from .__main__ import MISSING, find_command

SECONDS = 120  # for a call of the command, which ends by itself after some 20
SIZES = {"-n", "--n", "--block", "--grid", "--length"}  # options that a drawing can do without; the value is the next word, ...
STUCK = ("-n", "--n=", "--block=", "--grid=", "--length=")  # ... or stands in the same one


class Verdict:
    """What the command says of a kernel: `status` (right, wrong, not judged), `sentence`, and all of it in `json`."""

    def __init__(self, status: str, sentence: str, said: dict[str, Any], svg: str = "") -> None:
        self.status, self.sentence, self.json, self.svg = status, sentence, said, svg

    @property
    def faults(self) -> list[dict[str, Any]]:
        """What is wrong: each with its sentence, why it matters, what mends it, and the lesson."""
        return [*self.json.get("faults", []), *self.json.get("findings", [])]

    @property
    def tried(self) -> str:
        """The lengths, blocks, data and orders that the verdict rests on, in words."""
        return str(self.json.get("tried", {}).get("words", ""))

    def __repr__(self) -> str:
        lines = [self.sentence] + [f"  tried: {self.tried}"] * (self.tried != "")
        for fault in self.faults:
            lines.append(f"  {fault['sentence']}")
            lines += [f"    {word}: {fault[word]}" for word in ("why", "mend", "lesson") if fault.get(word)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        color = {"right": "#1a7f37", "wrong": "#cf222e"}.get(self.status, "#9a6700")
        text = [f'<p><strong style="color: {color}">{html.escape(self.status)}</strong>: {html.escape(self.sentence)}</p>']
        for fault in self.faults:
            told = [f"<li>{html.escape(fault['sentence'])}"]
            told += [f"<br><em>{word}</em>: {html.escape(fault[word])}" for word in ("why", "mend", "lesson") if fault.get(word)]
            text.append("".join(told) + "</li>")
        tried = f"<details><summary>What was tried</summary>{html.escape(self.tried)}</details>" if self.tried else ""
        return text[0] + (f"<ul>{''.join(text[1:])}</ul>" if self.faults else "") + tried


def judge(text: str, options: list[str]) -> Verdict:
    """Has the command judge and draw the kernel. Raises FileNotFoundError where there is no command."""
    command = find_command()
    if command is None:
        raise FileNotFoundError(MISSING)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "cell.cu"), "w", encoding="utf-8") as file:
            file.write(text)

        def explain(*more: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([command, "explain", "--kernel", "cell.cu", *more], cwd=folder, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, encoding="utf-8", timeout=SECONDS)
        done = explain(*options, "--json")
        if not done.stdout:
            return Verdict("not judged", done.stderr.strip().removeprefix("tally: "), {})
        said = json.loads(done.stdout)
        drawn = explain(*small_launch(options, said), "--svg", "-").stdout
        if not drawn:
            drawn = explain(*without_sizes(options), "--svg", "-").stdout
        return Verdict(said["status"], f"the kernel {said['kernel']} is {said['verdict']}", said, drawn)


def small_launch(options: list[str], said: dict[str, Any]) -> list[str]:
    """The options for a drawing: 16 elements in blocks of 8 where no size is asked for and the kernel takes any block."""
    blocks = [block for block in said.get("tried", {}).get("blocks", []) if block.get("right")]
    if without_sizes(options) == options and len(blocks) > 1:
        return [*options, "-n", "16", "--block", "8"]
    return options


def without_sizes(options: list[str]) -> list[str]:
    """The options without those that say how large the launch is."""
    kept, skip = [], False
    for word in options:
        if skip or word in SIZES:
            skip = not skip
        elif not word.startswith(STUCK):
            kept.append(word)
    return kept


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext tally` calls: registers the magic."""
    display = importlib.import_module("IPython.display")
    usage_error = importlib.import_module("IPython.core.error").UsageError

    def tally_kernel(line: str, cell: str) -> None:
        """The cell is a CUDA kernel: shows the tally command's verdict on it, and a drawing of its steps."""
        name = None
        try:
            options = shlex.split(line)
            if "--as" in options:
                at = options.index("--as")
                name = options[at + 1]
                del options[at:at + 2]
            verdict = judge(cell, options)
        except (ValueError, IndexError) as error:
            raise usage_error(f"%%tally_kernel {line}: {error}") from None
        except FileNotFoundError as error:
            raise usage_error(str(error)) from None
        display.display(verdict)
        if verdict.svg:
            display.display(display.SVG(verdict.svg))
        if name:
            shell.user_ns[name] = verdict

    shell.register_magic_function(tally_kernel, "cell", "tally_kernel")
