"""Kernels as students and course texts write them, each with the verdict that it deserves.

kernel(verdict, name, text, options, words): verdict is "right", "wrong" or "refused"; words are what the verdict must say."""

from collections import namedtuple

Kernel = namedtuple("Kernel", "verdict name text options words")

KERNELS = []


def kernel(verdict, name, text, options="", words=()):
    KERNELS.append(Kernel(verdict, name, text, options, (words,) if isinstance(words, str) else words))


# Pieces that many kernels share, so that a kernel below shows only what is its own.
WARP = """
__inline__ __device__ T warp_sum(T v) {
    for (int offset = 16; offset > 0; offset /= 2)
        v += __shfl_down_sync(0xffffffff, v, offset);
    return v;
}
"""
BLOCK = WARP + """
__inline__ __device__ T block_sum(T v) {
    __shared__ T sums[32];
    int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
    v = warp_sum(v);
    if (lane == 0) sums[warp] = v;
    __syncthreads();
    v = threadIdx.x < (blockDim.x + 31) / 32 ? sums[lane] : 0;
    if (warp == 0) v = warp_sum(v);
    return v;
}
"""


def of_type(text, name):
    return text.replace("T ", name + " ")


def tree(load, combine="s[t] += s[t + stride];", type="float", store="output[blockIdx.x] = s[0];"):
    """The usual block's tree in shared memory; load fills s[t]."""
    return f"""
__global__ void reduce({type} *input, {type} *output, int n) {{
    extern __shared__ {type} s[];
    unsigned int t = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    {load}
    __syncthreads();
    for (unsigned int stride = blockDim.x / 2; stride > 0; stride /= 2) {{
        if (t < stride) {{
            {combine}
        }}
        __syncthreads();
    }}
    if (t == 0) {store}
}}
"""


def last_block(before="__threadfence();", after="", final="t < gridDim.x ? partials[t] : 0", reset="counter = 0;",
               loop="for (int k = t + blockDim.x; k < gridDim.x; k += blockDim.x) v += partials[k];", qualifier="volatile"):
    """The last block to finish combines the partials."""
    return of_type(BLOCK, "float") + f"""
__device__ unsigned int counter = 0;
__device__ {qualifier} float partials[4096];
__global__ void reduce(const float *input, float *output, int n) {{
    __shared__ bool last;
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += input[i];
    v = block_sum(v);
    if (t == 0) {{
        partials[blockIdx.x] = v;
        {before}
        unsigned int ticket = atomicAdd(&counter, 1);
        {after}
        last = ticket == gridDim.x - 1;
    }}
    __syncthreads();
    if (last) {{
        v = {final};
        {loop}
        __syncthreads();
        v = block_sum(v);
        if (t == 0) {{
            output[0] = v;
            {reset}
        }}
    }}
}}
"""


LOAD = "s[t] = i < n ? input[i] : 0;"
WHOLE = ("--grid", "100")

# ---- wrong: lengths ----

kernel("wrong", "the first 128 partials only", last_block(loop="", final="t < 128 && t < gridDim.x ? partials[t] : 0").replace(
    "i += gridDim.x * blockDim.x) v", "i += gridDim.x * blockDim.x) v"), "-n 65536 --block 128 --grid 512", "65536")

kernel("wrong", "as many partials as a block has threads", last_block(loop=""))

kernel("wrong", "a short index", """
__global__ void reduce(const float *input, float *output, int n) {
    extern __shared__ float s[];
    float sum = 0;
    for (short i = threadIdx.x; i >= 0 && i < n; i += blockDim.x) sum += input[i];
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) s[threadIdx.x] += s[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) *output = s[0];
}
""")

kernel("wrong", "an unsigned short index of the block", tree("unsigned short j = i; s[t] = i < n ? input[j] : 0;"))

kernel("wrong", "an odd length reads behind the end", tree("""
    i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
    s[t] = i < n ? input[i] + input[i + blockDim.x] : 0;"""), "", "but input has")

kernel("wrong", "half of the segment", """
#define COARSE 4
#define BLOCK 256
__global__ void reduce(float *input, float *output, int n) {
    __shared__ float s[BLOCK];
    unsigned int t = threadIdx.x, i = 2 * COARSE * blockIdx.x * BLOCK + t;
    float sum = 0;
    for (int k = 0; k < COARSE; k++) if (i + k * BLOCK < n) sum += input[i + k * BLOCK];
    s[t] = sum;
    for (unsigned int stride = BLOCK / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (t < stride) s[t] += s[t + stride];
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""")

kernel("wrong", "the tree stops at stride 2", tree(LOAD).replace("stride > 0", "stride > 1"))

kernel("wrong", "the tree begins too low", tree(LOAD).replace("stride = blockDim.x / 2", "stride = blockDim.x / 4"))

kernel("wrong", "n is included", tree("s[t] = i <= n ? input[i] : 0;"), "", "but input has")

kernel("wrong", "the last element is left out", tree("s[t] = i < n - 1 ? input[i] : 0;"))

kernel("wrong", "a grid that walks by a block", of_type(BLOCK, "float") + """
__global__ void reduce(const float *input, float *output, int n) {
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x) v += input[i];
    v = block_sum(v);
    if (threadIdx.x == 0) atomicAdd(output, v);
}
""", "--grid 4")

kernel("wrong", "float4 without a tail", of_type(BLOCK, "float") + """
__global__ void reduce(const float *input, float *output, int n) {
    float v = 0;
    const float4 *four = reinterpret_cast<const float4 *>(input);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += blockDim.x * gridDim.x) {
        float4 x = four[i];
        v += x.x + x.y + x.z + x.w;
    }
    v = block_sum(v);
    if (threadIdx.x == 0) atomicAdd(output, v);
}
""")

# ---- wrong: blocks ----

kernel("wrong", "one warp of the block", of_type(WARP, "float") + """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = warp_sum(i < n ? input[i] : 0);
    if (threadIdx.x == 0) output[blockIdx.x] = v;
}
""", "", ("32", "64"))

kernel("wrong", "eight warps at most", of_type(WARP, "int") + """
__global__ void reduce(const int *input, int *output, int n) {
    __shared__ int sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = warp_sum(i < n ? input[i] : 0);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8 && w < blockDim.x / 32; w++) v += sums[w];
        output[blockIdx.x] = v;
    }
}
""", "--dtype i32", "1024")

kernel("wrong", "a block that is no power of two, asked for", tree(LOAD), "--block 100", "100")

# ---- wrong: data ----

MAX = "s[t] = fmaxf(s[t], s[t + stride]);"
MIN = "s[t] = fminf(s[t], s[t + stride]);"

kernel("wrong", "max padded with 0", tree("s[t] = i < n ? input[i] : 0;", MAX), "--op max", "negative")
kernel("wrong", "max started with FLT_MIN", "#include <float.h>\n" + tree("s[t] = FLT_MIN; if (i < n) s[t] = fmaxf(s[t], input[i]);", MAX),
       "--op max", "negative")
kernel("wrong", "max started with -1000", tree("s[t] = -1000; if (i < n) s[t] = fmaxf(s[t], input[i]);", MAX), "--op max")
kernel("wrong", "min started with 0", tree("s[t] = 0; if (i < n) s[t] = fminf(s[t], input[i]);", MIN), "--op min", "positive")
kernel("wrong", "min started with 999999", tree("s[t] = i < n ? input[i] : 999999;", MIN), "--op min")
kernel("wrong", "atomicMax on the bits of floats", """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax((int *)output, __float_as_int(input[i]));
}
""", "--op max")
kernel("wrong", "an int accumulator for floats", of_type(BLOCK, "int") + """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = block_sum(i < n ? (int)input[i] : 0);
    if (threadIdx.x == 0) output[blockIdx.x] = v;
}
""", "", "fraction")
kernel("wrong", "a short accumulator for ints", """
__global__ void reduce(const int *input, int *output, int n) {
    __shared__ short s[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""", "--dtype i32")
kernel("wrong", "a float for doubles", tree(LOAD, type="float").replace("float *input, float *output", "double *input, double *output"),
       "--dtype f64")
kernel("wrong", "an int for long longs", of_type(BLOCK, "int") + """
__global__ void reduce(const long long *input, long long *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = block_sum(i < n ? input[i] : 0);
    if (threadIdx.x == 0) output[blockIdx.x] = v;
}
""", "--dtype i64")
kernel("wrong", "the sum of absolute values", tree("s[t] = i < n ? fabsf(input[i]) : 0;"), "", "negative")
kernel("wrong", "the maximum of absolute values", tree("s[t] = i < n ? fabsf(input[i]) : -INFINITY;", MAX), "--op max", "negative")
kernel("wrong", "an unsigned comparison of ints", tree("s[t] = i < n ? input[i] : INT_MIN;", """
    unsigned a = s[t], b = s[t + stride]; s[t] = a > b ? a : b;""", "int").replace("__global__", "#include <climits>\n__global__"),
       "--op max --dtype i32", "negative")
kernel("wrong", "min of long longs started with INT_MAX", "#include <limits.h>\n" + tree(
    "s[t] = i < n ? input[i] : INT_MAX;", "if (s[t + stride] < s[t]) s[t] = s[t + stride];", "long long"), "--op min --dtype i64")
kernel("wrong", "a product started with 0", tree("s[t] = i < n ? input[i] : 0;", "s[t] *= s[t + stride];"), "--op prod")
kernel("wrong", "another operator", tree("s[t] = i < n ? input[i] : -INFINITY;", MAX), "", "max")
kernel("wrong", "a rounded element", tree("s[t] = i < n ? rintf(input[i]) : 0;"), "", "fraction")

# ---- wrong: launches ----

kernel("wrong", "a counter that is not reset", last_block(reset=""), "", "second launch")
kernel("wrong", "a sum in global memory that is not reset", """
__device__ float total;
__global__ void reduce(const float *input, float *output, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&total, input[i]);
    __syncthreads();
    if (threadIdx.x == 0) output[0] = atomicAdd(&total, 0.0f);
}
""", "", "second launch")

# ---- wrong: memory order ----

kernel("wrong", "the last block without a fence", last_block(before=""), "", "__threadfence()")
kernel("wrong", "the fence after the atomic", last_block(before="", after="__threadfence();"), "", "__threadfence()")
kernel("wrong", "a fence of the block", last_block(before="__threadfence_block();"), "", "__threadfence_block()")
kernel("wrong", "blocks add without atomics", tree(LOAD, store="output[0] += s[0];"), "", "block")
kernel("wrong", "no barrier after the load", tree(LOAD).replace("    __syncthreads();\n    for", "    for"), "", "barrier")
kernel("wrong", "no barrier in the tree", tree(LOAD).replace("        }\n        __syncthreads();", "        }"), "", "barrier")
kernel("wrong", "a barrier in the if", tree(LOAD).replace("            s[t] += s[t + stride];\n        }\n        __syncthreads();",
                                                       "            s[t] += s[t + stride];\n            __syncthreads();\n        }"),
       "", "barrier")
kernel("wrong", "a return before the barrier", tree("if (i >= n) return;\n    s[t] = input[i];"), "", "barrier")
kernel("wrong", "the last warp without a barrier", tree(LOAD).replace("        __syncthreads();\n    }", "        if (stride > 32) __syncthreads();\n    }"),
       "", "__syncwarp()")
kernel("wrong", "unwritten shared memory", tree("if (i < n) s[t] = input[i];"), "", "written")
kernel("wrong", "shared memory used again too soon", of_type(WARP, "float") + """
__device__ float block_sum(float v, float *sums) {
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < (blockDim.x + 31) / 32; w++) v += sums[w];
    return v;
}
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float sums[32];
    int half = (n + 1) / 2;
    float v = 0, w = 0;
    for (int i = threadIdx.x; i < half; i += blockDim.x) v += input[i];
    for (int i = half + threadIdx.x; i < n; i += blockDim.x) w += input[i];
    v = block_sum(v, sums);
    w = block_sum(w, sums);
    if (threadIdx.x == 0) output[0] = v + w;
}
""", "", "barrier")

kernel("wrong", "the block with the highest number is taken for the last", of_type(BLOCK, "float") + """
__device__ float total = 0;
__global__ void reduce(const float *input, float *output, int n) {
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += input[i];
    v = block_sum(v);
    if (threadIdx.x == 0) {
        atomicAdd(&total, v);
        if (blockIdx.x == gridDim.x - 1) output[0] = atomicExch(&total, 0.0f);
    }
}
""", "", "order of blocks")
kernel("wrong", "pairs from an odd address", """
__global__ void reduce(const int *input, int *output, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    const long long *pairs = (const long long *)(input + 1);
    int v = t == 0 ? input[0] : 0;
    for (int i = t; i < (n - 1) / 2; i += blockDim.x * gridDim.x) v += (int)pairs[i] + (int)(pairs[i] >> 32);
    if (t == 0 && n % 2 == 0) v += input[n - 1];
    atomicAdd(output, v);
}
""", "--dtype i32", "multiple of")
kernel("right", "pairs", """
__global__ void reduce(const int *input, int *output, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    const long long *pairs = (const long long *)input;
    int v = t == 0 && n % 2 ? input[n - 1] : 0;
    for (int i = t; i < n / 2; i += blockDim.x * gridDim.x) v += (int)pairs[i] + (int)(pairs[i] >> 32);
    atomicAdd(output, v);
}
""", "--dtype i32")

# ---- wrong: shuffles ----

kernel("wrong", "a shuffle within an if", """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float v = i < n ? input[i] : 0;
    for (int offset = 16; offset > 0; offset /= 2)
        if (lane < offset) v += __shfl_down_sync(0xffffffff, v, offset);
    if (lane == 0) atomicAdd(output, v);
}
""", "", ("the shuffle on line 6", "take part"))
kernel("wrong", "a shuffle from lanes outside its mask", """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float v = i < n ? input[i] : 0;
    if (lane < 16) {
        for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0x0000ffff, v, offset);
    }
    if (lane == 0) atomicAdd(output, v);
}
""", "", "0x0000ffff")
kernel("wrong", "the shuffles of the last warp with too few lanes", of_type(WARP, "float") + """
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = warp_sum(i < n ? input[i] : 0);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < blockDim.x / 32) {
        v = warp_sum(sums[threadIdx.x]);
        if (threadIdx.x == 0) output[blockIdx.x] = v;
    }
}
""", "", "take part")
kernel("wrong", "a shuffle that begins at 8", of_type(BLOCK, "float").replace("offset = 16", "offset = 8") + """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = block_sum(i < n ? input[i] : 0);
    if (threadIdx.x == 0) output[blockIdx.x] = v;
}
""")
kernel("wrong", "a spin lock", """
__device__ int lock = 0;
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        while (atomicCAS(&lock, 0, 1) != 0) ;
        *output += input[i];
        atomicExch(&lock, 0);
    }
}
""", "", "lock")
kernel("wrong", "two arrays without a bound", """
__global__ void dot(const float *a, const float *b, float *output, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = a[i] * b[i];
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) atomicAdd(output, s[0]);
}
""", "", "but a has")

# ---- right: the texts' trees ----

kernel("right", "a tree in shared memory", tree(LOAD))
kernel("right", "interleaved, in place, of whole segments", """
__global__ void reduce(float *input, float *output) {
    unsigned int segment = 2 * blockDim.x * blockIdx.x;
    unsigned int i = segment + 2 * threadIdx.x;
    for (unsigned int stride = 1; stride <= blockDim.x; stride *= 2) {
        if (threadIdx.x % stride == 0) input[i] += input[i + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) output[blockIdx.x] = input[i];
}
""")
kernel("right", "the first addition while loading", """
#define BLOCK_DIM 512
__global__ void reduce(float *input, float *output, unsigned int n) {
    __shared__ float s[BLOCK_DIM];
    unsigned int t = threadIdx.x, i = blockIdx.x * BLOCK_DIM * 2 + t;
    s[t] = (i < n ? input[i] : 0.0f) + (i + BLOCK_DIM < n ? input[i + BLOCK_DIM] : 0.0f);
    for (unsigned int stride = BLOCK_DIM / 2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) s[t] += s[t + stride];
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""", "", "512")
kernel("right", "coarsened", """
constexpr int FACTOR = 4;
__global__ void reduce(const float *input, float *output, int n) {
    extern __shared__ float s[];
    unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x * 2 * FACTOR + t;
    float sum = 0.0f;
    #pragma unroll
    for (int k = 0; k < 2 * FACTOR; k++)
        if (i + k * blockDim.x < n) sum += input[i + k * blockDim.x];
    s[t] = sum;
    __syncthreads();
    for (unsigned stride = blockDim.x >> 1; stride > 0; stride >>= 1) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""")
kernel("right", "any block", """
__global__ void reduce(const float *input, float *output, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (int left = blockDim.x; left > 1; left = (left + 1) / 2) {
        int half = (left + 1) / 2;
        if (t + half < left) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""", "--block 100")
