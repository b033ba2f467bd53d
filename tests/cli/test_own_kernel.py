"""`tally explain --kernel`: the forms that the texts use, faults with the student's own lines, hostile files."""

import json
import os
import pathlib
import shutil
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="a kernel of one's own needs g++")


@pytest.fixture
def explain(tally, tmp_path):
    def run(text, *args, name=""):
        (tmp_path / "mine.cu").write_text(text)
        return tally.judged("explain", "--kernel", f"{tmp_path}/mine.cu{name}", *args)
    return run


@pytest.fixture
def fails(tally, tmp_path):
    def run(text, *args, **kwargs):
        (tmp_path / "mine.cu").write_text(text)
        return tally.fails("explain", "--kernel", tmp_path / "mine.cu", *args, status=2, **kwargs)
    return run


def faults(got):
    return {f["kind"] for f in got["faults"]}


def line_of(text, mark):
    return 1 + text[: text.index(mark)].count("\n")


# ---- Drawn ----

def test_drawn(tally, tmp_path):
    """As `tally explain RUNG --draw`: the values of 16 elements are worked out here."""
    (tmp_path / "mine.cu").write_text(SHARED.replace("TYPE", "int").replace("SIZE", "int").replace("128", "8"))
    text = tally("explain", "--kernel", tmp_path / "mine.cu", "--draw")
    rows = {}
    for line in text.splitlines():
        word = line.split()
        if word and word[0] in ("input", "before", "after", "s"):
            rows.setdefault(word[0], []).append(word[1:])
    values = [int(v) for v in rows["before"][0]]
    assert len(values) == 16 and f"sum of 16 i32: {sum(values)}" in text
    assert [int(v) for v in rows["after"][0]] == [a + b for a, b in zip(values[:8], values[8:])]
    assert "mine.cu:7: if (i + BLOCK < n) s[t] += input[i + BLOCK];" in text and "banks 0-7" in text
    svg = tmp_path / "mine.svg"
    assert tally.run("explain", "--kernel", tmp_path / "mine.cu", "--svg", svg).stdout == b""
    assert f"blocks of 8 threads: {sum(values)}" in svg.read_text() and "</svg>" in svg.read_text()
    assert tally("explain", "--kernel", tmp_path / "mine.cu", "--svg", "-") + "\n" == svg.read_text()
    assert "<<<" in ElementTree.parse(svg).getroot().find("{*}desc").text  # the launch, in words


def test_what_is_wrong_stands_below_the_picture(tally, tmp_path):
    (tmp_path / "mine.cu").write_text(MODULO.replace("TYPE", "int").replace("__syncthreads();", ""))
    text = tally("explain", "--kernel", tmp_path / "mine.cu", "--draw", "-n", 128, "--block", 64,
                 env={**os.environ, "COLUMNS": "600"})
    assert "Wrong: lane" in text and "without a barrier between them" in text


def test_accesses_have_the_kernels_names(explain):
    got = explain(SHARED.replace("TYPE", "float").replace("SIZE", "int"), "-n", 300, "--steps")
    accesses = [a for s in got["steps"] for a in s["accesses"]]
    assert {a.get("array") for a in accesses} == {"input", "output", "s", None}
    shared = [e for a in accesses if a.get("array") == "s" for e in a["elements"]]
    assert (min(shared), max(shared)) == (0, 127)
    reads = [e for a in accesses if a.get("array") == "input" for e in a["elements"]]
    assert sorted(reads) == list(range(300))


# ---- Forms ----

MODULO = """
__global__ void reduce(TYPE *input, TYPE *output) {
    unsigned int i = 2 * blockDim.x * blockIdx.x + 2 * threadIdx.x;
    for (unsigned int stride = 1; stride <= blockDim.x; stride *= 2) {
        if (threadIdx.x % stride == 0) input[i] += input[i + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) output[blockIdx.x] = input[i];
}
"""
SHARED = """
#define BLOCK 128
__global__ void reduce(const TYPE *__restrict__ input, TYPE *output, SIZE n) {
    __shared__ TYPE s[BLOCK];
    unsigned int t = threadIdx.x, i = blockIdx.x * 2 * BLOCK + t;
    s[t] = i < n ? input[i] : (TYPE)0;
    if (i + BLOCK < n) s[t] += input[i + BLOCK];
    for (unsigned int stride = BLOCK / 2; stride > 0; stride >>= 1) {
        __syncthreads();
        if (t < stride) s[t] += s[t + stride];
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
"""
TYPES = {"float": "f32", "double": "f64", "int": "i32", "unsigned int": "u32", "unsigned long long": "u64",
         "long long": "i64", "short": "i16", "unsigned char": "u8"}


@pytest.mark.parametrize("ctype", TYPES)
def test_types_and_counts(explain, ctype):
    """One block of 512 threads, 1024 elements: the counts that tests/cli/test_ladder.py works out by hand."""
    got = explain(MODULO.replace("TYPE", ctype), "--block", 512)
    assert got["correct"] and got["dtype"] == TYPES[ctype] and got["nearest"] == "interleaved-modulo"
    assert (got["host"]["grid"], got["host"]["segment"], got["host"]["form"]) == (1, 1024, "segments")
    c = got["counts"]
    assert (c["operations"], c["steps"], c["slots"], c["barriers"]) == (1023, 10, 3552, 10)
    assert got["right_for"] == [n for n in got["right_for"] + got["wrong_for"] if n % 1024 == 0]
    assert faults(got) == {"bounds"}  # for the other lengths


