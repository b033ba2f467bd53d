/*
 * tally.h - parallel reduction with the right answer and the same bits on every machine.
 *
 * A reduction takes an array x[0..n) and returns one value, or a few, that all elements have a part in:
 * their sum, the least of them, their standard deviation. Every reduction here is made of three steps:
 *
 *   lift      an element becomes a small contribution: x, x * x, x and its index;
 *   combine   contributions meet in a state, which is all that is known of the elements so far;
 *   lower     the state becomes the value, or several: mean and variance come from the same state.
 *
 * A tally_problem says what is asked for. tally_reduce() does all three steps for an array in memory, on
 * any device. A tally_state does them apart: it is fed, merged with others, saved, loaded, and lowered at
 * any time, so that an array may come in pieces, from several threads, processes or machines.
 *
 *     tally_problem mean = TALLY_DEFAULTS;
 *     mean.op = TALLY_MEAN;
 *     mean.type = TALLY_F32;
 *     tally_value value;
 *     tally_reduce(NULL, &mean, x, NULL, n, &value);        // value.as.f32 is the mean of x[0..n)
 *
 * What Tally promises of a result:
 *
 *   - It is a function of the data alone: never of the thread count, the instruction set, the device, or
 *     how the array was cut into pieces.
 *   - What is built on real sums (sum, mean, var, std, norm1, norm2, sumsq, dot) is the exact real value,
 *     rounded once to nearest even (docs/exactness.md).
 *   - A floating product, and any user-defined operator, is evaluated over one canonical tree whose
 *     shape depends on n only (docs/canonical-tree.md).
 *   - Integers are exact; an integer result that does not fit its type is TALLY_ERANGE.
 *   - NaN in, NaN out (the canonical quiet NaN) for all floating values but and, or and xor, which combine bits, whatever
 *     these stand for; min and max order -0 below +0;
 *     a sum that is exactly zero is -0 only where n > 0 and every term is -0.
 *   - Reducing nothing gives the operator's identity.
 *
 * Conventions. Every function that can fail returns a tally_status and leaves its outputs untouched
 * when that is not TALLY_OK; tally_error() then holds one line that says what was wrong. Lengths `n`
 * are elements, sizes are bytes. Arrays need no alignment and are never written. Unless a function
 * says otherwise, any number of threads may call it at once, also on the same device; a state is one
 * thread's at a time. The caller's floating environment (rounding mode, flush to zero, exception flags
 * and traps) neither influences a result nor is changed. A thread that calls needs 128 KiB of stack.
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

/* The initializer of a problem, a shape or a call whose fields all have their defaults. ISO C++17 has neither C's {0},
 * where an enumeration comes first, nor its designated initializers. */
#ifdef __cplusplus
#define TALLY_DEFAULTS                                                                             \
    {}
#else
#define TALLY_DEFAULTS                                                                             \
    { 0 }
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
    TALLY_EFORMAT,      /* the bytes are no saved state, or a damaged one */
    TALLY_EUNSUPPORTED, /* the device cannot do this */
    TALLY_ECOMPILE,     /* a kernel does not compile: tally_error() has the compiler's words */
    TALLY_ELOST,        /* the device failed at work, or is gone */
    TALLY_ESTOPPED      /* the caller's function of tally_stop_when() said so */
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

/* What can be asked of an array. Where two result types are given, the first is that of floating
 * elements, the second that of integers; "own" is the element type, "wide" i64 for signed integers and
 * u64 for unsigned ones. "any float": the options may ask for another floating type. */
typedef enum tally_op {
    TALLY_SUM = 1,  /* x0 + x1 + ...                           own (any float) / wide (any float) */
    TALLY_PROD,     /* x0 * x1 * ...                           own / wide */
    TALLY_MIN,      /* the least element                       own */
    TALLY_MAX,      /* the greatest element                    own */
    TALLY_AND,      /* the bits that are set in all elements   own */
    TALLY_OR,       /* ... in at least one                     own */
    TALLY_XOR,      /* ... in an odd number of them            own */
    TALLY_MEAN,     /* sum / n; NaN for n = 0                  own (any float) / f64 (any float) */
    TALLY_VAR,      /* (n sum(x^2) - sum(x)^2) / (n (n - ddof)); NaN for n <= ddof     as mean */
    TALLY_STD,      /* the square root of that exact number, rounded once              as mean */
    TALLY_NORM1,    /* |x0| + |x1| + ...                       own (any float) / wide (any float) */
    TALLY_NORM2,    /* the square root of sum(x^2)             as mean */
    TALLY_NORMINF,  /* the greatest |x|; 0 for n = 0           own / wide */
    TALLY_SUMSQ,    /* sum(x^2)                                own (any float) / wide (any float) */
    TALLY_DOT,      /* x0 y0 + x1 y1 + ...; two arrays         own (any float) / wide (any float) */
    TALLY_ARGMIN,   /* the lowest index of the least element, or of the first NaN; u64.
                     * TALLY_EINVAL for n = 0 */
    TALLY_ARGMAX,   /* the same of the greatest */
    TALLY_MINMAX,   /* two values: min and max */
    TALLY_COUNT,    /* n; u64 */
    TALLY_NANS,     /* how many elements are NaN; u64 */
    TALLY_NONZERO,  /* how many are not zero (a NaN is not zero); u64 */
    TALLY_ANY,      /* 1 if some element is not zero, else 0; u8 */
    TALLY_ALL,      /* 1 if no element is zero, else 0; u8 */
    TALLY_DESCRIBE, /* nine values: count, nans, min, max, argmin, argmax, sum, mean, std */
    TALLY_USER      /* the problem's own operator              own */
} tally_op;

/* One number of any element type. */
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
/* Where that line is about one of a shape's results, as in "result 7 has no elements ...": *result becomes its
 * number, and the words behind it are returned. NULL where it is not, or `result` is NULL. */
TALLY_API const char *tally_error_result(size_t *result);

/* The value's bits, zero-extended: what `bits` shows in the tally command's JSON. Here and below NULL is a value of
 * no type, whose bits are 0. */
TALLY_API uint64_t tally_value_bits(const tally_value *value);
/* The value as the nearest double (exact for every type but i64 and u64); NaN for one of no type. */
TALLY_API double tally_value_double(const tally_value *value);
/* Writes the value as the shortest decimal that reads back to the same bits ("nan", "inf", "-inf"
 * for those; "none" for a value of no type), with a final NUL, into text[0..size); 32 bytes always
 * suffice, and a NULL text gets nothing. Returns its length. */
TALLY_API size_t tally_value_print(const tally_value *value, char *text, size_t size);
/* Converts the value to another type, rounded once, ties to even. A floating type gets infinity for what is beyond its
 * greatest number, and the canonical NaN for a NaN. An integer type gets the nearest integer: TALLY_ERANGE where that
 * does not fit, or where the value is a NaN or an infinity. TALLY_ETYPE where one of the two types is none. `out` may be
 * `value`; on an error it is as it was. */
TALLY_API tally_status tally_value_convert(const tally_value *value, tally_type type,
                                           tally_value *out);

/* Lets the calling thread's later calls be ended early: by a signal, a deadline, a button. While one works,
 * stop(context) is called on this thread some hundred times a second; where it returns not 0, the call
 * returns TALLY_ESTOPPED within some milliseconds. It has then fed nothing, and tally_reduce_shaped() may
 * have written some of its results. stop() must not call Tally. NULL: no more. Calls that take less than 10 ms
 * do not ask; a call on a GPU asks between the pieces that it copies; the ladder does not ask. */