kernel("right", "any block, 180 threads", KERNELS[-1].text, "--block 180")
kernel("right", "one block walks the array", """
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = t; i < n; i += 256) sum += input[i];
    s[t] = sum;
    __syncthreads();
    for (int stride = 128; stride > 0; stride >>= 1) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) *output = s[0];
}
""", "", "one block")
kernel("right", "one block adds into its result", """
__global__ void reduce(const int *input, int *output, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(output, input[i]);
}
""", "--dtype i32", "one block")
kernel("wrong", "one block, powers of two", """
__global__ void reduce(int *array, int n) {
    for (int stride = n / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) array[threadIdx.x] += array[threadIdx.x + stride];
        __syncthreads();
    }
}
""", "--dtype i32", "power of two")
kernel("right", "segments in place", """
__global__ void reduce(float *array, int n) {
    unsigned int i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
    for (unsigned int stride = blockDim.x; stride > 0; stride /= 2) {
        if (threadIdx.x < stride && i + stride < n) array[i] += array[i + stride];
        __syncthreads();
    }
}
""")
kernel("right", "a last warp with __syncwarp", """
template <unsigned int blockSize>
__device__ void last_warp(volatile float *s, unsigned int t) {
    float v = s[t];
    if (blockSize >= 64) { v += s[t + 32]; __syncwarp(); s[t] = v; __syncwarp(); }
    v += s[t + 16]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 8]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 4]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 2]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 1]; __syncwarp(); s[t] = v;
}
template <unsigned int blockSize>
__global__ void reduce(float *input, float *output, unsigned int n) {
    __shared__ float s[2 * blockSize];
    unsigned int t = threadIdx.x, i = blockIdx.x * blockSize * 2 + t, step = blockSize * 2 * gridDim.x;
    float v = 0;
    while (i < n) {
        v += input[i];
        if (i + blockSize < n) v += input[i + blockSize];
        i += step;
    }
    s[t] = v;
    s[t + blockSize] = 0;
    __syncthreads();
    if (blockSize >= 512) { if (t < 256) { s[t] = v = v + s[t + 256]; } __syncthreads(); }
    if (blockSize >= 256) { if (t < 128) { s[t] = v = v + s[t + 128]; } __syncthreads(); }
    if (blockSize >= 128) { if (t < 64) { s[t] = v = v + s[t + 64]; } __syncthreads(); }
    if (t < 32) last_warp<blockSize>(s, t);
    if (t == 0) output[blockIdx.x] = s[0];
}
""", "--block 256")

# ---- right: warps ----

WALK = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)"

kernel("right", "shuffles and one atomic a block", of_type(BLOCK, "float") + f"""
__global__ void reduce(const float *__restrict__ input, float *__restrict__ output, int n) {{
    float v = 0;
    {WALK} v += input[i];
    v = block_sum(v);
    if (threadIdx.x == 0) atomicAdd(output, v);
}}
""")
kernel("right", "a block's function as a template", """
template <typename T>
__device__ T warp_reduce(T v) {
    #pragma unroll
    for (int mask = warpSize / 2; mask > 0; mask >>= 1) v += __shfl_xor_sync(0xffffffffu, v, mask);
    return v;
}
template <typename T>
__global__ void __launch_bounds__(1024) reduce(const T *input, T *output, size_t n) {
    extern __shared__ __align__(16) T s[];
    T v = T(0);
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) v += __ldg(&input[i]);
    v = warp_reduce(v);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < (blockDim.x >> 5) ? s[threadIdx.x] : T(0);
        v = warp_reduce(v);
        if (threadIdx.x == 0) output[blockIdx.x] = v;
    }
}
""")
FUNCTOR = """
struct Maximum { __device__ float operator()(float a, float b) const { return a > b ? a : b; } };
template <typename T, class Op>
__device__ T fold(T v, Op op) {
    for (int offset = 16; offset; offset >>= 1) v = op(v, __shfl_down_sync(~0u, v, offset));
    return v;
}
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float s[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? input[i] : -INFINITY;
    v = fold(v, Maximum());
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < (blockDim.x + 31) / 32 ? s[threadIdx.x] : -INFINITY;
        v = fold(v, Maximum());
        if (threadIdx.x == 0) output[blockIdx.x] = v;
    }
}
"""
kernel("right", "a functor", FUNCTOR, "--op max")
kernel("right", "a functor template of the kernel", """
template <typename T> struct Sum { __host__ __device__ T operator()(const T &a, const T &b) const { return a + b; } };
template <typename T, template <typename> class Op = Sum>
__global__ void reduce(const T *input, T *output, int n) {
    __shared__ T s[1024];
    Op<T> op;
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? input[i] : T();
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] = op(s[t], s[t + stride]);
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""")
kernel("right", "a functor as a parameter of the template", """
struct Add { template <typename T> __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T, typename Op>
__global__ void reduce(const T *input, T *output, int n, Op op) {
    __shared__ T s[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? input[i] : T(0);
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] = op(s[t], s[t + stride]);
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""")
kernel("right", "a lambda", """
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float s[1024];
    auto add = [](float a, float b) { return a + b; };
    const auto t = threadIdx.x;
    const auto i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? input[i] : 0.f;
    __syncthreads();
    for (auto stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] = add(s[t], s[t + stride]);
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""")
kernel("right", "__reduce_add_sync", """
__global__ void reduce(const int *input, int *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = __reduce_add_sync(0xffffffff, i < n ? input[i] : 0);
    if (threadIdx.x % 32 == 0) atomicAdd(output, v);
}
""", "--dtype i32")
kernel("right", "__reduce_max_sync", """
#include <climits>
__global__ void reduce(const int *input, int *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = __reduce_max_sync(0xffffffff, i < n ? input[i] : INT_MIN);
    if (threadIdx.x % 32 == 0) atomicMax(output, v);
}
""", "--dtype i32 --op max")
kernel("right", "ballots", """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    unsigned mask = __ballot_sync(0xffffffff, i < n);
    if (i < n) {
        float v = input[i];
        int count = __popc(mask);
        for (int offset = 16; offset > 0; offset /= 2) {
            float other = __shfl_sync(mask, v, lane + offset < count ? lane + offset : lane);
            if (lane < offset && lane + offset < count) v += other;
        }
        if (lane == 0) atomicAdd(output, v);
    }
}
""")
kernel("right", "any and all", """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    while (__any_sync(0xffffffff, i < n)) {
        if (i < n) v += input[i];
        i += gridDim.x * blockDim.x;
    }
    if (!__all_sync(0xffffffff, v == 0)) {
        for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
        if (threadIdx.x % 32 == 0) atomicAdd(output, v);
    }
}
""")
kernel("right", "__match_any_sync and __activemask", """
__global__ void reduce(const int *input, int *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (i < n) {
        unsigned active = __activemask();
        unsigned same = __match_any_sync(active, input[i]);
        if (__ffs(same) - 1 == lane) atomicAdd(output, input[i] * __popc(same));
    }
}
""", "--dtype i32")
kernel("right", "cooperative groups", """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float s[32];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + block.thread_rank(); i < n; i += gridDim.x * block.size()) v += input[i];
    v = cg::reduce(tile, v, cg::plus<float>());
    if (tile.thread_rank() == 0) s[tile.meta_group_rank()] = v;
    block.sync();
    if (tile.meta_group_rank() == 0) {
        v = tile.thread_rank() < tile.meta_group_size() ? s[tile.thread_rank()] : 0;
        v = cg::reduce(tile, v, cg::plus<float>());
        if (tile.thread_rank() == 0) output[blockIdx.x] = v;
    }
}
""")
kernel("right", "cooperative groups' shuffles", """
#include <cooperative_groups.h>
using namespace cooperative_groups;
__device__ int sum_of(thread_group g, int *s, int v) {
    int lane = g.thread_rank();
    for (int i = g.size() / 2; i > 0; i /= 2) {
        s[lane] = v;
        g.sync();
        if (lane < i) v += s[lane + i];
        g.sync();
    }
    return v;
}
__global__ void reduce(int *input, int *output, int n) {
    extern __shared__ int s[];
    auto block = this_thread_block();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = sum_of(block, s, i < n ? input[i] : 0);
    if (block.thread_rank() == 0) atomicAdd(output, v);
}
""", "--dtype i32")
kernel("wrong", "cooperative groups without sync", KERNELS[-1].text.replace("        g.sync();\n        if", "        if"), "--dtype i32", "barrier")

# ---- right: what C++ and CUDA offer ----

kernel("right", "a struct of a block's sums", """
struct Partial { float sum; int count; };
__device__ Partial merge(const Partial &a, const Partial &b) { Partial c = {a.sum + b.sum, a.count + b.count}; return c; }
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ Partial s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t].sum = i < n ? input[i] : 0;
    s[t].count = i < n;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] = merge(s[t], s[t + stride]);
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0].sum;
}
""")
kernel("right", "the dot product", """
__global__ void dot(const float *a, const float *b, float *output, int n) {
    __shared__ float cache[256];
    int t = threadIdx.x;
    float temp = 0;
    for (int i = t + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) temp += a[i] * b[i];
    cache[t] = temp;
    __syncthreads();
    int i = blockDim.x / 2;
    while (i != 0) {
        if (t < i) cache[t] += cache[t + i];
        __syncthreads();
        i /= 2;
    }
    if (t == 0) output[blockIdx.x] = cache[0];
}
""", "", "dot")
kernel("right", "a name given on the command line", """
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float s[THREADS];
    int t = threadIdx.x, i = blockIdx.x * THREADS + t;
    s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = s[0];
}
""", "-D THREADS=128", "128")
TWO = """
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float s[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int i = (blockIdx.x * blockDim.y + y) * blockDim.x + x;
    s[y][x] = i < n ? input[i] : 0;
    __syncthreads();
    for (int stride = 8; stride > 0; stride /= 2) {
        if (x < stride) s[y][x] += s[y][x + stride];
        __syncthreads();
    }
    for (int stride = 8; stride > 0; stride /= 2) {
        if (x == 0 && y < stride) s[y][0] += s[y + stride][0];
        __syncthreads();
    }
    if (x == 0 && y == 0) output[blockIdx.x] = s[0][0];
}
"""
kernel("right", "a block of two dimensions", TWO, "--block 16x16", "16x16")
kernel("wrong", "a block of two dimensions without a barrier", TWO.replace(
    "x < stride) s[y][x] += s[y][x + stride];\n        __syncthreads();", "x < stride) s[y][x] += s[y][x + stride];"), "--block 16x16", "barrier")
kernel("right", "max with -INFINITY", tree("s[t] = i < n ? input[i] : -INFINITY;", MAX), "--op max")
kernel("right", "min with FLT_MAX and infinity", "#include <cfloat>\n" + tree(
    "s[t] = i < n ? input[i] : __int_as_float(0x7f800000);", "s[t] = min(s[t], s[t + stride]);"), "--op min")
kernel("right", "a product", tree("s[t] = i < n ? input[i] : 1;", "s[t] *= s[t + stride];", "double"), "--op prod --dtype f64")
kernel("right", "max by compare and swap", """
__device__ float atomicMaxFloat(float *address, float value) {
    int *bits = (int *)address, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMaxFloat(output, input[i]);
}
""", "--op max")
kernel("right", "atomicMax by the sign", """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = input[i];
        if (!signbit(v)) atomicMax((int *)output, __float_as_int(v));
        else atomicMin((unsigned int *)output, __float_as_uint(v));
    }
}
""", "--op max")
kernel("right", "a double for floats", """
__global__ void reduce(const float *input, float *output, int n) {
    extern __shared__ double d[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    d[t] = i < n ? (double)input[i] : 0.0;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) d[t] += d[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = (float)d[0];
}
""")
kernel("right", "Kahan's sum", """
__global__ void reduce(const float *input, float *output, int n) {
    extern __shared__ float s[];
    float sum = 0, error = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float y = input[i] - error, next = sum + y;
        error = (next - sum) - y;
        sum = next;
    }
    s[threadIdx.x] = sum;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) s[threadIdx.x] += s[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(output, s[0]);
}
""")
kernel("right", "the last block", last_block())
kernel("right", "the last block, with atomicInc", last_block(reset="").replace("atomicAdd(&counter, 1)", "atomicInc(&counter, gridDim.x - 1)"))
kernel("right", "the last block reads through __ldcg", last_block(qualifier="").replace(
    "partials[t] :", "__ldcg(&partials[t]) :").replace("+= partials[k]", "+= __ldcg(&partials[k])"))
kernel("right", "float4 with a tail", of_type(BLOCK, "float") + """
__global__ void reduce(const float *input, float *output, int n) {
    float v = 0;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = t; i < n / 4; i += blockDim.x * gridDim.x) {
        float4 x = reinterpret_cast<const float4 *>(input)[i];
        v += (x.x + x.y) + (x.z + x.w);
    }
    if (t < n % 4) v += input[n - 1 - t];
    v = block_sum(v);
    if (threadIdx.x == 0) atomicAdd(output, v);
}
""")
kernel("right", "a file as students hand it in", """
#include <stdio.h>
#include <stdlib.h>
#include <assert.h>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)
const int threads = 256;
__global__ void sumKernel(const float *d_in, float *d_out, const int N)
{
    extern __shared__ float sdata[];
    int tid = threadIdx.x;
    int gid = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (gid < N) ? d_in[gid] : 0.0f;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) { d_out[blockIdx.x] = sdata[0]; if (gid < 0) printf("block %d: %f\\n", blockIdx.x, sdata[0]); }
    assert(tid < blockDim.x);
}
int main(int argc, char **argv)
{
    int N = 1 << 20;
    float *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, N * sizeof(float)));
    CHECK(cudaMalloc(&d_out, (N / threads) * sizeof(float)));
    sumKernel<<<N / threads, threads, threads * sizeof(float)>>>(d_in, d_out, N);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
""")
kernel("right", "extern C and unsigned chars of a mask", """
extern "C" __global__ void reduce(const unsigned *input, unsigned *output, unsigned n) {
    unsigned i = threadIdx.x + blockDim.x * blockIdx.x, v = i < n ? input[i] : 0u;
    for (unsigned m = 1; m < 32; m <<= 1) v += __shfl_xor_sync(0xffffffffu, v, m);
    if (!(threadIdx.x & 31u)) atomicAdd(output, v);
}
""", "--dtype u32")
kernel("right", "a shuffle of the last warp by the warps there are", """
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    float v = i < n ? input[i] : 0;
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
    if (lane == 0) sums[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = lane < warps ? sums[lane] : 0;
        for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
        if (lane == 0) output[blockIdx.x] = v;
    }
}
""")

# ---- refused, in words ----

kernel("refused", "the old shuffle", of_type(BLOCK, "float").replace("__shfl_down_sync(0xffffffff, v, offset)", "__shfl_down(v, offset)") + """
__global__ void reduce(const float *input, float *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = block_sum(i < n ? input[i] : 0);
    if (threadIdx.x == 0) output[blockIdx.x] = v;
}
""", "", "__shfl_down_sync")
kernel("refused", "the whole grid's barrier", """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void reduce(float *input, float *output, int n) {
    cg::grid_group grid = cg::this_grid();
    grid.sync();
    if (grid.thread_rank() == 0) output[0] = input[0];
}
""", "", "grid")
kernel("refused", "a block of CUB", """
#include <cub/cub.cuh>
__global__ void reduce(float *input, float *output, int n) {
    typedef cub::BlockReduce<float, 256> BlockReduce;
    __shared__ typename BlockReduce::TempStorage storage;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = BlockReduce(storage).Sum(i < n ? input[i] : 0);
    if (threadIdx.x == 0) output[blockIdx.x] = v;
}
""", "", "cub")
kernel("refused", "half precision", """
#include <cuda_fp16.h>
__global__ void reduce(const __half *input, __half *output, int n) {
    __half v = __float2half(0.0f);
    for (int i = threadIdx.x; i < n; i += blockDim.x) v = __hadd(v, input[i]);
    output[threadIdx.x] = v;
}
""", "", "half")
kernel("refused", "a kernel that starts kernels", """
__global__ void child(float *a) { a[0] = 1; }
__global__ void reduce(float *input, float *output, int n) {
    child<<<1, 32>>>(input);
}
""", "", "<<<")
kernel("refused", "a forgotten semicolon", """
__global__ void reduce(float *input, float *output, int n) {
    int i = threadIdx.x
    output[0] = input[i];
}
""", "", "mine.cu:4")
kernel("refused", "a name that is not there", """
__global__ void reduce(float *input, float *output, int n) {
    int i = threadIdx.x;
    if (i == 0) output[0] = inptu[i];
}
""", "", ("inptu", "mine.cu:4"))
kernel("refused", "a texture", """
texture<float, 1> source;
__global__ void reduce(float *input, float *output, int n) {
    output[0] = tex1Dfetch(source, threadIdx.x);
}
""", "", "texture")

# ---- From texts: NVIDIA's samples and blog, a textbook; and mistakes in them ----

