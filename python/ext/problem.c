/*
 * problem.c - Problem: what is asked, and its answers for whole arrays, along axes, by segment, by group, on queues.
 *
 * Types and operators come as names, arrays as whatever lays a buffer open. The caller in Python has seen to types
 * and shapes; what is checked here is what would read or write where it must not.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

typedef void combine_function(void *, const void *, const void *, void *, size_t);

struct problem_object *core_problem(struct core *core, PyObject *object) {
    if (PyObject_TypeCheck(object, core->problem)) return (struct problem_object *)object;
    PyErr_SetString(PyExc_TypeError, "not a Problem");
    return NULL;
}

PyObject *core_values(const struct problem_object *p, const tally_value *value) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)p->values);
    for (size_t i = 0; tuple && i < p->values; i++) {
        PyObject *number = core_number(&value[i]);
        if (!number)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, (Py_ssize_t)i, number);
    }
    return tuple;
}

/* ---- Making one ------------------------------------------------------------------------------ */

static int parse_op(const char *name, tally_op *out) {
    if (strcmp(name, "user") == 0) {
        *out = TALLY_USER;
        return 0;
    }
    tally_status s = tally_op_parse(name, out);
    if (s != TALLY_OK) core_raise(s);
    return s == TALLY_OK ? 0 : -1;
}

static int parse_ops(PyObject *ops, tally_problem *p) {
    const Py_ssize_t n = PyTuple_Size(ops);
    if (n < 1 || n > 9) {
        PyErr_SetString(PyExc_ValueError, "from one to nine operators");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(ops, i), NULL);
        if (!name || parse_op(name, i == 0 ? &p->op : &p->also[i - 1]) < 0) return -1;
    }
    return 0;
}

/* user: (address of combine, address of identity's bytes as bytes, commutative, source or None, what to keep) */
static int parse_user(PyObject *user, struct problem_object *self) {
    unsigned long long address;
    char *identity;
    Py_ssize_t size;
    int commutative;
    PyObject *bytes, *source, *keep;
    if (user == Py_None) return 0;
    if (!PyArg_ParseTuple(user, "KSpOO", &address, &bytes, &commutative, &source, &keep) ||
        PyBytes_AsStringAndSize(bytes, &identity, &size) < 0)
        return -1;
    if (size != (Py_ssize_t)tally_type_size(self->problem.type)) {
        PyErr_SetString(PyExc_ValueError, "the identity is not one element");
        return -1;
    }
    memcpy(&self->identity, identity, (size_t)size);
    self->user = (tally_operator){.combine = (combine_function *)(uintptr_t)address,
                                  .identity = &self->identity,
                                  .commutative = commutative};
    self->keep = Py_NewRef(keep);
    if (source != Py_None) {
        self->source = Py_NewRef(source);
        if (!(self->user.source = PyUnicode_AsUTF8AndSize(source, NULL))) return -1;
    }
    self->problem.user = &self->user;
    return 0;
}

/* Problem(ops, type, out, fast, ddof, user, is_complex) */
static PyObject *problem_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyObject *ops, *user;
    const char *element, *out;
    int fast, is_complex;
    double ddof;
    if (names && PyDict_Size(names) > 0) {
        PyErr_SetString(PyExc_TypeError, "Problem takes no names");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!szpdOp", &PyTuple_Type, &ops, &element, &out, &fast, &ddof,
                          &user, &is_complex))
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct problem_object *self = (struct problem_object *)make(type, 0);
    if (!self) return NULL;
    self->problem.fast = fast;
    self->problem.ddof = ddof;
    self->problem.is_complex = is_complex;
    tally_status s = tally_type_parse(element, &self->problem.type);
    if (s == TALLY_OK && out) s = tally_type_parse(out, &self->problem.out);
    if (s != TALLY_OK)
        core_raise(s);
    else if (parse_ops(ops, &self->problem) == 0 && parse_user(user, self) == 0) {
        s = tally_problem_values(&self->problem, &self->values);
        if (s == TALLY_OK) return (PyObject *)self;
        core_raise(s);
    }
    Py_DECREF(self);
    return NULL;
}

