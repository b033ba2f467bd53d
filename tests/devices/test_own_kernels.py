"""Kernels of one's own on devices that have a time: `tally explain --kernel FILE --device SPEC`.

The model has judged them before (tests/cli/test_own_kernel.py); here a device is to say the same, for lengths up to
2^20 + 1. `scripts/gpu FOLDER tests` runs this on a GPU."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TALLY = pathlib.Path(os.environ.get("TALLY", ROOT / "build" / "bin" / "tally")).resolve()
pytestmark = pytest.mark.skipif(not shutil.which("g++") or not TALLY.exists(), reason="a kernel of one's own needs g++ and the command")
LONG = (1 << 20) + 1
absent = {}  # devices that are not here, and what was said of them


@pytest.fixture(params=["opencl", "cuda"])
def ask(request, tmp_path):
    """What a device says of a kernel: `on_device` of the JSON."""
    def run(text, *args, name="", file=None):
        if request.param in absent:
            pytest.skip(absent[request.param])
        if file is None:
            file = tmp_path / "mine.cu"
            file.write_text(text)
        command = [TALLY, "explain", "--kernel", f"{file}{name}", "--device", request.param, "--json", *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        got = {**json.loads(done.stdout)["on_device"], "exit": done.returncode}
        for missing in ("no OpenCL platform", "no CUDA", "without opencl", "without cuda", "libcuda", "libnvrtc"):
            if missing in got["not_run"]:
                absent[request.param] = got["not_run"]
                pytest.skip(got["not_run"])
        return got
    run.device = request.param
    return run


def only_on(ask, device):
    if ask.device != device:
        pytest.skip(f"for {device}")


def check_right(got, whole=False):
    assert not got["exit"] and not got["not_run"] and not got["fault"] and not got["wrong_for"], got
    assert any(n >= LONG for n in got["right_for"]) and (whole or LONG in got["right_for"])
    assert got["times"]
    for time in got["times"]:
        assert time["correct"] and time["ms"] > 0 and time["of_roof"] > 0 and time["tally_ms"] > 0


TREE = """
template <typename T>
__global__ void tree(const T *__restrict__ input, T *output, SIZE n) {
    SHARED
    unsigned int t = threadIdx.x;
    SIZE i = blockIdx.x * (SIZE)(2 * blockDim.x) + t;
    s[t] = (i < n ? input[i] : (T)0) + (i + blockDim.x < n ? input[i + blockDim.x] : (T)0);
    for (unsigned int d = blockDim.x / 2; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
"""


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u64"])
def test_trees(ask, dtype):
    """Shared arrays with a size and without; n of 4 and of 8 bytes."""
    if ask.device == "opencl" and dtype != "f32":
        pytest.skip("tests/cli has that")
    size, shared = {"f32": ("int", "extern __shared__ T s[];"), "f64": ("size_t", "__shared__ T s[1024];"),
                    "i32": ("unsigned", "__shared__ T s[1024];"), "u64": ("long long", "extern __shared__ T s[];")}[dtype]
    check_right(ask(TREE.replace("SIZE", size).replace("SHARED", shared), "--dtype", dtype, "-n", 70001))


SHUFFLES = """
template <unsigned int blockSize>
__inline__ __device__ float halve(float v) {
    static __shared__ float warps[32];
    for (int d = warpSize / 2; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < blockSize / 32 ? warps[threadIdx.x] : 0;
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
    return v;
}
template <typename T, unsigned int blockSize, bool isPower>
__global__ void shuffles(T *input, T *output, unsigned int n) {
    T v = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += input[i];
    v = halve<blockSize>(v);
    if (threadIdx.x == 0) output[blockIdx.x] = v;
}
"""
SYNCED = """
__global__ void synced(int *input, int *output, int n) {
    __shared__ volatile int s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = i < n ? input[i] : 0;
    __syncthreads();
    if (t < 32) {
        for (int d = 32; d > 0; d /= 2) {
            int v = t < d ? s[t + d] : 0;
            __syncwarp();
            s[t] = s[t] + v;
            __syncwarp();
        }
        if (t == 0) output[blockIdx.x] = s[0];
    }
}
"""
GUESS = """
__device__ void add(double *place, double v) {
    unsigned long long *p = (unsigned long long *)place, old = *p, guess;
    do {
        guess = old;
        old = atomicCAS(p, guess, (unsigned long long)__double_as_longlong(v + __longlong_as_double(guess)));
    } while (guess != old);
}
__global__ void guesses(double *input, double *output, int n) {
    double v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += input[i];
    add(output, v);
}
"""
LAST = """
__device__ unsigned int done = 0;
__global__ void last(const float *input, volatile float *output, unsigned int n) {
    __shared__ float s[64];
    __shared__ bool is_last;
    unsigned int t = threadIdx.x;
    for (int turn = 0; turn < 2; turn++) {
        float v = 0;
        if (turn == 0)
            for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += input[i];
        else
            for (unsigned b = t; b < gridDim.x; b += blockDim.x) v += output[b];
        s[t] = v;
        __syncthreads();
        for (unsigned d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (turn == 1) break;
        if (t == 0) {
            output[blockIdx.x] = s[0];
            __threadfence();
            is_last = atomicInc(&done, gridDim.x) == gridDim.x - 1;
            __threadfence();
        }
        __syncthreads();
        if (!is_last) return;
    }
    if (t == 0) { output[0] = s[0]; done = 0; }
}
"""


@pytest.mark.parametrize("text, args", [(SHUFFLES, ["--dtype", "f32"]), (SYNCED, ["--block", 64]), (GUESS, []),
                                        (LAST, ["--block", 64])], ids=["shuffles", "syncwarp", "guesses", "last block"])
def test_what_opencl_has_not(ask, text, args):
    only_on(ask, "cuda")
    check_right(ask(text, *args))


@pytest.mark.parametrize("op, step", [("max", "v = input[i] > v ? input[i] : v"), ("min", "v = min(v, input[i])"), ("xor", "v ^= input[i]")])
def test_operators(ask, op, step):
    only_on(ask, "cuda")
    start = {"max": "INT_MIN", "min": "INT_MAX", "xor": "0"}[op]
    atomic = "atomic" + op.capitalize()
    check_right(ask(f"""__global__ void f(int *input, int *output, int n) {{
        int v = {start};
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {step};
        {atomic}(output, v);
    }}""", "--op", op, "-n", 70001))


@pytest.mark.parametrize("name, whole", [("06_wrong_length.cu", False), ("11_bank_conflicts.cu:conflicts", True),
                                         ("11_bank_conflicts.cu:no_conflicts", True), ("10_warp_with_sync.cu", True),
                                         ("12_shuffles.cu", False)])
def test_lessons(ask, name, whole):
    """Those that are right on the model. On a GPU one that leaves its arrays for other lengths is asked about these, too."""
    if ask.device == "opencl" and name[:2] in ("10", "12"):
        pytest.skip("OpenCL C knows no warps")
    file, _, kernel = name.partition(":")
    got = ask(None, "-n", 1 << 16, file=ROOT / "lessons" / file, name=":" + kernel if kernel else "")
    if not whole or ask.device == "opencl":
        check_right(got, whole)
        return
    segment = {"10": 64, "11": 1024}[name[:2]]
    assert not got["not_run"] and [n for n in got["right_for"] if n % segment == 0]
    assert all(n % segment for n in got["wrong_for"])


def test_wrong(ask):
    """It leaves out what lies behind the first 4096 elements: the model finds that, and the device."""
    got = ask(TREE.replace("SIZE", "int").replace("SHARED", "__shared__ T s[1024];").replace("i < n ?", "i < n && i < 4096 ?"),
              "--dtype", "i32", "-n", 70001)
    assert got["wrong_for"] and all(n > 4096 for n in got["wrong_for"]) and 1024 in got["right_for"]
    assert not got["times"][0]["correct"] and got["exit"] == 1


def test_what_a_gpu_stops(ask):
    """A write behind an array, an address that is nobody's, a launch without an end, a text that does not compile there."""
    only_on(ask, "cuda")
    text = SHUFFLES.replace("T v = 0;", "T v = 0;\n    STEP")

    def told(step):
        return ask(text.replace("STEP", f"if (n > 1000000) {{ {step} }}"), "--dtype", "f32", "-n", 1000)

    assert told("if (threadIdx.x == 0 && blockIdx.x == 0) input[n + 2] = 1;")["fault"] == "it writes behind its input: element 1048579, of 1048577"
    got = told("input[1ll << 40] = 1;")
    assert got["fault"].startswith("the device stops it: ") and 1000 in got["right_for"]
    got = told("while (true) ((volatile float *)output)[blockIdx.x] = 0;")
    assert "with n = 1048577 it does not end: it was stopped after" in got["not_run"]
    got = ask(text.replace("STEP", "\n#ifdef __CUDA_ARCH__\n    no_such_word();\n#endif\n"), "--dtype", "f32")
    assert "mine.cu" in got["not_run"] and "no_such_word" in got["not_run"] and not got["right_for"]


def test_row(ask, tmp_path):
    """A row of the ladder, after the rungs."""
    ask(TREE.replace("SIZE", "int").replace("SHARED", "__shared__ T s[1024];"), "--dtype", "f32", "-n", 1000)
    done = subprocess.run([TALLY, "ladder", "--kernel", tmp_path / "mine.cu", "--device", ask.device, "-n", "99999", "--only", "shared",
                           "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [(k["name"], k["correct"]) for k in json.loads(done.stdout)["kernels"]] == [("shared", True), ("mine.cu", True)]


@pytest.mark.parametrize("text, dtype", [(TREE.replace("SIZE", "int").replace("SHARED", "__shared__ T s[1024];"), "f64"), (SHUFFLES, "f32"),
                                         (SYNCED, "i32"), (GUESS, "f64"), (LAST, "f32")],
                         ids=["tree", "shuffles", "syncwarp", "guesses", "last block"])
def test_up_to_the_driver(tmp_path, text, dtype):
    """The double of CUDA's compiler compiles nothing: there a kernel comes to the driver, which says that this is no image."""
    double = TALLY.parent.parent / "tests" / "cuda_double" / "lib"
    if not double.exists():
        pytest.skip("the double of CUDA is not built")
    (tmp_path / "mine.cu").write_text(text)
    done = subprocess.run([TALLY, "explain", "--kernel", tmp_path / "mine.cu", "--dtype", dtype, "--device", "cuda", "--json"],
                          capture_output=True, text=True, env={**os.environ, "LD_LIBRARY_PATH": str(double)})
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert not got["wrong_for"] and "CUDA_ERROR_INVALID_IMAGE" in got["on_device"]["not_run"]
