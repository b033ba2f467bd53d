"""The kernels printed in docs/ladder.md sum every array, whatever its length.

Each listing is compiled as C for the CPU, where a thread of a block is a thread of the system, __syncthreads() is a
barrier of these, and blocks run one after another. The sum must be that of Python's integers.
"""

import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "ladder.md").read_text()
LISTINGS = {re.search(r"void (\w+)\(", text)[1]: text for text in re.findall(r"^```cuda\n(.*?)^```$", TEXT, re.M | re.S)}
BLOCK = 64
LENGTHS = [1, 2, 31, 64, 65, 127, 128, 129, 512, 777, 1025]
SIZED = {"grid_stride", "vectorized", "shuffled", "single_pass"}  # the grid is the host's choice

HOST = r"""
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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
static unsigned atomicAdd(unsigned *p, unsigned v) { unsigned old = *p; *p += v; return old; }
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
static unsigned n, drawn;
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
        gridDim.x = SEGMENT ? (n + SEGMENT - 1) / (SEGMENT ? SEGMENT : 1) : 3;
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
            for (size_t t = 0; t < BLOCK; t++) pthread_create(&threads[t], NULL, thread, (void *)t);
            for (size_t t = 0; t < BLOCK; t++) pthread_join(threads[t], NULL);
        }
        for (unsigned b = 0; b < (argv[1][0] == '1' ? 1 : gridDim.x); b++) sum += output[b];
        printf("%.0f\n", sum);
        if (drawn) return 1;
    }
    return 0;
}
"""

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not here")


@pytest.mark.parametrize("name", LISTINGS)
def test_listing(name, tmp_path):
    segment = 0 if name in SIZED else 2 * BLOCK * (4 if name == "coarsened" else 1)
    call = f"{name}(input, output, n{', board, &drawn' if name == 'single_pass' else ''})"
    source = HOST.replace("LISTING", LISTINGS[name]).replace("CALL", call)
    (tmp_path / "listing.c").write_text(source)
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-pthread", "-Wall", "-Wno-unused", "-Werror", f"-DBLOCK={BLOCK}",
                    f"-DSEGMENT={segment}", "-o", tmp_path / "listing", tmp_path / "listing.c"], check=True)
    done = subprocess.run([tmp_path / "listing", "1" if name == "single_pass" else "0", *map(str, LENGTHS)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert list(map(int, done.stdout.split())) == [sum(i % 7 + 1 for i in range(n)) for n in LENGTHS]


def test_every_kernel_is_printed():
    rungs = re.findall(r'X\([A-Z_]+,\s*"[\w-]+",\s*(\w+),',
                       (ROOT / "src/kernels/ladder/rungs.h").read_text().replace("\\\n", ""))
    assert len(rungs) == 12 and list(LISTINGS) == rungs