TALLY_API void tally_stop_when(int (*stop)(void *context), void *context);

/* ---- Devices ------------------------------------------------------------------------------ */

/* Something that reduces arrays: the CPU's cores, a GPU. Owned by its opener. Safe to share
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
 * Close it with tally_close() once no call uses it. TALLY_EDEVICE, TALLY_ENOMEM. A device opened before
 * fork() works in the child too. */
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

/* ---- What is asked: problems --------------------------------------------------------------- */

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

/* A reduction: which values of an array of which type. A field that is 0 has its default, so that an
 * operator and a type are a whole problem. Calls copy the problem, the operator and all it points to;
 * only the operator's context is not copied. */
typedef struct tally_problem {
    tally_op op;
    tally_type type; /* of the elements */
    tally_type
        out;     /* 0: the natural type. Where tally_op says "any float": a floating type that the
                        exact value is rounded to, once. An f64 is also allowed for every fast sum. */
    int fast;    /* not 0: floating sums and means by plain, unordered additions: no promise on the
                        bits. Other operators take no notice. */
    double ddof; /* var, std: n - ddof is what the squares are divided by. Finite, >= 0, and taken
                        as the exact number that it is. 0: the population; 1: a sample */
    int about; /* not 0: var and std are about `mean`, not about the mean of the elements: the exact
                        sum((x - mean)^2) / (n - ddof), rounded once, or its root */
    double mean[2]; /* taken as the exact number that it is; NaN and infinities give NaN. [1] is the
                        imaginary part, of complex elements */
    int is_complex; /* not 0: the elements are complex numbers, of which x has the real parts and y the
                        imaginary ones. For var and std of floats, and no others: of squared magnitudes */
    const tally_operator *user; /* TALLY_USER, and no other: the operator */
    tally_op also[8]; /* further ones, answered from the same pass; the first 0 ends them */
    int skip_nan; /* not 0: an element that is a NaN is not there, nor counted, as if a mask hid it; for dot, and of
                        complex elements, a pair with a NaN. Indices count it. Takes memory of a byte for each element
                        of a shape. Integers take no notice */
} tally_problem;

/* The most values that any problem has. */
#define TALLY_VALUES_MAX 32

/* How many values the problem has: one for most operators, two for minmax, nine for describe; those of
 * op first, then those of also[] in turn. TALLY_EINVAL and TALLY_ETYPE for a problem that makes no sense:
 * tally_error() says why. */
TALLY_API tally_status tally_problem_values(const tally_problem *problem, size_t *count);
/* What the i-th of them is: TALLY_MIN for the first of minmax. 0 where there is none. */
TALLY_API tally_op tally_problem_value_op(const tally_problem *problem, size_t i);

/* ---- Reducing an array -------------------------------------------------------------------- */

/* Reduces x[0..n), and for dot y[0..n) with it; y is NULL for all other operators. device NULL means
 * the calling thread alone, nothing opened and nothing allocated. x may be NULL where n is 0. *out is as
 * many values as tally_problem_values() says, written only on TALLY_OK.
 * TALLY_EINVAL, TALLY_ETYPE, TALLY_ENOMEM, TALLY_ERANGE. Where a problem has several values, one that
 * there is not - an integer sum that does not fit, the argmin of nothing - has type 0 among the others,
 * and is no error.
 * Method: floating sums by error-free vector extraction (Rump, Ogita, Oishi 2008) into a
 * superaccumulator (Kulisch; Neal 2015). */
TALLY_API tally_status tally_reduce(tally_device *device, const tally_problem *problem,
                                    const void *x, const void *y, size_t n, tally_value *out);

/* ---- Reducing in parts: along axes, by segment, by group ------------------------------------ */

/* A shape says which elements belong to which result. Each result has the bits that tally_reduce() gives
 * for its elements alone, in their order: a part is reduced as the whole is. */
typedef enum tally_cut {
    TALLY_AXES = 1, /* an array of several dimensions, reduced over some of them */
    TALLY_SEGMENTS, /* runs of neighbours: of equal length, or between offsets */
    TALLY_GROUPS    /* each element says by a number which result it belongs to */
} tally_cut;

#define TALLY_DIMS_MAX 16

/* All that is left 0 has its default, so that these are whole shapes:
 *     void *const outs[] = {out}; // an array of results for each value
 *
 *     tally_shape rows = TALLY_DEFAULTS;
 *     const size_t length[] = {1000, 4};
 *     rows.cut = TALLY_AXES;
 *     rows.dims = 2;
 *     rows.length = length;
 *     rows.axes = 1 << 1; // dimension 1 is reduced: 1000 results
 *     tally_reduce_shaped(NULL, &mean, &rows, x, NULL, outs);
 *
 *     tally_shape segments = TALLY_DEFAULTS;
 *     segments.cut = TALLY_SEGMENTS;
 *     segments.n = n;
 *     segments.count = count;
 *     segments.offsets = offsets; // count + 1 of them
 *     tally_reduce_shaped(NULL, &mean, &segments, x, NULL, outs);
 *
 *     tally_shape groups = TALLY_DEFAULTS;
 *     groups.cut = TALLY_GROUPS;
 *     groups.n = n;
 *     groups.count = count;
 *     groups.ids = ids; // n of them
 *     groups.ids_type = TALLY_I32;
 *     tally_reduce_shaped(NULL, &mean, &groups, x, NULL, outs);
 *
 *     const size_t vectors[] = {n, 64}; // rows of 64 elements, one id each: results of (count, 64)
 *     groups.dims = 2;
 *     groups.length = vectors;
 *     groups.axes = 1 << 0; // the ids lie along dimension 0
 *     tally_reduce_shaped(NULL, &mean, &groups, x, NULL, outs);
 *
 * Everything that it points to stays the caller's and is only read. Strides are in elements; they may be 0
 * (the same elements over again) or negative. */
typedef struct tally_shape {
    tally_cut cut;

    /* TALLY_AXES; the others, too, where dims is not 0. x and y point to the element whose indices are all 0. */
    unsigned dims;             /* 0 to TALLY_DIMS_MAX */
    const size_t *length;      /* [dims] */
    const ptrdiff_t *x_stride; /* [dims]; NULL: C order, the last dimension side by side */
    const ptrdiff_t *y_stride; /* the same of y */
    uint32_t
        axes; /* bit d: dimension d is reduced; the others are kept. Segments, groups: one bit, that of the axis
                    * which they cut */
    const ptrdiff_t
        *out_stride; /* [dims], those of reduced ones are not looked at. NULL: results lie in
                                    C order of the kept dimensions; those of segments and groups in C order of all
                                    dimensions, of which the axis has the length `count` */

    /* TALLY_SEGMENTS, TALLY_GROUPS. Where dims is 0 they are of x[0..n), side by side. Else each segment or group of
     * an axis is reduced for each index of the other dimensions. */
    size_t n;     /* where dims is not 0: 0, or the axis' length */
    size_t count; /* how many segments or groups there are */
    const void
        *offsets; /* segments: count + 1 of them; segment i is x[offsets[i]..offsets[i + 1]). They
                            never fall, and lie in [0, n]. NULL: equal lengths, n / count, without a rest */
    tally_type offsets_type; /* TALLY_I32 or TALLY_I64 (0) */
    const void *ids;         /* groups: of each of the n elements a number in [0, count) */
    tally_type ids_type;     /* any integer type; 0: i64 */
    int skip_outside; /* not 0: elements whose id lies outside are not there; else an error */
    int sorted; /* not 0: the ids never fall. An error where they do; but where a mask or skip_outside
                            leaves elements out, only a hint */

    /* All: bytes, one an element; elements with 0 are not there. NULL: all are. */
    const unsigned char *mask;
    const ptrdiff_t *mask_stride; /* [dims]; NULL: C order */

    /* All: what var and std are about, in place of the problem's mean: a number for each result, in C order of the kept
     * dimensions, whatever out_stride says; of complex elements two, the real and the imaginary part. NULL: the
     * problem's. Not for tally_groups. */
    const double *means;
} tally_shape;

