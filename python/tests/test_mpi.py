"""tally.mpi: ranks.py under mpirun."""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
# mpi4py from PyPI is for several MPIs; as root Open MPI wants to be told twice.
ENVIRONMENT = {**os.environ, "MPI4PY_MPIABI": "openmpi", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.mark.skipif(not MPIRUN, reason="no mpirun here")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_any_number_of_ranks(ranks, rng):
    seed = str(rng.integers(1 << 30))
    done = subprocess.run([MPIRUN, "--oversubscribe", "-n", str(ranks), sys.executable,
                           os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks.py"), seed],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "right" in done.stdout, f"seed {seed}: {done.stdout}{done.stderr}"
