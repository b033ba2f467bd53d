"""The kernels printed in docs/ladder.md sum every array, whatever its length; the first one what a block can take.

Each listing is compiled as C for the CPU, where a thread of a block is a thread of the system, __syncthreads() is a
barrier of these, and blocks run one after another. The sum must be that of Python's integers.
"""

import pathlib
import random
import re
import shutil
import struct
import subprocess
from fractions import Fraction

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "ladder.md").read_text()
LISTINGS = {re.search(r"void (\w+)\(", text)[1]: text for text in re.findall(r"^```cuda\n(.*?)^```$", TEXT, re.M | re.S)}
BLOCK = 64
LENGTHS = [1, 2, 31, 64, 65, 127, 128, 129, 512, 777, 1025]
SIZED = {"grid_stride", "vectorized", "shuffled", "single_pass"}  # the grid is the host's choice

HOST = r"""
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define __global__
#define __shared__ static
typedef struct { unsigned x; } place;
typedef struct { float x, y, z, w; } float4;
static _Thread_local place threadIdx;
static place blockIdx, blockDim, gridDim;
static pthread_barrier_t all, warps[BLOCK / 32];
static float exchanged[BLOCK];
#define __syncthreads() pthread_barrier_wait(&all)
#define __threadfence() ((void)0)
#define atomicAdd(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
static int __float_as_int(float x) { int bits; memcpy(&bits, &x, sizeof bits); return bits; }
static float __shfl_down_sync(unsigned mask, float v, unsigned by) {
    unsigned t = threadIdx.x;
    (void)mask;
    exchanged[t] = v;
    pthread_barrier_wait(&warps[t / 32]);
    v = t % 32 + by < 32 ? exchanged[t + by] : v;
    pthread_barrier_wait(&warps[t / 32]);
    return v;
}
LISTING
static float input[2048] __attribute__((aligned(16))), output[64], board[64];
static unsigned n, drawn, failed;
static long long total[2];
static void *thread(void *index) {
    threadIdx.x = (unsigned)(size_t)index;
    CALL;
    return NULL;
}
int main(int argc, char **argv) {
    pthread_barrier_init(&all, NULL, BLOCK);
    for (int w = 0; w < BLOCK / 32; w++) pthread_barrier_init(&warps[w], NULL, 32);
    blockDim.x = BLOCK;
    for (int k = 2; k < argc; k++) {
        pthread_t threads[BLOCK];
        double sum = 0;
        n = (unsigned)atoi(argv[k]);
        for (unsigned i = 0; i < 2048; i++) input[i] = i < n ? (float)(i % 7 + 1) : 1e6f;
        if (EXACT && fread(input, sizeof *input, n, stdin) != n) return 1;
        gridDim.x = SEGMENT ? (n + SEGMENT - 1) / (SEGMENT ? SEGMENT : 1) : 3;
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
            for (size_t t = 0; t < BLOCK; t++) pthread_create(&threads[t], NULL, thread, (void *)t);
            for (size_t t = 0; t < BLOCK; t++) pthread_join(threads[t], NULL);
        }
        for (unsigned b = 0; b < (argv[1][0] == '1' ? 1 : gridDim.x); b++) sum += output[b];
        if (EXACT) printf("%lld %lld %u\n", total[0], total[1], failed);
        else printf("%.0f\n", sum);
        if (drawn) return 1;
    }
    return 0;
}
"""

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not here")


def compiled(name, call, segment, folder):
    source = HOST.replace("LISTING", LISTINGS[name]).replace("CALL", call)
    (folder / "listing.c").write_text(source)
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-pthread", "-Wall", "-Wno-unused", "-Werror", f"-DBLOCK={BLOCK}",
                    f"-DSEGMENT={segment}", f"-DEXACT={int(name == 'exact_sum')}", "-o", folder / "listing",
                    folder / "listing.c", "-lm"], check=True)
    return folder / "listing"


@pytest.mark.parametrize("name", [name for name in LISTINGS if name != "exact_sum"])
def test_listing(name, tmp_path):
    segment = 0 if name in SIZED else 2 * BLOCK * (4 if name == "coarsened" else 1)
    call = f"{name}(input, output, n{', board, &drawn' if name == 'single_pass' else ''})"
    lengths = LENGTHS
    if name == "first_tree":  # one block, in place
        call, lengths = "first_tree(input, (int)n); if (threadIdx.x == 0) output[0] = input[0]", [n for n in LENGTHS if n <= segment]
    done = subprocess.run([compiled(name, call, segment, tmp_path), "1" if name == "single_pass" else "0", *map(str, lengths)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert list(map(int, done.stdout.split())) == [sum(i % 7 + 1 for i in range(n)) for n in lengths]


def test_the_exact_sum(tmp_path):
    """Its integers are the exact sum of floats within 46 bits, in whatever order; what does not fit is noticed."""
    E, seed = 8, random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    program = compiled("exact_sum", f"exact_sum(input, total, n, {1.5 * 2**E}f, &failed)", 0, tmp_path)

    def run(x):
        data = struct.pack(f"{len(x)}f", *x)
        done = subprocess.run([program, "0", str(len(x))], input=data, capture_output=True, timeout=120, check=True)
        first, second, failed = map(int, done.stdout.split())
        sum_of_units = first * Fraction(2) ** (E - 23) + second * Fraction(2) ** (E - 46)
        return failed, not failed and sum_of_units == sum(map(Fraction, struct.unpack(f"{len(x)}f", data)))
    wide = [rng.randrange(-(2**24) + 1, 2**24) * 2.0 ** (rng.randrange(22) + E - 46) for _ in range(777)]  # below 2^(E - 1)
    assert run(wide) == (0, True) and run(sorted(wide)) == (0, True) and run([2.0 ** (E - 1), -0.0]) == (0, True)
    assert run([*wide, 2.0**-60])[0] == 1 and run([*wide, 2.0**E])[0] == 1 and run([*wide, float("nan")])[0] == 1


def test_every_kernel_is_printed():
    rungs = re.findall(r'X\([A-Z_]+,\s*"[\w-]+",\s*(\w+),',
                       (ROOT / "src/kernels/ladder/rungs.h").read_text().replace("\\\n", ""))
    assert len(rungs) == 12 and list(LISTINGS) == ["first_tree", *rungs, "exact_sum"]


def test_the_first_kernel_is_near():
    before = TEXT[: TEXT.index("```cuda")].splitlines()
    assert len(before) < 60 and any("make " in line for line in before[:10])
