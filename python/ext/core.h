/*
 * core.h - what the files of tally._core share: the module's state, errors, buffers, and work without the
 * interpreter's lock.
 *
 * tally._core is the thin part of the Python package that has to be C: it hands the buffers of Python's
 * objects to tally.h, and does the commonest calls from start to end. Python code interprets arguments.
 */
#ifndef TALLY_PYTHON_CORE_H
#define TALLY_PYTHON_CORE_H

/* (No format with a '#' anywhere: an extension that was built with the headers of 3.13 has not said PY_SSIZE_T_CLEAN
 * in a way that 3.11 and 3.12 understand.) */
#include <Python.h>

#include "tally.h"

/* The buffer protocol came into the limited interface with 3.11. CPython 3.10 has the same functions, and the same struct
 * and slot, of which its headers tell only extensions that are for 3.10 alone. */
#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030B0000
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *, Py_buffer *, int);
PyAPI_FUNC(int) PyBuffer_IsContiguous(const Py_buffer *, char);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *);
#if !defined(PyBUF_WRITABLE)
enum { PyBUF_WRITABLE = 1, PyBUF_FORMAT = 4, PyBUF_STRIDES = 16 | 8 };
#endif
#if !defined(Py_bf_getbuffer)
enum { Py_bf_getbuffer = 1 };
#endif
#endif

/* A type beyond those of tally.h: bool, whose bytes 0 and 1 are reduced as an i8's. */
enum { CORE_BOOL = TALLY_F64 + 1, CORE_TYPES };

/* The functions that are called with one array (dot: two) and nothing else, most of the time:
 * X(name, operator, what becomes of the value). */
#define CORE_FUNCTIONS(X)                                                                          \
    X(sum, TALLY_SUM, NUMBER)                                                                      \
    X(prod, TALLY_PROD, NUMBER)                                                                    \
    X(min, TALLY_MIN, ELEMENT)                                                                     \
    X(max, TALLY_MAX, ELEMENT)                                                                     \
    X(minmax, TALLY_MINMAX, PAIR)                                                                  \
    X(argmin, TALLY_ARGMIN, INDEX)                                                                 \
    X(argmax, TALLY_ARGMAX, INDEX)                                                                 \
    X(mean, TALLY_MEAN, NUMBER)                                                                    \
    X(var, TALLY_VAR, NUMBER)                                                                      \
    X(std, TALLY_STD, NUMBER)                                                                      \
    X(norm, TALLY_NORM2, NUMBER)                                                                   \
    X(sumsq, TALLY_SUMSQ, NUMBER)                                                                  \
    X(dot, TALLY_DOT, NUMBER)                                                                      \
    X(vecdot, TALLY_DOT, NUMBER)                                                                   \
    X(count_nonzero, TALLY_NONZERO, INDEX)                                                         \
    X(any, TALLY_ANY, TRUTH)                                                                       \
    X(all, TALLY_ALL, TRUTH)                                                                       \
    X(bitwise_and, TALLY_AND, BITS)                                                                \
    X(bitwise_or, TALLY_OR, BITS)                                                                  \
    X(bitwise_xor, TALLY_XOR, BITS)

enum core_function {
#define X(name, op, kind) FUNCTION_##name,
    CORE_FUNCTIONS(X)
#undef X
        FUNCTIONS
};

/* The module's state, one for each interpreter. */
struct core {
    PyObject *general[FUNCTIONS]; /* the functions in Python, which take all arguments */
    PyObject *docs[FUNCTIONS];
    PyMethodDef method[FUNCTIONS];
    PyTypeObject *ndarray;              /* numpy.ndarray, once NumPy has been seen; else NULL */
    PyObject *scalar[CORE_TYPES];       /* NumPy's scalar types; NULL where there is none */
    PyObject *scalar_array[CORE_TYPES]; /* an array of no dimensions of each of these types ... */
    void *scalar_data[CORE_TYPES];      /* ... and its element */
    PyObject *no_index;                 /* an empty tuple, the index of that element */
    PyObject *small_index[256];         /* the first numbers of numpy.int64, made when first used */
    PyObject *empty;                    /* numpy.empty */
    PyObject *pair;                     /* makes minmax's result of two values */
    PyTypeObject *tensor_type; /* calls whose first argument is of this very type go to ... */
    PyObject *tensor_call;     /* ... tensor_call(function in Python, arguments) */
    struct call_cache *calls;  /* call_cache.c; or NULL */
    long checks;               /* open checked() statements */
    PyTypeObject *problem, *state, *groups, *tensor;
};

/* Sets a reference, of whichever type, to an object, and gives the old one back. */
#define CORE_SET(place, object)                                                                    \
    do {                                                                                           \
        PyObject *core_old = (PyObject *)(place);                                                  \
        (place) = (void *)Py_NewRef(object);                                                       \
        Py_XDECREF(core_old);                                                                      \
    } while (0)

struct core *core_of(PyObject *module);
extern struct PyModuleDef core_module;

/* Allocates an object of one of our types, whose fields are 0; frees one. */
void *core_alloc(PyTypeObject *type);
void core_free(PyObject *object);