/* about(mean) -> the same problem, where var and std are about a number. For one without a user's operator. */
static PyObject *problem_about(PyObject *object, PyObject *mean) {
    const struct problem_object *self = (const struct problem_object *)object;
    const double real = PyComplex_RealAsDouble(mean), imaginary = PyComplex_ImagAsDouble(mean);
    if (PyErr_Occurred()) return NULL;
    PyTypeObject *type = Py_TYPE(object);
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct problem_object *made = (struct problem_object *)make(type, 0);
    if (!made) return NULL;
    made->values = self->values;
    made->problem = self->problem;
    made->problem.about = 1;
    made->problem.mean[0] = real;
    made->problem.mean[1] = imaginary;
    return (PyObject *)made;
}

static void problem_free(PyObject *object) {
    struct problem_object *self = (struct problem_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->keep);
    Py_XDECREF(self->source);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* What the values are: pairs of the operator's and the type's name. */
static PyObject *problem_values(PyObject *object, PyObject *unused) {
    const struct problem_object *self = (const struct problem_object *)object;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < self->values; i++) {
        PyObject *pair =
            Py_BuildValue("(ss)", tally_op_name(tally_problem_value_op(&self->problem, i)),
                          tally_type_name(tally_problem_value_type(&self->problem, i)));
        if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

/* ---- Whole arrays ---------------------------------------------------------------------------- */

int core_elements(const struct problem_object *p, PyObject *object, struct view *v) {
    if (view_get(object, 0, v) < 0) return -1;
    if (!v->held || (v->itemsize == tally_type_size(p->problem.type) && view_is_contiguous(v)))
        return 0;
    PyErr_SetString(PyExc_ValueError, "not contiguous elements of the problem's type");
    view_release(v);
    return -1;
}

int core_pair(const struct problem_object *p, PyObject *a, PyObject *b, struct view *x,
              struct view *y) {
    if (core_elements(p, a, x) < 0) return -1;
    if (core_elements(p, b, y) < 0) {
        view_release(x);
        return -1;
    }
    if (!y->held || y->n == x->n) return 0;
    PyErr_Format(PyExc_ValueError, "the arrays have %zu and %zu elements", x->n, y->n);
    view_release(x);
    view_release(y);
    return -1;
}

/* reduce(x, y, device) -> the values */
static PyObject *problem_reduce(PyObject *object, PyObject *arguments) {
    const struct problem_object *self = (const struct problem_object *)object;
    PyObject *a, *b, *spec;
    struct view x, y;
    struct work work;
    tally_value value[TALLY_VALUES_MAX];
    if (!PyArg_ParseTuple(arguments, "OOO", &a, &b, &spec)) return NULL;
    tally_device *device = core_device(spec);
    if (!device || core_pair(self, a, b, &x, &y) < 0) return NULL;
    work_begin(&work, x.n * x.itemsize);
    tally_status s = tally_reduce(device, &self->problem, x.buffer.buf, y.buffer.buf, x.n, value);
    s = work_end(&work, s);
    view_release(&x);
    view_release(&y);
    return s == TALLY_OK ? core_values(self, value) : core_raise(s);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Where a call's arrays are held. */
struct parts {
    struct view x, y, mask, more, out[TALLY_VALUES_MAX]; /* more: offsets, ids or means */
    void *place[TALLY_VALUES_MAX];
};

static void parts_release(const struct problem_object *p, struct parts *a) {
    view_release(&a->x);
    view_release(&a->y);
    view_release(&a->mask);
    view_release(&a->more);
    for (size_t i = 0; i < p->values; i++)
        view_release(&a->out[i]);
    free(a);
}

static struct parts *parts_get(const struct problem_object *p, PyObject *x, PyObject *y,
                               PyObject *mask, PyObject *more, PyObject *out) {
    struct parts *a = calloc(1, sizeof *a);
    if (!a) return (struct parts *)PyErr_NoMemory();
    int ok = view_get(x, 0, &a->x) == 0 && view_get(y, 0, &a->y) == 0 &&
             view_get(mask, 0, &a->mask) == 0 && view_get(more, 0, &a->more) == 0;
    const size_t element = tally_type_size(p->problem.type);
    if (ok && (!a->x.held || a->x.itemsize != element || (a->y.held && a->y.itemsize != element) ||
               (a->mask.held && a->mask.itemsize != 1) || !PyTuple_Check(out) ||
               PyTuple_Size(out) != (Py_ssize_t)p->values)) {
        PyErr_SetString(PyExc_ValueError, "arrays do not suit the problem");
        ok = 0;
    }
    for (size_t i = 0; ok && i < p->values; i++) {
        ok = view_get(PyTuple_GetItem(out, (Py_ssize_t)i), 1, &a->out[i]) == 0;
        a->place[i] = a->out[i].buffer.buf;
        if (ok && a->out[i].itemsize != tally_type_size(tally_problem_value_type(&p->problem, i))) {
            PyErr_SetString(PyExc_ValueError, "results do not suit the problem");
            ok = 0;
        }
    }
    if (ok) return a;
    parts_release(p, a);
    return NULL;
}

static int same_lengths(const struct view *a, const struct view *b) {
    if (!b->held) return 1;
    if (a->buffer.ndim != b->buffer.ndim) return 0;
    for (int i = 0; i < a->buffer.ndim; i++)
        if (a->length[i] != b->length[i]) return 0;
    return 1;
}

/* Returns whether a result has x's dimensions, of length 1 where they are reduced, and all results
 * the same strides. */
static int results_suit(const struct problem_object *p, const struct parts *a, unsigned long axes) {
    for (size_t i = 0; i < p->values; i++) {
        const struct view *o = &a->out[i];
        if (o->buffer.ndim != a->x.buffer.ndim) return 0;
        for (int d = 0; d < o->buffer.ndim; d++)
            if (o->length[d] != (axes >> d & 1 ? 1 : a->x.length[d]) ||
                (o->length[d] > 1 && o->stride[d] != a->out[0].stride[d]))
                return 0;
    }
    return 1;
}

/* Reduces them in a shape, which reads so many bytes, and gives them back. */
static PyObject *parts_reduce(const struct problem_object *p, tally_device *device, struct parts *a,
                              const tally_shape *shape, size_t bytes) {
    struct work work;
    work_begin(&work, bytes);
    tally_status s =
        tally_reduce_shaped(device, &p->problem, shape, a->x.buffer.buf, a->y.buffer.buf, a->place);
    s = work_end(&work, s);
    parts_release(p, a);
    if (s != TALLY_OK) return core_raise(s);
    Py_RETURN_NONE;
}

/* axes(x, y, mask, axes, out, device, means): reduces along the axes whose bits are set. out: a tuple of arrays of x's
 * dimensions, of length 1 where reduced. means: None, or the doubles that variances are about, side by side. */
static PyObject *problem_axes(PyObject *object, PyObject *arguments) {
    const struct problem_object *self = (const struct problem_object *)object;
    PyObject *x, *y, *mask, *out, *spec, *means = Py_None;
    unsigned long axes;
    if (!PyArg_ParseTuple(arguments, "OOOkOO|O", &x, &y, &mask, &axes, &out, &spec, &means))
        return NULL;
    tally_device *device = core_device(spec);
    struct parts *a = device ? parts_get(self, x, y, mask, means, out) : NULL;
    if (!a) return NULL;
    const size_t parts = self->problem.is_complex ? 2 : 1;
    if (a->x.buffer.ndim > TALLY_DIMS_MAX || !same_lengths(&a->x, &a->y) ||
        !same_lengths(&a->x, &a->mask) || !results_suit(self, a, axes) ||
        (a->more.held && (a->more.itemsize != sizeof(double) || !view_is_contiguous(&a->more) ||
                          a->more.n != parts * a->out[0].n))) {
        PyErr_SetString(PyExc_ValueError, "shapes do not suit each other");
        parts_release(self, a);
        return NULL;
    }
    const tally_shape shape = {.cut = TALLY_AXES,
                               .dims = (unsigned)a->x.buffer.ndim,
                               .length = a->x.length,
                               .x_stride = a->x.stride,
                               .y_stride = a->y.held ? a->y.stride : NULL,
                               .axes = (uint32_t)axes,
                               .out_stride = a->out[0].stride,
                               .mask = a->mask.buffer.buf,
                               .mask_stride = a->mask.held ? a->mask.stride : NULL,
                               .means = a->more.buffer.buf};
    return parts_reduce(self, device, a, &shape, a->x.n * a->x.itemsize);
}

/* Sets the dimensions of segments or groups along an axis of x. The mask has one dimension, that of the axis; its strides go
 * to mask_stride[]. Returns -1 with an exception where the arrays or the results have other lengths. */
static int parts_along(const struct problem_object *p, const struct parts *a, Py_ssize_t axis,
                       size_t count, ptrdiff_t *mask_stride, tally_shape *shape) {
    const int dims = a->x.buffer.ndim;
    int ok = dims > 0 && dims <= TALLY_DIMS_MAX && axis >= 0 && axis < dims &&
             view_is_contiguous(&a->more) && same_lengths(&a->x, &a->y) &&
             (!a->mask.held || (a->mask.buffer.ndim == 1 && a->mask.n == a->x.length[axis]));
    for (size_t i = 0; ok && i < p->values; i++) {
        const struct view *o = &a->out[i];
        ok = o->buffer.ndim == dims;
        for (int d = 0; ok && d < dims; d++)
            ok = o->length[d] == (d == axis ? count : a->x.length[d]) &&
                 (o->length[d] <= 1 || o->stride[d] == a->out[0].stride[d]);
    }
    if (!ok) {
        PyErr_SetString(PyExc_ValueError, "shapes do not suit each other");
        return -1;
    }
    shape->dims = (unsigned)dims;
    shape->length = a->x.length;
    shape->x_stride = a->x.stride;
    shape->y_stride = a->y.held ? a->y.stride : NULL;
    shape->axes = (uint32_t)1 << axis;
    shape->out_stride = a->out[0].stride;
    shape->count = count;
    shape->mask = a->mask.buffer.buf;
    shape->mask_stride = mask_stride;
    for (int d = 0; d < dims; d++)
        mask_stride[d] = d == axis && a->mask.held ? a->mask.stride[0] : 0;
    return 0;
}

/* segments(x, y, mask, offsets, out, device, axis=0): offsets is an array of i32 or i64, or how many equal segments. */
static PyObject *problem_segments(PyObject *object, PyObject *arguments) {
    const struct problem_object *self = (const struct problem_object *)object;
    PyObject *x, *y, *mask, *offsets, *out, *spec;
    Py_ssize_t axis = 0;
    ptrdiff_t mask_stride[TALLY_DIMS_MAX];
    if (!PyArg_ParseTuple(arguments, "OOOOOO|n", &x, &y, &mask, &offsets, &out, &spec, &axis))
        return NULL;
    const int equal = PyLong_Check(offsets);
    const size_t equals = equal ? PyLong_AsSize_t(offsets) : 0;
    if (equal && PyErr_Occurred()) return NULL;
    tally_device *device = core_device(spec);
    struct parts *a = device ? parts_get(self, x, y, mask, equal ? NULL : offsets, out) : NULL;
    if (!a) return NULL;
    const size_t count = equal ? equals : a->more.n > 0 ? a->more.n - 1 : 0;
    tally_shape shape = {.cut = TALLY_SEGMENTS,
                         .offsets = a->more.buffer.buf,
                         .offsets_type = a->more.itemsize == 4 ? TALLY_I32 : TALLY_I64};
    if (parts_along(self, a, axis, count, mask_stride, &shape) < 0) {
        parts_release(self, a);
        return NULL;
    }
    return parts_reduce(self, device, a, &shape, a->x.n * a->x.itemsize + count * 8);
}

/* groups(x, y, mask, ids, ids_type, count, skip, sorted, out, device, axis=0) */
static PyObject *problem_groups(PyObject *object, PyObject *arguments) {
    const struct problem_object *self = (const struct problem_object *)object;
    PyObject *x, *y, *mask, *ids, *out, *spec;
    const char *type_name;
    Py_ssize_t count, axis = 0;
    ptrdiff_t mask_stride[TALLY_DIMS_MAX];
    int skip, sorted;
    tally_type type;
    if (!PyArg_ParseTuple(arguments, "OOOOsnppOO|n", &x, &y, &mask, &ids, &type_name, &count, &skip,
                          &sorted, &out, &spec, &axis))
        return NULL;
    if (tally_type_parse(type_name, &type) != TALLY_OK) return core_raise(TALLY_ETYPE);
    tally_device *device = core_device(spec);
    struct parts *a = device ? parts_get(self, x, y, mask, ids, out) : NULL;
    if (!a) return NULL;
    tally_shape shape = {.cut = TALLY_GROUPS,
                         .ids = a->more.buffer.buf,
                         .ids_type = type,
                         .skip_outside = skip,
                         .sorted = sorted};
    const int failed = parts_along(self, a, axis, (size_t)count, mask_stride, &shape);
    if (!failed &&
        (a->more.n != a->x.length[axis] || a->more.itemsize != tally_type_size(type) || count < 0))
        PyErr_Format(PyExc_ValueError, "%zu elements, but %zu ids", a->x.length[axis], a->more.n);
    if (PyErr_Occurred()) {
        parts_release(self, a);
        return NULL;
    }
    return parts_reduce(self, device, a, &shape, a->x.n * a->x.itemsize + (size_t)count * 8);
}

/* ---- On a queue ------------------------------------------------------------------------------ */

/* A shape from Python, and the numbers that it points to. */
struct shape_numbers {
    tally_shape shape;
    size_t length[TALLY_DIMS_MAX];
    ptrdiff_t x[TALLY_DIMS_MAX], y[TALLY_DIMS_MAX], mask[TALLY_DIMS_MAX];
};

/* Strides, one for each dimension, into to[]; *set is where they are, or NULL for None. */
static int parse_strides(PyObject *tuple, unsigned dims, ptrdiff_t *to, const ptrdiff_t **set) {
    *set = NULL;
    if (tuple == Py_None) return 0;
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != (Py_ssize_t)dims) {
        PyErr_SetString(PyExc_ValueError, "strides do not suit the shape");
        return -1;
    }
    for (unsigned d = 0; d < dims; d++)
        to[d] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, (Py_ssize_t)d));
    *set = to;
    return PyErr_Occurred() ? -1 : 0;
}