kernel("right", "SDK reduce0","""
__global__ void reduce0(int *g_idata, int *g_odata) {
extern __shared__ int sdata[];
// each thread loads one element from global to shared mem
unsigned int tid = threadIdx.x;
unsigned int i = blockIdx.x*blockDim.x + threadIdx.x;
sdata[tid] = g_idata[i];
__syncthreads();
// do reduction in shared mem
for(unsigned int s=1; s < blockDim.x; s *= 2) {
if (tid % (2*s) == 0) {
sdata[tid] += sdata[tid + s];
}
__syncthreads();
}
// write result for this block to global mem
if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}
""", "--dtype i32")
kernel("right", "SDK reduce6","""
template <class T, unsigned int blockSize, bool nIsPow2>
__global__ void reduce6(T *g_idata, T *g_odata, unsigned int n) {
  extern __shared__ T sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * blockSize * 2 + threadIdx.x;
  unsigned int gridSize = blockSize * 2 * gridDim.x;
  T mySum = 0;
  while (i < n) {
    mySum += g_idata[i];
    if (nIsPow2 || i + blockSize < n) mySum += g_idata[i + blockSize];
    i += gridSize;
  }
  sdata[tid] = mySum;
  __syncthreads();
  if ((blockSize >= 512) && (tid < 256)) { sdata[tid] = mySum = mySum + sdata[tid + 256]; }
  __syncthreads();
  if ((blockSize >= 256) && (tid < 128)) { sdata[tid] = mySum = mySum + sdata[tid + 128]; }
  __syncthreads();
  if ((blockSize >= 128) && (tid < 64)) { sdata[tid] = mySum = mySum + sdata[tid + 64]; }
  __syncthreads();
  if (tid < 32) {
    if (blockSize >= 64) mySum += sdata[tid + 32];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) mySum += __shfl_down_sync(0xffffffff, mySum, offset);
  }
  if (tid == 0) g_odata[blockIdx.x] = mySum;
}
""", "--dtype f32")
KEPLER="""
__inline__ __device__
int warpReduceSum(int val) {
  for (int offset = warpSize/2; offset > 0; offset /= 2)
    val += __shfl_down_sync(0xffffffff, val, offset);
  return val;
}
__inline__ __device__
int blockReduceSum(int val) {
  static __shared__ int shared[32]; // Shared mem for 32 partial sums
  int lane = threadIdx.x % warpSize;
  int wid = threadIdx.x / warpSize;
  val = warpReduceSum(val);
  if (lane==0) shared[wid]=val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
  if (wid==0) val = warpReduceSum(val);
  return val;
}
"""
kernel("right", "Kepler blog",KEPLER+"""
__global__ void deviceReduceKernel(int *in, int* out, int N) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x) sum += in[i];
  sum = blockReduceSum(sum);
  if (threadIdx.x==0) out[blockIdx.x]=sum;
}
""", "--dtype i32")
kernel("right", "Kepler vector2",KEPLER+"""
__global__ void deviceReduceVector2Kernel(int* in, int* out, int N) {
  int sum = 0;
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = idx; i < N/2; i += blockDim.x * gridDim.x) {
    int2 val = reinterpret_cast<int2*>(in)[i];
    sum += val.x + val.y;
  }
  int i = idx + N/2*2;
  if (i < N) sum += in[i];
  sum = blockReduceSum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
""", "--dtype i32")
kernel("right", "PMPP segmented","""
#define BLOCK_DIM 1024
__global__ void SegmentedSumReductionKernel(float* input, float* output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int segment = 2*blockDim.x*blockIdx.x;
    unsigned int i = segment + threadIdx.x;
    unsigned int t = threadIdx.x;
    input_s[t] = input[i] + input[i + BLOCK_DIM];
    for (unsigned int stride = blockDim.x/2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) input_s[t] += input_s[t + stride];
    }
    if (t == 0) atomicAdd(output, input_s[0]);
}
""")
kernel("right", "PMPP coarsened","""
#define BLOCK_DIM 256
#define COARSE_FACTOR 4
__global__ void CoarsenedSumReductionKernel(float* input, float* output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int segment = COARSE_FACTOR*2*blockDim.x*blockIdx.x;
    unsigned int i = segment + threadIdx.x;
    unsigned int t = threadIdx.x;
    float sum = input[i];
    for (unsigned int tile = 1; tile < COARSE_FACTOR*2; ++tile) sum += input[i + tile*BLOCK_DIM];
    input_s[t] = sum;
    for (unsigned int stride = blockDim.x/2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) input_s[t] += input_s[t + stride];
    }
    if (t == 0) atomicAdd(output, input_s[0]);
}
""")
kernel("right", "PMPP simple","""
__global__ void SimpleSumReductionKernel(float* input, float* output) {
    unsigned int i = 2*threadIdx.x;
    for (unsigned int stride = 1; stride <= blockDim.x; stride *= 2) {
        if (threadIdx.x % stride == 0) input[i] += input[i + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) *output = input[0];
}
""", "","power of two")
kernel("right", "PMPP convergent","""
__global__ void ConvergentSumReductionKernel(float* input, float* output) {
    unsigned int i = threadIdx.x;
    for (unsigned int stride = blockDim.x; stride >= 1; stride /= 2) {
        if (threadIdx.x < stride) input[i] += input[i + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) *output = input[0];
}
""", "","power of two")
kernel("right", "PMPP shared one block","""
#define BLOCK_DIM 1024
__global__ void SharedMemorySumReductionKernel(float* input, float* output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[t] + input[t + BLOCK_DIM];
    for (unsigned int stride = blockDim.x/2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) input_s[t] += input_s[t + stride];
    }
    if (threadIdx.x == 0) *output = input_s[0];
}
""")
kernel("right", "3-D block","""
__global__ void reduce(const float *input, float *output, int n) {
    __shared__ float s[256];
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int size = blockDim.x * blockDim.y * blockDim.z, i = blockIdx.x * size + t;
    s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (int k = size / 2; k > 0; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
    if (t == 0) output[blockIdx.x] = s[0];
}
""", "--block 8x8x4")
kernel("right", "tiles of 4","""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void reduce(const float *input, float *output, int n) {
    auto tile = cg::tiled_partition<4>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? input[i] : 0;
    for (int k = tile.size() / 2; k > 0; k /= 2) v += tile.shfl_down(v, k);
    if (tile.thread_rank() == 0) atomicAdd(output, v);
}
""")
kernel("right", "coalesced","""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
using namespace cooperative_groups;
__global__ void reduce(const int *input, int *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        coalesced_group g = coalesced_threads();
        int v = cooperative_groups::reduce(g, input[i], plus<int>());
        if (g.thread_rank() == 0) atomicAdd(output, v);
    }
}
""", "--dtype i32")
kernel("right", "early return, atomics","""
__global__ void reduce(const double *input, double *output, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(output, input[i]);
}
""", "--dtype f64")
kernel("right", "template int block","""
template <typename T, int BLOCK = 128>
__global__ void reduce(const T *__restrict__ in, T *__restrict__ out, std::size_t n) {
    __shared__ T s[BLOCK];
    std::size_t i = static_cast<std::size_t>(blockIdx.x) * BLOCK + threadIdx.x;
    s[threadIdx.x] = i < n ? in[i] : std::numeric_limits<T>::lowest();
    __syncthreads();
#pragma unroll
    for (int d = BLOCK / 2; d > 0; d >>= 1) {
        if (threadIdx.x < d) s[threadIdx.x] = max(s[threadIdx.x], s[threadIdx.x + d]);
        __syncthreads();
    }
    if (!threadIdx.x) out[blockIdx.x] = s[0];
}
""", "--op max --dtype i32")
kernel("right", "enum block, unsigned char","""
enum { THREADS = 128 };
__global__ void reduce(const unsigned char *in, unsigned char *out, int n) {
    __shared__ unsigned char s[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    s[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = THREADS / 2; d > 0; d >>= 1) {
        if (threadIdx.x < d) s[threadIdx.x] |= s[threadIdx.x + d];
        __syncthreads();
    }
    if (!threadIdx.x) out[blockIdx.x] = s[0];
}
""", "--op or --dtype u8")
kernel("right", "dot, templates and atomics","""
template <typename T>
__global__ void dot(const T *x, const T *y, T *result, size_t n) {
    T v = 0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v = fma(x[i], y[i], v);
    for (int o = 16; o; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(result, v);
}
""", "--dtype f64","dot")
kernel("right", "xor","""
__global__ void reduce(const unsigned long long *in, unsigned long long *out, int n) {
    unsigned long long v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v ^= in[i];
    atomicXor(out, v);
}
""", "--op xor --dtype u64")
kernel("right", "and","""
__global__ void reduce(const unsigned *in, unsigned *out, int n) {
    unsigned v = ~0u;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v &= in[i];
    v = __reduce_and_sync(0xffffffffu, v);
    if (threadIdx.x % 32 == 0) atomicAnd(out, v);
}
""", "--op and --dtype u32")
kernel("right", "min by warp, shuffle width","""
#include <cfloat>
__device__ float tileMin(float v) { for (int o = 8; o > 0; o >>= 1) v = fminf(v, __shfl_down_sync(0xffffffff, v, o, 16)); return v; }
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float m[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = tileMin(i < n ? in[i] : FLT_MAX);
    if (threadIdx.x % 16 == 0) m[threadIdx.x / 16] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < blockDim.x / 16; k++) v = fminf(v, m[k]);
        out[blockIdx.x] = v;
    }
}
""", "--op min")
kernel("right", "a class with methods","""
class Accumulator {
    float sum;
public:
    __device__ Accumulator() : sum(0) {}
    __device__ void add(float x) { sum += x; }
    __device__ float get() const { return sum; }
};
__global__ void reduce(const float *in, float *out, int n) {
    Accumulator a;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a.add(in[i]);
    atomicAdd(out, a.get());
}
""")
kernel("right", "a lock free double add","""
__device__ double atomicAddD(double* address, double val) {
    unsigned long long int* address_as_ull = (unsigned long long int*)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
__global__ void reduce(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAddD(out, in[i]);
}
""", "--dtype f64")
kernel("wrong", "Kepler without the zero",KEPLER.replace("(threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0","shared[lane]")+"""
__global__ void k(int *in, int* out, int N) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x) sum += in[i];
  sum = blockReduceSum(sum);
  if (threadIdx.x==0) out[blockIdx.x]=sum;
}
""", "--dtype i32")
kernel("wrong", "am I last is local",last_block().replace("__shared__ bool last;","bool last = false;"))
kernel("wrong", "no barrier before last",last_block().replace("""        last = ticket == gridDim.x - 1;
    }
    __syncthreads();""","""        last = ticket == gridDim.x - 1;
    }"""))
kernel("wrong", "ticket compared with gridDim",last_block().replace("gridDim.x - 1;","gridDim.x;"))
kernel("wrong", "syncwarp for syncthreads",tree(LOAD).replace("        __syncthreads();\n    }\n","        __syncwarp();\n    }\n"))
kernel("wrong", "shuffle width 16",of_type(BLOCK,"float").replace("v, offset)","v, offset, 16)")+"""
__global__ void k(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = block_sum(i < n ? in[i] : 0);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}
""")
kernel("wrong", "mask of half a warp",of_type(BLOCK,"float").replace("0xffffffff","0xffff")+"""
__global__ void k(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = block_sum(i < n ? in[i] : 0);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}
""")
kernel("wrong", "all threads write",tree(LOAD).replace("if (t == 0) output[blockIdx.x] = s[0];","output[blockIdx.x] = s[t];"))
kernel("wrong", "the sum of squares",tree("s[t] = i < n ? input[i] * input[i] : 0;"),"","squares")
kernel("wrong", "the mean",tree("s[t] = i < n ? input[i] / n : 0;"))
kernel("wrong", "the count",tree("s[t] = i < n ? 1 : 0;"))
kernel("wrong", "n is not used",tree("s[t] = input[i];"))
kernel("wrong", "loads after the test",tree("s[t] = input[i]; if (i >= n) s[t] = 0;"))
kernel("wrong", "float atomics on int sum with rounding", """
__global__ void k(const int *in, int *out, int n) {
  __shared__ float s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&s, (float)in[i]);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, (int)s);
}
""", "--dtype i32")
kernel("wrong", "the blog's ballot mask","""
__global__ void k(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned mask = __ballot_sync(0xffffffff, i < n);
  if (i < n) {
    float v = in[i];
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(mask, v, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
  }
}
""", "","take part")
kernel("wrong", "dot forgets the tail","""
__global__ void dot(const float *a, const float *b, float *c, int n) {
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + 3 < n; i += blockDim.x * gridDim.x) v += a[i] * b[i];
  atomicAdd(c, v);
}
""")
kernel("wrong", "dot is sum of a","""
__global__ void dot(const float *a, const float *b, float *c, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(c, a[i] + 0 * b[i]);
}
""")
kernel("wrong", "counter reset by the host only in text","""
__device__ int done;
__global__ void k(const int *in, volatile int *out, int n) {
  __shared__ int s[256]; __shared__ int amLast;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0; __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t == 0) { out[blockIdx.x] = s[0]; __threadfence(); amLast = atomicAdd(&done, 1) == gridDim.x - 1; }
  __syncthreads();
  if (amLast && t == 0) { int v = 0; for (int b = 0; b < gridDim.x; b++) v += out[b]; out[0] = v; }
}
""", "--dtype i32 --block 128","second launch")
kernel("wrong", "a reversed bound",tree("s[t] = n < i ? input[i] : 0;"))
kernel("wrong", "max with min",tree("s[t] = i < n ? input[i] : INFINITY;","s[t] = fminf(s[t], s[t + stride]);"),"--op max","min")

# ---- Of courses, books and samples ----

HARRIS = """
template <class T, unsigned int blockSize>
__global__ void reduce5(T *g_idata, T *g_odata, unsigned int n) {
    extern __shared__ T sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockSize * 2) + threadIdx.x;
    T mySum = (i < n) ? g_idata[i] : 0;
    if (i + blockSize < n) mySum += g_idata[i + blockSize];
    sdata[tid] = mySum;
    __syncthreads();
    if ((blockSize >= 512) && (tid < 256)) sdata[tid] = mySum = mySum + sdata[tid + 256];
    __syncthreads();
    if ((blockSize >= 256) && (tid < 128)) sdata[tid] = mySum = mySum + sdata[tid + 128];
    __syncthreads();
    if ((blockSize >= 128) && (tid < 64)) sdata[tid] = mySum = mySum + sdata[tid + 64];
    __syncthreads();
    if (tid < 32) {
        if (blockSize >= 64) mySum += sdata[tid + 32];
        for (int offset = 16; offset > 0; offset /= 2) mySum += __shfl_down_sync(0xffffffff, mySum, offset);
    }
    if (tid == 0) g_odata[blockIdx.x] = mySum;
}
"""
kernel("right", "Harris, unrolled by its template", HARRIS)
kernel("right", "Harris, unrolled by its template, 512 threads", HARRIS, "--block 512 --dtype i32")
kernel("wrong", "Harris, unrolled, without the bound of the second load", HARRIS.replace("if (i + blockSize < n) ", ""), "", "but g_idata has")
kernel("wrong", "Harris, the volatile warp as printed in 2007", """
__device__ void warpReduce(volatile int *sdata, int tid) {
    sdata[tid] += sdata[tid + 32];
    sdata[tid] += sdata[tid + 16];
    sdata[tid] += sdata[tid + 8];
    sdata[tid] += sdata[tid + 4];
    sdata[tid] += sdata[tid + 2];
    sdata[tid] += sdata[tid + 1];
}
__global__ void reduce4(int *g_idata, int *g_odata, unsigned int n) {
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    int v = i < n ? g_idata[i] : 0;
    if (i + blockDim.x < n) v += g_idata[i + blockDim.x];
    sdata[tid] = v;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 32; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid < 32) warpReduce(sdata, tid);
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}
""", "--dtype i32", "__syncwarp()")
kernel("right", "reduce1 of the SDK: strided index", """
__global__ void reduce1(int *g_idata, int *g_odata, unsigned int n) {
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        int index = 2 * s * tid;
        if (index < blockDim.x) sdata[index] += sdata[index + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}
""", "--dtype i32")
kernel("right", "reduce3 with a cooperative block", """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <class T>
__global__ void reduce3(const T *__restrict__ g_idata, T *__restrict__ g_odata, unsigned int n) {
    cg::thread_block cta = cg::this_thread_block();
    extern __shared__ __align__(sizeof(T)) unsigned char raw[];
    T *sdata = reinterpret_cast<T *>(raw);
    unsigned int tid = cta.thread_rank();
    unsigned int i = blockIdx.x * (blockDim.x * 2) + tid;
    T mySum = (i < n) ? g_idata[i] : T(0);
    if (i + blockDim.x < n) mySum += g_idata[i + blockDim.x];
    sdata[tid] = mySum;
    cg::sync(cta);
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] = mySum = mySum + sdata[tid + s];
        cg::sync(cta);
    }
    if (tid == 0) g_odata[blockIdx.x] = mySum;
}
""", "--dtype f64")
kernel("right", "reduce6 of the SDK with nIsPow2 by hand", """
template <unsigned int blockSize>
__global__ void reduce6(const float *g_idata, float *g_odata, unsigned int n) {
    __shared__ float sdata[blockSize];
    unsigned int tid = threadIdx.x;
    unsigned int gridSize = blockSize * gridDim.x;
    float mySum = 0;
    unsigned int i = blockIdx.x * blockSize + threadIdx.x;
    while (i < n) {
        mySum += g_idata[i];
        i += gridSize;
    }
    sdata[tid] = mySum;
    __syncthreads();
#pragma unroll
    for (int s = blockSize / 2; s >= 32; s /= 2) {
        if (tid < s) sdata[tid] = mySum = mySum + sdata[tid + s];
        __syncthreads();
    }
    if (tid < 32) {
        mySum = sdata[tid];
        for (int offset = 16; offset > 0; offset >>= 1) mySum += __shfl_xor_sync(0xffffffffu, mySum, offset);
    }
    if (tid == 0) g_odata[blockIdx.x] = mySum;
}
""")
kernel("right", "PMPP: coarsened, atomic, both", """
#define BLOCK_DIM 128
#define COARSE_FACTOR 4
__global__ void CoarsenedSumReductionKernel(float* input, float* output, unsigned int length) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int segment = COARSE_FACTOR*2*blockDim.x*blockIdx.x;
    unsigned int i = segment + threadIdx.x;
    unsigned int t = threadIdx.x;
    float sum = 0.0f;
    for(unsigned int tile = 0; tile < COARSE_FACTOR*2; ++tile) {
        unsigned int j = i + tile*BLOCK_DIM;
        if (j < length) sum += input[j];
    }
    input_s[t] = sum;
    for (unsigned int stride = blockDim.x/2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) {
            input_s[t] += input_s[t + stride];
        }
    }
    if (t == 0) {
        atomicAdd(output, input_s[0]);
    }
}
""")
kernel("wrong", "PMPP: coarsened without the bound", """
#define BLOCK_DIM 128
#define COARSE_FACTOR 4
__global__ void CoarsenedSumReductionKernel(float* input, float* output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int i = COARSE_FACTOR*2*blockDim.x*blockIdx.x + threadIdx.x;
    unsigned int t = threadIdx.x;
    float sum = input[i];
    for(unsigned int tile = 1; tile < COARSE_FACTOR*2; ++tile) sum += input[i + tile*BLOCK_DIM];
    input_s[t] = sum;
    for (unsigned int stride = blockDim.x/2; stride >= 1; stride /= 2) {
        __syncthreads();
        if (t < stride) input_s[t] += input_s[t + stride];
    }
    if (t == 0) atomicAdd(output, input_s[0]);
}
""", "--block 128", "but input has")
kernel("right", "the dot product of the book on CUDA by example", """
#define imin(a,b) (a<b?a:b)
const int N = 33 * 1024;
const int threadsPerBlock = 256;
const int blocksPerGrid = imin(32, (N+threadsPerBlock-1) / threadsPerBlock);
__global__ void dot(float *a, float *b, float *c, int n) {
    __shared__ float cache[threadsPerBlock];
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;
    float temp = 0;
    while (tid < n) {
        temp += a[tid] * b[tid];
        tid += blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();
    int i = blockDim.x/2;
    while (i != 0) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
        i /= 2;
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}
int main(void) { return 0; }
""", "", "dot")
kernel("wrong", "the dot product with the barrier moved into the if", KERNELS[-1].text.replace("""            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();""", """        {   cache[cacheIndex] += cache[cacheIndex + i];
            __syncthreads(); }"""), "", "barrier")
