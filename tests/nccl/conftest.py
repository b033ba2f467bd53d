"""Shared by the tests of NCCL's ranks: the engine's binding and data, and the machines of the devices' tests."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("TALLY_CUDA_DOUBLE_DEVICES", "4")
for folder in ("engine", "devices"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))
