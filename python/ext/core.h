/*
 * core.h - the declarations that the files of tally._core share: the module's state, errors, buffers, and work
 * without the interpreter's lock.
 *
 * tally._core is the thin part of the Python package that has to be C: it hands the buffers of Python's
 * objects to tally.h, and does the commonest calls from start to end. Python code interprets arguments.
 */
#ifndef TALLY_PYTHON_CORE_H
#define TALLY_PYTHON_CORE_H

/* (No format of arguments or values here has a '#'. CPython 3.11 and 3.12 accept it only from extensions that were
 * built with PY_SSIZE_T_CLEAN, a macro without effect in the headers of 3.13.) */
#include <Python.h>

#include "tally.h"

/* The buffer protocol came into the limited API with 3.11. CPython 3.10 has the same functions, struct and slot,
 * but its headers declare them only outside the limited API. So they are declared here. */
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

/* The functions that mostly get one array (dot: two) and no other argument:
 * X(name, operator, the kind of result that fast.c makes of the value). */
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

/* Stores a new reference to an object in a pointer of any type, and releases the old one. */
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

/* Work of the engine on so many bytes. If they are enough to be worth it, the interpreter's lock is released from
 * work_begin() to work_end(), and the engine lets Python handle signals. */
struct work {
    PyThreadState *thread;
    int stopped; /* a signal's handler has raised */
};
void work_begin(struct work *w, size_t bytes);
/* Returns the status of the work: TALLY_ESTOPPED if a signal's handler has raised, else `s`. */
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

/* Returns a value as a number of Python; None for a value of no type. */
PyObject *core_number(const tally_value *value);

/* The addresses that a reduction on a GPU is launched with; 0 for none. */
struct addresses {
    uint64_t x, y, mask, workspace, queue, out[TALLY_VALUES_MAX], outcome;
    size_t outs; /* results whose addresses are given: all, or the first */
};
/* Launches a reduction of Problem.prepare(). Returns -1 with an exception. */
int core_launch_at(PyObject *prepared, const struct addresses *at);
/* Returns whether a queue of the prepared reduction's device is captured into a graph; 1, too, if the device
 * cannot find that out. */
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

/* Python's Problem: a tally_problem and all that it points to. */
struct problem_object {
    PyObject_HEAD tally_problem problem;
    tally_operator user;
    uint64_t identity;
    PyObject *keep, *source; /* the library that has the user's operator; its source text */
    size_t values;
};
/* Returns an object as the Problem that it must be; NULL with a TypeError if it is none. */
struct problem_object *core_problem(struct core *core, PyObject *object);
/* Gets two contiguous arrays of the problem's element type and of one length; the second may be None. Returns -1
 * with an exception for other arrays. */
int core_pair(const struct problem_object *p, PyObject *a, PyObject *b, struct view *x,
              struct view *y);
/* A call's shape, and the buffers of its arrays. */
struct shaped {
    tally_shape shape;
    struct view x, y, mask, more;      /* more: offsets, ids or means */
    struct view out[TALLY_VALUES_MAX]; /* as many as the problem has values */
    void *place[TALLY_VALUES_MAX];
};
/* Returns a new shape without arrays; NULL with an exception. */
struct shaped *core_new_shape(const struct problem_object *p);
/* Returns the shape of a call, with its arrays; NULL with an exception if they do not suit each other. `parts` is as
 * get_parts() takes it (problem.c). `out` is a tuple of results, or NULL. Results have as many dimensions as x: reduced
 * ones have length 1, the axis that is cut has one place for each part. */
struct shaped *core_shape(const struct problem_object *p, PyObject *x, PyObject *y, PyObject *mask,
                          unsigned long axes, PyObject *parts, PyObject *out);
void core_free_shape(const struct problem_object *p, struct shaped *a);
/* Gets a tuple of writable arrays, one for each of the problem's values. Returns -1 with an exception if their number
 * or their elements' size is wrong. */
int core_results(const struct problem_object *p, PyObject *out, struct shaped *a);
/* Returns values as a tuple of numbers, with None for a value that does not exist. */
PyObject *core_values(const struct problem_object *p, const tally_value *value);

#endif