kernel("right", "argmax-like: max of packed keys", """
__global__ void argmax(const unsigned long long *keys, unsigned long long *out, int n) {
    unsigned long long best = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (keys[i] > best) best = keys[i];
    for (int o = 16; o; o >>= 1) {
        unsigned long long other = __shfl_down_sync(~0u, best, o);
        if (other > best) best = other;
    }
    if ((threadIdx.x & 31) == 0) atomicMax(out, best);
}
""", "--op max --dtype u64")
kernel("right", "max through shared memory and int atomics of ordered bits", """
__device__ int ordered(float f) { int i = __float_as_int(f); return i >= 0 ? i : i ^ 0x7fffffff; }
__device__ float unordered(int i) { return __int_as_float(i >= 0 ? i : i ^ 0x7fffffff); }
__global__ void maxKernel(const float *x, float *out, int n) {
    __shared__ int best;
    if (threadIdx.x == 0) best = ordered(-INFINITY);
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(&best, ordered(x[i]));
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = unordered(best);
}
""", "--op max")
kernel("wrong", "max through shared memory that nothing starts", """
__global__ void maxKernel(const int *x, int *out, int n) {
    __shared__ int best;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(&best, x[i]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = best;
}
""", "--op max --dtype i32", "written")
kernel("wrong", "min starts with the first element of the block", """
#include <float.h>
__global__ void minKernel(const float *x, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0f;
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d && i + d < n) s[t] = fminf(s[t], s[t + d]);
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""".replace("x[i] : 0.0f", "x[i] : FLT_MIN").replace(" && i + d < n", ""), "--op min --block 256")
kernel("right", "min that skips what is not there", """
__global__ void minKernel(const float *x, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (i < n) s[t] = x[i];
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d && i + d < n) s[t] = fminf(s[t], s[t + d]);
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "--op min")
kernel("right", "double atomics by compare and swap of the programming guide, blocks first", """
__device__ double myAtomicAdd(double* address, double val) {
    unsigned long long int* address_as_ull = (unsigned long long int*)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
__global__ void sum(const double *in, double *out, int n) {
    __shared__ double block;
    if (threadIdx.x == 0) block = 0.0;
    __syncthreads();
    double mine = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) mine += in[i];
    myAtomicAdd(&block, mine);
    __syncthreads();
    if (threadIdx.x == 0) myAtomicAdd(out, block);
}
""", "--dtype f64")
SAMPLE = """
__device__ unsigned int retirementCount = 0;
template <unsigned int blockSize>
__global__ void reduceSinglePass(const float *g_idata, float *g_odata, unsigned int n) {
    const unsigned int tid = threadIdx.x;
    __shared__ float smem[blockSize];
    float sum = 0;
    for (unsigned int i = blockIdx.x * blockSize + tid; i < n; i += blockSize * gridDim.x) sum += g_idata[i];
    smem[tid] = sum;
    __syncthreads();
    for (unsigned int s = blockSize / 2; s > 0; s >>= 1) {
        if (tid < s) smem[tid] += smem[tid + s];
        __syncthreads();
    }
    if (tid == 0) {
        g_odata[blockIdx.x] = smem[0];
        __threadfence();
    }
    __shared__ bool amLast;
    if (tid == 0) {
        unsigned int ticket = atomicInc(&retirementCount, gridDim.x);
        amLast = (ticket == gridDim.x - 1);
    }
    __syncthreads();
    if (amLast) {
        __threadfence();
        float mine = 0;
        for (int i = tid; i < gridDim.x; i += blockSize) mine += g_odata[i];
        smem[tid] = mine;
        __syncthreads();
        for (unsigned int s = blockSize / 2; s > 0; s >>= 1) {
            if (tid < s) smem[tid] += smem[tid + s];
            __syncthreads();
        }
        if (tid == 0) {
            g_odata[0] = smem[0];
            retirementCount = 0;
        }
    }
}
"""
kernel("right", "threadFenceReduction of the samples", SAMPLE)
kernel("wrong", "threadFenceReduction without the reset", KERNELS[-1].text.replace("            retirementCount = 0;\n", ""), "", "second launch")
kernel("wrong", "threadFenceReduction without the fence", KERNELS[-2].text.replace("        __threadfence();\n    }\n    __shared__", "    }\n    __shared__"), "", "__threadfence()")
kernel("wrong", "threadFenceReduction, amLast of the thread", KERNELS[-3].text.replace("__shared__ bool amLast", "bool amLast = false"))
kernel("right", "a grid of two-dimensional blocks, flattened", """
__global__ void reduce2d(const float *in, float *out, int n) {
    __shared__ float s[1024];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    int threads = blockDim.x * blockDim.y;
    int i = blockIdx.x * threads + t;
    s[t] = i < n ? in[i] : 0.f;
    __syncthreads();
    for (int d = threads / 2; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "--block 32x8", "32x8")
kernel("wrong", "a grid of two-dimensional blocks, x and y exchanged at the store", KERNELS[-1].text.replace("if (t == 0) out", "if (threadIdx.x == 0) out"), "--block 32x8")
kernel("wrong", "misaligned float4", """
__global__ void reduce(const float *x, float *out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 *v = reinterpret_cast<const float4*>(x + 1);
    float s = t == 0 ? x[0] : 0.f;
    for (int i = t; i < (n - 1) / 4; i += blockDim.x * gridDim.x) {
        float4 q = v[i];
        s += q.x + q.y + q.z + q.w;
    }
    if (t == 0) for (int i = 1 + (n - 1) / 4 * 4; i < n; i++) s += x[i];
    atomicAdd(out, s);
}
""", "", ("multiple of 16", "alignment"))
kernel("right", "aligned float4", KERNELS[-1].text.replace("x + 1", "x").replace("t == 0 ? x[0] : 0.f", "0.f").replace("(n - 1)", "n").replace("1 + n / 4", "n / 4"))
kernel("wrong", "misaligned float2 by the block", """
__global__ void reduce(const float *x, float *out, int n) {
    int t = threadIdx.x;
    int per = (n + gridDim.x - 1) / gridDim.x, from = blockIdx.x * per, to = min(n, from + per);
    float s = 0.f;
    for (int i = from + 2 * t; i < to; i += 2 * blockDim.x) {
        if (i + 1 < to) { float2 q = *(const float2 *)&x[i]; s += q.x + q.y; }
        else s += x[i];
    }
    atomicAdd(out, s);
}
""", "--grid 3", "multiple of 8")
kernel("wrong", "misaligned double in shared bytes", """
__global__ void reduce(const double *x, double *out, int n) {
    __shared__ float raw[2 * 256 + 1];
    double *s = (double *)(raw + 1);
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? x[i] : 0.0;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "--dtype f64 --block 256", "multiple of 8")
kernel("right", "a local array of partial sums", of_type(BLOCK, "float") + """
__global__ void reduce(const float *x, float *out, int n) {
    float part[4] = {0, 0, 0, 0};
    int stride = blockDim.x * gridDim.x, k = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride, k = (k + 1) % 4) part[k] += x[i];
    float v = block_sum(part[0] + part[1] + part[2] + part[3]);
    if (threadIdx.x == 0) atomicAdd(out, v);
}
""")
kernel("wrong", "a local array that is too short", KERNELS[-1].text.replace("k = (k + 1) % 4", "k = (k + 1) % 5"))
kernel("wrong", "a local array that nothing starts", KERNELS[-2].text.replace("float part[4] = {0, 0, 0, 0};", "float part[4];"))
kernel("right", "cooperative tiles of 16 with a cg::reduce and labeled sums", """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void reduce(const int *in, int *out, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int v = 0;
    for (int i = blockIdx.x * blockDim.x + block.thread_rank(); i < n; i += gridDim.x * blockDim.x) v += in[i];
    v = cg::reduce(tile, v, cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(out, v);
}
""", "--dtype i32")
kernel("wrong", "cooperative tiles of which only every second adds", KERNELS[-1].text.replace("tile.thread_rank() == 0", "block.thread_rank() % 32 == 0"), "--dtype i32")
kernel("right", "the mean's numerator in double", """
__global__ void sumAsDouble(const float *in, float *out, size_t n) {
    __shared__ double s[256];
    double v = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) v += in[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (unsigned d = 128; d; d >>= 1) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = (float)s[0];
}
""", "--block 256")
kernel("right", "two outputs' barrier of a while loop", """
__global__ void reduce(int *data, int n) {
    int t = threadIdx.x;
    int length = n;
    while (length > 1) {
        int half = (length + 1) / 2;
        for (int i = t; i + half < length; i += blockDim.x) data[i] += data[i + half];
        __syncthreads();
        length = half;
    }
}
""", "--dtype i32")
kernel("wrong", "the while loop forgets the odd element", KERNELS[-1].text.replace("(length + 1) / 2", "length / 2"), "--dtype i32")
kernel("right", "each warp has a slot, thread 0 adds them", """
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float warps[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = (i < n) ? in[i] : 0.f;
    for (int m = 16; m >= 1; m >>= 1) v += __shfl_xor_sync(0xffffffff, v, m);
    if (!(threadIdx.x & 31)) warps[threadIdx.x >> 5] = v;
    __syncthreads();
    if (!threadIdx.x) {
        float total = 0.f;
        for (int w = 0; w < (blockDim.x + 31) >> 5; ++w) total += warps[w];
        out[blockIdx.x] = total;
    }
}
""")
kernel("wrong", "each warp has a slot, but eight", KERNELS[-1].text.replace("warps[32]", "warps[8]").replace("w < (blockDim.x + 31) >> 5", "w < 8"))
kernel("wrong", "shuffles up, the first lane stores", """
__global__ void reduce(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = (i < n) ? in[i] : 0.f;
    for (int m = 1; m < 32; m <<= 1) v += __shfl_up_sync(0xffffffff, v, m);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
""")
kernel("right", "a scan's last lane as the sum", """
__global__ void reduce(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float v = (i < n) ? in[i] : 0.f;
    for (int m = 1; m < 32; m <<= 1) {
        float u = __shfl_up_sync(0xffffffff, v, m);
        if (lane >= m) v += u;
    }
    if (lane == 31) atomicAdd(out, v);
}
""")
kernel("wrong", "the host's launch within the kernel's stride", """
__global__ void reduce(const float *in, float *out, int n) {
    float v = 0;
    for (int i = threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
    atomicAdd(out, v);
}
""", "--grid 3")
kernel("right", "the product of doubles", """
__global__ void prod(const double *in, double *out, int n) {
    extern __shared__ double s[];
    int t = threadIdx.x;
    double p = 1;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) p *= in[i];
    s[t] = p;
    for (int d = blockDim.x >> 1; d; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] *= s[t + d];
    }
    if (!t) out[blockIdx.x] = *s;
}
""", "--op prod --dtype f64")
kernel("wrong", "the product of doubles, where thread 0 begins with 0", KERNELS[-1].text.replace("double p = 1", "double p = t ? 1 : 0"), "--op prod --dtype f64")
kernel("wrong", "int index of a size_t length", """
__global__ void reduce(const float *in, float *out, size_t n) {
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? in[i] : 0.f;
    for (int d = blockDim.x >> 1; d; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    if (!t) out[blockIdx.x] = *s;
}
""")
kernel("wrong", "byte offsets in an int", """
__global__ void reduce(const float *in, float *out, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x, at = (blockIdx.x * blockDim.x + t) * 4;
    s[t] = at / 4 < n ? *(const float *)((const char *)in + at) : 0.f;
    for (int d = blockDim.x >> 1; d; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    if (!t) out[blockIdx.x] = *s;
}
""")
kernel("right", "64-bit index of a size_t length", KERNELS[-2].text.replace("t = threadIdx.x, i = blockIdx.x * blockDim.x + t;", "t = threadIdx.x; size_t i = (size_t)blockIdx.x * blockDim.x + t;"))
kernel("wrong", "a float index", """
__global__ void reduce(const float *in, float *out, int n) {
    extern __shared__ float s[];
    int t = threadIdx.x;
    float i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? in[(int)i] : 0.f;
    for (int d = blockDim.x >> 1; d; d >>= 1) {
        __syncthreads();
        if (t < d) s[t] += s[t + d];
    }
    if (!t) out[blockIdx.x] = *s;
}
""")
kernel("wrong", "int index of a size_t length, grid-stride", """
__global__ void reduce(const float *in, float *out, size_t n) {
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
    atomicAdd(out, v);
}
""")

kernel("wrong", "the last block reads plainly, right behind its atomic", """
__device__ int taken = 0;
__global__ void reduce(const int *in, int *out, int n) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&s, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        out[blockIdx.x] = s;
        __threadfence();
        if (atomicAdd(&taken, 1) == gridDim.x - 1) {
            int all = 0;
            for (int b = 0; b < gridDim.x; b++) all += out[b];
            out[0] = all;
            taken = 0;
        }
    }
}
""", "--dtype i32", "stands behind the atomic")
kernel("right", "the same, where it fences", KERNELS[-1].text.replace("            int all = 0;", "            __threadfence();\n            int all = 0;"), "--dtype i32")
kernel("right", "the sample's last block, with a barrier behind the atomic", SAMPLE.replace("        __threadfence();\n        float mine", "        float mine"), "",
       "The standard asks for a fence")
kernel("wrong", "int index of an unsigned length", tree(LOAD).replace("unsigned int i", "int i").replace("int n)", "unsigned n)"), "", "an index")
kernel("right", "unsigned index of an unsigned length", tree(LOAD).replace("int n)", "unsigned n)"))


def kernel_text(name):
    """The text of a kernel that stands above."""
    (text,) = [k.text for k in KERNELS if k.name == name]
    return text


# ---- a second round: kernels as other people write them ----

kernel("wrong", "n * blockIdx.x / gridDim.x in int", """
__global__ void sum(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    int begin = n * blockIdx.x / gridDim.x;
    int end = n * (blockIdx.x + 1) / gridDim.x;
    float v = 0;
    for (int i = begin + t; i < end; i += blockDim.x) v += in[i];
    s[t] = v;
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "--block 256 --grid 64")
kernel("wrong", "n * blockIdx.x / gridDim.x in int, no options", KERNELS[-1].text)
kernel("right", "n * blockIdx.x / gridDim.x in 64 bits", KERNELS[-1].text.replace("n * blockIdx.x", "(long long)n * blockIdx.x").replace("n * (blockIdx.x", "(long long)n * (blockIdx.x"))
kernel("right", "chunk per block", """
__global__ void sum(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    int chunk = (n + gridDim.x - 1) / gridDim.x;
    int begin = blockIdx.x * chunk;
    int end = min(begin + chunk, n);
    float v = 0;
    for (int i = begin + t; i < end; i += blockDim.x) v += in[i];
    s[t] = v;
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""")
kernel("wrong", "chunk floor per block", KERNELS[-1].text.replace("(n + gridDim.x - 1) / gridDim.x", "n / gridDim.x"))
kernel("right", "chunk floor, last block takes the rest", KERNELS[-2].text.replace("(n + gridDim.x - 1) / gridDim.x", "n / gridDim.x").replace("min(begin + chunk, n)", "blockIdx.x == gridDim.x - 1 ? n : begin + chunk"))
kernel("right", "each thread a chunk", """
__global__ void sumChunks(const float *data, float *result, int n) {
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    int total = gridDim.x * blockDim.x;
    int per = (n + total - 1) / total;
    long long first = (long long)tid * per;
    float local = 0.0f;
    for (int k = 0; k < per; k++)
        if (first + k < n) local += data[first + k];
    atomicAdd(result, local);
}
""")
kernel("wrong", "each thread a chunk, remainder lost", KERNELS[-1].text.replace("(n + total - 1) / total", "n / total"))
kernel("right", "one thread", """
__global__ void sum(const int *x, int *y, int n) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        int s = 0;
        for (int i = 0; i < n; i++) s += x[i];
        y[0] = s;
    }
}
""", "--dtype i32")
kernel("wrong", "one thread, from 1", KERNELS[-1].text.replace("i = 0; i < n", "i = 1; i < n"), "--dtype i32")
kernel("wrong", "one thread, <=", KERNELS[-2].text.replace("i < n", "i <= n"), "--dtype i32")
kernel("right", "atomicAdd of each element", """
__global__ void sum(const float *x, float *y, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) atomicAdd(y, x[i]);
}
""")
kernel("wrong", "every thread adds without an atomic", """
__global__ void sum(const float *x, float *y, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) *y += x[i];
}
""", "", "atomicAdd")
kernel("right", "a sum whose mean the host takes", """
__global__ void mean(const float *x, float *y, int n) {
    __shared__ float s[256];
    s[threadIdx.x] = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[threadIdx.x] += x[i];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        if (threadIdx.x % (2 * d) == 0) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[0] = s[0];
}
""")
kernel("wrong", "mean of the array", KERNELS[-1].text.replace("y[0] = s[0]", "y[0] = s[0] / n"), "", "this is the mean")
kernel("right", "logical or via __syncthreads_or", """
__global__ void anyBit(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? x[i] : 0;
    for (int m = 16; m; m >>= 1) v |= __shfl_xor_sync(0xffffffff, v, m);
    if (threadIdx.x % 32 == 0) atomicOr(y, v);
}
""", "--op or --dtype i32")
kernel("wrong", "and padded with 0", KERNELS[-1].text.replace("atomicOr", "atomicAnd").replace("|=", "&="), "--op and --dtype i32")
kernel("right", "and padded with ones", KERNELS[-2].text.replace("atomicOr", "atomicAnd").replace("|=", "&=").replace(": 0;", ": -1;"), "--op and --dtype i32")
kernel("right", "syncthreads_count", """
__global__ void countOnes(const int *x, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int total = 0;
    int v = i < n ? x[i] : 0;
    for (int b = 0; b < 32; b++) total += __syncthreads_count((v >> b) & 1) << b;
    if (threadIdx.x == 0) atomicAdd(y, total);
}
""", "--dtype i32")
kernel("right", "syncthreads_or", """
__global__ void orAll(const unsigned *x, unsigned *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = i < n ? x[i] : 0u, total = 0;
    for (int b = 0; b < 32; b++) if (__syncthreads_or(v >> b & 1)) total |= 1u << b;
    if (threadIdx.x == 0) y[blockIdx.x] = total;
}
""", "--op or --dtype u32")
kernel("right", "argmax struct value index in shared", """
struct Pair { float value; int index; };
__device__ Pair better(Pair a, Pair b) { return b.value > a.value ? b : a; }
__global__ void argmax(const float *x, float *best, int n) {
    __shared__ Pair s[256];
    int t = threadIdx.x;
    Pair mine = {-INFINITY, -1};
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) mine = better(mine, Pair{x[i], i});
    s[t] = mine;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        if (t < d) s[t] = better(s[t], s[t + d]);
        __syncthreads();
    }
    if (t == 0) best[blockIdx.x] = s[0].value;
}
""", "--op max")
kernel("wrong", "argmax struct, index stored", KERNELS[-1].text.replace("s[0].value", "s[0].index"), "--op max")
kernel("wrong", "argmax struct, no barrier", KERNELS[-2].text.replace("    s[t] = mine;\n    __syncthreads();", "    s[t] = mine;"), "--op max", "barrier")
kernel("refused", "argmax with two outputs", """
__global__ void argmax(const float *x, float *best, int *index, int n) {
    __shared__ float v[256]; __shared__ int k[256];
    int t = threadIdx.x;
    v[t] = -INFINITY; k[t] = -1;
    for (int i = t; i < n; i += blockDim.x) if (x[i] > v[t]) { v[t] = x[i]; k[t] = i; }
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        if (t < d && v[t + d] > v[t]) { v[t] = v[t + d]; k[t] = k[t + d]; }
        __syncthreads();
    }
    if (t == 0) { *best = v[0]; *index = k[0]; }
}
""", "--op max")
kernel("right", "float4 via reinterpret_cast and .x.y.z.w tail", """
__global__ void reduce_v4(const float* __restrict__ in, float* __restrict__ out, int n) {
    const int idx = blockIdx.x * blockDim.x + threadIdx.x;
    const int stride = blockDim.x * gridDim.x;
    const int n4 = n >> 2;
    float acc = 0.f;
    for (int i = idx; i < n4; i += stride) {
        const float4 v = reinterpret_cast<const float4*>(in)[i];
        acc += (v.x + v.y) + (v.z + v.w);
    }
    for (int i = (n4 << 2) + idx; i < n; i += stride) acc += in[i];
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, o);
    __shared__ float warp_sums[32];
    if ((threadIdx.x & 31) == 0) warp_sums[threadIdx.x >> 5] = acc;
    __syncthreads();
    if (threadIdx.x < 32) {
        acc = threadIdx.x < (blockDim.x + 31) / 32 ? warp_sums[threadIdx.x] : 0.f;
        #pragma unroll
        for (int o = 16; o > 0; o >>= 1) acc += __shfl_down_sync(0xffffffffu, acc, o);
        if (threadIdx.x == 0) atomicAdd(out, acc);
    }
}
""")
kernel("right", "float4 loads, for up to eight warps", KERNELS[-1].text.replace("warp_sums[32]", "warp_sums[8]"), "", "not with blocks of 1024")
kernel("right", "int4 loads", """
__global__ void sum4(const int *in, int *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int s = 0;
    if (4 * i + 3 < n) { int4 v = ((const int4 *)in)[i]; s = v.x + v.y + v.z + v.w; }
    else for (unsigned k = 4 * i; k < n; k++) s += in[k];
    s = __reduce_add_sync(0xffffffff, s);
    if (threadIdx.x % 32 == 0) atomicAdd(out, s);
}
""", "--dtype i32")
kernel("right", "volatile warp reduce with syncwarp, LLM style", """
template <unsigned int BLOCK>
__device__ void warpReduce(volatile float *s, int t) {
    float v = s[t];
    if (BLOCK >= 64) { v += s[t + 32]; __syncwarp(); s[t] = v; __syncwarp(); }
    v += s[t + 16]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 8]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 4]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 2]; __syncwarp(); s[t] = v; __syncwarp();
    v += s[t + 1]; __syncwarp(); s[t] = v;
}
template <unsigned int BLOCK>
__global__ void reduce(const float *in, float *out, unsigned int n) {
    __shared__ float s[BLOCK + 32];
    unsigned t = threadIdx.x, i = blockIdx.x * (2 * BLOCK) + t;
    s[t] = (i < n ? in[i] : 0.f) + (i + BLOCK < n ? in[i + BLOCK] : 0.f);
    if (t < 32) s[BLOCK + t] = 0.f;
    __syncthreads();
    if (BLOCK >= 1024) { if (t < 512) s[t] += s[t + 512]; __syncthreads(); }
    if (BLOCK >= 512) { if (t < 256) s[t] += s[t + 256]; __syncthreads(); }
    if (BLOCK >= 256) { if (t < 128) s[t] += s[t + 128]; __syncthreads(); }
    if (BLOCK >= 128) { if (t < 64) s[t] += s[t + 64]; __syncthreads(); }
    if (t < 32) warpReduce<BLOCK>(s, t);
    if (t == 0) out[blockIdx.x] = s[0];
}
template __global__ void reduce<256>(const float *, float *, unsigned int);
""")
kernel("right", "padding against bank conflicts", """
#define PAD(i) ((i) + ((i) >> 5))
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[PAD(512) + 1];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    s[PAD(t)] = i < n ? in[i] : 0;
    s[PAD(t + 256)] = i + 256 < n ? in[i + 256] : 0;
    for (int d = 1; d < 512; d <<= 1) {
        __syncthreads();
        int k = 2 * d * t;
        if (k + d < 512) s[PAD(k)] += s[PAD(k + d)];
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "--block 256")
kernel("wrong", "padding too small", KERNELS[-1].text.replace("s[PAD(512) + 1]", "s[512]"), "--block 256", "outside of the array")
kernel("right", "constant memory", """
__constant__ float scale = 1.0f;
__constant__ int items = 4;
__global__ void reduce(const float *in, float *out, int n) {
    float v = 0;
    for (int k = 0; k < items; k++) {
        int i = (blockIdx.x * items + k) * blockDim.x + threadIdx.x;
        if (i < n) v += scale * in[i];
    }
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
    if (threadIdx.x % warpSize == 0) atomicAdd(out, v);
}
""")
kernel("right", "do-while CAS float max", """
__device__ void atomicMaxf(float *a, float v) {
    int *p = (int *)a;
    int old = *p;
    while (v > __int_as_float(old)) {
        int seen = atomicCAS(p, old, __float_as_int(v));
        if (seen == old) break;
        old = seen;
    }
}
__global__ void maxk(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMaxf(out, x[i]);
}
""", "--op max")
kernel("right", "lambda generic combine", """
__global__ void reduce(const double *in, double *out, int n) {
    auto combine = [] __device__ (double a, double b) { return a < b ? a : b; };
    double v = 1.0 / 0.0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) v = combine(v, in[i]);
    for (int o = warpSize / 2; o > 0; o /= 2) v = combine(v, __shfl_xor_sync(0xffffffff, v, o));
    __shared__ double s[32];
    if (threadIdx.x % warpSize == 0) s[threadIdx.x / warpSize] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < (blockDim.x + 31) / 32; w++) v = combine(v, s[w]);
        out[blockIdx.x] = v;
    }
}
""", "--op min --dtype f64")
kernel("right", "two-kernel file, first", """
#include <cuda_runtime.h>
#include <stdio.h>
#define CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { fprintf(stderr, "%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)
__global__ void reduce_pass(const float *in, float *out, int n) {
    extern __shared__ float sdata[];
    int tid = threadIdx.x;
    int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
    float mySum = (i < n) ? in[i] : 0;
    if (i + blockDim.x < n) mySum += in[i + blockDim.x];
    sdata[tid] = mySum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] = mySum = mySum + sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = mySum;
}
float reduce_all(float *d_in, float *d_tmp, int n) {
    int threads = 256;
    while (n > 1) {
        int blocks = (n + threads * 2 - 1) / (threads * 2);
        reduce_pass<<<blocks, threads, threads * sizeof(float)>>>(d_in, d_tmp, n);
        CHECK(cudaDeviceSynchronize());
        float *t = d_in; d_in = d_tmp; d_tmp = t;
        n = blocks;
    }
    float r; CHECK(cudaMemcpy(&r, d_in, sizeof r, cudaMemcpyDeviceToHost));
    return r;
}
int main() { return 0; }
""")
kernel("right", "grid 2-D indices", """
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[16][16];
    int t = threadIdx.y * 16 + threadIdx.x;
    int b = blockIdx.y * gridDim.x + blockIdx.x;
    int i = b * 256 + t;
    s[threadIdx.y][threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int d = 8; d > 0; d >>= 1) {
        if (threadIdx.x < d) s[threadIdx.y][threadIdx.x] += s[threadIdx.y][threadIdx.x + d];
        __syncthreads();
    }
    for (int d = 8; d > 0; d >>= 1) {
        if (threadIdx.x == 0 && threadIdx.y < d) s[threadIdx.y][0] += s[threadIdx.y + d][0];
        __syncthreads();
    }
    if (t == 0) out[b] = s[0][0];
}
""", "--block 16x16")
kernel("wrong", "2-D, only rows are added", KERNELS[-1].text.replace("threadIdx.x == 0 && threadIdx.y < d", "false"), "--block 16x16")
kernel("right", "two dimensions, and no --block", KERNELS[-2].text, "", "16x16")
kernel("right", "short sums", """
__global__ void sum(const short *in, short *out, int n) {
    __shared__ short s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = blockDim.x / 2; d; d /= 2) {
        if (t < d) s[t] = s[t] + s[t + d];
        __syncthreads();
    }
    if (!t) out[blockIdx.x] = s[0];
}
""", "--dtype i16")
kernel("right", "signed char max", """
__global__ void maxc(const signed char *in, signed char *out, int n) {
    __shared__ int s;
    if (threadIdx.x == 0) s = -128;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(&s, (int)in[i]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = (signed char)s;
}
""", "--op max --dtype i8")
kernel("wrong", "signed char max started with 0", KERNELS[-1].text.replace("s = -128", "s = 0"), "--op max --dtype i8")
kernel("right", "char kernel", """
__global__ void maxc(const char *in, char *out, int n) {
    __shared__ int s;
    if (threadIdx.x == 0) s = -128;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(&s, (int)in[i]);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = (char)s;
}
""", "--op max")
kernel("right", "unsigned long long min", """
typedef unsigned long long ull;
__global__ void minull(const ull *in, ull *out, int n) {
    ull v = ~0ull;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v = min(v, in[i]);
    for (int o = 16; o; o >>= 1) v = min(v, __shfl_xor_sync(~0u, v, o));
    if (threadIdx.x % 32 == 0) atomicMin(out, v);
}
""", "--op min")
kernel("right", "min of unsigned", """
__global__ void minu(const unsigned *in, unsigned *out, int n) {
    unsigned v = 0xffffffff;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v = min(v, in[i]);
    v = __reduce_min_sync(0xffffffff, v);
    if (threadIdx.x % 32 == 0) atomicMin(out, v);
}
""", "--op min")
kernel("wrong", "min of unsigned started with 0x7fffffff", KERNELS[-1].text.replace("0xffffffff;", "0x7fffffff;"), "--op min")
kernel("right", "last block with __syncthreads_or", """
__device__ unsigned int count;
template <int B>
__global__ void sumAll(const float *in, volatile float *out, int n) {
    __shared__ float s[B];
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * B + t; i < n; i += gridDim.x * B) v += in[i];
    s[t] = v;
    __syncthreads();
    for (int d = B / 2; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    bool done = false;
    if (t == 0) {
        out[blockIdx.x] = s[0];
        __threadfence();
        done = atomicInc(&count, gridDim.x - 1) == gridDim.x - 1;
    }
    if (__syncthreads_or(done)) {
        v = 0;
        for (int i = t; i < gridDim.x; i += B) v += out[i];
        s[t] = v;
        __syncthreads();
        for (int d = B / 2; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (t == 0) out[0] = s[0];
    }
}
""")
kernel("refused", "grid sync of groups", """
#include <cooperative_groups.h>
using namespace cooperative_groups;
__global__ void reduce(const float *in, float *out, int n) {
    grid_group g = this_grid();
    float v = 0;
    for (int i = g.thread_rank(); i < n; i += g.size()) v += in[i];
    g.sync();
    atomicAdd(out, v);
}
""")
kernel("refused", "thrust", """
#include <thrust/reduce.h>
#include <thrust/device_vector.h>
int main() { thrust::device_vector<int> v(10, 1); return thrust::reduce(v.begin(), v.end()); }
""")
kernel("right", "a printf in a kernel", """
__global__ void reduce(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { printf("%d\\n", i); atomicAdd(out, in[i]); }
}
""")
kernel("right", "assert in kernel", """
#include <cassert>
__global__ void reduce(const float *in, float *out, int n) {
    assert(blockDim.x <= 1024);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, in[i]);
}
""")
kernel("right", "launch bounds and restrict", """
__global__ void __launch_bounds__(256, 2) reduce(const float * __restrict__ in, float * __restrict__ out, const unsigned int n) {
    float v = 0.0f;
    const unsigned int stride = gridDim.x * blockDim.x;
    #pragma unroll 4
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) v += __ldg(&in[i]);
    #pragma unroll
    for (int mask = warpSize / 2; mask > 0; mask >>= 1) v += __shfl_xor_sync(0xFFFFFFFF, v, mask);
    if ((threadIdx.x & (warpSize - 1)) == 0) atomicAdd(out, v);
}
""")
kernel("right", "int n by pointer order (out, in)", """
__global__ void sum(float *total, const float *values, int count) {
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) v += values[i];
    atomicAdd(total, v);
}
""")
kernel("right", "n first", """
__global__ void sum(int N, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) atomicAdd(&y[0], x[i]);
}
""")
kernel("right", "double buffer shared", """
__global__ void reduce(const int *in, int *out, int n) {
    __shared__ int buf[2][256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, p = 0;
    buf[0][t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t < d) buf[1 - p][t] = buf[p][t] + buf[p][t + d];
        p = 1 - p;
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = buf[p][0];
}
""", "--dtype i32")
kernel("wrong", "double buffer shared, p not flipped", KERNELS[-1].text.replace("p = 1 - p;", ""), "--dtype i32")
kernel("right", "barrier outside, helper function with reference", """
__device__ void tree(float (&s)[256]) {
    for (unsigned d = 128; d; d >>= 1) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
}
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[256];
    float v = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
    s[threadIdx.x] = v;
    __syncthreads();
    tree(s);
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
""")
kernel("wrong", "break out of loop before barrier", """
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {
        if (t >= d) break;
        s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "", "barrier")
kernel("wrong", "grid stride barrier in loop with n-dependent trips", """
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[256];
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        s[threadIdx.x] = in[i];
        __syncthreads();
        v += s[threadIdx.x];
    }
    atomicAdd(out, v);
}
""", "", "barrier")
kernel("wrong", "atomicAdd on shared, no init barrier", """
__global__ void reduce(const int *in, int *out, int n) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&s, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(out, s);
}
""", "--dtype i32", "barrier")
kernel("wrong", "atomicAdd on shared, no final barrier", KERNELS[-1].text.replace("    __syncthreads();\n", "").replace("s = 0;", "s = 0;\n    __syncthreads();"), "--dtype i32", "barrier")
kernel("right", "atomicAdd on shared", KERNELS[-2].text.replace("s = 0;", "s = 0;\n    __syncthreads();"), "--dtype i32")
kernel("wrong", "atomicExch instead of add", """
__global__ void reduce(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = i < n ? in[i] : 0;
    v = __reduce_add_sync(0xffffffff, v);
    if (threadIdx.x % 32 == 0) atomicExch(out, v);
}
""", "--dtype i32")
kernel("wrong", "shfl_down with full mask within ragged if", """
__global__ void reduce(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = in[i];
        for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
        if ((threadIdx.x & 31) == 0) atomicAdd(out, v);
    }
}
""")
kernel("wrong", "shfl with __activemask in ragged if", KERNELS[-1].text.replace("0xffffffff", "__activemask()"))
kernel("right", "normal dot with double accumulate in CAS", """
__global__ void dot(const double *x, const double *y, double *result, int n) {
    double v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v = fma(x[i], y[i], v);
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
    if ((threadIdx.x & 31) == 0) atomicAdd(result, v);
}
""", "--dtype f64")
kernel("wrong", "dot with a*a", KERNELS[-1].text.replace("fma(x[i], y[i], v)", "fma(x[i], x[i], v)"), "--dtype f64")
kernel("wrong", "block sum, second block missing", """
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = t < n ? in[t] : 0;
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) out[blockIdx.x] = s[0];
}
""")
kernel("wrong", "odd-even sequential halves lose middle", """
__global__ void reduce(int *a, int n) {
    int t = threadIdx.x;
    for (int len = n; len > 1; len /= 2) {
        if (t < len / 2) a[t] += a[t + len / 2];
        __syncthreads();
    }
}
""", "--dtype i32", "power of two")
kernel("right", "recursive halves in place with ceil, several per thread", """
__global__ void reduce(int *a, int n) {
    for (int len = n; len > 1; len = (len + 1) / 2) {
        for (int i = threadIdx.x; i < len / 2; i += blockDim.x) a[i] += a[len - 1 - i];
        __syncthreads();
    }
}
""", "--dtype i32")
kernel("right", "cub-like struct block reduce", """
template <typename T, int N>
struct BlockReduce {
    struct Storage { T warp[N / 32]; };
    Storage &s;
    __device__ explicit BlockReduce(Storage &storage) : s(storage) {}
    template <typename Op> __device__ T reduce(T v, Op op) {
        for (int o = 16; o; o >>= 1) v = op(v, __shfl_down_sync(0xffffffff, v, o));
        if (threadIdx.x % 32 == 0) s.warp[threadIdx.x / 32] = v;
        __syncthreads();
        if (threadIdx.x == 0) for (int w = 1; w < N / 32; w++) v = op(v, s.warp[w]);
        return v;
    }
};
struct Max { template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; } };
__global__ void reduce(const int *in, int *out, int n) {
    __shared__ BlockReduce<int, 256>::Storage storage;
    int v = INT_MIN;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v = max(v, in[i]);
    v = BlockReduce<int, 256>(storage).reduce(v, Max());
    if (threadIdx.x == 0) atomicMax(out, v);
}
""", "--op max --dtype i32 --block 256")
kernel("right", "goto-free while with flag", """
__global__ void reduce(float *g_in, float *g_out, int size) {
    extern __shared__ float tile[];
    const int lid = threadIdx.x;
    const int gid = blockDim.x * blockIdx.x + lid;
    tile[lid] = (gid < size) ? g_in[gid] : 0.0f;
    int active = blockDim.x >> 1;
    do {
        __syncthreads();
        if (lid < active) tile[lid] += tile[lid + active];
        active >>= 1;
    } while (active > 0);
    if (lid == 0) g_out[blockIdx.x] = tile[0];
}
""")
kernel("wrong", "do-while for 1-thread", KERNELS[-1].text.replace("active > 0", "active > 1"))
kernel("right", "float reduce in higher registers ILP", """
#define ILP 4
__global__ void reduce(const float *in, float *out, int n) {
    float acc[ILP] = {0};
    int base = blockIdx.x * blockDim.x * ILP + threadIdx.x;
    int stride = gridDim.x * blockDim.x * ILP;
    for (; base < n; base += stride)
        #pragma unroll
        for (int k = 0; k < ILP; k++) { int i = base + k * blockDim.x; if (i < n) acc[k] += in[i]; }
    float v = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    __shared__ float s[1024];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads(); }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
""")
kernel("wrong", "ILP but missing third accumulator", KERNELS[-1].text.replace("(acc[2] + acc[3])", "acc[3]"))
kernel("right", "prod of ints mod 2^32", """
__global__ void prod(const unsigned *in, unsigned *out, int n) {
    unsigned v = 1;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v *= in[i];
    __shared__ unsigned s[1024];
    s[threadIdx.x] = v;
    __syncthreads();
    if (threadIdx.x == 0) { for (int k = 1; k < blockDim.x; k++) v *= s[k]; *out = v; }
}
""", "--op prod --dtype u32")
kernel("refused", "missing kernel keyword", """
void reduce(const float *in, float *out, int n) { out[0] = in[0]; }
""")
kernel("refused", "OpenCL kernel", """
__kernel void reduce(__global const float *in, __global float *out, __local float *s, int n) {
    int t = get_local_id(0), i = get_global_id(0);
    s[t] = i < n ? in[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = get_local_size(0) / 2; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; barrier(CLK_LOCAL_MEM_FENCE); }
    if (t == 0) out[get_group_id(0)] = s[0];
}
""")
kernel("refused", "Python numba", """
from numba import cuda
@cuda.jit
def reduce(x, out): pass
""")
kernel("refused", "missing brace", """
__global__ void reduce(const float *in, float *out, int n) {
    if (threadIdx.x == 0) { out[0] = in[0];
}
""")
kernel("refused", "misspelt syncthreads", """
__global__ void reduce(const float *in, float *out, int n) {
    __syncthread();
    if (threadIdx.x == 0) out[0] = in[0];
}
""")
kernel("refused", "threadIdx without x", """
__global__ void reduce(const float *in, float *out, int n) {
    int i = blockIdx * blockDim + threadIdx;
    if (i < n) atomicAdd(out, in[i]);
}
""")
kernel("refused", "wrong type in shuffle call", """
__global__ void reduce(const float *in, float *out, int n) {
    float v = in[threadIdx.x];
    v += __shfl_down_sync(v, 16);
    out[0] = v;
}
""")
kernel("refused", "float & operator", """
__global__ void reduce(const float *in, float *out, int n) {
    out[0] = in[0] & in[1];
}
""")
kernel("refused", "half2", """
#include <cuda_fp16.h>
__global__ void reduce(const half2 *in, float *out, int n) {
    out[0] = __low2float(in[0]);
}
""")
kernel("refused", "cuda pipeline/memcpy_async", """
#include <cuda/pipeline>
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[256];
    cuda::memcpy_async(&s[threadIdx.x], &in[threadIdx.x], sizeof(float), cuda::thread_scope_block);
    out[0] = s[0];
}
""")
kernel("refused", "an atomic_ref", """
#include <cuda/atomic>
__global__ void reduce(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::atomic_ref<float, cuda::thread_scope_device> total(*out);
    if (i < n) total.fetch_add(in[i], cuda::memory_order_relaxed);
}
""")
kernel("right", "std types", """
#include <cstdint>
__global__ void reduce(const int32_t *in, int32_t *out, std::size_t n) {
    std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, in[i]);
}
""")
kernel("right", "uint32_t", """
__global__ void reduce(const uint64_t *in, uint64_t *out, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd((unsigned long long *)out, (unsigned long long)in[i]);
}
""")
kernel("right", "one block that walks by 256", """
__global__ void reduce(const float *in, float *out, int n) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    float v = 0;
    for (int i = t; i < n; i += 256) v += in[i];
    s[t] = v;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) out[0] = s[0];
}
""")

CAS_MAX = kernel_text("do-while CAS float max")
kernel("wrong", "the maximum by compare and swap, read without a barrier", CAS_MAX.replace(
    "float *out, int n) {", "float *out, int n) {\n    __shared__ float best;\n    if (threadIdx.x == 0) best = -INFINITY;\n    __syncthreads();").replace(
    "atomicMaxf(out, x[i]);", "atomicMaxf(&best, x[i]);\n    if (threadIdx.x == 0) out[blockIdx.x] = best;"), "--op max", "best without a barrier")
kernel("right", "the maximum by compare and swap, read behind a barrier", KERNELS[-1].text.replace(
    "    if (threadIdx.x == 0) out", "    __syncthreads();\n    if (threadIdx.x == 0) out"), "--op max")
kernel("right", "the minimum by compare and swap, with an early return", """
__device__ void atomicMinf(float *a, float v) {
    if (*a <= v) return;
    int *p = (int *)a;
    int old = *p, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) <= v) break;
        old = atomicCAS(p, assumed, __float_as_int(v));
    } while (old != assumed);
}
__global__ void mink(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMinf(out, x[i]);
}
""", "--op min")
ROWS = kernel_text("grid 2-D indices")
kernel("right", "two dimensions by a macro, and no --block", "#define TILE 8\n" + ROWS.replace("16 + threadIdx.x", "TILE + threadIdx.x").replace(
    "[16][16]", "[TILE][TILE]").replace("256", "64").replace("d = 8", "d = 4"), "", "8x8")
kernel("right", "two dimensions, flattened, and no --block", kernel_text("a grid of two-dimensional blocks, flattened"), "", "16x16")

# ---- lengths at which an index wraps: one block, fixed grids, last blocks, two dimensions, chunks ----

FAR = "by some blocks of its launch"
kernel("wrong", "one block, int index of a size_t length", """
__global__ void reduce(const float *in, float *out, size_t n) {
    __shared__ float s[256];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += in[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) {
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[0] = s[0];
}
""", "", "an index does not hold its value")
ONE = KERNELS[-1].text
kernel("right", "one block, size_t index of a size_t length", ONE.replace("(int i", "(size_t i"), "", FAR)
kernel("wrong", "one block, int index of an unsigned length", ONE.replace("size_t n", "unsigned n"), "", "an index")
kernel("right", "one block, unsigned index of an unsigned length", ONE.replace("size_t n", "unsigned n").replace("(int i", "(unsigned i"), "", FAR)
kernel("wrong", "one block, bytes in an int", ONE.replace("size_t n", "int n").replace("in[i]", "*(const float *)((const char *)in + 4 * i)"), "", "an index")
kernel("wrong", "the last block, int index of an unsigned length", last_block().replace("int n)", "unsigned n)"), "", "an index")
kernel("wrong", "the last block, int index of an unsigned length, --grid", last_block().replace("int n)", "unsigned n)"), "--grid 64", "an index")
kernel("right", "the last block, --grid", last_block(), "--grid 64", FAR)
WALK = kernel_text("int index of a size_t length, grid-stride")
kernel("wrong", "int index of a size_t length, --grid 32", WALK, "--grid 32", "an index")
kernel("wrong", "int index of a size_t length, --grid 1", WALK, "--grid 1", "an index")
kernel("right", "size_t index of a size_t length, --grid 32", WALK.replace("(int i", "(size_t i").replace("= blockIdx", "= (size_t)blockIdx"), "--grid 32", FAR)
FLAT = kernel_text("a grid of two-dimensional blocks, flattened")
kernel("right", "two dimensions and a far length", FLAT, "--block 32x8", FAR)
kernel("wrong", "two dimensions, bytes in an int", FLAT.replace("in[i]", "*(const float *)((const char *)in + 4 * i)"), "--block 32x8", "an index")
kernel("wrong", "a chunk for each thread, n times a thread's number", """
__global__ void sumChunks(const float *data, float *result, int n) {
    int tid = blockIdx.x * blockDim.x + threadIdx.x;
    int total = gridDim.x * blockDim.x;
    int first = (long long)n * tid / total, last = n * (tid + 1) / total;
    float local = 0.0f;
    for (int k = first; k < last; k++) local += data[k];
    atomicAdd(result, local);
}
""", "", "an index")
kernel("right", "a chunk for each thread, in 64 bits", KERNELS[-1].text.replace("last = n *", "last = (long long)n *"), "", FAR)

# ---- what is not C++, not here, or too much ----

PLAIN = "__global__ void f(float *a, int n) "
kernel("wrong", "a loop of much work", """
__global__ void sum(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.f;
    for (int k = 0; k < 200000; k++) if (v == -12345.f) v = 0;
    atomicAdd(y, v);
}
""", "", "goes on and on")
kernel("right", "every element against every other", """
__global__ void sum(const float *x, float *y, int n) {
    if (blockIdx.x || threadIdx.x) return;
    float s = 0;
    for (int i = 0; i < n; i++) {
        float v = 0;
        for (int k = 0; k <= i; k++) if (k == i) v = x[k];
        s += v;
    }
    y[0] = s;
}
""")
kernel("refused", "more work than a verdict may take", "__global__ void sum(const float *x, float *y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
       "for (int k = 0; k < 999; k++) if (i < k - 1000) y[0] = k; if (i < n) atomicAdd(y, x[i]); }", "--grid 8192 --block 1024", "steps on the model")
for name, body, words in [
        ("threadIdx without a part", "{ int i = threadIdx; a[i] = 0; }", "mine.cu:1: threadIdx, blockIdx, blockDim and gridDim have three parts"),
        ("a length that is no constant", "{ __shared__ float s[n]; s[0] = a[0]; a[0] = s[0]; }", "the length of 's' is no constant"),
        ("a const that changes", "{ const float x = 1; x = 2; a[0] = x; }", "'x' is const"),
        ("a shuffle without a mask", "{ float v = __shfl_down_sync(a[0], 16); a[0] = v; }", "a shuffle takes a mask"),
        ("an atomic without an address", "{ atomicAdd(a[0], 1); }", "it takes an address"),
        ("a remainder of floats", "{ a[0] = a[0] % 2; }", "mine.cu:1: no operator of C++ is for operands of types 'float' and 'int'"),
        ("quotation marks of a word processor", "{ a[0] = \u201c1\u201d; }", "word processor"),
        ("new", "{ float *p = new float[n]; a[0] = p[0]; }", "new and delete are not here"),
        ("a vector", "{ std::vector<float> v; a[0] = 0; }", "the standard library is not here"),
        ("syncthreads", "{ syncthreads(); a[0] = 1; }", "syncthreads is __syncthreads() in CUDA C"),
        ("the host's wait", "{ cudaDeviceSynchronize(); a[0] = 0; }", "is for the host")]:
    kernel("refused", name, PLAIN + body, "", words)
kernel("refused", "a kernel that returns a number", "__global__ int f(float *a, int n) { return 0; }", "", "__global__ void")
kernel("refused", "an array of flags", "__global__ void f(bool *a, bool *b, int n)\n{ b[0] = 0; }", "", "parameter a is neither a pointer to numbers")


# ---- The table of kinds in docs/own-kernels.md: a kernel that has the fault, and one like it that has none ----


# ---- Numbers: what C++ makes of an element and a plain number ---------------------------------------------------------------

CHOSEN = """
__global__ void reduce(const long long *in, long long *out, int n) {
    __shared__ long long s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? in[i] : PAD;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k /= 2) {
        if (t < k) s[t] = JOIN;
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
LEAST = CHOSEN.replace("JOIN", "s[t] < s[t + k] ? s[t] : s[t + k]")
kernel("right", "a long long or 0", CHOSEN.replace("PAD", "0").replace("JOIN", "s[t] + s[t + k]"), "--dtype i64")
kernel("right", "a long long or LLONG_MAX", LEAST.replace("PAD", "LLONG_MAX"), "--dtype i64 --op min")
kernel("wrong", "a long long or INT_MAX", LEAST.replace("PAD", "INT_MAX"), "--dtype i64 --op min", "LLONG_MAX")

DOUBLES = """
__global__ void greatest(const double *in, double *out, int n) {
    __shared__ double s[256];
    int t = threadIdx.x;
    double best = -DBL_MAX;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) best = fmax(best, in[i]);
    s[t] = best;
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h >>= 1) {
        if (t < h) s[t] = fmax(s[t], s[t + h]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
kernel("right", "fmax() of doubles", DOUBLES, "--dtype f64 --op max")
kernel("wrong", "fmaxf() of doubles", DOUBLES.replace("fmax(", "fmaxf("), "--dtype f64 --op max", "fractions")

# ---- Lambdas, atomics, compare and swap --------------------------------------------------------------------------------------

LAMBDA = """
__global__ void greatest(const float *in, float *out, int n) {
    __shared__ float s[256];
    auto op = [](float a, float b) -> float {
        float c = a;
        for (int k = 0; k < 3; k++) { if (b > c && k < 2) c = b; else if (k == 7) c = c * 2 + a; }
        return c > b ? c : b;
    };
    int t = threadIdx.x;
    float best = -INFINITY;
    for (int i = blockIdx.x * blockDim.x + t; i <LAST n; i += gridDim.x * blockDim.x) best = op(best, in[i]);
    s[t] = best;
    __syncthreads();
    for (int h = blockDim.x / 2; h > 0; h >>= 1) { if (t < h) s[t] = op(s[t], s[t + h]); __syncthreads(); }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
kernel("right", "a long lambda", LAMBDA.replace("LAST", ""), "--op max")
kernel("wrong", "a long lambda is given one element too many", LAMBDA.replace("LAST", "="), "--op max", "but in has")

ONE_ATOMIC = """
__global__ void total(const T *in, T *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) ATOMIC(out, in[i]);
}
"""
kernel("refused", "atomicMax() of floats", ONE_ATOMIC.replace("ATOMIC", "atomicMax"), "--op max",
       "atomicMax() takes int, unsigned, long long or unsigned long long")
kernel("refused", "atomicAdd() of long long", ONE_ATOMIC.replace("ATOMIC", "atomicAdd"), "--dtype i64",
       "atomicAdd() takes int, unsigned, unsigned long long, float or double")
kernel("right", "atomicMax() of long long", ONE_ATOMIC.replace("ATOMIC", "atomicMax"), "--op max --dtype i64")
kernel("right", "atomicAdd() of doubles", ONE_ATOMIC.replace("ATOMIC", "atomicAdd"), "--dtype f64")

SWAP = """
__device__ void add(double *p, double v) {
    unsigned long long *q = (unsigned long long *)p, old = *q, seen;
    LOOP
}
__global__ void total(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) add(out, in[i]);
}
"""
TRY = "old = atomicCAS(q, seen = old, __double_as_longlong(v + __longlong_as_double(old)));"
kernel("right", "a swap is tried again", SWAP.replace("LOOP", "do " + TRY + " while (seen != old);"), "--dtype f64")
kernel("wrong", "a swap is tried once", SWAP.replace("LOOP", TRY), "--dtype f64", "until it returns the value that was expected")

# ---- Launches and lengths ----------------------------------------------------------------------------------------------------

SERIAL = """
__global__ void stage2(const float *partials, float *result, unsigned int count) {
    float s = 0;
    for (unsigned int i = FIRST; i < count; i++) s += partials[i];
    *result = s;
}
"""
kernel("right", "one thread adds up the partials", SERIAL.replace("FIRST", "0"), "", "launched as one thread")
kernel("wrong", "one thread forgets the first partial", SERIAL.replace("FIRST", "1"))
kernel("wrong", "all threads add to one place, one after another or not", """
__global__ void total(const float *in, float *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) *out += in[i];
}
""", "", "atomicAdd()")
kernel("wrong", "16-byte loads leave out the rest", """
__global__ void wide(const float *in, float *out, int n) {
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += blockDim.x * gridDim.x) {
        float4 v = ((const float4 *)in)[i];
        s += v.x + v.y + v.z + v.w;
    }
    atomicAdd(out, s);
}
""", "", "only where n is a multiple of 4")
kernel("refused", "an array of float4", """
__global__ void wide(const float4 *in, float *out, int n) { out[0] = in[0].x; }
""", "", "take float * and cast it in the kernel")
STRIDE = """
__global__ void total(const float *in, float *out, unsigned n) {
    __shared__ float s[256];
    float v = 0;
    for (INDEX i = threadIdx.x; i < n; i += 256) v += in[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int h = 128; h; h >>= 1) { if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h]; __syncthreads(); }
    if (threadIdx.x == 0) *out = s[0];
}
"""
kernel("wrong", "an int strides by a number of the text", STRIDE.replace("INDEX", "int"), "", "n = 2147484672 an index does not hold")
kernel("right", "an unsigned strides by a number of the text", STRIDE.replace("INDEX", "unsigned"), "", "n = 2147484672 by some blocks")
kernel("right", "a thread's number is an int, the index a size_t", STRIDE.replace("INDEX i = threadIdx.x", "size_t i = (int)threadIdx.x"),
       "", "n = 2147484672 by some blocks")
kernel("wrong", "the stride stays 0", """
__global__ void total(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int h = blockDim.x / 2; h >= 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "", "never becomes false")
kernel("wrong", "a mean of one block", """
__global__ void mean(const double *in, double *out, int n) {
    __shared__ double s[256];
    double v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += in[i];
    s[threadIdx.x] = v;
    __syncthreads();
    for (int h = blockDim.x / 2; h; h >>= 1) { if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h]; __syncthreads(); }
    if (threadIdx.x == 0) *out = s[0] / n;
}
""", "--dtype f64", ("this is the mean", '"faults": [ ]'))