static int parse_axes(PyObject *tuple, struct shape_numbers *s) {
    PyObject *lengths, *x, *y, *mask;
    unsigned long axes;
    unsigned long long means = 0;
    if (!PyArg_ParseTuple(tuple, "O!OOOk|K", &PyTuple_Type, &lengths, &x, &y, &mask, &axes, &means))
        return -1;
    if (PyTuple_Size(lengths) > TALLY_DIMS_MAX) {
        PyErr_Format(PyExc_ValueError, "more than %d dimensions", TALLY_DIMS_MAX);
        return -1;
    }
    s->shape.cut = TALLY_AXES;
    s->shape.dims = (unsigned)PyTuple_Size(lengths);
    s->shape.axes = (uint32_t)axes;
    s->shape.means = (const double *)(uintptr_t)means;
    s->shape.length = s->length;
    for (unsigned d = 0; d < s->shape.dims; d++)
        s->length[d] = PyLong_AsSize_t(PyTuple_GetItem(lengths, (Py_ssize_t)d));
    if (PyErr_Occurred()) return -1;
    return parse_strides(x, s->shape.dims, s->x, &s->shape.x_stride) < 0 ||
                   parse_strides(y, s->shape.dims, s->y, &s->shape.y_stride) < 0 ||
                   parse_strides(mask, s->shape.dims, s->mask, &s->shape.mask_stride) < 0
               ? -1
               : 0;
}