@pytest.mark.parametrize("ctype,size", [("float", "int"), ("int", "unsigned"), ("float", "size_t"), ("int", "unsigned int"), ("float", "const int"),
                                        ("int", "long long"), ("int", "int")])
def test_lengths(explain, size, ctype):
    got = explain(SHARED.replace("TYPE", ctype).replace("SIZE", size))
    assert got["correct"] and not got["wrong_for"] and not got["faults"]
    assert got["verdict"].startswith("right for all")
    assert (got["block"], got["host"]["segment"], got["nearest"]) == (128, 256, "shared")
    assert got["counts"]["operations"] == got["counts"]["useful"] == 1024 - got["host"]["grid"]


def test_one_block(explain):
    text = """__global__ void sum(int *array, int n) {
        for (int stride = n / 2, t = threadIdx.x; stride > 0; stride /= 2) {
            if (t < stride) array[t] = array[t] + array[t + stride];
            __syncthreads();
        }
    }"""
    got = explain(text, "-n", 64)
    assert (got["host"]["form"], got["host"]["grid"], got["block"]) == ("one block", 1, 32)
    assert all(n & (n - 1) == 0 for n in got["right_for"]) and all(n & (n - 1) for n in got["wrong_for"])
    assert "power of two" in got["verdict"]
    # n = 3: threads of stride 1 add elements 0 and 1; the third is left out.
    assert got["miscounted_n"] == 3 and got["times_counted"] == [1, 1, 0]


DYNAMIC = """
extern "C" __device__ unsigned int calls = 0;
template <typename T> __global__ void reduce(T *in, T *out, unsigned n) {
    extern __shared__ int s[];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? (int)in[i] : 0;
    atomicAdd(&calls, 1);
    __syncthreads();
    for (unsigned d = blockDim.x / 2; d >= 32; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t < 32) {
        int v = s[t];
        for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d);
        if (t == 0) atomicAdd(out, v);
    }
}
"""


def test_dynamic_shared_shuffles_atomics_template(explain):
    got = explain(DYNAMIC, "--dtype", "i32", "--block", 64)
    assert got["correct"] and not got["wrong_for"] and not got["faults"]
    assert got["host"]["shared_bytes"] == 64 * 4
    assert got["counts"]["atomics"] == 1024 + 16
    # Two warps a block: one value a warp may be the atomics'. Warps at d = 32: one adds; then one shuffles, 5 times.
    assert got["counts"]["useful"] == 1024 - 2 * 16 and got["counts"]["issued"] == 16 * 32 * 6
    assert got["counts"]["efficiency"] == pytest.approx((1024 - 32) / (16 * 32 * 6), rel=1e-5)


def test_atomics_are_counted_apart(explain):
    """Each thread adds into shared memory, and thread 0 into the output: no operation, n + blocks atomics."""
    got = explain("""__global__ void f(int *in, int *out) {
        __shared__ int s;
        if (threadIdx.x == 0) s = 0;
        __syncthreads();
        atomicAdd(&s, in[64 * blockIdx.x + threadIdx.x]);
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(out, s);
    }""", "--block", 64, "-n", 640)
    c = got["counts"]
    assert got["correct"] and c["atomics"] == 640 + 10
    assert c["operations"] is None and c["useful"] is None and c["efficiency"] is None


def test_a_type_that_is_asked_for(explain):
    text = SHARED.replace("TYPE", "T").replace("SIZE", "int")
    for dtype in ("i32", "f32", "f64"):
        got = explain(text, "--dtype", dtype)
        assert got["dtype"] == dtype and got["correct"] and not got["wrong_for"]
    assert explain("typedef int T;\n" + text)["counts"]["operations"] == 1020
    assert explain("#define T double\n" + text)["dtype"] == "f64"


@pytest.mark.parametrize("op, step", [("max", "s[t] = max(s[t], s[t + d])"), ("min", "if (s[t + d] < s[t]) s[t] = s[t + d]"),
                                      ("xor", "s[t] ^= s[t + d]"), ("prod", "s[t] *= s[t + d]")])
def test_operators(explain, op, step):
    text = f"""__global__ void f(int *in, int *out) {{
        __shared__ int s[64];
        int t = threadIdx.x;
        s[t] = in[64 * blockIdx.x + t];
        __syncthreads();
        for (int d = 32; d > 0; d /= 2) {{ if (t < d) {step}; __syncthreads(); }}
        if (t == 0) out[blockIdx.x] = s[0];
    }}"""
    got = explain(text, "--op", op, "-n", 640)
    assert got["correct"] and got["counts"]["operations"] == got["counts"]["useful"] == 630
    assert got["counts"]["issued"] == 10 * 32 * 6 and got["counts"]["efficiency"] == pytest.approx(630 / 1920, rel=1e-5)
    assert not explain(text, "--op", "sum" if op != "sum" else "max", "-n", 640)["correct"]


