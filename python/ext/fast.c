/*
 * fast.c - calls with one NumPy array, and perhaps one axis, from start to end.
 *
 * Each public function begins here. A call whose only arguments are an exact numpy.ndarray, of a type that Tally
 * has, and perhaps one axis is answered here. Any other call is passed on to the function in Python, with all
 * arguments. Both ways give the same results, and the common call costs less than NumPy's.
 */
#include "core.h"

#include <string.h>

enum kind { NUMBER, ELEMENT, PAIR, INDEX, TRUTH, BITS };

static const struct {
    const char *name;
    tally_op op;
    enum kind kind;
} table[FUNCTIONS] = {
#define X(name, op, kind) {#name, op, kind},
    CORE_FUNCTIONS(X)
#undef X
};

/* Returns the type of elements with a buffer's format; 0 if Tally has none, or the byte order is not this machine's. */
static int type_of_format(const char *format, Py_ssize_t itemsize) {
    if (!format || format[0] == '\0' || format[1] != '\0') return 0;
    const int wider = itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : 3;
    switch (format[0]) {
    case 'd':
        return TALLY_F64;
    case 'f':
        return TALLY_F32;
    case 'e':
        return TALLY_F16;
    case '?':
        return CORE_BOOL;
    default:
        return strchr("bhilq", format[0])   ? TALLY_I8 + wider
               : strchr("BHILQ", format[0]) ? TALLY_U8 + wider
                                            : 0;
    }
}

/* Calls the function in Python; or `through`, if that is not NULL, with the function as first argument. */
static PyObject *call_general(PyObject *function, PyObject *through, PyObject *const *arguments,
                              Py_ssize_t count, PyObject *names) {
    if (!function) {
        PyErr_SetString(PyExc_RuntimeError, "tally has been unloaded");
        return NULL;
    }
    const Py_ssize_t first = through != NULL, more = names ? PyTuple_Size(names) : 0;
    PyObject *positional = PyTuple_New(first + count), *named = NULL, *result = NULL;
    if (!positional) return NULL;
    if (through) PyTuple_SetItem(positional, 0, Py_NewRef(function));
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SetItem(positional, first + i, Py_NewRef(arguments[i]));
    if (more > 0 && !(named = PyDict_New())) goto done;
    for (Py_ssize_t i = 0; i < more; i++)
        if (PyDict_SetItem(named, PyTuple_GetItem(names, i), arguments[count + i]) < 0) goto done;
    result = PyObject_Call(through ? through : function, positional, named);
done:
    Py_DECREF(positional);
    Py_XDECREF(named);
    return result;
}

/* Returns a value as a number of NumPy's: it is written to an array of no dimensions, and that array's element
 * is read. This takes a third of the time of a call of NumPy's type. The interpreter's lock keeps other threads
 * from running between the write and the read. */
static PyObject *scalar(struct core *core, int type, const tally_value *value) {
#ifdef Py_GIL_DISABLED
    PyObject *number = core_number(value), *result = NULL;
    if (number && core->scalar[type])
        result = PyObject_CallFunctionObjArgs(core->scalar[type], number, NULL);
    Py_XDECREF(number);
    return result;
#else
    if (!core->scalar_array[type]) {
        PyErr_SetString(PyExc_RuntimeError, "tally has been unloaded");
        return NULL;
    }
    if (type == CORE_BOOL)
        *(unsigned char *)core->scalar_data[type] = tally_value_double(value) != 0;
    else
        memcpy(core->scalar_data[type], &value->as, tally_type_size((tally_type)type));
    return PyObject_GetItem(core->scalar_array[type], core->no_index);
#endif
}

/* Returns an index or a count. Making one of NumPy's integers costs more than all else in a small call,
 * so those below 256 are kept. */
static PyObject *number_of_index(struct core *core, const tally_value *value) {
#ifndef Py_GIL_DISABLED
    const uint64_t i = value->as.u64;
    if (i < 256) {
        if (!core->small_index[i]) core->small_index[i] = scalar(core, TALLY_I64, value);
        return Py_XNewRef(core->small_index[i]);
    }
#endif
    return scalar(core, TALLY_I64, value);
}

/* Returns the type of a result, an index of struct core's `scalar`. `type` is the elements' type, `number` the type of
 * the engine's value. */
static int result_type(enum kind kind, int type, tally_type number) {
    return kind == INDEX    ? TALLY_I64
           : kind == TRUTH  ? CORE_BOOL
           : kind == NUMBER ? (int)number
                            : type;
}

static PyObject *finish(struct core *core, enum kind kind, int type, const tally_value *value) {
    if (kind == INDEX) return number_of_index(core, value);
    PyObject *a = scalar(core, result_type(kind, type, value->type), value);
    if (!a || kind != PAIR) return a;
    PyObject *b = scalar(core, type, &value[1]);
    PyObject *pair = b ? PyObject_CallFunctionObjArgs(core->pair, a, b, NULL) : NULL;
    Py_DECREF(a);
    Py_XDECREF(b);
    return pair;
}

