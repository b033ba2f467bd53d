"""`python -m tally` is the tally command: the one that this package holds, or the one that is installed."""

from __future__ import annotations

import os
import shutil
import sys

MISSING = ("tally: this package was built without the command, and none is installed: from the sources, `make install`, or "
           "`pip install . -C cmake.define.TALLY_CLI=ON`, which needs pkg-config, json-c, libcsv, zlib, libzstd and libzip")


def find_command() -> str | None:
    """The path of the tally command: the package's own, or else the first on PATH."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tally")
    if os.access(own, os.X_OK):
        return own
    beside = os.path.join(os.path.dirname(sys.executable), "tally")  # pip's script, which runs this module again
    path = os.pathsep.join(p for p in os.environ.get("PATH", os.defpath).split(os.pathsep)
                           if os.path.abspath(p) != os.path.dirname(beside))
    return shutil.which("tally", path=path)


def main() -> None:
    command = find_command()
    if command is None:
        sys.exit(MISSING)
    os.execv(command, ["tally", *sys.argv[1:]])


if __name__ == "__main__":
    main()
