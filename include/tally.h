/*
 * tally.h - parallel reduction with the right answer and the same bits on every machine.
 *
 * A reduction takes an array x[0..n) and an operator and returns x[0] op x[1] op ... op x[n-1].
 * What Tally promises of the result:
 *
 *   - It is a function of the data alone: never of the thread count, the instruction set, the
 *     device, or how a stream was cut into pieces.
 *   - A floating sum is the exact real sum, rounded once to nearest even (see docs/exactness.md).
 *   - A floating product, and any user-defined operator, is evaluated over one canonical tree whose
 *     shape depends on n only (see docs/canonical-tree.md).
 *   - An integer sum or product is exact; one that does not fit its type is TALLY_ERANGE.
 *   - NaN in, NaN out (the canonical quiet NaN) for sum, prod, min, max; min and max order -0 below
 *     +0; a sum that is exactly zero is -0 only where n > 0 and every term is -0.
 *   - Reducing nothing gives the operator's identity.
 *
 * Conventions. Every function that can fail returns a tally_status and leaves its outputs untouched
 * when that is not TALLY_OK; tally_error() then holds one line that says what was wrong. Lengths `n`
 * are elements, sizes are bytes. Arrays need no alignment and are never written. Unless a function
 * says otherwise, any number of threads may call it at once, also on the same device; a stream or an
 * accumulator is one thread's at a time. The caller's floating environment (rounding mode, flush to
 * zero, exception flags and traps) neither influences a result nor is changed.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && __GNUC__ >= 4
#define TALLY_API __attribute__((visibility("default")))
#else
#define TALLY_API
#endif

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0

/* ---- Words -------------------------------------------------------------------------------- */

/* What a call came to. The texts are tally_status_text()'s. */
typedef enum tally_status {
    TALLY_OK = 0,
    TALLY_EINVAL,       /* an argument is out of its range: NULL, or a size that overflows */
    TALLY_ETYPE,        /* this operator, element type and result type do not go together */
    TALLY_EDEVICE,      /* the text names no device that is here */
    TALLY_ENOMEM,       /* no memory, on the host or on the device */
    TALLY_ERANGE,       /* the exact integer result does not fit its type */
    TALLY_EFORMAT,      /* the bytes are no saved accumulator, or a damaged one */
    TALLY_EUNSUPPORTED, /* the device cannot do this */
    TALLY_ECOMPILE,     /* a kernel does not compile: tally_error() has the compiler's words */
    TALLY_ELOST         /* the device failed at work, or is gone */
} tally_status;

/* The type of an array's elements. f16 is IEEE binary16, bf16 the upper half of a binary32. */
typedef enum tally_type {
    TALLY_I8 = 1,
    TALLY_I16,
    TALLY_I32,
    TALLY_I64,
    TALLY_U8,
    TALLY_U16,
    TALLY_U32,
    TALLY_U64,
    TALLY_F16,
    TALLY_BF16,
    TALLY_F32,
    TALLY_F64
} tally_type;

/* The built-in operators. and, or, xor combine the bits of an element, whatever its type. */
typedef enum tally_op {
    TALLY_SUM = 1,
    TALLY_PROD,
    TALLY_MIN,
    TALLY_MAX,
    TALLY_AND,
    TALLY_OR,
    TALLY_XOR
} tally_op;

/* One number of any element type. Sums and products of i8..i64 come back as i64, those of u8..u64
 * as u64; every other result has the element type, unless the options ask for another. */
typedef struct tally_value {
    tally_type type;
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        uint16_t f16;  /* the 16 bits of a binary16 */
        uint16_t bf16; /* the 16 bits of a bfloat16 */
        float f32;
        double f64;
    } as;
} tally_value;

