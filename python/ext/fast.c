/*
 * fast.c - calls of one NumPy array, and perhaps one axis, from start to end.
 *
 * Each public function is one of these: it looks whether the call is a common one, of an exact numpy.ndarray of a
 * type of ours, with nothing else or one axis, and then answers it here. Anything else is passed on to the
 * function in Python, with all arguments. So both have one meaning, and the common call costs less than NumPy's.
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

/* The type of a buffer's format; 0: none of ours, or not in this machine's byte order. */
static int type_of_format(const char *format, Py_ssize_t itemsize) {
    if (!format || format[0] == '\0' || format[1] != '\0') return 0;
    switch (format[0]) {
    case 'd':
        return TALLY_F64;
    case 'f':
        return TALLY_F32;
    case 'e':
        return TALLY_F16;
    case '?':
        return CORE_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
        return itemsize == 1   ? TALLY_I8
               : itemsize == 2 ? TALLY_I16
               : itemsize == 4 ? TALLY_I32
                               : TALLY_I64;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
        return itemsize == 1   ? TALLY_U8
               : itemsize == 2 ? TALLY_U16
               : itemsize == 4 ? TALLY_U32
                               : TALLY_U64;
    default:
        return 0;
    }
}

static PyObject *call_general(struct core *core, enum core_function f, PyObject *const *arguments,
                              Py_ssize_t count, PyObject *names) {
    if (!core->general[f]) {
        PyErr_SetString(PyExc_RuntimeError, "tally has been unloaded");
        return NULL;
    }
    PyObject *positional = PyTuple_New(count), *named = NULL, *result = NULL;
    if (!positional) return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SetItem(positional, i, Py_NewRef(arguments[i]));
    const Py_ssize_t more = names ? PyTuple_Size(names) : 0;
    if (more > 0 && !(named = PyDict_New())) goto done;
    for (Py_ssize_t i = 0; i < more; i++)
        if (PyDict_SetItem(named, PyTuple_GetItem(names, i), arguments[count + i]) < 0) goto done;
    result = PyObject_Call(core->general[f], positional, named);
done:
    Py_DECREF(positional);
    Py_XDECREF(named);
    return result;
}

/* Does a call whose first argument is a tensor of the GPU library. */
static PyObject *call_on_tensor(struct core *core, enum core_function f, PyObject *const *arguments,
                                Py_ssize_t count, PyObject *names) {
    PyObject *known = core_call_again(core, f, arguments, count, names);
    if (known || PyErr_Occurred()) return known;
    const Py_ssize_t all = count + (names ? PyTuple_Size(names) : 0);
    PyObject *passed = PyTuple_New(2 + all);
    if (!passed) return NULL;
    PyTuple_SetItem(passed, 0, Py_NewRef(core->general[f]));
    PyTuple_SetItem(passed, 1, Py_NewRef(names ? names : Py_None));
    for (Py_ssize_t i = 0; i < all; i++)
        PyTuple_SetItem(passed, 2 + i, Py_NewRef(arguments[i]));
    PyObject *result = PyObject_Call(core->tensor_call, passed, NULL);
    Py_DECREF(passed);
    return result;
}

/* Returns a number of one of NumPy's types: the element of an array of no dimensions, which takes a
 * third of the time of the type itself. No other thread runs between the write and the read. */
static PyObject *scalar(struct core *core, int type, const tally_value *value) {
#ifdef Py_GIL_DISABLED
    PyObject *number = core_number(value), *result = NULL;
    if (number && core->scalar[type])
        result = PyObject_CallFunctionObjArgs(core->scalar[type], number, NULL);
    Py_XDECREF(number);
    return result;
#else
    static const unsigned char size[CORE_TYPES] = {
        [TALLY_I8] = 1,  [TALLY_I16] = 2, [TALLY_I32] = 4, [TALLY_I64] = 8,
        [TALLY_U8] = 1,  [TALLY_U16] = 2, [TALLY_U32] = 4, [TALLY_U64] = 8,
        [TALLY_F16] = 2, [TALLY_F32] = 4, [TALLY_F64] = 8, [CORE_BOOL] = 1};
    if (!core->scalar_array[type]) {
        PyErr_SetString(PyExc_RuntimeError, "tally has been unloaded");
        return NULL;
    }
    if (type == CORE_BOOL)
        *(unsigned char *)core->scalar_data[type] = tally_value_double(value) != 0;
    else
        memcpy(core->scalar_data[type], &value->as, size[type]);
    return PyObject_GetItem(core->scalar_array[type], core->no_index);
#endif
}