/* How many results the shape has. TALLY_EINVAL: the shape makes no sense, and tally_error() says why. */
TALLY_API tally_status tally_shape_results(const tally_shape *shape, size_t *count);

/* Reduces each part of x (and for dot, of y) to the problem's values: out[v] is an array of the v-th value's
 * type (tally_problem_value_type()) with a place for each result, and must overlap no input.
 *
 * The index of argmin and argmax counts where the elements stand, whether or not a mask leaves some out:
 * within the reduced axes, in C order; from the segment's start; for groups, within x, or along its axis. A
 * result without elements is the identity.
 *
 * Where an argument is wrong nothing is written, except that an id outside may be found late: TALLY_EINVAL,
 * and the line names the first offset that falls or lies outside, or the first id outside. Where a
 * result does not exist - an exact integer that does not fit (TALLY_ERANGE), the argmin of nothing
 * (TALLY_EINVAL) - all others are written, it is 0, and the line names the first such result; but of
 * several values the argmin and argmax of nothing are UINT64_MAX, and no error.
 *
 * device NULL is the calling thread alone. Needs memory: some 400 KiB a thread; for groups that do not come
 * sorted up to twice that of x and its ids. TALLY_ENOMEM, TALLY_ETYPE, TALLY_EUNSUPPORTED (as
 * tally_reduce(): a user's operator, or f64, on a device that cannot do it). */
TALLY_API tally_status tally_reduce_shaped(tally_device *device, const tally_problem *problem,
                                           const tally_shape *shape, const void *x, const void *y,
                                           void *const out[]);

/* The type of the i-th value of a problem; 0 where there is none. */
TALLY_API tally_type tally_problem_value_type(const tally_problem *problem, size_t i);

/* The states of all groups of a grouped reduction: fed, merged, saved, loaded and lowered together, for
 * elements that come in pieces. The values are those of tally_reduce_shaped() for all elements in one array,
 * however they were cut. One thread's at a time. */
typedef struct tally_groups tally_groups;

TALLY_API tally_status tally_groups_create(const tally_problem *problem, size_t count,
                                           tally_groups **out);
TALLY_API void tally_groups_destroy(tally_groups *groups); /* NULL is allowed */
/* Adds groups of no elements, until there are `count`. The memory at least doubles where it has to be
 * moved. TALLY_EINVAL: there are more already. On an error nothing has changed. */
TALLY_API tally_status tally_groups_grow(tally_groups *groups, size_t count);
/* Returns the number of groups; 0 for NULL. */
TALLY_API size_t tally_groups_count(const tally_groups *groups);
/* From now on argmin and argmax count the elements of their group, and not all that are fed.
 * With skip_nan, NaNs that are fed do not count there; those of an added state do (tally_groups_add_state()).
 * TALLY_EINVAL once elements have been fed. */
TALLY_API tally_status tally_groups_index_within(tally_groups *groups);
/* Writes the number of elements of each group to count[0] ... count[groups - 1]. TALLY_EINVAL: an argument is NULL. */
TALLY_API tally_status tally_groups_counts(const tally_groups *groups, uint64_t count[]);
/* Adds x[0..shape->n) behind the elements that are there. `shape` is a TALLY_GROUPS one, of the same count and without
 * dimensions.
 * On an error nothing has been fed: needs memory for copies of the states of groups that get elements. */
TALLY_API tally_status tally_groups_feed(tally_groups *groups, tally_device *device,
                                         const tally_shape *shape, const void *x, const void *y);
/* Adds all that `right` knows, as if its elements came behind those of `left`. The two are of the same
 * problem and count. Exact states merge in any order; indices count from the start of `left`. Over the
 * canonical tree (floating products, user operators): TALLY_EUNSUPPORTED, as a group's elements need not
 * end where a leaf does; feed the pieces to one state instead. */
TALLY_API tally_status tally_groups_merge(tally_groups *left, const tally_groups *right);
/* Lowers all groups, as tally_reduce_shaped() does. */
TALLY_API tally_status tally_groups_values(const tally_groups *groups, void *const out[]);
/* Saved, as single states are: the same bytes for the same elements (docs/shapes.md has the
 * format). The size is 0 where there is no memory to find it out. */
TALLY_API size_t tally_groups_size(const tally_groups *groups);
TALLY_API tally_status tally_groups_save(const tally_groups *groups, void *bytes, size_t size);
TALLY_API tally_status tally_groups_load(const void *bytes, size_t size,
                                         const tally_problem *problem, tally_groups **out);
/* The wire form of all groups, as that of a single state below: words that plain integer addition combines, for
 * up to 2^31 of them with the same problem and count, and fewer than 2^63 elements in all. 0 words where
 * states of the problem have none. What comes of the sum is as if the elements of all had been fed; on an
 * error the groups are as they were. */
TALLY_API size_t tally_groups_words(const tally_groups *groups);
TALLY_API tally_status tally_groups_to_words(const tally_groups *groups, int64_t *words);
TALLY_API tally_status tally_groups_from_words(tally_groups *groups, const int64_t *words);

/* ---- States ------------------------------------------------------------------------------- */

/* What is known of a reduction after some of its elements. A state is fed in pieces, merged with others,
 * saved and loaded, and lowered to the problem's values at any time; the values are those of one array
 * with all the elements in it, bit for bit, however they were cut and on whatever devices they were
 * fed. Some kilobytes, whatever the number of elements. One thread's at a time. */
typedef struct tally_state tally_state;

/* A state of no elements. TALLY_EINVAL, TALLY_ETYPE, TALLY_ENOMEM. */
TALLY_API tally_status tally_state_create(const tally_problem *problem, tally_state **out);
TALLY_API tally_status tally_state_copy(const tally_state *state, tally_state **out);
TALLY_API void tally_state_destroy(tally_state *state); /* NULL is allowed */
TALLY_API void tally_state_clear(tally_state *state);   /* back to no elements, at index 0 */

/* Says that the elements to come begin at index `first` of the whole array, of which this state is to
 * know a part. It matters for the canonical tree alone (floating products, user operators), where states
 * can be merged only if they know where they stand; a state that is not told stands at 0. With skip_nan `first` counts
 * the elements that are there. TALLY_EINVAL once elements have been fed. */
TALLY_API tally_status tally_state_begin_at(tally_state *state, uint64_t first);

/* Adds x[0..n) behind the elements that are there, arguments as for tally_reduce(). On an error nothing
 * has been fed. TALLY_ERANGE where the state would have more than 2^64 - 1 elements. */
TALLY_API tally_status tally_state_feed(tally_state *state, tally_device *device, const void *x,
                                        const void *y, size_t n);