TALLY_API const char *tally_version(void);               /* "0.1.0" */
TALLY_API const char *tally_status_text(tally_status s); /* a short text; never NULL */
TALLY_API const char *tally_type_name(tally_type type);  /* "f32"; NULL where there is none */
TALLY_API size_t tally_type_size(tally_type type); /* bytes an element; 0 where there is none */
TALLY_API const char *tally_op_name(tally_op op);  /* "sum"; NULL where there is none */
TALLY_API tally_status tally_type_parse(const char *name, tally_type *out); /* "f32" -> TALLY_F32 */
TALLY_API tally_status tally_op_parse(const char *name, tally_op *out);     /* "sum" -> TALLY_SUM */

/* The line that explains the calling thread's last failed call. Valid until that thread's next call
 * into Tally; "" if none has failed. */
TALLY_API const char *tally_error(void);

/* The value's bits, zero-extended: what `bits` shows in the tally command's JSON. */
TALLY_API uint64_t tally_value_bits(const tally_value *value);
/* The value as the nearest double (exact for every type but i64 and u64). */
TALLY_API double tally_value_double(const tally_value *value);
/* Writes the value as the shortest decimal that reads back to the same bits ("nan", "inf", "-inf"
 * for those), with a final NUL, into text[0..size); 32 bytes always suffice. Returns its length. */
TALLY_API size_t tally_value_print(const tally_value *value, char *text, size_t size);

/* ---- Devices ------------------------------------------------------------------------------ */

/* Something that reduces arrays: the CPU's cores, a GPU. Owned by whoever opened it. Safe to share
 * between threads; a call that finds the device's threads busy runs on the calling thread alone. */
typedef struct tally_device tally_device;

typedef struct tally_device_info {
    char spec[64];         /* the text that opens this device: "cpu", "opencl:0", "cuda:0" */
    char name[128];        /* the maker's name for it */
    char isa[32];          /* instruction set in use: "avx512", "avx2", "baseline", "neon"; or "" */
    unsigned units;        /* cores, compute units or multiprocessors */
    unsigned threads;      /* host threads that will be used (CPU), else 0 */
    uint64_t memory_bytes; /* memory it can reach */
} tally_device_info;

/* Opens a device named by a text: KIND[:OPTION,...].
 *   "auto"                      the best device for data in host memory
 *   "cpu"                       all cores this process may run on, the best instruction set here
 *   "cpu:threads=3,isa=avx2"    as told; isa is one of baseline, avx2, avx512, neon
 *   "cuda", "opencl:1", "model" a GPU: see "GPU devices" below
 * Close it with tally_close() once no call uses it and its streams are gone. TALLY_EDEVICE,
 * TALLY_ENOMEM. A device opened before fork() works in the child too. */
TALLY_API tally_status tally_open(const char *spec, tally_device **out);
TALLY_API void tally_close(tally_device *device); /* NULL is allowed */
TALLY_API tally_status tally_device_describe(const tally_device *device, tally_device_info *out);

/* The devices that are here, in a fixed order: *count of them; the first `capacity` are described in
 * infos[] (which may be NULL where capacity is 0). */
TALLY_API tally_status tally_device_list(tally_device_info *infos, size_t capacity, size_t *count);

/* The device's read roof: reads bytes[0..size) with each of its plain read kernels and gives the
 * shortest time in seconds. What a reduction of the same memory is to be measured against. */
TALLY_API tally_status tally_device_read(tally_device *device, const void *bytes, size_t size,
                                         double *seconds);

/* ---- Reducing an array -------------------------------------------------------------------- */

typedef struct tally_options {
    int fast;       /* not 0: floating sums by plain, unordered additions: no promise on the bits */
    tally_type out; /* 0: the natural type. Another floating type: round an exact floating sum to it
                       once. TALLY_F64 is also allowed for every floating fast sum. */
} tally_options;

/* Reduces x[0..n) with a built-in operator. device NULL means the calling thread alone, nothing
 * opened and nothing allocated. options NULL means all defaults. x may be NULL where n is 0.
 * TALLY_EINVAL, TALLY_ETYPE, TALLY_ENOMEM, TALLY_ERANGE; *out is written only on TALLY_OK.
 * Method: floating sums by error-free vector extraction (Rump, Ogita, Oishi 2008) into a
 * superaccumulator (Kulisch; Neal 2015). */