/* Raises the exception for a status, with tally_error()'s line; returns NULL. */
PyObject *core_raise(tally_status status);

/* Returns the opened device of a spec, which stays open; the string "" or None is the CPU. NULL: an
 * exception is set. */
tally_device *core_device(PyObject *spec);
tally_device *core_cpu(void);

/* Work on so many bytes. Between begin and end the interpreter's lock is not held where that is worth it, and the
 * engine asks for signals. */
struct work {
    PyThreadState *thread;
    int stopped; /* a signal's handler has raised */
};
void work_begin(struct work *w, size_t bytes);
/* What the work came to: TALLY_ESTOPPED where a handler has raised, whatever the engine made of it. */
tally_status work_end(struct work *w, tally_status s);

/* The buffer of an array. */
struct view {
    Py_buffer buffer;
    int held;
    size_t n, itemsize;               /* elements; bytes an element */
    ptrdiff_t stride[TALLY_DIMS_MAX]; /* in elements; of the first dimensions, if there are more */
    size_t length[TALLY_DIMS_MAX];
};
/* Gets an object's buffer. Returns -1 with an exception if it has none, or if strides are no multiples of elements. None
 * gives an empty view whose buf is NULL. */
int view_get(PyObject *object, int writable, struct view *v);
void view_release(struct view *v);
/* Returns whether elements lie side by side in C order. */
int view_is_contiguous(const struct view *v);

/* Numbers from Python. */
PyObject *core_number(const tally_value *value);

/* The addresses that a reduction on a GPU is launched with; 0 for none. */
struct addresses {
    uint64_t x, y, mask, workspace, queue, out[TALLY_VALUES_MAX], outcome;
    size_t outs; /* results whose addresses are given: all, or the first */
};
/* Launches a reduction of Problem.prepare(). Returns -1 with an exception. */
int core_launch_at(PyObject *prepared, const struct addresses *at);
/* Returns whether a queue of the prepared reduction's device is captured into a graph, also where that cannot be told. */
int core_is_captured(PyObject *prepared, void *queue);
PyObject *core_launch(PyObject *module, PyObject *arguments);

/* The types of problem.c, state.c and tensor.c. */
extern PyType_Spec core_problem_spec, core_state_spec, core_groups_spec, core_tensor_spec;

/* Python calls these by name; the comments of their files say what they take. */
PyObject *core_bind(PyObject *module, PyObject *arguments);
PyObject *core_terms(PyObject *module, PyObject *arguments); /* terms.c */
PyObject *core_terms_shared(PyObject *module, PyObject *arguments);
PyObject *core_terms_sizes(PyObject *module, PyObject *arguments);

/* The cache of calls on tensors of a type (call_cache.c). core_call_again() returns the result of a call; or NULL, without
 * an exception if the call has to go the general way. */
int core_open_calls(struct core *core, PyTypeObject *type, PyObject *stream);
int core_visit_calls(struct core *core, visitproc visit, void *arg);
void core_close_calls(struct core *core);
PyObject *core_call_again(struct core *core, enum core_function f, PyObject *const *arguments,
                          Py_ssize_t count, PyObject *names);
PyObject *core_cache_call(PyObject *module, PyObject *arguments);
PyObject *core_clear_calls(PyObject *module, PyObject *unused);
PyObject *core_cached_calls(PyObject *module, PyObject *unused);
PyObject *core_defer_checks(PyObject *module, PyObject *more);

/* A problem as an object: what is asked, and all that it points to. */
struct problem_object {
    PyObject_HEAD tally_problem problem;
    tally_operator user;
    uint64_t identity;
    PyObject *keep, *source; /* what the operator's code lives in; its text */
    size_t values;
};
/* The problem of an object that must be one of ours; NULL with TypeError. */
struct problem_object *core_problem(struct core *core, PyObject *object);
/* Gets two arrays of the problem's elements, side by side and of one length; the second may be None. Returns -1 with an
 * exception if they are not such. */
int core_pair(const struct problem_object *p, PyObject *a, PyObject *b, struct view *x,
              struct view *y);
/* A call's shape, and where its arrays are held. */
struct shaped {
    tally_shape shape;
    struct view x, y, mask, more;      /* more: offsets, ids or means */
    struct view out[TALLY_VALUES_MAX]; /* as many as the problem has values */
    void *place[TALLY_VALUES_MAX];
};
/* One without arrays. NULL with an exception. */
struct shaped *core_new_shape(const struct problem_object *p);
/* Gets the arrays and the shape of a call. `parts` as get_parts() has them. `out`: a tuple of results, which have x's
 * dimensions, of length 1 where they are reduced; or NULL. NULL with an exception where these do not suit each other. */
struct shaped *core_shape(const struct problem_object *p, PyObject *x, PyObject *y, PyObject *mask,
                          unsigned long axes, PyObject *parts, PyObject *out);
void core_free_shape(const struct problem_object *p, struct shaped *a);
/* Gets a tuple of arrays for the problem's values. Returns -1 with an exception if they are not such. */
int core_results(const struct problem_object *p, PyObject *out, struct shaped *a);
/* Values as a tuple of numbers; None where there is no value. */
PyObject *core_values(const struct problem_object *p, const tally_value *value);

#endif