/* The same of elements that already lie on the device, as tally_reduce_resident() has it. Over the canonical tree
 * (floating products, users' operators) they are copied to the host in pieces, and fed from there. */
TALLY_API tally_status tally_state_feed_resident(tally_state *state, tally_device *device, void *x,
                                                 void *y, size_t n);

/* Adds all that `right` knows, as if its elements came behind those of `left`. Both are states of the same
 * problem; for exact sums, and all that is built on them, the element types may be different floating
 * ones, and the order of merges does not matter. argmin and argmax count from the start of `left`. Over the
 * canonical tree `right` must begin where `left` ends: TALLY_EINVAL says so if not. The two may be one
 * state, but not over the tree. On an error `left` is as it was. */
TALLY_API tally_status tally_state_merge(tally_state *left, const tally_state *right);
/* Adds to one group all that a state of the same problem knows, as if its elements came behind all that have been
 * fed. On an error nothing has been added; over the canonical tree TALLY_EUNSUPPORTED. */
TALLY_API tally_status tally_groups_add_state(tally_groups *groups, size_t group,
                                              const tally_state *state);
/* Copies what one group knows to a new state, which is the caller's to destroy. TALLY_EINVAL: there is no such
 * group, or the problem has an index that counts all elements (tally_groups_index_within()). TALLY_ENOMEM. */
TALLY_API tally_status tally_groups_state(const tally_groups *groups, size_t group,
                                          tally_state **out);

/* Takes away what `part` knows: elements that are among those of `state`, in any order. For sums and what
 * is built on them, counts, xor, and combinations of these: a window that moves adds at one end and takes
 * away at the other. TALLY_EUNSUPPORTED for all others, TALLY_EINVAL where `part` has more elements. A
 * sum that is then exactly zero is +0. */
TALLY_API tally_status tally_state_subtract(tally_state *state, const tally_state *part);

/* Makes it the state of the negated elements: for sum, mean and dot (of which one factor is negated).
 * TALLY_EUNSUPPORTED for all others. A sum of zeros is then +0. */
TALLY_API tally_status tally_state_negate(tally_state *state);

/* How many elements it knows. */
TALLY_API uint64_t tally_state_count(const tally_state *state);

/* Lowers the state: the values, as tally_reduce() gives them. The state stays as it is. */
TALLY_API tally_status tally_state_value(const tally_state *state, tally_value *out);

/* The exact sum divided by an integer, rounded once to the type (0: that of the problem's mean). For sum,
 * mean, norm1, sumsq and dot. divisor is not 0. */
TALLY_API tally_status tally_state_divided(const tally_state *state, int64_t divisor,
                                           tally_type type, tally_value *out);

/* Writes the state's i-th value exactly, before any rounding, in decimal digits: "-18446744073709551616" for integers
 * beyond 64 bits, too, and "0.3000000000000000166..." to the last digit for floats; "nan", "inf" or "-inf" for those.
 * For sum, norm1, sumsq and dot; TALLY_EUNSUPPORTED for other operators and for fast sums. *length becomes the number
 * of bytes before the final NUL, at most 2900; text[0..size) gets them, and where `size` is not greater than *length
 * nothing but the length: TALLY_EINVAL. A `text` of NULL asks for the length alone. */
TALLY_API tally_status tally_state_print(const tally_state *state, size_t i, char *text,
                                         size_t size, size_t *length);

/* Bytes of the saved state. */
TALLY_API size_t tally_state_size(const tally_state *state);
/* Writes that many bytes, which depend on the problem and the elements alone: the same on every machine,
 * whatever the cut, and for exact states whatever the order. docs/states.md gives the format. A user's
 * operator is not saved, only that there is one; nor is the mean that variances are about, nor skip_nan. TALLY_EINVAL where
 * `size` is too small. */
TALLY_API tally_status tally_state_save(const tally_state *state, void *bytes, size_t size);
/* The reverse, into a new state. `problem` is NULL, or what the saved state must be a state of (its
 * element type, operators, ddof and out); a user's operator, and a mean, have to be given so. TALLY_EFORMAT
 * for bytes that tally_state_save() cannot have written, and for another problem. */
TALLY_API tally_status tally_state_load(const void *bytes, size_t size,
                                        const tally_problem *problem, tally_state **out);

/* The wire form: the state as 64-bit words that plain integer addition combines, word by word, in any
 * order, for up to 2^31 states of fewer than 2^63 elements in all: an MPI_SUM on MPI_INT64_T, an ncclSum
 * on ncclInt64. Sums and what is built on them, and counts, have one; for all others tally_state_words() is 0. */
TALLY_API size_t tally_state_words(const tally_state *state);
TALLY_API tally_status tally_state_to_words(const tally_state *state, int64_t *words);
/* The state becomes what the words, added up, say. TALLY_EFORMAT for words that cannot be such a sum. */
TALLY_API tally_status tally_state_from_words(tally_state *state, const int64_t *words);

/* The same for operators that additions do not combine: 64-bit words that tally_merge_words() combines
 * in place, without memory. All states have such words but those over the canonical tree and of fast
 * sums, for which tally_state_merge_words() is 0. Where tally_state_words() is not 0, they are the same
 * words. */
TALLY_API size_t tally_state_merge_words(const tally_state *state);
TALLY_API tally_status tally_state_to_merge_words(const tally_state *state, int64_t *words);
TALLY_API tally_status tally_state_from_merge_words(tally_state *state, const int64_t *words);
/* Merges left[] into right[]; the elements of left[] come first. Words of up to 2^31 states can be
 * merged, neighbours in any order. TALLY_EFORMAT: the words of one are of no state of the problem; those that additions
 * combine are not looked at before tally_state_from_merge_words() does.
 * TALLY_ERANGE: both have more than 2^63 - 1 elements. After an error right[] is unchanged. */
TALLY_API tally_status tally_merge_words(const tally_problem *problem, const int64_t *left,
                                         int64_t *right);

/* ---- GPU devices -------------------------------------------------------------------------- */

/* A GPU takes the same calls as the CPU and gives the same bits. Its text is KIND[:OPTION,...]:
 *   "cuda:0", "opencl:1"   a number counts devices as tally_device_list() does; 0 is the default
 *   "model"                a simulated GPU: slow, there to test and to learn with
 *   "cuda:all"             all of them as one: an array in host memory is shared among them, reductions in
 *                          parts are the first one's
 *   "opencl:0,memory=1G"   so many bytes of its memory at most (K, M, G); 1M or more
 *   "cuda:0,block=128"     threads of a block, a power of two; the default suits the device
 *   "cuda:0,doubles=slow"  f16, bf16 and f32 are added up without doubles where that can be; or doubles=fast; the
 *                          default is what the device's rates of both say (CUDA), or fast
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

/* As tally_reduce(), of arrays that already lie on the device; nothing is copied but the values.
 * The memory is aligned to its element type and is
 *   cuda      a device pointer of this device, or of memory that it can reach, in its primary context
 *   opencl    where the device is a CPU: host memory
 *   cpu       host memory
 * Work that the caller has put under way on it must have finished. TALLY_EUNSUPPORTED where the memory is
 * not such: other OpenCL devices, the model. */
TALLY_API tally_status tally_reduce_resident(tally_device *device, const tally_problem *problem,
                                             void *x, void *y, size_t n, tally_value *out);

/* Copies bytes of such memory to the host's, and waits until they are there. */
TALLY_API tally_status tally_resident_copy(tally_device *device, void *to, const void *from,
                                           size_t bytes);