TALLY_API tally_status tally_reduce(tally_device *device, tally_op op, tally_type type,
                                    const void *x, size_t n, const tally_options *options,
                                    tally_value *out);

/* A user-defined associative operator. combine() sets out[i] = left[i] op right[i] for i in
 * [0, count), count >= 1: many pairs a call, so that a compiler can vectorise it. `out` may be the
 * same array as `left`; the arrays are aligned to their element type. It is called from several
 * threads at once, must depend on nothing but its arguments, and must not call longjmp.
 * The identity is the result for n = 0 and is otherwise never combined with anything. */
typedef struct tally_operator {
    void (*combine)(void *context, const void *left, const void *right, void *out, size_t count);
    void *context;        /* handed to combine(); stays the caller's */
    const void *identity; /* one element */
    int commutative;      /* 0: operands are never exchanged, only bracketed */
    const char *source;   /* for GPUs: the same as an expression in a and b, or NULL (see below) */
} tally_operator;

/* As tally_reduce(), with a user-defined operator, over the canonical tree; the result has the
 * element type, and a NaN result is the canonical quiet NaN. */
TALLY_API tally_status tally_reduce_user(tally_device *device, const tally_operator *op,
                                         tally_type type, const void *x, size_t n,
                                         tally_value *out);

/* ---- GPU devices -------------------------------------------------------------------------- */

/* A GPU takes the same calls as the CPU and gives the same bits. Its text is KIND[:OPTION,...]:
 *   "cuda:0", "opencl:1"   a number counts devices as tally_device_list() does; 0 is the default
 *   "model"                a simulated GPU: slow, there to test and to learn with
 *   "opencl:0,memory=1G"   so many bytes of its memory at most (K, M, G); 1M or more
 *   "cuda:0,block=128"     threads of a block, a power of two; the default suits the device
 * Arrays in host memory are copied in pieces, so that they may be larger than the device's memory; a
 * device that reads host memory as fast as its own is handed the array itself. One call at a time uses
 * a device: threads that share one wait for each other, and each may open its own instead. A GPU device
 * opened before fork() is the parent's alone. One that fails (TALLY_ELOST) is opened afresh by the next
 * call. TALLY_EUNSUPPORTED: f64 on a device without it; more below.
 *
 * A user's operator runs on a GPU if its `source` says what combine() does, as an expression of OpenCL C
 * or CUDA C in `a` and `b`, both of the element type, such as "a * b % 1000003". It is compiled at the
 * first use; where it does not compile, TALLY_ECOMPILE and the compiler's message, with the line in the
 * expression. Arithmetic is done as written, without contraction or fast mathematics, so that + - * and
 * everything on integers give the CPU's bits; functions such as hypot() give the device's. Without a
 * source, for f16 and bf16, and on the model: TALLY_EUNSUPPORTED. */

/* As tally_reduce(), of an array that already lies on the device; nothing is copied but the result.
 * `memory` is aligned to its element type and is
 *   cuda      a device pointer of this device, or of memory that it can reach, in its primary context
 *   opencl    where the device is a CPU: host memory
 *   cpu       host memory
 * Work that the caller has put under way on it must have finished. TALLY_EUNSUPPORTED where the memory is
 * not such: other OpenCL devices, the model. */
TALLY_API tally_status tally_reduce_resident(tally_device *device, tally_op op, tally_type type,
                                             void *memory, size_t n, const tally_options *options,
                                             tally_value *out);

/* How long a GPU takes to reduce x[0..n) once it lies in the device's memory: the median of a few runs, in
 * seconds by the device's clock; *out is the value. The array is brought there first (a CPU behind OpenCL
 * reads it where it is). Arguments and errors as for tally_reduce(); TALLY_ENOMEM where the device has no
 * room for all of it, TALLY_EUNSUPPORTED on a cpu, whose time is tally_reduce()'s, and on the model. */
TALLY_API tally_status tally_device_time(tally_device *device, tally_op op, tally_type type,
                                         const void *x, size_t n, const tally_options *options,
                                         tally_value *out, double *seconds);

