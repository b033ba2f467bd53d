"""Processes that run problems: one worker for a device. One that dies is started again."""

import os
import platform
import struct
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
READY = 0x796c6c6174
NEON_THERE = platform.machine() == "aarch64"
BATCH_MOST = 8 << 20                                      # bytes of a batch


class Absent(Exception):
    """The device is not here."""


def command(spec, build):
    """What runs the worker of a device, or of several with ";" between them, of which calls take one each; "null" is the calling
    thread. A CPU stands for three devices with 1, 2 and 3 threads. The instruction set
    neon is run by qemu on other processors."""
    program = [os.path.join(build, "bin", "fuzz_worker")]
    if "isa=neon" in spec and not NEON_THERE:
        program = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", os.path.join(build + "-arm", "bin", "fuzz_worker")]
    specs = []
    for each in spec.split(";"):
        if each.startswith("cpu") and "threads=" not in each:
            join = "," if ":" in each else ":"
            specs += [f"{each}{join}threads={n}" for n in (1, 2, 3)]
        else:
            specs.append(each)
    return program + [";".join(specs)]


class Worker:
    """`name`: of the folder in which its OpenCL driver keeps compiled kernels; no two processes can share one."""

    def __init__(self, spec, build, name="one"):
        self.spec, self.command = spec, command(spec, build)
        self.environment = dict(os.environ, POCL_CACHE_DIR=os.path.join(build, "fuzz-kernels", str(name)))
        self.process = None

    def start(self):
        if self.process is None:
            if self.spec.startswith("opencl"):
                os.makedirs(self.environment["POCL_CACHE_DIR"], exist_ok=True)
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1 << 20,
                                            env=self.environment)
            if self._read(8) != struct.pack("<q", READY):
                self.stop()
                raise Absent(self.spec)
        return self

    def stop(self):
        if self.process is not None:
            for pipe in (self.process.stdin, self.process.stdout):
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def _read(self, size):
        data = self.process.stdout.read(size)
        return data if len(data) == size else None

    def send(self, frames):
        self.start()
        try:
            self.process.stdin.write(struct.pack("<q", len(frames)))
            self.process.stdin.write(frames)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass                                          # receive() finds out

    def receive(self):
        """One answer: (status, flags, the result that is wrong, bytes). A worker that died has a status below 0."""
        head = self._read(32)
        if head is None:
            self.stop()
            return -1, 0, -1, b""
        status, flags, wrong, size = struct.unpack("<4q", head)
        data = self._read(size)
        if status < 0 or data is None:
            self.stop()
            return min(status, -1), 0, -1, b""
        return status, flags, wrong, data

    def ask(self, layout, question):
        self.send(layout.loads() + question.frame(layout))
        return self.receive()