/* Elements x[0..n), and for dot y[0..n), of a larger array; NULL where n is 0, y but for dot. */
typedef struct tally_stretch {
    void *x, *y;
    size_t n;
} tally_stretch;

/* As tally_reduce_resident(), of one array in `count` stretches, one behind another: stretch i lies on the i-th
 * device of "cuda:all", as tally_device_list() counts them, and is reduced there; any may be empty. `count` is how
 * many devices these are, and 1 for any other device. Floating products and users' operators, which go over the
 * canonical tree, take stretches of multiples of 4096 elements, but for the last; TALLY_EINVAL otherwise. */
TALLY_API tally_status tally_reduce_distributed(tally_device *device, const tally_problem *problem,
                                                const tally_stretch *stretches, size_t count,
                                                tally_value *out);

/* How long a GPU takes to reduce x[0..n) once it lies in the device's memory: the median of a few runs, in
 * seconds by the device's clock; *out is the values. The array is brought there first (a CPU behind OpenCL
 * reads it where it is). Arguments and errors as for tally_reduce(); TALLY_ENOMEM where the device has no
 * room for all of it, TALLY_EUNSUPPORTED on a cpu, whose time is tally_reduce()'s, and on the model. */
TALLY_API tally_status tally_device_time(tally_device *device, const tally_problem *problem,
                                         const void *x, const void *y, size_t n, tally_value *out,
                                         double *seconds);

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
    int32_t
        status; /* TALLY_OK; TALLY_ERANGE where an exact integer does not fit, TALLY_EINVAL for the
                       argmin of nothing; `as` is then 0 */
    int32_t type; /* a tally_type */
} tally_result;

/* How many bytes of the device's memory tally_enqueue() needs to work in, for n elements or fewer. Compiles
 * and loads the kernels, so that tally_enqueue() need not. */
TALLY_API tally_status tally_workspace(tally_device *device, const tally_problem *problem, size_t n,
                                       size_t *bytes);

/* Where a queue's reduction finds and leaves things; all of it the caller's, in the context that the device
 * was opened in:
 *            x, y, workspace, results      queue
 *   cuda     device pointers               a CUstream (or cudaStream_t); NULL is the default stream
 *   opencl   cl_mem                        a cl_command_queue, in order */
typedef struct tally_call {
    void *x, *y; /* n elements each, aligned to their type; NULL where n is 0, y but for dot */
    size_t n;
    void *workspace; /* what tally_workspace() said, aligned to 8, of any content; not to be used by
                               anything else until the reduction is done */
    size_t workspace_bytes;
    void *queue;
    void *results; /* a tally_result for each of the problem's values */
} tally_call;

/* Puts a reduction on a queue of the caller's and returns: nothing is waited for, no memory of the device
 * allocated, nothing copied; on CUDA it may be captured into a graph, once tally_workspace() has been
 * called for it. Any number of threads may call this for one device, each with a queue, workspace and
 * results of its own. A user's operator must have a source; see above.
 * TALLY_EUNSUPPORTED on other devices, for memory that the device cannot reach, and for more than 2^28
 * elements a multiprocessor; TALLY_EINVAL for memory out of alignment and for too small a workspace. */
TALLY_API tally_status tally_enqueue(tally_device *device, const tally_problem *problem,
                                     const tally_call *call);

/* Returns whether what is enqueued on a queue goes into a graph now, to be done later and perhaps many times (CUDA's
 * stream capture). Results must then not lie in memory that is used again elsewhere: the graph writes to it each time it
 * runs. 1 also where that cannot be told; 0 for devices without such graphs. Any thread may ask. */
TALLY_API int tally_queue_is_captured(tally_device *device, void *queue);

/* As tally_reduce_shaped(), of arrays that already lie on the device, and to results there: x, y, out[] and the
 * shape's offsets, ids and mask are memory as tally_reduce_resident() has it; the array out[] itself, lengths and
 * strides are the host's. Waits until the results are there. Where an offset or an id is wrong the line
 * says which, and the results mean nothing. The device works in memory of its own: some megabytes; for groups
 * that are not promised to be sorted 16 bytes an element; over the canonical tree, where elements do not lie side
 * by side, a copy of them. */
TALLY_API tally_status tally_reduce_shaped_resident(tally_device *device,
                                                    const tally_problem *problem,
                                                    const tally_shape *shape, void *x, void *y,
                                                    void *const out[]);

/* What became of a reduction in parts, where tally_enqueue_shaped() leaves it: 16 bytes, aligned to 8. */
typedef struct tally_outcome {
    uint64_t at;    /* which result, offset or id: 0 where all is well */
    int32_t status; /* TALLY_OK; TALLY_ERANGE, TALLY_EINVAL: as tally_reduce_shaped() */
    int32_t value;  /* which value of result `at` there is not; -1: it is offset or id `at` that
                       is wrong, and the results mean nothing */
} tally_outcome;

/* How many bytes of the device's memory tally_enqueue_shaped() needs to work in for this shape,
 * whose arrays are not looked at. Compiles and loads the kernels, so that tally_enqueue_shaped()
 * need not. Large arrays along axes with a mask, or whose elements lie apart, want as much as their
 * elements, and up to 8 bytes a result: they are copied. */
TALLY_API tally_status tally_workspace_shaped(tally_device *device, const tally_problem *problem,
                                              const tally_shape *shape, size_t *bytes);

/* As tally_call. The shape's offsets, ids and mask are the device's memory, too; lengths and strides are the
 * host's and are read by the call. */
typedef struct tally_shaped_call {
    const tally_shape *shape;
    void *x, *y;
    void *workspace; /* what tally_workspace_shaped() said, of any content */
    size_t workspace_bytes;
    void *queue;
    void *const *out; /* [values], read by the call: memory for the results of each value */
    void *outcome;    /* a tally_outcome; NULL: nobody asks, which is a launch less */
} tally_shaped_call;

/* As tally_enqueue(), of parts: nothing is waited for, allocated or copied; but CUDA's driver may take some memory for calls
 * that come again (docs/gpu.md). With OpenCL no stride may lead to
 * before the start of a cl_mem, and where a problem has several values each of them reads the arrays again. */
TALLY_API tally_status tally_enqueue_shaped(tally_device *device, const tally_problem *problem,
                                            const tally_shaped_call *call);

/* ---- Over ranks, without the host ----------------------------------------------------------- */

/* A reduction of elements of which each of several ranks has some, in the memory of a GPU each. Each rank makes words of
 * its part; a network brings them together; each rank makes values of what comes of that, which all are the same and
 * have the bits of one array with all elements in it, in the order of ranks:
 *
 *   added      int64 words that plain addition combines: ncclSum on ncclInt64, MPI_SUM on MPI_INT64_T. Where there are
 *              no gathered ones they are those of tally_state_to_words()
 *   gathered   64-bit words that every rank gets of every rank: ncclAllGather, MPI_Allgather. For products of integers
 *              and extremes
 *
 * Nothing waits for anything. TALLY_EUNSUPPORTED for what goes over the canonical tree (floating products, users'
 * operators): a leaf of it may lie on two ranks. A fast sum is an exact one here. */
typedef struct tally_words {
    size_t added, gathered; /* words of a state; either may be 0 */
    size_t workspace_bytes; /* for tally_enqueue_words() */
} tally_words;