/* A GPU device in a context of the caller's, which outlives it: a CUcontext (cuda), a cl_context that has
 * the device (opencl). NULL: as tally_open(), which on CUDA is the device's primary context, the one that
 * CUDA's run-time library uses. */
TALLY_API tally_status tally_open_in(const char *spec, void *context, tally_device **out);

/* A value in a GPU's memory, where tally_enqueue() leaves it: 16 bytes, aligned to 8. */
typedef struct tally_result {
    union {
        int64_t
            i64; /* of every integer type: its value starts at the lowest byte, as in a tally_value */
        uint64_t u64;
        float f32;
        double f64;
        unsigned char bytes[8];
    } as;
    int32_t status; /* TALLY_OK; TALLY_ERANGE where an exact integer does not fit, and `as` is 0 */
    int32_t type;   /* a tally_type */
} tally_result;

/* How many bytes of the device's memory tally_enqueue() needs to work in, for n elements or fewer. Compiles
 * and loads the kernels, so that tally_enqueue() need not. */
TALLY_API tally_status tally_workspace(tally_device *device, tally_op op, tally_type type, size_t n,
                                       const tally_options *options, size_t *bytes);
TALLY_API tally_status tally_workspace_user(tally_device *device, const tally_operator *op,
                                            tally_type type, size_t n, size_t *bytes);

/* Puts a reduction on a queue of the caller's and returns: nothing is waited for, no memory of the device
 * allocated, nothing copied; on CUDA it may be captured into a graph, once tally_workspace() has been
 * called for it. Everything is the caller's and lies in the context that the device was opened in:
 *            memory, workspace, result      queue
 *   cuda     device pointers                a CUstream (or cudaStream_t); NULL is the default stream
 *   opencl   cl_mem                         a cl_command_queue, in order
 * memory: n elements, aligned to their type; may be NULL where n is 0. workspace: what tally_workspace()
 * said, aligned to 8, of any content; not to be used by anything else until the reduction is done. result: a
 * tally_result. Any number of threads may call this for one device, each with a queue, workspace and result
 * of its own. A user's operator must have a source; see above.
 * TALLY_EUNSUPPORTED on other devices, for memory that the device cannot reach, and for more than 2^28
 * elements a multiprocessor; TALLY_EINVAL for memory out of alignment and for too small a workspace. */
TALLY_API tally_status tally_enqueue(tally_device *device, tally_op op, tally_type type,
                                     void *memory, size_t n, const tally_options *options,
                                     void *workspace, size_t workspace_bytes, void *queue,
                                     void *result);
TALLY_API tally_status tally_enqueue_user(tally_device *device, const tally_operator *op,
                                          tally_type type, void *memory, size_t n, void *workspace,
                                          size_t workspace_bytes, void *queue, void *result);

/* ---- Reducing a stream -------------------------------------------------------------------- */

/* A reduction whose array arrives in pieces. The result is that of the concatenated pieces, bit for
 * bit, however they were cut. Constant memory. One thread's at a time. */
typedef struct tally_stream tally_stream;

/* Arguments and errors as for tally_reduce(); the device must outlive the stream. Destroy the stream
 * with tally_stream_destroy(). */
TALLY_API tally_status tally_stream_create(tally_device *device, tally_op op, tally_type type,
                                           const tally_options *options, tally_stream **out);
TALLY_API tally_status tally_stream_create_user(tally_device *device, const tally_operator *op,
                                                tally_type type, tally_stream **out);
/* On an error nothing has been fed. */
TALLY_API tally_status tally_stream_feed(tally_stream *stream, const void *x, size_t n);
/* The result of all that was fed so far; more may be fed afterwards. */
TALLY_API tally_status tally_stream_result(tally_stream *stream, tally_value *out);
TALLY_API void tally_stream_destroy(tally_stream *stream); /* NULL is allowed */

/* ---- The superaccumulator ----------------------------------------------------------------- */