# ---- Other operators, classes, namespaces ------------------------------------------------------------------------------------

BITS = """
__global__ void bits(const unsigned *in, unsigned *out, int n) {
    unsigned v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v OP= in[i];
    ATOMIC(out, v);
}
"""
kernel("right", "or by atomicOr()", BITS.replace("OP", "|").replace("ATOMIC", "atomicOr"), "--op or --dtype u32")
kernel("wrong", "xor where or is asked", BITS.replace("OP", "^").replace("ATOMIC", "atomicXor"), "--op or --dtype u32",
       "this is xor; you asked for or")
kernel("wrong", "a sum is added to the identity of max", BITS.replace("OP", "+").replace("ATOMIC", "atomicAdd").replace("unsigned", "int"),
       "--op max --dtype i32", "this is sum; you asked for max")
kernel("wrong", "min padded with 0, wrong for n = 1 alone", """
__global__ void least(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int h = 128; h; h >>= 1) { if (t < h) s[t] = fminf(s[t], s[t + h]); __syncthreads(); }
    if (t == 0) out[blockIdx.x] = s[0];
}
""", "--op min", "right for every length tried, n = 1 apart")
kernel("wrong", "nothing starts the sum", """
__global__ void total(const float *in, float *out, int n) {
    float v;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += in[i];
    atomicAdd(out, v);
}
""", "", "Give each variable a value before it is used")
kernel("right", "a class whose template has the storage", """
namespace teaching {
template <typename T, int N> class BlockSum {
public:
    struct Storage { T data[N]; };
    __device__ explicit BlockSum(Storage &s) : s_(s) {}
    __device__ T sum(T v) {
        s_.data[threadIdx.x] = v;
        __syncthreads();
        for (int d = N / 2; d > 0; d /= 2) {
            if (threadIdx.x < d) s_.data[threadIdx.x] += s_.data[threadIdx.x + d];
            __syncthreads();
        }
        return s_.data[0];
    }
private:
    Storage &s_;
};
__global__ void total(const float *in, float *out, int n) {
    __shared__ BlockSum<float, 256>::Storage storage;
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = BlockSum<float, 256>(storage).sum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
}  // namespace teaching
""")