/* For `count` states of n elements or fewer each. Compiles and loads the kernels, so that the other calls need not. */
TALLY_API tally_status tally_words_measure(tally_device *device, const tally_problem *problem,
                                           size_t n, size_t count, tally_words *out);

typedef struct tally_words_call {
    const void *x, *y; /* as tally_call */
    size_t n;
    void *workspace; /* what tally_words_measure() said, of any content */
    size_t workspace_bytes;
    void *queue;
    void *added;    /* as many words as are added, aligned to 8; NULL where there are none */
    void *gathered; /* the same of those gathered */
    void *failed;   /* NULL, or two int64 that become 0: tally_values_call */
} tally_words_call;

/* Puts the words of elements x[0..n) under way, as tally_enqueue() does their values. */
TALLY_API tally_status tally_enqueue_words(tally_device *device, const tally_problem *problem,
                                           const tally_words_call *call);

typedef struct tally_values_call {
    const void *added;    /* of each state the sums of all ranks' words */
    const void *gathered; /* the words of rank 0 for each state, those of rank 1, ... */
    size_t ranks;         /* so many */
    size_t count;         /* states */
    const void *
        failed; /* NULL, or two int64: how many ranks have failed, and the sum of s + s^2 * 2^32 for their
                             statuses s. If any has, all results have that status (TALLY_EINVAL, if they differ) */
    void *queue;
    void *results; /* of each state a tally_result for each of the problem's values */
} tally_values_call;

TALLY_API tally_status tally_enqueue_values(tally_device *device, const tally_problem *problem,
                                            const tally_values_call *call);

/* The same without a network, between GPUs that can write into each other's memory, as those of one
 * machine can. A rank writes its words straight into the memory of the others, and waits for theirs
 * on its GPU. A call reduces one state. It makes two launches, or one for the sum, mean or norm1 of
 * up to 8192 floats of a rank.
 *
 * Each rank has a mailbox: TALLY_MAILBOX_BYTES(ranks) bytes of its GPU's memory. From its 64-bit
 * word number TALLY_MAILBOX_ADDRESSES on, the caller writes the addresses of all ranks' mailboxes in
 * the order of ranks, as this rank's GPU knows them. All other words are 0 at first.
 *
 * All ranks make the calls with one set of mailboxes in the same order. A rank makes one after
 * another, on a GPU of its own. As with NCCL, a rank that makes no call leaves the others waiting.
 * To end the wait, make word number TALLY_MAILBOX_STOP of the rank's own mailbox other than 0. That
 * rank's result is then TALLY_ELOST, and its mailbox cannot be used again. */
#define TALLY_MAILBOX_STOP         1
#define TALLY_MAILBOX_ADDRESSES    2
#define TALLY_MAILBOX_RANKS        16 /* at most */
#define TALLY_MAILBOX_BYTES(ranks) (256 + 16384 * (size_t)(ranks))

typedef struct tally_shared_call {
    const void *x, *y; /* as tally_call */
    size_t n;
    void *workspace; /* what tally_words_measure() said, of any content */
    size_t workspace_bytes;
    void *queue;
    void *words; /* room for 2 words, those added, and those gathered of each rank; aligned to 8 */
    void *mailbox;
    size_t ranks, mine; /* how many there are, and which this one is */
    tally_status
        failure; /* other than TALLY_OK: there are no elements, and this is what all ranks' results become */
    void *results; /* a tally_result for each of the problem's values */
} tally_shared_call;

TALLY_API tally_status tally_enqueue_shared(tally_device *device, const tally_problem *problem,
                                            const tally_shared_call *call);

/* ---- Arrays that are added up over ranks ---------------------------------------------------- */

/* Each of several ranks (processes, GPUs) has an array of n elements, such as gradients; wanted are the sums element by
 * element over the ranks: exact, rounded once, and so the same bits whatever the order in which ranks come, and for any
 * number of ranks that have the same terms. A network that finds the greatest integers and adds integers does it, in two
 * messages:
 *
 *   1. tally_terms_bounds()   on each rank: three 32-bit integers for every 512 elements. Their greatest over the
 *                             ranks - MPI_MAX, ncclMax - say where the elements' bits lie, on all ranks alike;
 *   2. tally_terms_words()    on each rank: an integer for each element. They are added up - MPI_SUM, ncclSum, or in
 *                             parts by a reduce-scatter -, and so are the spare words below;
 *   3. tally_terms_values()   from these sums to the nearest floats.
 *
 * An integer of 64 bits (of 32 for f16 and bf16 on up to 16 ranks) holds elements whose exponents are some 30 apart. Of
 * 512 neighbours that reach further, or have infinities or NaNs among them, the further bits stand in spare rows of
 * 512 words each, of which there are as many as the caller says. Where they do not suffice all ranks find so:
 * TALLY_ENOMEM in the outcome, with how many are needed. tally_terms_sizes.rows of them always do. */
typedef struct tally_terms {
    tally_type type;  /* TALLY_F32, TALLY_F16, TALLY_BF16 */
    size_t n;         /* of each rank's array */
    unsigned ranks;   /* how many they are: 1 to 2^20 */
    size_t spare;     /* rows */
    size_t shard;     /* where sums are to be in parts: of how many elements; else 0 */
    uint32_t divisor; /* what sums are divided by before they are rounded; 0: by nothing */
} tally_terms;

/* How much memory the steps need. */
typedef struct tally_terms_sizes {
    tally_type word;        /* TALLY_I64 or TALLY_I32: of words and spare words */
    size_t bounds;          /* 32-bit integers */
    size_t words;           /* words: n */
    size_t spare;           /* further words */
    size_t workspace_bytes; /* from step 2 to step 3 */
    size_t rows;            /* spare rows that no arrays can need more of */
} tally_terms_sizes;

/* The arrays that the steps read and write. On a GPU: memory of the device, and a queue, as in
 * tally_call; with the device NULL, or a cpu: host memory, and the step is done when the call
 * returns. Elements and words are aligned to their size, all else to 8. */
typedef struct tally_terms_call {
    const void *x; /* 1, 2: n elements */
    void *bounds;  /* 1: written; 2, 3: the greatest of all ranks' */
    void *words;   /* 2: written; 3: the sums of those of elements [first, first + count) */
    void *spare;   /* 2: written; 3: the sums. May be NULL where there are none */
    const void *
        failed; /* 3: NULL, or a word that is not 0 where a rank has failed before or in step 2, and has sent
                           other bounds (bytes of 0xf0 are below all others) or words: the outcome is TALLY_EINVAL */
    void *workspace; /* 2: written; 3: read */
    void *out;       /* 3: count elements; may be x */
    void *outcome;   /* 3: a tally_outcome, or NULL */
    void *queue;
    size_t first, count; /* 3 */
} tally_terms_call;

TALLY_API tally_status tally_terms_measure(const tally_terms *terms, tally_terms_sizes *out);
/* Compiles and loads the kernels of a GPU, so that the steps need not. */
TALLY_API tally_status tally_terms_prepare(tally_device *device);
/* The steps. TALLY_EINVAL, TALLY_ETYPE; on a GPU as tally_enqueue(). */
TALLY_API tally_status tally_terms_bounds(tally_device *device, const tally_terms *terms,
                                          const tally_terms_call *call);
TALLY_API tally_status tally_terms_words(tally_device *device, const tally_terms *terms,
                                         const tally_terms_call *call);