def test_the_hosts_part_of_a_file_is_left_out(explain):
    text = "#include <iostream>\n#include \"nothing.h\"\nusing namespace std;\n#define CHECK(x) { x; }\n" \
           "static int twice(int x) { return 2 * x; }\n" + MODULO.replace("TYPE", "float") + """
int main(int argc, char **argv) {
    float *d; cudaMalloc(&d, 4); std::vector<float> v(10);
    reduce<<<1, 2>>>(d, d); cout << "}" << '}';   // }
    return twice(0);
}
"""
    got = explain(text, "--block", 64)
    assert got["correct"] and got["line"] == line_of(text, "__global__")


def test_coarsened_and_grid_stride(explain):
    text = """__global__ void f(const float *x, float *y, int n) {
        __shared__ float s[128];
        float v = 0;
        for (int i = START; i < END; i += STEP) if (i < n) v += x[i];
        s[threadIdx.x] = v;
        for (int d = 64; d > 0; d /= 2) { __syncthreads(); if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; }
        if (threadIdx.x == 0) y[blockIdx.x] = s[0];
    }"""
    def filled(start, end, step):
        return text.replace("START", start).replace("END", end).replace("STEP", step)
    got = explain(filled("blockIdx.x * 512 + threadIdx.x", "(blockIdx.x + 1) * 512", "128"))
    assert not got["wrong_for"] and got["host"]["segment"] == 512
    got = explain(filled("blockIdx.x * 128 + threadIdx.x", "n", "gridDim.x * 128"), "-n", 10000)
    assert not got["wrong_for"] and got["correct"] and got["host"]["form"] == "whole grid"


def test_host_options(explain):
    text = SHARED.replace("TYPE", "float").replace("SIZE", "int")
    assert explain(text, "--grid", 1, "-n", 512)["correct"] is False
    got = explain(text, "--length", "block", "-n", 512)
    assert not got["correct"] and got["host"]["length"] == 128
    assert explain(text, "--length", 512, "-n", 512)["correct"]


# ---- Faults, by line ----

def one(got, kind):
    (fault,) = [f for f in got["faults"] if f["kind"] == kind]
    return fault


def test_race(explain):
    text = SHARED.replace("TYPE", "float").replace("SIZE", "int").replace("        __syncthreads();\n", "\n")
    got = explain(text)
    fault = one(got, "race")
    assert not got["correct"] and "s[64]" in fault["sentence"] and "without a barrier between them" in fault["sentence"]
    assert {fault["line"], fault["other_line"]} == {line_of(text, "s[t] = i < n"), line_of(text, "if (t < stride)")}
    assert f"line {line_of(text, 'if (t < stride)')} reads" in fault["sentence"]


def test_race_in_a_warp_and_syncwarp(explain):
    text = """__global__ void f(float *in, float *out) {
        __shared__ VOLATILE float s[32];
        int t = threadIdx.x;
        s[t] = in[blockIdx.x * 32 + t];
        SYNC;
        for (int d = 16; d > 0; d /= 2) {
            float v = t < d ? s[t + d] : 0.0f;
            SYNC;
            s[t] += v;
            SYNC;
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }"""
    for volatile in ("", "volatile"):
        filled = text.replace("VOLATILE", volatile)
        assert explain(filled.replace("SYNC", "__syncwarp()"), "--block", 32)["correct"]
        assert "race" in faults(explain(filled.replace("SYNC", ""), "--block", 32))
    # Two warps do not meet at a __syncwarp().
    far = text.replace("VOLATILE", "").replace("s[32]", "s[64]").replace("* 32", "* 64").replace("d = 16", "d = 32")
    assert "race" in faults(explain(far.replace("SYNC", "__syncwarp()"), "--block", 64))
    assert explain(far.replace("SYNC", "__syncthreads()"), "--block", 64)["correct"]


def test_barrier_that_not_all_reach(explain):
    text = MODULO.replace("TYPE", "float").replace("+ stride];", "+ stride]; else continue;")
    fault = one(explain(text, "--block", 64), "barrier")
    assert fault["line"] == line_of(text, "__syncthreads") and "waiting at a barrier" in fault["sentence"]


def test_bounds(explain):
    text = "__global__ void f(float *array, int n) {\n    if (threadIdx.x == 0)\n        array[0] = array[n];\n}\n"
    got = explain(text, "-n", 100)
    fault = one(got, "bounds")
    assert fault["line"] == 3 and "array[100]" in fault["sentence"] and "array has 100 elements" in fault["sentence"]
    text = "__global__ void f(float *in, float *out) {\n  __shared__ float s[16];\n  int t = threadIdx.x;\n" \
           "  s[t] = in[t];\n  out[0] = 1;\n}\n"
    assert one(explain(text, "--block", 64), "bounds")["line"] == 4


@pytest.mark.long
def test_unwritten(explain):
    text = "__global__ void f(float *in, float *out) {\n  __shared__ float s[64];\n" \
           "  if (threadIdx.x == 5) out[blockIdx.x] = in[0] + s[7];\n}\n"
    fault = one(explain(text, "--block", 64, "-n", 64), "unwritten")
    assert fault["line"] == 3 and "s[7]" in fault["sentence"]


def test_blocks_that_write_one_place(explain):
    text = "__global__ void f(float *in, float *out) {\n  if (threadIdx.x == 0)\n    out[0] += in[blockIdx.x];\n}\n"
    fault = one(explain(text, "--block", 32, "--grid", 4, "-n", 64), "race")
    assert "out[0]" in fault["sentence"] and "blocks have no barrier" in fault["sentence"]