KEYS = """
__device__ unsigned key(float f) { unsigned u = __float_as_uint(f); return KEY; }
__device__ float back(unsigned k) { return __uint_as_float(BACK); }
__global__ void greatest(const float *in, float *out, int n) {
    __shared__ unsigned best;
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicMax(&best, key(in[i]));
    __syncthreads();
    if (threadIdx.x == 0 && best) out[blockIdx.x] = back(best);
}
"""
kernel("right", "bits of floats that order them", KEYS.replace("KEY", "u & 0x80000000u ? ~u : u | 0x80000000u")
       .replace("BACK", "k & 0x80000000u ? k & 0x7fffffffu : ~k"), "--op max")
# With both signs it is the least, with positive numbers the greatest: no operator's.
kernel("wrong", "bits of floats that order positive ones only", KEYS.replace("KEY", "u").replace("BACK", "k"), "--op max",
       "wrong for 42 of the 43 lengths")
kernel("wrong", "no barrier, and right by luck where n is shown", """
__global__ void sum(int *input) {
    const int tid = threadIdx.x;
    int step_size = 1, number_of_threads = blockDim.x;
    while (number_of_threads > 0) {
        if (tid < number_of_threads) {
            const auto first = tid * step_size * 2;
            input[first] += input[first + step_size];
        }
        step_size <<= 1;
        number_of_threads >>= 1;
    }
}
""", "--dtype i32", "but it has a fault")