/* (n,): all elements, side by side. (lengths, strides of x, of y, of the mask, axes' bits, means): along axes.
 * The same without means, with the bit of one axis, and behind that
 * (..., count, offsets, bytes of an offset): segments.
 * (..., count, ids, their type, skip, sorted): groups. Offsets, ids and means are addresses. */
static int parse_shape(const char *cut, PyObject *tuple, struct shape_numbers *s) {
    unsigned long long at;
    Py_ssize_t n, count;
    int size;
    const char *type;
    memset(s, 0, sizeof *s);
    if (strcmp(cut, "axes") == 0) return parse_axes(tuple, s);
    if (strcmp(cut, "whole") == 0) {
        if (!PyArg_ParseTuple(tuple, "n", &n)) return -1;
        s->shape.n = (size_t)n;
        return 0;
    }
    PyObject *along = PyTuple_GetSlice(tuple, 0, 5),
             *rest = PyTuple_GetSlice(tuple, 5, PY_SSIZE_T_MAX);
    int ok = along && rest && parse_axes(along, s) == 0;
    if (strcmp(cut, "segments") == 0) {
        ok = ok && PyArg_ParseTuple(rest, "nKi", &count, &at, &size);
        s->shape.cut = TALLY_SEGMENTS;
        if (ok) s->shape.offsets = (void *)(uintptr_t)at;
        if (ok) s->shape.offsets_type = size == 4 ? TALLY_I32 : TALLY_I64;
    } else {
        ok = ok && PyArg_ParseTuple(rest, "nKspp", &count, &at, &type, &s->shape.skip_outside,
                                    &s->shape.sorted);
        s->shape.cut = TALLY_GROUPS;
        if (ok) s->shape.ids = (void *)(uintptr_t)at;
        const tally_status status = ok ? tally_type_parse(type, &s->shape.ids_type) : TALLY_OK;
        if (status != TALLY_OK) core_raise(status);
    }
    if (ok) s->shape.count = (size_t)count;
    Py_XDECREF(along);
    Py_XDECREF(rest);
    return PyErr_Occurred() ? -1 : 0;
}

