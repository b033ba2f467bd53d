"""`python -m tally` is the tally command: the one that this package holds, or the one that is installed."""

from __future__ import annotations

import os
import shutil
import sys


def main() -> None:
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tally")
    command = own if os.access(own, os.X_OK) else None
    if command is None:  # (not a script that would come back here)
        beside = os.path.join(os.path.dirname(sys.executable), "tally")
        path = os.pathsep.join(p for p in os.environ.get("PATH", os.defpath).split(os.pathsep)
                               if os.path.abspath(p) != os.path.dirname(beside))
        command = shutil.which("tally", path=path)
    if command is None:
        sys.exit("tally: this package was built without the command, and none is installed: from the sources, `make install`, or "
                 "`pip install . -C cmake.define.TALLY_CLI=ON`, which needs pkg-config, json-c, libcsv, zlib, libzstd and libzip")
    os.execv(command, ["tally", *sys.argv[1:]])


if __name__ == "__main__":
    main()