# ---- Volatile makes nothing atomic ----

VOLATILE_TREE = """
__global__ void k(const float *in, volatile float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) *out += s[0];
}
"""
LOST = "volatile makes no access atomic"
for name, declared, body in (
        ("through a parameter", "const float *in, volatile float *out, int n", "if (i < n) *out += in[i];"),
        ("in two statements", "const float *in, volatile float *out, int n", "if (i < n) { float v = out[0]; out[0] = v + in[i]; }"),
        ("through a pointer of its own", "const float *in, float *out, int n",
         "volatile float *p = out; for (i = threadIdx.x; i < n; i += blockDim.x) *p += in[i];"),
        ("of one array", "volatile float *a, int n", "i = threadIdx.x; if (i > 0 && i < n) a[0] += a[i];"),
        ("to a variable", "const float *in, float *out, int n",
         "if (threadIdx.x == 0) g = 0; __syncthreads(); for (i = threadIdx.x; i < n; i += blockDim.x) g += in[i];"
         " __syncthreads(); if (threadIdx.x == 0) out[0] = g;")):
    kernel("wrong", f"a volatile sum {name}",
           f"__device__ volatile float g;\n__global__ void k({declared}) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}",
           "", ('"race"', LOST, "line 4 writes, line 4 writes"))
kernel("wrong", "blocks add through a volatile pointer", VOLATILE_TREE, "", ('"race"', LOST, "another block may store", "line 8 writes, line 8 writes"))
kernel("wrong", "the greatest through a volatile pointer", """
__global__ void k(const int *in, volatile int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] > *out) *out = in[i];
}
""", "--op max", ('"race"', LOST))
kernel("right", "one block adds through a volatile pointer", VOLATILE_TREE.replace("*out += s[0]", "out[blockIdx.x] += s[0]"))
kernel("right", "a volatile flag that all threads raise alike", """
__device__ volatile int seen;
__global__ void k(const float *in, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) { seen = 1; atomicAdd(out, in[i]); }
}
""")
TICKET = """
__device__ volatile unsigned count;
__device__ volatile float partial[65536];
__global__ void k(const float *in, float *out, int n) {
    __shared__ float s[256];
    __shared__ bool last;
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) v += in[i];
    s[t] = v;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) { partial[blockIdx.x] = s[0]; __threadfence(); TAKE }
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        float all = 0;
        for (int b = 0; b < gridDim.x; ++b) all += partial[b];
        *out = all;
        count = 0;
    }
}
"""
kernel("wrong", "a ticket that is volatile and not atomic", TICKET.replace("TAKE", "count = count + 1; last = count == gridDim.x;"), "", ('"race"', LOST))
kernel("wrong", "a ticket that is not atomic", TICKET.replace("TAKE", "count = count + 1; last = count == gridDim.x;").replace(
    "volatile unsigned", "unsigned"), "", '"race"')
kernel("right", "a volatile ticket that is taken by an atomic",
       TICKET.replace("TAKE", "last = atomicAdd((unsigned *)&count, 1) == gridDim.x - 1;"))
kernel("right", "a lock that a volatile store gives back", """
__device__ volatile int lock;
__global__ void k(const float *in, volatile float *out, int n) {
    float v = 0;
    if (threadIdx.x > 0) return;
    for (int i = blockIdx.x; i < n; i += gridDim.x) v += in[i];
    while (atomicCAS((int *)&lock, 0, 1) != 0) ;
    __threadfence();
    *out += v;
    __threadfence();
    lock = 0;
}
""", "--grid 3 --block 32")
kernel("right", "flags that the block behind waits for", """
__device__ unsigned tickets;
__device__ volatile int ready[4096];
__device__ volatile float sums[4096];
__global__ void k(const float *in, float *out, int n) {
    __shared__ unsigned ticket;
    __shared__ float s[128];
    int t = threadIdx.x;
    if (t == 0) ticket = atomicAdd(&tickets, 1);
    __syncthreads();
    unsigned b = ticket, i = b * blockDim.x + t;
    s[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) {
        float before = 0;
        if (b > 0) { while (ready[b - 1] == 0) ; __threadfence(); before = sums[b - 1]; }
        sums[b] = before + s[0];
        __threadfence();
        ready[b] = 1;
        if (b == gridDim.x - 1) { *out = before + s[0]; tickets = 0; for (int k = 0; k <= b; k++) ready[k] = 0; }
    }
}
""")

# ---- Operators of cooperative groups ----
GROUPED = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void k(const int *in, int *out, int n) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = cg::reduce(warp, i < n ? in[i] : START, cg::OP<int>());
    if (warp.thread_rank() == 0) ATOMIC(out, v);
}
"""
for op, which, start, atomic in (("max", "greater", "INT_MIN", "atomicMax"), ("min", "less", "INT_MAX", "atomicMin")):
    text = GROUPED.replace("START", start).replace("ATOMIC", atomic)
    kernel("right", f"groups: cg::{which} is the {op}", text.replace("OP", which), f"--op {op}")
    kernel("wrong", f"groups: cg::{'less' if which == 'greater' else 'greater'} is not the {op}",
           text.replace("OP", "less" if which == "greater" else "greater"), f"--op {op}")

# ---- One past the end ----
for type in ("float", "double", "int", "long long", "char"):
    text = f"""