def test_nothing_is_written(explain):
    got = explain("__global__ void f(float *in, float *out) { }")
    assert not got["correct"] and not got["right_for"]


def test_a_null_pointer(explain):
    got = explain("__global__ void f(float *in, float *out) {\n  float *p = 0;\n  *p = in[0];\n}\n")
    fault = one(got, "bounds")
    assert fault["line"] == 3 and fault["sentence"].endswith("touches memory that is none of its arrays, line 3")


def test_a_short_array_is_told_by_its_own_name(explain):
    """Far behind its end another array is near, in memory; it is `in` nevertheless that is left."""
    got = explain("__global__ void f(float *in, float *out) {\n  out[0] = in[threadIdx.x + 2000];\n}\n", "-n", 8)
    assert one(got, "bounds")["sentence"].endswith("touches in[2000], line 2, but in has 8 elements")


# ---- Further forms ----

GUESS = """__device__ TYPE add(TYPE *place, TYPE v) {
    unsigned BITS *p = (unsigned BITS *)place, old = *p, guess;
    do {
        guess = old;
        old = atomicCAS(p, guess, TO(v + FROM(guess)));
    } while (guess != old);
    return FROM(old);
}
__global__ void f(TYPE *in, TYPE *out, int n) {
    __shared__ TYPE all;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) add(&all, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) add(out, all);
}
"""


@pytest.mark.parametrize("words", [("float", "int", "__float_as_uint", "__uint_as_float"), ("int", "int", "(unsigned)", "(int)"),
                                   ("double", "long long", "__double_as_longlong", "__longlong_as_double")])
def test_a_guess_that_compare_and_swap_tries(explain, words):
    """*p is read plainly beside other threads' atomics: no race, as atomicCAS() sees whether it still holds."""
    text = GUESS
    for mark, word in zip(("TYPE", "BITS", "TO", "FROM"), words):
        text = text.replace(mark, word)
    got = explain(text)
    assert not got["wrong_for"] and not got["faults"]
    # Without the barrier thread 0 reads what the others still add to.
    early = text.replace("    __syncthreads();\n    if (threadIdx.x == 0) add(out", "    if (threadIdx.x == 0) out[blockIdx.x] = all;"
                         "\n    if (false) add(out")
    assert one(explain(early, "--block", 64), "race")["sentence"].endswith(f"line {line_of(early, 'out[blockIdx')} reads")
    # Nor is a plain read one that nobody tries.
    unused = text.replace("guess = old;", "guess = old;\n        if (threadIdx.x == 7) break;")
    assert "race" in faults(explain(unused, "--block", 64))


LAST_BLOCK = """__device__ unsigned int done = 0;
__global__ void f(const float *in, volatile float *out, unsigned int n) {
    __shared__ float s[64];
    __shared__ bool last;
    unsigned int t = threadIdx.x;
    for (int turn = 0; turn < 2; turn++) {
        float v = 0;
        if (turn == 0) for (unsigned i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += in[i];
        else for (unsigned b = t; b < gridDim.x; b += blockDim.x) v += out[b];
        s[t] = v;
        __syncthreads();
        for (unsigned d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (turn == 1) break;
        if (t == 0) {
            out[blockIdx.x] = s[0];
            __threadfence();
            last = atomicInc(&done, gridDim.x) == gridDim.x - 1;
            __threadfence();
        }
        __syncthreads();
        if (!last) return;
    }
    if (t == 0) { out[0] = s[0]; done = 0; }
}
"""


def test_the_last_block_combines(explain):
    """Then out[0] is the result, and the host combines nothing."""
    got = explain(LAST_BLOCK, "--block", 64, "-n", 5000)
    assert not got["wrong_for"] and not got["faults"] and got["host"]["grid"] == 32
    assert "the result in the end" in got["host"]["words"] and got["counts"]["useful"] == 4999
    wrong = explain(LAST_BLOCK.replace("v += out[b]", "v += out[b] * (b != 1)"), "--block", 64)
    assert wrong["wrong_for"] and 64 in wrong["right_for"]


NUMBERS = """template <class T> struct dynamic {
    __device__ inline operator T *() { extern __shared__ int raw[]; return (T *)raw; }
};
template <> struct dynamic<double> {
    __device__ inline operator double *() { extern __shared__ double wide[]; return (double *)wide; }
};
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
template <class T, unsigned int blockSize, bool isPower, int pairs = 2>
__global__ void reduce(T *in, T *out, unsigned int n) {
    T *s = dynamic<T>();
    unsigned int t = threadIdx.x, i = blockIdx.x * blockSize * pairs + t;
    s[t] = (isPower || i < n ? in[i] : T(0)) + (isPower || i + blockSize < n ? in[i + blockSize] : T(0));
    __syncthreads();
    if (blockSize >= 512) { if (t < 256) s[t] += s[t + 256]; __syncthreads(); }
    if (blockSize >= 256) { if (t < 128) s[t] += s[t + 128]; __syncthreads(); }
    if (blockSize >= 128) { if (t < 64) s[t] += s[t + 64]; __syncthreads(); }
    float v = halve<blockSize>(t < (blockSize < 64 ? blockSize : 64) ? s[t] : T(0));
    if (t == 0) out[blockIdx.x] = v;
}
"""