/* An exact sum of floating numbers: a fixed-point number wide enough for 2^64 of any of them. Feed
 * it any floating type, merge it with others in any order and any grouping, round it at the end: the
 * same bits always. About 600 bytes. One thread's at a time. */
typedef struct tally_accumulator tally_accumulator;

#define TALLY_ACCUMULATOR_BYTES 304 /* the size of a saved accumulator */

TALLY_API tally_status tally_accumulator_create(tally_accumulator **out);
TALLY_API void tally_accumulator_destroy(tally_accumulator *acc); /* NULL is allowed */
TALLY_API void tally_accumulator_clear(tally_accumulator *acc);   /* back to nothing added */
/* Adds x[0..n), of a floating type, exactly; device as for tally_reduce(). On an error nothing has
 * been added. */
TALLY_API tally_status tally_accumulator_add(tally_accumulator *acc, tally_device *device,
                                             tally_type type, const void *x, size_t n);
/* Adds all that `from` holds to `acc`. The two may be the same. */
TALLY_API tally_status tally_accumulator_merge(tally_accumulator *acc,
                                               const tally_accumulator *from);
/* How many numbers have been added (modulo 2^64). */
TALLY_API uint64_t tally_accumulator_count(const tally_accumulator *acc);
/* The sum so far, rounded once to nearest even, as a value of the given floating type. */
TALLY_API tally_status tally_accumulator_round(const tally_accumulator *acc, tally_type type,
                                               tally_value *out);
/* Writes the accumulator as TALLY_ACCUMULATOR_BYTES bytes that depend only on the multiset of
 * numbers added: the same on every machine, whatever the order and cut. docs/exactness.md gives
 * the format. */
TALLY_API void tally_accumulator_save(const tally_accumulator *acc,
                                      unsigned char bytes[TALLY_ACCUMULATOR_BYTES]);
/* The reverse, into a new accumulator. TALLY_EFORMAT for bytes that save() cannot have written. */
TALLY_API tally_status tally_accumulator_load(const unsigned char *bytes, size_t size,
                                              tally_accumulator **out);

/* ---- The ladder --------------------------------------------------------------------------- */

/* The classic kernels of parallel reduction, from the textbooks' first to the production one, on any
 * device: run, checked and timed. On "model", a simulated GPU, they are counted instead. docs/ladder.md
 * climbs it rung by rung. These calls are there to learn and to measure with; to reduce an array, call
 * tally_reduce(). */

typedef struct tally_rung {
    const char *name;  /* "interleaved-modulo" */
    const char *idea;  /* what is new against the rung before */
    const char *waste; /* what it still wastes; "" where there is nothing to say */
    const char *mends; /* the rung that mends that, or "" */
    int is_kernel;     /* 0: a loop of the CPU, or the production reduction */
    int grid_sized;    /* not 0: its grid fits the device, whatever the length of the array */
} tally_rung;

/* The i-th rung from below, or NULL past the last. */
TALLY_API const tally_rung *tally_ladder_rung(size_t i);

/* How the results of a kernel's blocks come together. */
typedef enum tally_finish {
    TALLY_FINISH_RELAUNCH, /* the kernel runs again over the results, until one is left */
    TALLY_FINISH_ATOMIC,   /* each block combines its result into one place */
    TALLY_FINISH_HOST      /* the CPU reads the results and combines them */
} tally_finish;
TALLY_API const char *tally_finish_name(tally_finish finish); /* "relaunch"; NULL where none */
TALLY_API tally_status tally_finish_parse(const char *name, tally_finish *out);

typedef struct tally_ladder_options {
    tally_op op;
    tally_type type;
    const void *x; /* n elements, which stay as they are */
    size_t n;
    unsigned block;   /* threads of a block, a power of two up to 1024; 0: 256 */
    unsigned coarsen; /* rung `coarsened`: each thread adds 2 * coarsen elements; 0: 4 */
    tally_finish finish;
    const char *const *only; /* names of the rungs to run, only_count of them; none: all */
    size_t only_count;
} tally_ladder_options;