/* Returns an index or a count. To make one of NumPy's integers costs more than all else of a small
 * call. */
static PyObject *number_of_index(struct core *core, const tally_value *value) {
    const uint64_t i = value->as.u64;
    if (i >= 256) return scalar(core, TALLY_I64, value);
#ifdef Py_GIL_DISABLED
    return scalar(core, TALLY_I64, value);
#else
    if (!core->small_index[i]) core->small_index[i] = scalar(core, TALLY_I64, value);
    return core->small_index[i] ? Py_NewRef(core->small_index[i]) : NULL;
#endif
}

static PyObject *finish(struct core *core, enum kind kind, int type, tally_value *value) {
    PyObject *a, *b, *pair = NULL;
    switch (kind) {
    case INDEX:
        return number_of_index(core, value);
    case TRUTH:
        return scalar(core, CORE_BOOL, value);
    case NUMBER:
        return scalar(core, (int)value->type, value);
    case PAIR:
        a = scalar(core, type, &value[0]);
        b = a ? scalar(core, type, &value[1]) : NULL;
        if (b) pair = PyObject_CallFunctionObjArgs(core->pair, a, b, NULL);
        Py_XDECREF(a);
        Py_XDECREF(b);
        return pair;
    default:
        return scalar(core, type, value);
    }
}