def test_shared_arrays_of_templates(explain):
    """The compiler puts them elsewhere than a plain function's."""
    text = "template <typename T>\n" + SHARED.replace("TYPE", "T").replace("SIZE", "int")
    for dtype in ("i32", "f64"):
        got = explain(text, "--dtype", dtype)
        assert got["dtype"] == dtype and not got["wrong_for"] and got["counts"]["operations"] == 1020
    early = text.replace("__syncthreads();", "", 1)
    assert "s[" in one(explain(early, "--dtype", "f32"), "race")["sentence"]


@pytest.mark.parametrize("block", [0, 64, 512])
def test_templates_of_numbers(explain, block):
    """A number that is called like a block is its threads; a flag is false; a default is taken."""
    for dtype in ("f32", "f64"):
        got = explain(NUMBERS, "--dtype", dtype, *(["--block", block] if block else []))
        assert not got["wrong_for"] and not got["faults"] and got["block"] == (block or 256)
        assert got["host"]["segment"] == 2 * got["block"]


def test_one_barrier_is_one(explain):
    """Two `if`s in a row, of which the first tells the second: the compiler is not to make two barriers of one."""
    got = explain(NUMBERS, "--dtype", "f32", "--block", 256, "-n", 512)
    assert got["correct"] and got["counts"]["barriers"] == 4


# ---- Hostile, and broken ----

F = "__global__ void f(float *a, int n) "


@pytest.mark.parametrize("body", ["{ while (a[0] > -1) a[threadIdx.x] = 5; }", "{ for (;;) __syncthreads(); }"])
def test_endless(explain, body):
    got = explain(F + body)
    assert faults(got) >= {"endless"} and not got["complete"] and "does not end" in got["verdict"]


@pytest.mark.parametrize("text, line", [
    ("int main() { return 0; }", "has no __global__ function"),
    ("", "has no __global__ function"),
    (F + "{ a[0] = 1; /*", "does not come to its end"),
    (F + "{\n  a[0] = ;\n}", "mine.cu:2: something is missing, or too much, before ';'"),
    (F + "{\n  g(a);\n}", "mine.cu:2: neither the text nor CUDA C, as it is understood here, declares 'g'"),
    (F + "{ __shared__ float s[20000]; s[0] = 1; a[0] = s[0]; }", "asks for 80000 bytes of shared memory; a block has 49152"),
    ("__global__ void f(float *a, float *b, float *c, float *d) { }", "takes four arrays"),
    ("__global__ void f(int n) { }", "takes no array"),
    ("__global__ void f(float *a, int n, int m) { }", "takes two integers"),
    ("__global__ void f(float *a, float x) { }", "parameter x is neither"),
    ("__global__ void f(float *a, int *b) { }", "different types"),
    ("template <typename A, typename B> __global__ void f(A *a, B n) { }", "parameter n is neither"),
    ("template <typename A, int items>\n__global__ void f(A *a, int n) { }", "mine.cu:2: nobody knows what the template's items is"),
    (F + "{ cooperative_groups::this_grid().sync(); }", "mine.cu:1: this_grid is not here: blocks run one after another"),
    ("__global__ void f(int *a, int n) { a[0] = a[0] / (n - n); }", "divides an integer by zero"),
    (F + "{ }\n__global__ void g(float *a, int n) { }", "has several kernels"),
    (F + "{\n asm volatile(\"nop\");\n}", "mine.cu:2: 'asm' would go around the model"),
    ("#define J(a, b) a##b\n" + F + "{\n J(__as, m__)(\"nop\");\n}", "mine.cu:3: '__asm__' would go around the model"),
    ("OWN_UNSEEN " + F + "{ }", "mine.cu:1: 'OWN_UNSEEN' is no type"),
    ("[[gnu::__no_sanitize_thread__]] " + F + "{ }", "would go around the model"),
    ("__attribute__((no_sanitize(\"thread\"))) " + F + "{ a[0] = 1; }", "would go around the model"),
    (F + "{ float v[30000]; for (int i = 0; i < 30000; i++) v[i] = a[0]; a[0] = v[n]; }", "mine.cu:1: a thread's own variables take more"),
    ("__device__ int g(int n) { return n ? g(n - 1) + g(n - 2) : 1; }\n" + F + "{ a[0] = g(n); }", "cannot call itself"),
    ("extern \"C\" int system(const char *);\n" + F + "{ system(\"true\"); }", "declares 'system'"),
    ("__device__ float x[1000000000];\n" + F + "{ a[0] = x[n]; }", "too much"),
    ("#import \"x\"\n" + F + "{ }", "mine.cu:1: #import is not for a kernel here"),
    ("typedef void (*call)();\n" + F + "{ ((call)4660)(); }", "ended its process"),
])
def test_one_clear_line(fails, text, line):
    assert line in fails(text)


def test_a_name_among_several(explain):
    text = F + "{ }\n" + MODULO.replace("TYPE", "int")
    assert explain(text, name=":reduce")["kernel"] == "reduce"


def test_no_memory_but_its_arrays(explain):
    for body in ("{ *(volatile int *)4194304 = 1; }", "{ a[1 << 20] = 1; }", "{ ((volatile char *)&f)[0] = 0; }"):
        assert "bounds" in faults(explain(F + body)), body