/* A reduction whose operands are given when it is launched. */
struct prepared {
    PyObject *problem;
    tally_device *device;
    size_t bytes; /* of workspace */
    size_t
        apart; /* bytes from one value's results to the next one's, if only the first one's address is given */
    int is_whole;
    struct shape_numbers s;
};

static void free_prepared(PyObject *capsule) {
    struct prepared *a = PyCapsule_GetPointer(capsule, "prepared");
    Py_DECREF(a->problem);
    free(a);
}

/* Finds how much workspace a reduction needs. */
static tally_status measure(struct prepared *a, const tally_problem *problem) {
    PyThreadState *thread = PyEval_SaveThread(); /* kernels may have to be compiled */
    const tally_status s = a->is_whole
                               ? tally_workspace(a->device, problem, a->s.shape.n, &a->bytes)
                               : tally_workspace_shaped(a->device, problem, &a->s.shape, &a->bytes);
    PyEval_RestoreThread(thread);
    return s;
}

/* prepare(cut, shape, is_masked, device, apart) -> (what launch() takes, bytes of workspace). */
static PyObject *problem_prepare(PyObject *object, PyObject *arguments) {
    const struct problem_object *self = (const struct problem_object *)object;
    PyObject *shape, *spec;
    const char *cut;
    int is_masked;
    Py_ssize_t apart;
    if (!PyArg_ParseTuple(arguments, "sO!pOn", &cut, &PyTuple_Type, &shape, &is_masked, &spec,
                          &apart))
        return NULL;
    struct prepared *a = calloc(1, sizeof *a);
    if (!a) return PyErr_NoMemory();
    a->apart = (size_t)apart;
    a->is_whole = strcmp(cut, "whole") == 0;
    tally_status status = TALLY_OK;
    if (parse_shape(cut, shape, &a->s) == 0 && (a->device = core_device(spec))) {
        if (is_masked) a->s.shape.mask = (void *)a; /* any address: measuring reads no mask */
        status = measure(a, &self->problem);
    }
    if (status != TALLY_OK) core_raise(status);
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(a, "prepared", free_prepared);
    if (!capsule) {
        free(a);
        return NULL;
    }
    a->problem = Py_NewRef(object);
    return Py_BuildValue("Nn", capsule, (Py_ssize_t)a->bytes);
}