/* Returns whether elements lie side by side in C order. */
static int is_in_order(const Py_buffer *x) {
    return x->ndim <= 1 ? x->ndim == 0 || x->strides[0] == x->itemsize
                        : PyBuffer_IsContiguous(x, 'C');
}

/* Returns whether some bool may be a byte other than 0 and 1, as a view of other elements may have, and this would
 * change the result. Bytes that are not contiguous are not tested: the general way does that. */
static int may_have_other_bytes(enum kind kind, tally_op op, int type, const Py_buffer *x) {
    const unsigned char *bytes = x->buf;
    uint64_t all = 0, word;
    Py_ssize_t i = 0;
    if (type != CORE_BOOL || kind == TRUTH || op == TALLY_NONZERO) return 0;
    if (!PyBuffer_IsContiguous(x, 'A')) return 1;
    for (; i + 8 <= x->len; i += 8) {
        memcpy(&word, bytes + i, 8);
        all |= word;
    }
    for (; i < x->len; i++)
        all |= bytes[i];
    return (all & UINT64_C(0xfefefefefefefefe)) != 0;
}

/* Gets the buffer of an array of one of our types that has elements. Returns 0, without an exception, for other arrays. */
static int get_elements(PyObject *array, Py_buffer *x, int *type) {
    if (PyObject_GetBuffer(array, x, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return 0;
    }
    *type = type_of_format(x->format, x->itemsize);
    if (*type && x->len > 0) return 1;
    PyBuffer_Release(x);
    return 0;
}

/* ---- Along an axis -------------------------------------------------------------------------- */

/* Gets the axis of a call (x, axis) or (x, axis=axis), if it is a plain int. */
static int get_axis(PyObject *const *arguments, Py_ssize_t count, PyObject *names, int *axis) {
    if (names) {
        if (count != 1 || PyTuple_Size(names) != 1 ||
            PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "axis") != 0)
            return 0;
    } else if (count != 2)
        return 0;
    if (!PyLong_CheckExact(arguments[1])) return 0;
    int overflow;
    const long value = PyLong_AsLongAndOverflow(arguments[1], &overflow);
    *axis = (int)value;
    return !overflow && value >= -TALLY_DIMS_MAX && value < TALLY_DIMS_MAX;
}

/* Returns a new array of x's shape without an axis, and its buffer. */
static PyObject *make_result(struct core *core, const Py_buffer *x, int axis, int type,
                             Py_buffer *out) {
    PyObject *shape = PyTuple_New(x->ndim - 1), *made = NULL;
    for (int d = 0, k = 0; shape && d < x->ndim; d++)
        if (d != axis) PyTuple_SetItem(shape, k++, PyLong_FromSsize_t(x->shape[d]));
    if (shape) made = PyObject_CallFunctionObjArgs(core->empty, shape, core->scalar[type], NULL);
    Py_XDECREF(shape);
    if (made && PyObject_GetBuffer(made, out, PyBUF_STRIDES | PyBUF_WRITABLE) < 0) Py_CLEAR(made);
    return made;
}

/* Reduces an array of two or more dimensions along one axis. Returns NULL without an exception for a call that has to
 * go the general way. */
static PyObject *along(struct core *core, enum kind kind, const tally_problem *problem,
                       const Py_buffer *x, int type, int axis) {
    size_t length[TALLY_DIMS_MAX];
    ptrdiff_t stride[TALLY_DIMS_MAX];
    Py_buffer out;
    if (x->ndim > TALLY_DIMS_MAX || axis < -x->ndim || axis >= x->ndim) return NULL;
    for (int d = 0; d < x->ndim; d++) {
        if (x->strides[d] % x->itemsize != 0) return NULL;
        length[d] = (size_t)x->shape[d];
        stride[d] = x->strides[d] / x->itemsize;
    }
    if (axis < 0) axis += x->ndim;
    const tally_shape shape = {.cut = TALLY_AXES,
                               .dims = (unsigned)x->ndim,
                               .length = length,
                               .x_stride = stride,
                               .axes = UINT32_C(1) << axis};
    tally_device *device = NULL;
    if ((size_t)x->len >= (size_t)1 << 19 && !(device = core_cpu())) return NULL;
    PyObject *made = make_result(
        core, x, axis, result_type(kind, type, tally_problem_value_type(problem, 0)), &out);
    if (!made) return NULL;
    struct work work;
    work_begin(&work, (size_t)x->len);
    tally_status s =
        tally_reduce_shaped(device, problem, &shape, x->buf, NULL, (void *[]){out.buf});
    s = work_end(&work, s);
    PyBuffer_Release(&out);
    if (s == TALLY_OK) return made;
    Py_DECREF(made);
    return core_raise(s);
}

/* ---- Whole arrays --------------------------------------------------------------------------- */