def test_files_are_not_read(tally, explain, tmp_path):
    (tmp_path / "secret").write_text("float secret = 1;\n")
    text = f'#include "{tmp_path}/secret"\n%:include "{tmp_path}/secret"\n' + F + "{ a[0] = a[1]; }"
    assert explain(text)["kernel"] == "f"
    include = f'#include "{tmp_path}/absent"\n'
    for hidden in ("/* *\\\n/\n" + include + "/* */\n", "const char *s = R\"x(\" /* )x\";\n" + include + "/* */\n",
                   "const int c = L'\"', d = \"/*\"[0];\n" + include + "/* */\n", "// \\ \n" + include, "/**/" + include,
                   "#/**/include \"x\"\n", "\ufeff" + include, include.replace("#", "%:")):
        (tmp_path / "mine.cu").write_text(hidden + F + "{ a[0] = 1; }")
        done = tally.run("explain", "--kernel", tmp_path / "mine.cu")
        assert b"absent" not in done.stderr and b"No such file" not in done.stderr, hidden


def test_misuse(tally, tmp_path):
    (tmp_path / "k.cu").write_text(F + "{ }")
    k = tmp_path / "k.cu"
    assert "--grid" in tally.fails("explain", "shared", "--grid", 1, status=2)
    assert "one too many" in tally.fails("explain", "shared", "--kernel", k, status=2)
    assert "for rungs" in tally.fails("explain", "--kernel", k, "--finish", "host", status=2)
    assert "neither" in tally.fails("explain", "--kernel", k, "--length", "x", status=2)
    assert "takes f32" in tally.fails("explain", "--kernel", k, "--dtype", "i32", status=2)
    assert "No such file" in tally.fails("explain", "--kernel", tmp_path / "absent.cu", status=2)
    assert "has no kernel g" in tally.fails("explain", "--kernel", f"{k}:g", status=2)
    (tmp_path / "zero.cu").write_bytes(b"a\0b")
    assert "zero byte" in tally.fails("explain", "--kernel", tmp_path / "zero.cu", status=2)


def test_a_row_of_the_ladder(tally, tmp_path):
    (tmp_path / "mine.cu").write_text(MODULO.replace("TYPE", "float"))
    got = tally.json("ladder", "--kernel", tmp_path / "mine.cu", "-n", 512, "--only", "interleaved-modulo", "--finish", "host")
    rung, mine = got["kernels"]
    assert mine["name"] == "mine.cu:reduce" and mine["correct"] and mine["counts"] == rung["counts"]
    told = tally("ladder", "--kernel", tmp_path / "mine.cu", "-n", 512, "--only", "interleaved-modulo")
    assert "mine.cu:reduce: reduce<<<1, 256>>>(" in told and "'tally explain --kernel' says" in told
    done = tally.run("ladder", "--kernel", tmp_path / "mine.cu", "-n", 500, "--only", "shared")
    assert done.returncode == 1 and b"mine.cu:reduce" in done.stdout and b"mine.cu:reduce is wrong" in done.stderr
    assert "not on cpu" in tally.fails("ladder", "--device", "cpu", "--kernel", tmp_path / "mine.cu")
    assert "with --dtype" in tally.fails("ladder", "--dtype", "i32", "--kernel", tmp_path / "mine.cu", "--only", "shared")


def test_without_a_compiler(tally, tmp_path, monkeypatch):
    (tmp_path / "k.cu").write_text(F + "{ }")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "g++, which is not here" in tally.fails("explain", "--kernel", tmp_path / "k.cu", status=2)


def test_nothing_stays_behind(tally, tmp_path, monkeypatch):
    (tmp_path / "k.cu").write_text(F + "{ }")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert tally.run("explain", "--kernel", tmp_path / "k.cu").returncode == 1
    (tmp_path / "k.cu").write_text(F + "{")
    tally.fails("explain", "--kernel", tmp_path / "k.cu", status=2)
    assert [p.name for p in pathlib.Path(tmp_path).iterdir()] == ["k.cu"]


# ---- On OpenCL, after the model ----

@pytest.fixture
def on_opencl(tally, tmp_path, monkeypatch):
    monkeypatch.setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")  # PoCL compiles in half the time what it need not optimise

    def run(text, *args):
        (tmp_path / "mine.cu").write_text(text)
        done = tally.run("explain", "--kernel", tmp_path / "mine.cu", "--device", "opencl", "--json", *args)
        assert done.returncode in (0, 1) and not done.stderr, done.stderr
        got = json.loads(done.stdout)["on_device"]
        if "no OpenCL platform" in got["not_run"] or "without opencl" in got["not_run"]:
            pytest.skip("no OpenCL device is here")
        return got
    return run


TEMPLATE = """
template <typename T>
__device__ T pair(T a, T b) { return a + b; }
template <typename T>
__global__ void reduce(const T *__restrict__ input, T *output, unsigned long long n) {
    extern __shared__ T buffer[];
    unsigned int t = threadIdx.x;
    unsigned long long i = blockIdx.x * 2ull * blockDim.x + t;
    buffer[t] = pair(i < n ? input[i] : static_cast<T>(0), i + blockDim.x < n ? input[i + blockDim.x] : (T)0);
    for (unsigned int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        __syncthreads();
        if (t < stride) buffer[t] = pair(buffer[t], buffer[t + stride]);
    }
    if (t == 0) output[blockIdx.x] = buffer[0];
}
"""
ADDS = """
__global__ void adds(TYPE *input, TYPE *output, int n) {
    __shared__ TYPE all;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    if (i < n) atomicAdd(&all, input[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(output, all);
}
"""