__global__ void k(const float *in, float *out, int n) {{
    {type} v[4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < 4; ++j) v[j] = 0;
    v[0] += threadIdx.x;
    if (i < n) atomicAdd(out, in[i] + 0 * (v[0] + v[1] + v[2] + v[3]));
}}
"""
    kernel("right", f"an array of {type} of its own", text)
    kernel("wrong", f"one past an array of {type} of its own", text.replace("j < 4", "j <= 4"), "", ('"bounds"', "v[4], line 5, which is outside of the array"))
kernel("wrong", "one past the end is read", """
__global__ void k(const float *in, float *out, int n) {
    float v[4], a = 0;
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int j = 0; j < 4; ++j) v[j] = i + j < n ? in[i + j] : 0;
    for (int j = 1; j <= 4; ++j) a += v[j - 1] + 0 * v[j];
    atomicAdd(out, a);
}
""", "", ('"bounds"', "v[4], line 6, which is outside of the array"))
kernel("wrong", "one past an array within a structure", """
struct Four { double unused, v[4]; };
__global__ void k(const double *in, double *out, int n) {
    Four mine[2];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j <= 4; ++j) mine[1].v[j] = 0;
    if (i < n) mine[1].v[0] = in[i];
    atomicAdd(out, mine[1].v[0]);
}
""", "", ('"bounds"', "v[4], line 6"))
kernel("wrong", "one past a row", """
__global__ void k(const float *in, float *out, int n) {
    float v[2][4];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < 2; ++r)
        for (int j = 0; j <= 4; ++j) v[r][j] = 0;
    if (i < n) atomicAdd(out, in[i]);
}
""", "", ('"bounds"', "v[...][4], line 6"))
SIDE = """
__global__ void k(const float *in, float *out, int n) {
    __shared__ float a[32], b[32];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    b[t] = 0;
    __syncwarp();
    a[t] = i < n ? in[i] : 0;
    if (t == 0) a[AT] = 0;
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) { if (t < d) a[t] += a[t + d]; __syncwarp(); }
    if (t == 0) out[blockIdx.x] = a[0];
}
"""
kernel("wrong", "one past a shared array, before another", SIDE.replace("AT", "t + 32"), "--block 32", '"bounds"')
kernel("right", "indexes of a vector, an enumeration and a flag", """
enum { FIRST, SECOND };
__device__ float take(float (&v)[2], bool odd) { return v[odd] + v[!odd]; }
__global__ void k(const float *in, float *out, int n) {
    float v[2];
    __shared__ int place[2];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 2) place[threadIdx.x] = threadIdx.x;
    __syncthreads();
    v[FIRST] = i < n ? in[i] : 0, v[SECOND] = 0;
    v[place[1] - 1] += v[place[0] + 1 > 1 ? FIRST : SECOND];
    auto both = [&](int from) { return v[from] + v[1 - from] - v[from - from + 1]; };
    atomicAdd(out, both(0) + 0 * take(v, threadIdx.x & 1));
}
""", "--block 32")

# ---- Arithmetic ----
kernel("right", "fma() of doubles rounds once", """
__global__ void k(const double *in, double *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile double a = 1 + 0x1p-52;
    volatile float b = 1 + 0x1p-23f;
    bool good = fma(a, a, -a * a) == 0x1p-104 && fmaf(b, b, -b * b) == 0x1p-46f;
    if (i < n) atomicAdd(out, good ? in[i] : 0.0);
}
""")
for op, padded in (("max", "fmaxf"), ("min", "fminf"), ("max", "max"), ("min", "min")):
    kernel("right", f"{padded}() padded with NaN", tree("s[t] = i < n ? input[i] : NAN;", f"s[t] = {padded}(s[t], s[t + stride]);"), f"--op {op}")

# ---- Types that C++ deduces from a pointer ----
DEDUCED = """
template <typename T>
__device__ void tree(T *s, int t) {
    for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] = s[t] + s[t + d]; __syncthreads(); }
}
template <typename T>
__device__ T at(const T *p, int i) { T v = 0; v += p[i]; return v; }
template <int N, typename T>
__device__ T all_of(const T v[], int from) { T sum = 0; for (int j = from; j < N; ++j) sum += v[j]; return sum; }
template <typename T, typename Op>
__device__ void with(T *s, int t, Op op) {
    for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] = op(s[t], s[t + d]); __syncthreads(); }
}
struct Add { template <class U> __device__ U operator()(U a, U b) const { return a + b; } };
__global__ void k(const TYPE *in, TYPE *out, int n) {
    __shared__ TYPE s[256];
    TYPE own[2] = {0, 0};
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (i < n) own[1] = at(in, i);
    s[t] = all_of<2>(own, 0);
    __syncthreads();
    CALL
    if (t == 0) out[blockIdx.x] = at(&s[0], 0);
}
"""
for type in ("float", "int"):
    for call in ("tree(s, t);", "tree<TYPE>(s, t);", "with(s, t, Add());", "with(&s[0], t, [] __device__ (TYPE a, TYPE b) { return a + b; });"):
        kernel("right", f"{type} deduced from pointers: {call}", DEDUCED.replace("CALL", call).replace("TYPE", type))
kernel("right", "the kernel's T is handed on to a template", """
template <class T> __device__ void blockReduce(T *sdata, int tid) {
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
}
template <class T> __global__ void k(const T *in, T *out, int n) {
    extern __shared__ T sdata[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    blockReduce(sdata, threadIdx.x);
    if (threadIdx.x == 0) out[blockIdx.x] = sdata[0];
}
""", "--dtype i32")
kernel("refused", "a call that fits no function names the text's types", """
template <class T> __device__ T at(const T *p, const T *q) { return *p; }
__global__ void k(const float *in, float *out, int n) { atomicAdd(out, at(in)); }
""", "", "the call 'at(const float*&)' fits no function")

# ---- Names: namespaces, macros, functions of the host ----
ADDS = "__global__ void k(const float *in, float *out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(out, CALL); }\n"
for name, before, call in (
        ("a namespace", "namespace lib {\n__device__ float load(const float *p, int i) { return p[i]; }\n}\n", "lib::load(in, i)"),
        ("namespaces in a row", "namespace lib::inner {\n__device__ float load(const float *p, int i) { return p[i]; }\n}\n", "lib::inner::load(in, i)"),
        ("a class of a nested namespace", "namespace lib { inline namespace v1 {\nstruct Load { static __device__ float of(const float *p, int i) { return p[i]; } };\n} }\n",
         "::lib::v1::Load::of(in, i)"),
        ("using namespace", "namespace lib {\n__device__ float load(const float *p, int i) { return p[i]; }\n}\nusing namespace lib;\n", "load(in, i)"),
        ("a macro for __host__ __device__", "#define HD __host__ __device__\nHD float load(const float *p, int i) { return p[i]; }\n", "load(in, i)"),
        ("a macro that nvcc defines", "#ifdef __CUDACC__\n#define HD __host__ __device__\n#else\n#define HD\n#endif\n"
         "HD inline float load(const float *p, int i) { return p[i]; }\n", "load(in, i)")):
    kernel("right", f"a function of the device in {name}", before + ADDS.replace("CALL", call))
kernel("refused", "a __device__ that is missing", "float add(float a, float b) { return a + b; }\n" + ADDS.replace("CALL", "add(in[i], 0.f)"), "",
       "mine.cu:2: 'add' is a function of the host, line 1: a kernel calls those that begin with __device__")
kernel("refused", "a name that nothing declares", ADDS.replace("CALL", "sub(in[i], 0.f)"), "", "declares 'sub'")
kernel("right", "make_float4() and its like", """
__global__ void k(const float *in, float *out, int n) {
    float4 a = make_float4(0.f, 0, 0.0, 0.f);
    int3 from = make_int3(blockIdx.x * blockDim.x + threadIdx.x, n / 4, gridDim.x * blockDim.x);
    float3 left = make_float3(0, 0, 0);
    for (int i = from.x; i < from.y; i += from.z) { float4 q = ((const float4 *)in)[i]; a.x += q.x; a.y += q.y; a.z += q.z; a.w += q.w; }
    for (int i = from.y * 4 + from.x; i < n; i += from.z) left.x += in[i];
    atomicAdd(out, a.x + a.y + a.z + a.w + left.x + left.y);
}
""")

# ---- What is told of a barrier and of a loop ----
kernel("wrong", "a barrier in an if, and no return", tree("s[t] = i < n ? input[i] : 0;", "s[t] += s[t + stride]; __syncthreads();").replace(
    "        }\n        __syncthreads();", "        }"), "", ('"barrier"', "Move the barrier out of the branch"))
kernel("wrong", "a barrier behind an early return", tree("if (i >= n) return;  // no element\n    s[t] = input[i];"), "",
       ('"barrier"', "Do not return early"))
COUNTS, ASKS = "The condition of the loop never becomes false", "a spin lock may hang"
kernel("wrong", "a loop that forgets its step, and an atomic behind it", """
__global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    while (i < n) { v += in[i]; }
    atomicAdd(out, v);
}
""", "", ('"endless"', COUNTS))
kernel("wrong", "a loop that forgets its step, and an atomic in it", """
__global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    while (i < n) atomicAdd(out, in[i]);
}
""", "", ('"endless"', COUNTS))
kernel("wrong", "a tree that never ends, and an atomic", tree("s[t] = i < n ? input[i] : 0;", store="atomicAdd(output, s[0]);").replace(
    "unsigned int stride = blockDim.x / 2; stride > 0", "int stride = blockDim.x / 2; stride >= 0"), "", ('"endless"', COUNTS))
kernel("wrong", "a flag that no block sets before", """
__device__ volatile int ready;
__global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, in[i]);
    if (blockIdx.x == gridDim.x - 1) ready = 1;
    while (!ready) ;
}
""", "", ('"endless"', ASKS))
kernel("wrong", "a counter that is asked by atomics", """
__device__ int arrived;
__global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, in[i]);
    if (threadIdx.x > 0) return;
    atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) < gridDim.x) ;
}
""", "--grid 2", ('"endless"', ASKS))

# ---- What is told of a race ----
BLOCKS, ONE_STORE = "Put __syncthreads() between the two", "Let one thread of the block store it"
kernel("wrong", "no barrier behind the load, of any block", tree("s[t] = i < n ? input[i] : 0;").replace("    __syncthreads();\n    for", "    for"), "", ('"race"', BLOCKS))
kernel("wrong", "no barrier in the loop, of any block", tree("s[t] = i < n ? input[i] : 0;").replace("        __syncthreads();\n", ""), "",
       ('"race"', BLOCKS, "one of another warp"))
SHARED_SUM = """
__global__ void k(const float *in, float *out, int n) {
    __shared__ float s;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    if (i < n) atomicAdd(&s, in[i]);
    if (threadIdx.x == 0) out[blockIdx.x] = s;
}
"""
kernel("wrong", "no barrier behind atomics in shared memory, of any block", SHARED_SUM, "", ('"race"', BLOCKS))
kernel("wrong", "no barrier in one warp, as its block is given", SHARED_SUM, "--block 32", ('"race"', "Put __syncwarp() between the two"))
kernel("wrong", "all threads store the block's sum", tree("s[t] = i < n ? input[i] : 0;").replace("if (t == 0) ", ""), "", ('"race"', ONE_STORE))
kernel("wrong", "a second pass begins too early", """
__global__ void k(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float x = i < n ? in[i] : -INFINITY;
    for (int pass = 0; pass < 2; ++pass) {
        s[t] = x;
        __syncthreads();
        for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] = fmaxf(s[t], s[t + d]); __syncthreads(); }
        x = s[0];
    }
    if (t == 0) out[blockIdx.x] = x;
}
""", "--op max", ('"race"', BLOCKS))
kernel("wrong", "each block stores to the first element", tree("s[t] = i < n ? input[i] : 0;", store="output[0] = s[0];"), "",
       ('"race"', "blocks have no barrier between them"))

# ---- Structures in shared memory ----
PAIRS = """
struct Pair { float v; int i; };
__global__ void k(const float *in, float *out, int n) {
    __shared__ Pair s[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = {i < n ? in[i] : 0, i};
    BARRIER
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        if (t < d) { Pair a = s[t], b = s[t + d]; a.v += b.v; s[t] = a; }
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0].v;
}
"""
kernel("wrong", "structures, and no barrier behind the load", PAIRS.replace("BARRIER", ""), "",
       ('"race"', "touch s[128] without a barrier", "line 9 reads, line 6 writes"))
kernel("right", "structures, and a barrier behind the load", PAIRS.replace("BARRIER", "__syncthreads();"))

# ---- Versions by #if ----
RIGHT_ONE = "__global__ void k(const float *in, float *out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(out, in[i]); }\n"
WRONG_ONE = "__global__ void k(const float *in, float *out, int n) { out[blockIdx.x] = 0; }\n"
for name, first, condition, options in (
        ("#if 0", "", "#if 0", ""), ("a number", "#define VERSION 2\n", "#if VERSION == 1", ""), ("an expression", "#define N (1 << 3)\n#define M 3\n",
         "#if M * 2 + 1 >= 8 || !defined(M)", ""), ("#ifdef", "", "#ifdef SLOW", ""), ("a macro of -D", "", "#if defined(VERSION) && VERSION < 2", "-D VERSION=3"),
        ("a macro of nvcc", "", "#ifndef __CUDACC__", ""), ("#elif", "#define VERSION 1\n", "#if VERSION == 3\n#elif VERSION == 2", ""),
        ("within another", "", "#if 1\n#else\n#if 1\n#endif\n#endif\n#if 0", "")):
    kernel("right", f"two versions by {name}", f"{first}{condition}\n{WRONG_ONE}#else\n{RIGHT_ONE}#endif\n", options)
kernel("right", "another language in #if 0", "#if 0\n__global__ void old(float *in) { this is not C }\n#endif\n" + RIGHT_ONE)
kernel("wrong", "the other version, with its own line", "#ifndef FAST\n" + RIGHT_ONE + "#else\n" + WRONG_ONE + "#endif\n", "-D FAST", '"line": 4,')

# ---- Loops that count to a number of the text ----
kernel("wrong", "one block, 512 rounds at most", """
__global__ void k(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0;
    for (int j = 0; j < 512; ++j) { int i = j * 256 + t; if (i < n) v += in[i]; }
    s[t] = v;
    __syncthreads();
    for (int d = 128; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) out[0] = s[0];
}
""", "", "elements that are its share")
COUNTED = """
__global__ void k(const float *in, float *out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, c = 0;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n && c < 4096; i += gridDim.x * blockDim.x, ++c) v += in[i];
    s[t] = v;
    __syncthreads();
    for (int d = blockDim.x / 2; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""
kernel("wrong", "a grid that walks 4096 rounds at most", COUNTED, "", "elements that are its share")
kernel("right", "a grid that counts its rounds, and walks all of them", COUNTED.replace("c < 4096", "c >= 0"), "", "8192 rounds of a warp's loop")

# ---- An array for partial results ----
PARTIALS = """
__device__ unsigned taken;
__global__ void k(PARAMETERS, int n) {
    __shared__ float s[256];
    __shared__ bool last;
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x) v += in[i];
    s[t] = v;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
    if (t == 0) { partial[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(&taken, gridDim.x - 1) == gridDim.x - 1; }
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        float all = 0;
        for (int b = 0; b < gridDim.x; ++b) all += ((volatile float *)partial)[b];
        out[0] = all;
    }
}
"""
for parameters in ("const float *in, float *partial, float *out", "float *in, float *partial, float *out", "const float *in, float *out, float *partial"):
    kernel("right", f"the last block, ({parameters})", PARTIALS.replace("PARAMETERS", parameters))
kernel("wrong", "the last block, an array for partials, and no fence",
       PARTIALS.replace("PARAMETERS", "const float *in, float *partial, float *out").replace("s[0]; __threadfence();", "s[0];"), "", ('"order"', "partial["))
kernel("wrong", "one past the partials", PARTIALS.replace("PARAMETERS", "const float *in, float *partial, float *out").replace("b < gridDim.x", "b <= gridDim.x"),
       "", ('"bounds"', "partial["))

# ---- What a text promises ----
kernel("wrong", "an assert() that does not hold for every n", """
#include <assert.h>
__global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(n < 1000);
    if (i < n) atomicAdd(out, in[i]);
}
""", "", ('"promise"', "comes to an assert() that does not hold: line 5"))
kernel("right", "an assert() that holds", KERNELS[-1].text.replace("n < 1000", "blockDim.x <= 1024 && n > 0"))
LDG = PARTIALS.replace("PARAMETERS", "const float *in, float *out").replace("in[i]", "__ldg(&in[i])").replace(
    "partial[", "out[").replace("((volatile float *)partial)[b]", "READ")
kernel("wrong", "the last block reads by __ldg()", LDG.replace("READ", "__ldg(&out[b])"), "", ('"promise"', "by __ldg(), and the kernel has written there: line 17"))
kernel("right", "elements are read by __ldg(), partials are not", LDG.replace("READ", "((volatile float *)out)[b]"))


TWINS = {
    "race": ("no barrier after the load", "a tree in shared memory"),
    "order": ("the last block without a fence", "the last block"),
    "barrier": ("a barrier in the if", "a tree in shared memory"),
    "shuffle": ("a shuffle within an if", "shuffles and one atomic a block"),
    "bounds": ("n is included", "a tree in shared memory"),
    "alignment": ("pairs from an odd address", "pairs"),
    "unwritten": ("unwritten shared memory", "a tree in shared memory"),
    "endless": ("a spin lock", "one block adds into its result"),
    "data": ("max padded with 0", "max with -INFINITY"),
    "operator": ("another operator", "max with -INFINITY"),
    "block": ("one warp of the block", "a shuffle of the last warp by the warps there are"),
    "grid": ("as many partials as a block has threads", "the last block"),
    "second launch": ("a counter that is not reset", "the last block, with atomicInc"),
    "order of blocks": ("the block with the highest number is taken for the last", "the last block"),
    "overflow": ("int index of a size_t length", "64-bit index of a size_t length"),
    "lengths": ("one block, powers of two", "one block walks the array"),
    "promise": ("an assert() that does not hold for every n", "an assert() that holds"),
}