int core_launch_at(PyObject *prepared, const struct addresses *at) {
    const struct prepared *a = PyCapsule_GetPointer(prepared, "prepared");
    if (!a) return -1;
    const struct problem_object *object = (const struct problem_object *)a->problem;
    const tally_problem *problem = &object->problem;
    void *x = (void *)(uintptr_t)at->x, *y = (void *)(uintptr_t)at->y;
    void *workspace = (void *)(uintptr_t)at->workspace, *queue = (void *)(uintptr_t)at->queue;
    tally_status s;
    if (a->is_whole) {
        const tally_call call = {.x = x,
                                 .y = y,
                                 .n = a->s.shape.n,
                                 .workspace = workspace,
                                 .workspace_bytes = a->bytes,
                                 .queue = queue,
                                 .results = (void *)(uintptr_t)at->out[0]};
        s = tally_enqueue(a->device, problem, &call);
    } else {
        tally_shape shape = a->s.shape;
        void *out[TALLY_VALUES_MAX];
        shape.mask = (const unsigned char *)(uintptr_t)at->mask;
        for (size_t v = 0; v < object->values; v++)
            out[v] = (void *)(uintptr_t)(v < at->outs ? at->out[v] : at->out[0] + v * a->apart);
        const tally_shaped_call call = {.shape = &shape,
                                        .x = x,
                                        .y = y,
                                        .workspace = workspace,
                                        .workspace_bytes = a->bytes,
                                        .queue = queue,
                                        .out = out,
                                        .outcome = (void *)(uintptr_t)at->outcome,
                                        .written = at->written};
        s = tally_enqueue_shaped(a->device, problem, &call);
    }
    if (s == TALLY_OK) return 0;
    core_raise(s);
    return -1;
}