@pytest.mark.parametrize("text", [SHARED.replace("TYPE", "float").replace("SIZE", "int"), TEMPLATE,
                                  ADDS.replace("TYPE", "int"), ADDS.replace("TYPE", "float")],
                         ids=["shared", "template", "int atomics", "float atomics"])
def test_on_opencl(on_opencl, text):
    got = on_opencl(text, "-n", 70001)
    assert not got["not_run"] and not got["fault"] and not got["wrong_for"] and (1 << 20) + 1 in got["right_for"]
    (time,) = got["times"]
    assert time["n"] == 70001 and time["correct"] and time["ms"] > 0 and time["of_roof"] > 0 and time["tally_ms"] > 0


def test_wrong_on_opencl(on_opencl):
    """It leaves out what lies behind the first 4096 elements: the model's lengths are shorter."""
    got = on_opencl(ADDS.replace("TYPE", "int").replace("if (i < n)", "if (i < n && i < 4096)"), "-n", 1000)
    assert got["wrong_for"] and all(n > 4096 for n in got["wrong_for"]) and 1024 in got["right_for"]


def test_whole_segments_on_opencl(on_opencl, monkeypatch):
    monkeypatch.delenv("POCL_EXTRA_BUILD_FLAGS")  # it runs for longer than it is compiled
    got = on_opencl(MODULO.replace("TYPE", "float"), "-n", 1000)
    assert not got["wrong_for"] and got["right_for"] and all(n % 128 == 0 for n in got["right_for"])


@pytest.mark.long
def test_faults_on_opencl(on_opencl):
    behind = ADDS.replace("TYPE", "int").replace("if (i < n)", "if (i == 0 && n > 1000000) input[n + 2] = 1;\n    if (i < n)")
    assert on_opencl(behind, "-n", 1000)["fault"] == "it writes behind its input: element 1048579, of 1048577"
    outside = ADDS.replace("TYPE", "int").replace("if (i < n)", "if (n > 1000000) input[1ll << 40] = 1;\n    if (i < n)")
    got = on_opencl(outside, "-n", 1000)
    assert "the device's process ended" in got["not_run"] and "n = 1048577" in got["not_run"] and 1000 in got["right_for"]
    endless = ADDS.replace("TYPE", "int").replace("if (i < n)", "while (n > 1000000) output[1] = 0;\n    if (i < n)")
    assert "with n = 1048577 it does not end" in on_opencl(endless, "-n", 1000)["not_run"]


def test_not_run_on_opencl(on_opencl):
    shuffle = ADDS.replace("TYPE", "int").replace("if (i < n)", "__syncwarp();\n    if (i < n)")
    assert on_opencl(shuffle)["not_run"] == "mine.cu:7: __syncwarp() is for the lanes of a warp, which OpenCL C does not know"
    outside = ADDS.replace("TYPE", "int").replace("input[i]", "input[i + 1]")
    assert "it leaves its arrays" in on_opencl(outside)["not_run"]
    pointer = TEMPLATE.replace("extern __shared__ T buffer[];", "extern __shared__ T all[]; T *buffer = all;")
    assert on_opencl(pointer)["not_run"].startswith("mine.cu:6:")


@pytest.mark.long
def test_words_on_opencl(on_opencl):
    """`static __shared__` and `__inline__` are not OpenCL C; a template of a number cannot be."""
    text = ADDS.replace("TYPE", "int").replace("__shared__ int all", "static __shared__ int all")
    text = text.replace("if (i < n)", "if (inside(i, n))")
    for word in ("__inline__ __device__", "inline __device__", "__device__ inline", "__device__ __forceinline__", "static __device__"):
        got = on_opencl(word + " bool inside(int i, int n) { return i < n; }" + text, "-n", 1000)
        assert not got["not_run"] and not got["wrong_for"] and got["right_for"], (word, got)
    assert on_opencl(NUMBERS, "--dtype", "f32")["not_run"] == "mine.cu:7: a template of a number, which OpenCL C does not know"


def test_ladder_on_opencl(tally, on_opencl, tmp_path):
    on_opencl(SHARED.replace("TYPE", "float").replace("SIZE", "int"), "-n", 1000)
    got = tally.json("ladder", "--kernel", tmp_path / "mine.cu", "--device", "opencl", "-n", 99999, "--only", "shared")
    assert [(k["name"], k["correct"]) for k in got["kernels"]] == [("shared", True), ("mine.cu", True)]
    assert got["kernels"][1]["median_ms"] > 0


def test_devices_misused(tally, tmp_path):
    (tmp_path / "mine.cu").write_text(TEMPLATE)
    assert "--device goes with --kernel" in tally.fails("explain", "shared", "--device", "opencl", status=2)
    assert "by its name" in tally.fails("ladder", "--kernel", tmp_path / "mine.cu", "--device", "auto")
    assert "not on cpu" in tally.fails("ladder", "--kernel", tmp_path / "mine.cu", "--device", "cpu")
    assert "does not compile kernels" in tally("explain", "--kernel", tmp_path / "mine.cu", "--device", "model")