TALLY_API tally_status tally_terms_values(tally_device *device, const tally_terms *terms,
                                          const tally_terms_call *call);

/* The same without a network, where every rank's GPU can read and write the memory of all others. A
 * rank adds up its share of the elements straight from the arrays of all ranks, and writes the sums
 * into the arrays of all. There are no words, and no more bytes than in a plain allreduce. The bits
 * are those of the steps above; there are no spare rows to run out of. A barrier of the ranks stands
 * before and behind, by mailboxes as for tally_enqueue_shared(): three launches in all.
 *
 * In `terms`, `spare` does not matter; where `shard` is not 0, n is a multiple of it, and rank r gets the sums of elements
 * [r shard, (r + 1) shard) alone. */
typedef struct tally_terms_shared_call {
    const void *x
        [TALLY_MAILBOX_RANKS]; /* each rank's array, where this GPU finds it: n elements, aligned to their size; */
    void *out[TALLY_MAILBOX_RANKS]; /* its sums: n, or shard, elements; may be x */
    size_t mine; /* which rank this is; terms.ranks are up to TALLY_MAILBOX_RANKS */
    uint32_t
        arrays; /* a number by which the ranks find that they mean the same arrays: else TALLY_EINVAL */
    void *
        mailbox; /* this rank's. NULL: there are no barriers, and the caller sees to it that all arrays are there, and stay */
    tally_status
        failure; /* other than TALLY_OK, where there is a mailbox: what all ranks' outcomes become, and no array is read */
    void *outcome; /* a tally_outcome in this GPU's memory; NULL only where there is no mailbox */
    void *queue;
} tally_terms_shared_call;

/* Compiles and loads the kernels. TALLY_EUNSUPPORTED on devices other than CUDA's, of which no
 * other can reach the memory. */
TALLY_API tally_status tally_terms_shared_prepare(tally_device *device);
TALLY_API tally_status tally_terms_shared(tally_device *device, const tally_terms *terms,
                                          const tally_terms_shared_call *call);

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
    int accesses; /* tally_ladder_explain(): not 0: its steps have their accesses, too */
} tally_ladder_options;

/* What a kernel did, as the model saw it; src/model/model.h says how each is counted. */
typedef struct tally_ladder_counts {
    uint64_t blocks;
    uint64_t steps;    /* stretches between barriers in which an operator is applied */
    uint64_t barriers; /* executed by a block */
    uint64_t rounds;   /* applications one after another, within a block; these three are of the
                          block with the most, added up over launches */
    uint64_t all_rounds, all_barriers; /* the same, added up over all blocks */
    uint64_t useful;     /* operations that the reduction needs: n - 1, or n - r where the kernels
                            leave r results to atomics or to the CPU */
    uint64_t operations; /* applications of the operator, by lane; atomics are counted apart */
    uint64_t slots;      /* 32 for each warp and step in which it is applied */
    uint64_t issued;    /* 32 for each instruction of a warp that applies it; useful / issued is the
                            efficiency, at most 1 */
    uint64_t divergent; /* branches that part a warp */
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
    double roof_seconds;       /* the shortest time in which the array has been read */
    const char *roof;          /* what read it then: "read" is a plain read kernel, else a rung */
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
    uint32_t operations, issued, divergent, transactions, fewest_transactions, bank_conflicts;
} tally_ladder_warp;

/* What the lanes of a warp did together, in one instruction. */
typedef enum tally_ladder_act {
    TALLY_LADDER_READ,
    TALLY_LADDER_WRITE,
    TALLY_LADDER_ATOMIC,   /* reads and writes */
    TALLY_LADDER_EXCHANGE, /* of registers, by a shuffle */
    TALLY_LADDER_APPLY /* of the operator, to what was last read or got and the register's own */
} tally_ladder_act;

typedef struct tally_ladder_access {
    unsigned warp;
    uint32_t lanes; /* bit l: lane l takes part; below, [l] is lane l's */
    tally_ladder_act act;
    int shared; /* in shared memory; else in global memory, if in any */
    /* "x" (what the kernel reduces), "partials", "total", "board", a shared array's name, or "shared"
     * where the library has no symbols; "" without memory */
    char array[24];
    tally_type type;      /* of the array's elements, as which the values below are read */
    uint64_t element[32]; /* its index in the array; TALLY_LADDER_EXCHANGE: the lane that gives */
    unsigned elements;    /* so many in a row, from there on: 16-byte loads read several */
    unsigned size;        /* bytes of them together */
    /* The first one: as read, or got; as it stands at the end of the step, if written. */
    tally_value value[32];
    tally_value
        given[32]; /* TALLY_LADDER_EXCHANGE: what the lane itself gave; _ATOMIC: what it found */
    uint32_t transactions, fewest_transactions, bank_conflicts; /* what it cost */
    /* The kernel's file, "shared.cu", and the line in it that does this; "" and 0 where the library has
     * no debugging information */
    char file[40];
    unsigned line;
} tally_ladder_access;

typedef struct tally_ladder_step {
    unsigned launch;         /* which one, from 0 */
    unsigned block, step;    /* which block of it, which of the block's steps, from 0 */
    int barrier;             /* it ends with a barrier, not with the kernel */
    uint64_t stride;         /* elements between the two values combined; 0: none or several */
    unsigned warps, threads; /* of the block */
    const tally_ladder_warp *warp;     /* [warps] */
    uint64_t n;                        /* elements that the launch reduces */
    size_t accesses;                   /* 0 unless the options ask for them */
    const tally_ladder_access *access; /* [accesses]; each warp's in their order, warp after warp */
} tally_ladder_step;

/* The text of a kernel of the ladder by its file's name, such as "shared.cu"; NULL where there is none. */
TALLY_API const char *tally_ladder_source(const char *file);

/* Runs one rung on the model and tells of every step; *out is its row. `only` is not looked at. */
TALLY_API tally_status tally_ladder_explain(const char *rung, const tally_ladder_options *options,
                                            void (*on_step)(void *context,
                                                            const tally_ladder_step *step),
                                            void *context, tally_ladder_row *out);

/* ---- A kernel of one's own ------------------------------------------------------------------ */

/* A kernel that is compiled at run time, on the model: run, counted, and stopped at what is wrong with it.
 * The caller compiles its text as C++ behind tally_own_prelude() with tally_own_flags(), into a shared
 * object, as `tally explain --kernel` does; tally_own_open() refuses an object that would run anything
 * when it is loaded. The kernel's every access is checked; a caller that does not trust it runs it in a process
 * that may do nothing else. One thread at a time may use a tally_own. On x86-64 and aarch64. */
typedef struct tally_own tally_own;

TALLY_API const char *tally_own_prelude(void); /* NULL in a build without the model */
TALLY_API const char *tally_own_flags(void);   /* with blanks between them */

/* `object` is the file's name. TALLY_EFORMAT for one that is not such an object. */
TALLY_API tally_status tally_own_open(const char *object, tally_own **out);
TALLY_API void tally_own_close(tally_own *own); /* NULL is allowed */

typedef struct tally_own_kernel {
    const char *name;
    const char *input, *output, *length,
        *second;     /* its parameters' names; NULL where it has none such. Without an output the
                            result is in the input. `second`: it takes two arrays, and reduces products */
    tally_type type; /* of the elements */
    tally_type length_type; /* of the number of elements, where it takes one */
    size_t shared_bytes;    /* of shared arrays with a size */
    int is_dynamic;         /* it has an array whose size the launch gives */
    char roles[9];          /* as in tally_own_text */
} tally_own_kernel;