/* What a kernel did, as the model saw it; src/model/model.h says how each is counted. */
typedef struct tally_ladder_counts {
    uint64_t blocks;
    uint64_t steps;      /* stretches between barriers in which an operator is applied */
    uint64_t barriers;   /* executed by a block; both added up over launches */
    uint64_t rounds;     /* applications one after another, within a block */
    uint64_t all_rounds; /* the same, and barriers, as if the blocks ran one after another */
    uint64_t all_barriers;
    uint64_t operations; /* applications of the operator */
    uint64_t slots;      /* 32 for each warp and step in which it is applied */
    uint64_t divergent;  /* branches that part a warp */
    uint64_t transactions, fewest_transactions; /* 128-byte lines of global memory */
    uint64_t bank_conflicts;                    /* extra passes through shared memory */
    uint64_t bytes_read, bytes_written;         /* of global memory */
    uint64_t atomics;
} tally_ladder_counts;

typedef struct tally_ladder_row {
    const char *name;
    tally_value value;
    int correct; /* the right bits; a floating sum or product: as near as its order of rounding
                         allows */
    double
        ulp_error; /* floating sums and products: how many floats lie between it and tally_reduce()'s;
                         0: the same bits. Else 0, or NaN where it is not correct */
    unsigned launches; /* of kernels; 0 on a CPU */
    double seconds;    /* the median of several runs; NaN on the model, which has no time */
    tally_ladder_counts counts; /* on the model, else 0 */
} tally_ladder_row;

enum { TALLY_LADDER_ROWS = 32 };

typedef struct tally_ladder_report {
    char device[64]; /* the text that opened it */
    char name[128];  /* the maker's name for it */
    unsigned block, coarsen;
    double sequential_seconds; /* of the plain loop on the CPU, also where it is not asked for */
    double copy_seconds;       /* to copy the array to the device; 0 where it needs no copy */
    double roof_seconds;       /* the fastest that the array has been read in ... */
    const char *roof;          /* ... and by what: "read" is a plain read kernel, else a rung */
    size_t count;
    tally_ladder_row rows[TALLY_LADDER_ROWS]; /* from below */
} tally_ladder_report;

/* The device that NULL stands for below: "cuda" or "opencl" if one is here, else "model". */
TALLY_API const char *tally_ladder_device(void);

/* Climbs the ladder on a device: "cuda", "opencl:1", "model", "cpu:threads=2". TALLY_EINVAL for an
 * unknown rung or a block the device does not allow, TALLY_EUNSUPPORTED for one that is not run there,
 * TALLY_EDEVICE, and whatever the device and tally_reduce() may fail with. */
TALLY_API tally_status tally_ladder_run(const char *device, const tally_ladder_options *options,
                                        tally_ladder_report *out);

/* Whether tally_ladder_run() would find the device and the rungs, without running anything; the array
 * is not looked at. */
TALLY_API tally_status tally_ladder_check(const char *device, const tally_ladder_options *options);

/* What one warp did between two barriers. */
typedef struct tally_ladder_warp {
    uint32_t lanes; /* bit l: lane l applied the operator */
    uint32_t operations, divergent, transactions, fewest_transactions, bank_conflicts;
} tally_ladder_warp;

typedef struct tally_ladder_step {
    unsigned launch;      /* which one, from 0 */
    unsigned block, step; /* which block of it, which of the block's steps, from 0 */
    int barrier;          /* it ends with a barrier, not with the kernel */
    uint64_t stride;      /* elements between the two values combined; 0: none or several */
    unsigned warps;
    const tally_ladder_warp *warp; /* [warps] */
} tally_ladder_step;

/* Runs one rung on the model and tells of every step; *out is its row. `only` is not looked at. */
TALLY_API tally_status tally_ladder_explain(const char *rung, const tally_ladder_options *options,
                                            void (*on_step)(void *context,
                                                            const tally_ladder_step *step),
                                            void *context, tally_ladder_row *out);

#ifdef __cplusplus
}
#endif

#endif