/* launch(prepared, x, y, mask, workspace, queue, out, outcome): addresses, 0 for none; out is a tuple of them. */
PyObject *core_launch(PyObject *module, PyObject *arguments) {
    unsigned long long x, y, mask, workspace, queue, outcome;
    PyObject *prepared, *out;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OKKKKKO!K", &prepared, &x, &y, &mask, &workspace, &queue,
                          &PyTuple_Type, &out, &outcome))
        return NULL;
    struct addresses at = {.x = x,
                           .y = y,
                           .mask = mask,
                           .workspace = workspace,
                           .queue = queue,
                           .outs = (size_t)PyTuple_Size(out),
                           .outcome = outcome};
    if (at.outs < 1 || at.outs > TALLY_VALUES_MAX) {
        PyErr_SetString(PyExc_ValueError, "results do not suit the problem");
        return NULL;
    }
    for (size_t v = 0; v < at.outs; v++)
        at.out[v] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(out, (Py_ssize_t)v));
    if (PyErr_Occurred() || core_launch_at(prepared, &at) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- The type -------------------------------------------------------------------------------- */

static PyMethodDef problem_methods[] = {
    {"values", problem_values, METH_NOARGS, "What the values are: (operator, type) each."},
    {"about", problem_about, METH_O, "about(mean): the problem with a mean that is given."},
    {"reduce", problem_reduce, METH_VARARGS,
     "reduce(x, y, device): the values of contiguous arrays."},
    {"axes", problem_axes, METH_VARARGS, "axes(x, y, mask, axes, out, device)"},
    {"segments", problem_segments, METH_VARARGS,
     "segments(x, y, mask, offsets, out, device, axis=0)"},
    {"groups", problem_groups, METH_VARARGS,
     "groups(x, y, mask, ids, ids_type, count, skip, sorted, out, device, axis=0)"},
    {"prepare", problem_prepare, METH_VARARGS,
     "prepare(cut, shape, is_masked, device, apart): (what launch() takes, bytes of workspace)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot problem_slots[] = {
    {Py_tp_new, (void *)problem_new},
    {Py_tp_dealloc, (void *)problem_free},
    {Py_tp_methods, problem_methods},
    {Py_tp_doc,
     (void *)"Problem(ops, type, out, fast, ddof, user, is_complex): what is asked of an array."},
    {0, NULL},
};

static PyType_Spec problem_spec = {
    .name = "tally._core.Problem",
    .basicsize = sizeof(struct problem_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = problem_slots,
};

int core_add_problem(PyObject *module, struct core *core) {
    core->problem = (PyTypeObject *)PyType_FromModuleAndSpec(module, &problem_spec, NULL);
    return core->problem ? PyModule_AddType(module, core->problem) : -1;
}