/* The i-th kernel, in the order of the text. TALLY_EINVAL past the last; TALLY_EUNSUPPORTED for one whose
 * parameters are not those of a reduction: pointers to one, two or three arrays, at most one integer, and functors. */
TALLY_API tally_status tally_own_describe(const tally_own *own, size_t i, tally_own_kernel *out);

/* A launch for more elements than memory holds. Of its grid some blocks run, and of its arrays what
 * these touch is there. */
typedef struct tally_own_far {
    const unsigned *blocks; /* that run, ascending, block 0 first */
    size_t block_count;
    const uint64_t *starts,
        *counts; /* windows of the input, in elements, ascending, apart from each other */
    size_t
        windows; /* 0: all of the arrays is there, zeros, of which the kernel may touch some thousand pages */
    uint64_t n;     /* elements of the whole input */
    unsigned told;  /* threads of a block, as the kernel is told; 0: those that run */
    unsigned first; /* threadIdx.x of the first thread that runs, without windows */
} tally_own_far;

/* How a host launches it: once. */
typedef struct tally_own_launch {
    tally_op op;
    const void *x; /* n elements of the kernel's type, which stay as they are */
    size_t n;
    unsigned grid, block;   /* 1 up; 1 to 1024 */
    uint64_t length;        /* what it passes for the number of elements */
    size_t outputs;         /* elements of the output, all the identity before the launch */
    size_t shared_bytes;    /* for arrays without a size; with the others 48 KiB at most */
    int forgives;           /* races and unwritten memory do not end it */
    const void *y;          /* n elements of the second array, where the kernel takes one */
    unsigned width, height; /* of a block of two or three dimensions; 0: it has one */
    unsigned
        order; /* of the blocks: 0 ascending, 1 descending, else a random one that this number draws */
    int keeps; /* the kernel's variables in global memory keep what the launch before left there */
    uint64_t patience; /* basic blocks of a warp between barriers; 0: 16 n + 2^12 */
    uint64_t
        work_most; /* TALLY_EUNSUPPORTED where its lanes run more basic blocks than that; 0: any number */
    int accesses; /* not 0: on_step() is told of accesses; arrays have the kernel's names */
    const tally_own_far *
        far; /* not NULL: x, y and `input` hold the windows one after another, n elements in all; `output` the elements of
                 the blocks that run. TALLY_EUNSUPPORTED where such arrays have no place */
} tally_own_launch;

typedef enum tally_own_fault {
    TALLY_OWN_RIGHT,
    TALLY_OWN_BARRIER,   /* a barrier or shuffle that not all threads reach */
    TALLY_OWN_BOUNDS,    /* outside its arrays */
    TALLY_OWN_ALIGNMENT, /* an address that is no multiple of the access's size */
    TALLY_OWN_UNWRITTEN, /* read before it was written */
    TALLY_OWN_RACE,      /* two threads at one place, and nothing that orders them */
    TALLY_OWN_STACK,     /* too many variables of its own */
    TALLY_OWN_ENDLESS,   /* it does not end */
    TALLY_OWN_ORDER,     /* a fence is missing beside the atomic by which blocks pass values on */
    TALLY_OWN_SHUFFLE,   /* a shuffle takes a value from a lane that takes no part in it */
    TALLY_OWN_PROMISE /* an assert() does not hold, or __ldg() reads what the kernel has written */
} tally_own_fault;

typedef struct tally_own_result {
    tally_own_fault fault;
    char sentence[512]; /* what is wrong; "" for TALLY_OWN_RIGHT */
    unsigned line,
        other_line; /* of the text: where that is, and the other place it names; 0: none */
    int detail; /* race: 1 within a warp, 2 between blocks, 3, 4 of volatile stores, 5 of one store. Barrier: 1 for
                        a shuffle, 2 where some have left. Endless: 1 if it does not wait. Order: 1 where a fence of the block stands, 2 where the reader's is missing */
    char stray
        [200]; /* what is a fault only where the result is wrong, "" for nothing: a shuffle that takes a
                        value from a lane that takes no part, or a plain read beside atomics, by an
                        instruction whose values other lanes try by compare and swap */
    unsigned stray_line, stray_other_line; /* as line and other_line ... */
    int stray_detail;                      /* ... and detail */
    tally_own_fault stray_fault;           /* TALLY_OWN_SHUFFLE or TALLY_OWN_RACE */
    char note
        [512]; /* a fence that the standard asks for behind the reader's atomic, where a barrier stands; "" for none.
                       No fault */
    int is_complete; /* it ran to its end */
    size_t written;  /* of the outputs: those up to the last that was written */
    int all_written; /* and none of these was left out */
    int combines;    /* a block reads what others wrote there: the first is the result of all */
    size_t first[2],
        last[2]; /* elements of the input that blocks 0 and 1 touched: first, and past the last; both
                                 0: none */
    tally_ladder_counts counts; /* useful: at most `operations` */
    uint64_t far_read; /* elements of the input that a far launch without windows has read */
    uint64_t
        work;     /* basic blocks that its lanes ran, added up: what the run cost, on any machine */
    int far_left; /* such a launch has left its arrays: `sentence` tells where */
} tally_own_result;

/* Runs the kernel once. x and outputs after it: `input` has room for n elements, `output` for how->outputs;
 * either may be NULL. What is wrong with the kernel is told in *out, and is no error. on_step may be NULL. */
TALLY_API tally_status tally_own_run(tally_own *own, size_t i, const tally_own_launch *how,
                                     void (*on_step)(void *context, const tally_ladder_step *step),
                                     void *context, void *input, void *output,
                                     tally_own_result *out);

/* The same kernel on a device that has a time, CUDA or OpenCL, compiled by the device's own compiler. There nothing
 * checks its accesses but the device itself: first it goes to the model. */
typedef struct tally_own_program tally_own_program;

typedef struct tally_own_text {
    const char
        *text; /* CUDA C; for OpenCL, with `__global` before a kernel's pointers. Arrays that are
                         `extern` in CUDA have OWN_DYNAMIC bytes instead */
    const char *file; /* its name, for the compiler's messages */
    const char *kernel;
    tally_type type;
    char roles[9]; /* of its parameters, a letter each: i input, o output, 4 or 8 the length, of so
                             many bytes */
    size_t dynamic_bytes; /* what OWN_DYNAMIC is */
} tally_own_text;

/* TALLY_ECOMPILE: the compiler's first message, with the line of the text. */
TALLY_API tally_status tally_own_compile(const char *device, const tally_own_text *text,
                                         tally_own_program **out);
TALLY_API void tally_own_drop(tally_own_program *program); /* NULL is allowed */

/* Runs the kernel `repeats` times, 1 up, each time with the arrays as they are before a launch; *seconds is the
 * median time of the launch alone. x and outputs after the last are copied as by tally_own_run(); how->shared_bytes,
 * forgives, patience and accesses mean nothing here. TALLY_EINVAL: the launch is more than the device allows;
 * TALLY_ELOST: the device has stopped it. out->fault is TALLY_OWN_BOUNDS where memory right behind an array was
 * written; nothing is counted. */
TALLY_API tally_status tally_own_time(tally_own_program *program, const tally_own_launch *how,
                                      unsigned repeats, void *input, void *output, double *seconds,
                                      tally_own_result *out);

#ifdef __cplusplus
}
#endif

#endif
