"""Fixtures for testing the tally command: run it, and write the arrays it reads.

The binary is the one that the environment variable TALLY names, else build/bin/tally.
"""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TALLY", ROOT / "build" / "bin" / "tally")).resolve()


class Tally:
    """Runs the command; every failure is checked to be one line on stderr and nothing on stdout."""

    binary = str(BINARY)

    def run(self, *args, stdin=b"", timeout=300, **kwargs):
        command = [self.binary, *map(str, args)]
        if hasattr(stdin, "fileno"):
            kwargs["stdin"] = stdin
        else:
            kwargs["input"] = stdin
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, **kwargs
        )

    def __call__(self, *args, **kwargs):
        """What it prints, without the line's end."""
        done = self.run(*args, **kwargs)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""
        assert done.stdout.endswith(b"\n")
        return done.stdout.decode()[:-1]

    def json(self, *args, **kwargs):
        return json.loads(self(*args, "--json", **kwargs))

    def judged(self, *args, **kwargs):
        """What is said of a kernel of one's own, whose verdict the exit status is: 0 right, 1 wrong."""
        done = self.run(*args, "--json", **kwargs)
        assert done.returncode in (0, 1) and done.stderr == b"", (done.returncode, done.stderr.decode())
        said = json.loads(done.stdout)
        assert said["status"] == ("right", "wrong")[done.returncode]
        return said

    def fails(self, *args, status=1, **kwargs):
        """The line it fails with, without "tally: "."""
        done = self.run(*args, **kwargs)
        text = done.stderr.decode()
        assert done.returncode == status, (done.returncode, text, done.stdout)
        assert done.stdout == b""
        assert text.startswith("tally: ") and text.endswith("\n") and text.count("\n") == 1, text
        return text[len("tally: ") : -1]


@pytest.fixture(scope="session")
def tally():
    if not BINARY.exists():
        pytest.skip(f"there is no {BINARY}; build it, or name it in TALLY")
    return Tally()