/* Reduces all elements of a contiguous array. `y`: the elements of dot's second array, else NULL. */
static PyObject *whole(struct core *core, enum kind kind, const tally_problem *problem,
                       const Py_buffer *x, const void *y, int type) {
    tally_value value[2];
    struct work work;
    tally_device *device = NULL;
    if ((size_t)x->len >= (size_t)1 << 20 && !(device = core_cpu())) return NULL;
    work_begin(&work, (size_t)x->len);
    tally_status s =
        tally_reduce(device, problem, x->buf, y, (size_t)(x->len / x->itemsize), value);
    s = work_end(&work, s);
    return s == TALLY_OK ? finish(core, kind, type, value) : core_raise(s);
}

/* Returns the result of a call whose first argument is an exact numpy.ndarray; NULL without an exception for a
 * call that has to go the general way. */
static PyObject *call_on_array(struct core *core, enum core_function f, PyObject *const *arguments,
                               Py_ssize_t count, PyObject *names) {
    const tally_op op = table[f].op;
    const enum kind kind = table[f].kind;
    const int two = op == TALLY_DOT, is_norm = f == FUNCTION_norm;
    const int has_axis = names || count != 1 + two;
    Py_buffer x, y = {.buf = NULL};
    int type, y_type, axis = 0;
    PyObject *result = NULL;
    if (has_axis && (two || is_norm || kind == PAIR || !get_axis(arguments, count, names, &axis)))
        return NULL;
    if (two && Py_TYPE(arguments[1]) != core->ndarray) return NULL;
    if (!get_elements(arguments[0], &x, &type)) return NULL;
    const tally_problem problem = {.op = op,
                                   .type = type == CORE_BOOL ? TALLY_I8 : (tally_type)type};
    int mine = core->scalar[type] && (kind != BITS || type < TALLY_F16 || type == CORE_BOOL) &&
               !may_have_other_bytes(kind, op, type, &x);
    if (mine && two) {
        mine = x.ndim == 1 && type != CORE_BOOL && get_elements(arguments[1], &y, &y_type) &&
               y.ndim == 1 && y_type == type && y.len == x.len && is_in_order(&y);
    }
    if (mine && has_axis && x.ndim >= 2) result = along(core, kind, &problem, &x, type, axis);
    /* (NumPy's norm of an array of no dimension is another question.) */
    else if (mine && is_in_order(&x) && x.ndim >= is_norm &&
             (!has_axis || (x.ndim == 1 && (axis == 0 || axis == -1))))
        result = whole(core, kind, &problem, &x, y.buf, type);
    if (y.buf) PyBuffer_Release(&y);
    PyBuffer_Release(&x);
    return result;
}

static PyObject *call(PyObject *module, enum core_function f, PyObject *const *arguments,
                      Py_ssize_t count, PyObject *names) {
    struct core *core = core_of(module);
    PyTypeObject *type = count >= 1 ? Py_TYPE(arguments[0]) : NULL;
    PyObject *result = NULL, *through = NULL;
    if (type && type == core->ndarray)
        result = call_on_array(core, f, arguments, count, names);
    else if (type && type == core->tensor_type) {
        through = core->tensor_call;
        result = core_call_again(core, f, arguments, count, names);
    }
    if (result || PyErr_Occurred()) return result;
    return call_general(core->general[f], through, arguments, count, names);
}

#define X(name, op, kind)                                                                          \
    static PyObject *call_##name(PyObject *module, PyObject *const *arguments, Py_ssize_t count,   \
                                 PyObject *names) {                                                \
        return call(module, FUNCTION_##name, arguments, count, names);                             \
    }
CORE_FUNCTIONS(X)
#undef X

static PyObject *(*const entry[FUNCTIONS])(PyObject *, PyObject *const *, Py_ssize_t,
                                           PyObject *) = {
#define X(name, op, kind) call_##name,
    CORE_FUNCTIONS(X)
#undef X
};

/* _bind(name, function, doc): returns the public function of that name, which passes calls that it cannot answer on to
 * `function`. `doc` begins with the signature, as CPython wants it. */
PyObject *core_bind(PyObject *module, PyObject *arguments) {
    struct core *core = core_of(module);
    PyObject *name, *function, *doc;
    if (!PyArg_ParseTuple(arguments, "UOU", &name, &function, &doc)) return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL),
               *doc_text = PyUnicode_AsUTF8AndSize(doc, NULL);
    if (!text || !doc_text) return NULL;
    for (int f = 0; f < FUNCTIONS; f++) {
        if (strcmp(table[f].name, text) != 0) continue;
        if (core->general[f]) break; /* a name is bound once */
        core->general[f] = Py_NewRef(function);
        core->docs[f] = Py_NewRef(doc);
        core->method[f] = (PyMethodDef){.ml_name = table[f].name,
                                        .ml_meth = (PyCFunction)(void (*)(void))entry[f],
                                        .ml_flags = METH_FASTCALL | METH_KEYWORDS,
                                        .ml_doc = doc_text};
        PyObject *package = PyUnicode_FromString("tally");
        PyObject *made = package ? PyCFunction_NewEx(&core->method[f], module, package) : NULL;
        Py_XDECREF(package);
        return made;
    }
    PyErr_Format(PyExc_ValueError, "_bind: %R", name);
    return NULL;
}