/* Gets the elements of a contiguous array of one of our types. Returns 0, without an exception, for other arrays. */
static int get_elements(PyObject *x, Py_buffer *b, int *type, size_t *n) {
    if (PyObject_GetBuffer(x, b, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return 0;
    }
    *type = type_of_format(b->format, b->itemsize);
    *n = *type ? (size_t)(b->len / b->itemsize) : 0;
    if (*n > 0 && (b->ndim <= 1 ? b->ndim == 0 || b->strides[0] == b->itemsize
                                : PyBuffer_IsContiguous(b, 'C')))
        return 1;
    PyBuffer_Release(b);
    return 0;
}

/* Returns whether some bool may be a byte other than 0 and 1, as in a view of other elements, if that matters. The
 * general way tests bytes that are not side by side. */
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

/* ---- Along an axis -------------------------------------------------------------------------- */

/* The axis of a call (x, axis) or (x, axis=axis), if it is a plain int within the array. */
static int one_axis(PyObject *const *arguments, Py_ssize_t count, PyObject *names, int *axis) {
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

/* What the elements of a result are, as an index of `scalar`. */
static int result_type(enum kind kind, int type, const tally_problem *problem) {
    switch (kind) {
    case INDEX:
        return TALLY_I64;
    case TRUTH:
        return CORE_BOOL;
    case NUMBER:
        return (int)tally_problem_value_type(problem, 0);
    default:
        return type;
    }
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

/* Reduces a NumPy array of two or more dimensions along one axis; NULL without an exception: not this way. */
static PyObject *along(struct core *core, enum core_function f, PyObject *array, int axis) {
    size_t length[TALLY_DIMS_MAX];
    ptrdiff_t stride[TALLY_DIMS_MAX];
    const enum kind kind = table[f].kind;
    Py_buffer x, out;
    if (kind == PAIR || table[f].op == TALLY_DOT || f == FUNCTION_norm) return NULL;
    if (PyObject_GetBuffer(array, &x, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return NULL;
    }
    const int type = type_of_format(x.format, x.itemsize);
    int mine = type && x.ndim >= 2 && x.ndim <= TALLY_DIMS_MAX && x.len > 0 && axis >= -x.ndim &&
               axis < x.ndim && core->scalar[type] &&
               (kind != BITS || type < TALLY_F16 || type == CORE_BOOL) &&
               !may_have_other_bytes(kind, table[f].op, type, &x);
    for (int d = 0; mine && d < x.ndim; d++) {
        mine = x.strides[d] % x.itemsize == 0;
        length[d] = (size_t)x.shape[d];
        stride[d] = x.strides[d] / x.itemsize;
    }
    PyObject *made = NULL;
    if (mine) {
        if (axis < 0) axis += x.ndim;
        const tally_problem problem = {.op = table[f].op,
                                       .type = type == CORE_BOOL ? TALLY_I8 : (tally_type)type};
        const tally_shape shape = {.cut = TALLY_AXES,
                                   .dims = (unsigned)x.ndim,
                                   .length = length,
                                   .x_stride = stride,
                                   .axes = UINT32_C(1) << axis};
        tally_device *device = (size_t)x.len >= (size_t)1 << 19 ? core_cpu() : NULL;
        if (!PyErr_Occurred())
            made = make_result(core, &x, axis, result_type(kind, type, &problem), &out);
        if (made) {
            struct work work;
            work_begin(&work, (size_t)x.len);
            tally_status s =
                tally_reduce_shaped(device, &problem, &shape, x.buf, NULL, (void *[]){out.buf});
            s = work_end(&work, s);
            PyBuffer_Release(&out);
            if (s != TALLY_OK) {
                Py_CLEAR(made);
                core_raise(s);
            }
        }
    }
    PyBuffer_Release(&x);
    return made;
}

/* ---- Whole arrays --------------------------------------------------------------------------- */

static PyObject *call(PyObject *module, enum core_function f, PyObject *const *arguments,
                      Py_ssize_t count, PyObject *names) {
    struct core *core = core_of(module);
    const tally_op op = table[f].op;
    const int two = op == TALLY_DOT;
    Py_buffer x, y;
    int type, y_type;
    size_t n, y_n;
    int axis, alone = 0; /* alone: an axis is given, and perhaps it is the only one */
    if (core->tensor_call && core->general[f] && count >= 1 &&
        Py_TYPE(arguments[0]) == core->tensor_type)
        return call_on_tensor(core, f, arguments, count, names);
    if (core->ndarray && count >= 1 && Py_TYPE(arguments[0]) == core->ndarray &&
        one_axis(arguments, count, names, &axis)) {
        PyObject *result = along(core, f, arguments[0], axis);
        if (result || PyErr_Occurred()) return result;
        alone = (axis == 0 || axis == -1) && !two && table[f].kind != PAIR && f != FUNCTION_norm;
    }
    if ((!alone && (names || count != 1 + two)) || !core->ndarray ||
        Py_TYPE(arguments[0]) != core->ndarray || (two && Py_TYPE(arguments[1]) != core->ndarray) ||
        !get_elements(arguments[0], &x, &type, &n))
        return call_general(core, f, arguments, count, names);
    int mine = core->scalar[type] != NULL && (!alone || x.ndim == 1);
    if (two && mine) {
        mine = x.ndim == 1 && type != CORE_BOOL && get_elements(arguments[1], &y, &y_type, &y_n);
        if (mine && (y.ndim != 1 || y_type != type || y_n != n)) {
            PyBuffer_Release(&y);
            mine = 0;
        }
    }
    if (table[f].kind == BITS) mine = mine && (type < TALLY_F16 || type == CORE_BOOL);
    /* (NumPy's norm of an array of more dimensions than two, or of no dimension, is another question.) */
    if (f == FUNCTION_norm) mine = mine && x.ndim >= 1;
    mine = mine && !may_have_other_bytes(table[f].kind, op, type, &x);
    if (!mine) {
        PyBuffer_Release(&x);
        return call_general(core, f, arguments, count, names);
    }
    const tally_problem problem = {.op = op,
                                   .type = type == CORE_BOOL ? TALLY_I8 : (tally_type)type};
    tally_value value[2];
    struct work work;
    tally_status s = TALLY_OK;
    tally_device *device = NULL;
    if ((size_t)x.len >= (size_t)1 << 20 && !(device = core_cpu())) s = TALLY_ENOMEM;
    if (s == TALLY_OK) {
        work_begin(&work, (size_t)x.len);
        s = tally_reduce(device, &problem, x.buf, two ? y.buf : NULL, n, value);
        s = work_end(&work, s);
    }
    PyBuffer_Release(&x);
    if (two) PyBuffer_Release(&y);
    if (s != TALLY_OK) return PyErr_Occurred() ? NULL : core_raise(s);
    return finish(core, table[f].kind, type, value);
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

/* _bind(name, function, doc): the public function of that name, which passes on to `function` what it does not do
 * itself. `doc` begins with the signature, as CPython wants it. */
PyObject *core_bind(PyObject *module, PyObject *arguments) {
    struct core *core = core_of(module);
    PyObject *name, *function, *doc;
    if (!PyArg_ParseTuple(arguments, "UOU", &name, &function, &doc)) return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL),
               *doc_text = PyUnicode_AsUTF8AndSize(doc, NULL);
    if (!text || !doc_text) return NULL;
    for (int f = 0; f < FUNCTIONS; f++) {
        if (strcmp(table[f].name, text) != 0) continue;
        if (core->general[f]) break; /* once */
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