def test_the_greater_of_two_variables_has_no_branch(tally, tmp_path):
    """255 applications in each of 4 blocks; in each a branch for each of the strides below 32, and thread 0 writes."""
    text = """
template <class T> __device__ T greater(T a, T b) { return CHOICE; }
__global__ void greatest(const int *in, int *out, int n) {
    __shared__ int s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? in[i] : INT_MIN;
    __syncthreads();
    for (int h = 128; h; h /= 2) { if (t < h) s[t] = greater(s[t], s[t + h]); __syncthreads(); }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
    def counts(choice):
        (tmp_path / "mine.cu").write_text(text.replace("CHOICE", choice))
        got = tally.judged("explain", "--kernel", tmp_path / "mine.cu", "--op", "max")
        return got["counts"]["operations"], got["counts"]["divergent"]
    assert counts("a > b ? a : b") == counts("b < a ? a : b") == (1020, 24)


@pytest.mark.parametrize("n, once, twice", [(1, 1, 1), (64, 0, 1)])
def test_a_condition_that_reads_memory(explain, n, once, twice):
    """`a && b`, where b reads: a branch for a, and one for b only if it differs among the lanes that read. One warp of
    the two parts for n = 1, none for n = 64, where all elements are positive and every second one is below the mark."""
    text = """__global__ void k(const float *in, float *out, int n) {
        int i = threadIdx.x;
        if (CONDITION) atomicAdd(out, in[i]);
    }"""
    def divergent(condition):
        return explain(text.replace("CONDITION", condition), "-n", n, "--block", 64)["counts"]["divergent"]
    assert divergent("i < n && in[i] != 0.0f") == divergent("i < n) if (in[i] != 0.0f") == once
    assert divergent("i < n && in[i] > 1000.0f") == divergent("i < n) if (in[i] > 1000.0f") == once
    assert divergent("i < n && (in[i] > 0) == (i % 64 < 16)") == twice


def test_the_course_shuffles_as_the_rung_does(tally, tmp_path):
    """The text beside the rung is run: the first warp combines 8 values in 3 rounds, as the rung does, and not in 5."""
    course = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "ladder.md").read_text()
    (tmp_path / "mine.cu").write_text(course.split("### shuffle\n")[1].split("```cuda\n")[1].split("```")[0])
    asked = "-n", 1000, "--block", 256, "--steps"
    runs = [json.loads(tally("explain", "shuffle", *asked, "--json")), tally.judged("explain", "--kernel", tmp_path / "mine.cu", *asked)]
    second = [next(s for s in run["steps"] if (s["launch"], s["block"], s["step"]) == (0, 0, 2)) for run in runs]
    assert [s["rounds"] for s in second] == [3, 3] and runs[1]["correct"]


def test_atomics_and_variables_are_drawn_as_they_are(tally, tmp_path):
    """What an atomic finds is not what it leaves. Each variable in global memory is an array of its own, of its own type."""
    (tmp_path / "mine.cu").write_text("""
__device__ unsigned count = 5;
__device__ float partial[64];
__global__ void f(const float *in, float *out, int n) {
    __shared__ int order[4];
    if (threadIdx.x >= n) return;
    order[threadIdx.x] = 7;
    partial[threadIdx.x + 2] = in[threadIdx.x];
    atomicAdd(out, in[threadIdx.x]);
    atomicAdd(&count, 1);
}
""")
    asked = "explain", "--kernel", tmp_path / "mine.cu", "-n", 4, "--block", 4, "--grid", 1
    got = tally.judged(*asked, "--steps")
    accesses = {a["array"]: a for s in got["steps"] for a in s["accesses"] if a["act"] != "read"}
    x = [v for s in got["steps"] for a in s["accesses"] if a.get("array") == "in" for v in a["values"]][:4]
    assert accesses["out"]["found"] == [0, x[0], x[0] + x[1], x[0] + x[1] + x[2]] and set(accesses["out"]["values"]) == {sum(x)}
    assert accesses["count"]["found"] == [5, 6, 7, 8] and accesses["count"]["values"] == [9] * 4
    assert accesses["partial"]["elements"] == [2, 3, 4, 5] and accesses["partial"]["values"] == x
    assert accesses["order"]["values"] == [7] * 4
    rows = [line.split() for line in tally(*asked, "--draw").splitlines()]
    at = rows.index(["out", "0"])
    assert rows[at + 1] == ["before", "0"] and rows[at + 2] == ["after", str(int(sum(x)))]
    at = rows.index(["count", "0"])
    assert rows[at + 1] == ["before", "5"] and rows[at + 2] == ["after", "9"]


def test_a_last_block_is_drawn(tally, tmp_path):
    """Lesson 16 has 65536 partials, of which one block touches one."""
    lesson = pathlib.Path(__file__).resolve().parents[2] / "lessons" / "16_last_block.cu"
    text = tally("explain", "--kernel", lesson, "--svg", "-", "-n", 256)
    assert "partials" in text and "finished" in text


def test_a_rungs_atomic_is_drawn_with_what_it_finds(tally):
    rows = [line.split() for line in tally("explain", "coarsened", "--finish", "atomic", "-n", 16, "--block", 4, "--dtype", "i32", "--draw").splitlines()]
    assert rows[rows.index(["total", "0"]) + 1] == ["before", "0"]
