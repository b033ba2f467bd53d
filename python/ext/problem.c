/*
 * problem.c - Problem: operators with their options, and reductions of whole arrays, along axes, by segment, by group,
 * on queues.
 *
 * Types and operators come as names, arrays as objects with the buffer protocol. The caller in Python has checked
 * types and shapes. The checks here only keep wrong arguments from reading or writing outside of the arrays.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

typedef void combine_function(void *, const void *, const void *, void *, size_t);

static int refuse(const char *text) {
    PyErr_SetString(PyExc_ValueError, text);
    return -1;
}

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

static int parse_ops(PyObject *ops, tally_problem *p) {
    const Py_ssize_t n = PyTuple_Size(ops);
    tally_status s;
    if (n < 1 || n > 9) return refuse("from one to nine operators");
    for (Py_ssize_t i = 0; i < n; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(ops, i), NULL);
        tally_op *op = i == 0 ? &p->op : &p->also[i - 1];
        if (!name) return -1;
        if (strcmp(name, "user") == 0)
            *op = TALLY_USER;
        else if ((s = tally_op_parse(name, op)) != TALLY_OK) {
            core_raise(s);
            return -1;
        }
    }
    return 0;
}

/* Sets the user's operator. `user` is None, or (address of combine(), the identity as bytes, commutative, source
 * or None, an object that keeps combine() loaded). */
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
    if (size != (Py_ssize_t)tally_type_size(self->problem.type))
        return refuse("the identity is not one element");
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
    PyObject *ops, *user = Py_None;
    const char *element, *out = NULL;
    int fast = 0, is_complex = 0;
    double ddof = 0;
    (void)names;
    if (!PyArg_ParseTuple(arguments, "O!s|zpdOp", &PyTuple_Type, &ops, &element, &out, &fast, &ddof,
                          &user, &is_complex))
        return NULL;
    struct problem_object *self = core_alloc(type);
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

/* about(mean): returns the same problem, but var and std are about a given mean. The problem must have no user's
 * operator, as the new one would point into the old one. */
static PyObject *problem_about(PyObject *object, PyObject *mean) {
    const struct problem_object *self = (const struct problem_object *)object;
    const double real = PyComplex_RealAsDouble(mean), imaginary = PyComplex_ImagAsDouble(mean);
    if (PyErr_Occurred()) return NULL;
    struct problem_object *made = core_alloc(Py_TYPE(object));
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
    Py_XDECREF(self->keep);
    Py_XDECREF(self->source);
    core_free(object);
}

/* values(): returns for each value the names of its operator and of its type. */
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

/* Gets a contiguous array of the problem's element type, or None. Returns -1 with an exception for other arrays. */
static int get_elements(const struct problem_object *p, PyObject *object, struct view *v) {
    if (view_get(object, 0, v) < 0) return -1;
    if (!v->held || (v->itemsize == tally_type_size(p->problem.type) && view_is_contiguous(v)))
        return 0;
    return refuse("not contiguous elements of the problem's type");
}

int core_pair(const struct problem_object *p, PyObject *a, PyObject *b, struct view *x,
              struct view *y) {
    x->held = y->held = 0;
    if (b == Py_None && p->problem.op == TALLY_DOT)
        PyErr_SetString(PyExc_TypeError, "dot is of two arrays, and there is one");
    else if (get_elements(p, a, x) == 0 && get_elements(p, b, y) == 0) {
        if (!y->held || y->n == x->n) return 0;
        PyErr_Format(PyExc_ValueError, "the arrays have %zu and %zu elements", x->n, y->n);
    }
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

/* ---- In a shape ------------------------------------------------------------------------------ */

/* Gives the arrays back; the shape's lengths and strides stay. */
static void release_arrays(const struct problem_object *p, struct shaped *a) {
    view_release(&a->x);
    view_release(&a->y);
    view_release(&a->mask);
    view_release(&a->more);
    for (size_t i = 0; i < p->values; i++)
        view_release(&a->out[i]);
}

struct shaped *core_new_shape(const struct problem_object *p) {
    struct shaped *a = malloc(sizeof *a);
    if (!a) return (struct shaped *)PyErr_NoMemory();
    memset(a, 0, offsetof(struct shaped, out));
    for (size_t i = 0; i < p->values; i++)
        a->out[i].held = 0;
    return a;
}

void core_free_shape(const struct problem_object *p, struct shaped *a) {
    release_arrays(p, a);
    free(a);
}

int core_results(const struct problem_object *p, PyObject *out, struct shaped *a) {
    if (!PyTuple_Check(out) || PyTuple_Size(out) != (Py_ssize_t)p->values)
        return refuse("results do not suit the problem");
    for (size_t i = 0; i < p->values; i++) {
        if (view_get(PyTuple_GetItem(out, (Py_ssize_t)i), 1, &a->out[i]) < 0) return -1;
        a->place[i] = a->out[i].buffer.buf;
        if (a->out[i].itemsize != tally_type_size(tally_problem_value_type(&p->problem, i)))
            return refuse("results do not suit the problem");
    }
    return 0;
}

/* Gets the argument `parts`, which says how an array is cut, or has a mean for each result:
 * None; ("means", doubles); ("segments", offsets of i32 or i64, or the number of segments of equal length);
 * ("groups", ids, the ids' type, number of groups, skip_outside, sorted). Returns -1 with an exception. */
static int get_parts(PyObject *parts, struct shaped *a) {
    PyObject *array;
    const char *cut, *type = "i64";
    Py_ssize_t count = 0;
    tally_shape *shape = &a->shape;
    shape->cut = TALLY_AXES;
    if (parts == Py_None) return 0;
    if (!PyTuple_Check(parts)) return refuse("parts are a tuple");
    if (!PyArg_ParseTuple(parts, "sO|snpp", &cut, &array, &type, &count, &shape->skip_outside,
                          &shape->sorted))
        return -1;
    if (strcmp(cut, "segments") == 0) shape->cut = TALLY_SEGMENTS;
    if (strcmp(cut, "groups") == 0) shape->cut = TALLY_GROUPS;
    if (tally_type_parse(type, &shape->ids_type) != TALLY_OK) {
        core_raise(TALLY_ETYPE);
        return -1;
    }
    if (shape->cut == TALLY_SEGMENTS && PyLong_Check(array)) {
        count = PyLong_AsSsize_t(array);
        if (PyErr_Occurred()) return -1;
    } else if (view_get(array, 0, &a->more) < 0)
        return -1;
    else if (shape->cut == TALLY_SEGMENTS && a->more.n > 0)
        count = (Py_ssize_t)a->more.n - 1;
    if (count < 0) return refuse("the number of parts is negative");
    shape->count = (size_t)count;
    const void *more =
        a->more.n ? a->more.buffer.buf : NULL; /* (a GPU's array of nothing has no address) */
    if (shape->cut == TALLY_AXES)
        shape->means = more;
    else if (shape->cut == TALLY_SEGMENTS) {
        shape->offsets = more;
        shape->offsets_type = a->more.itemsize == 4 ? TALLY_I32 : TALLY_I64;
    } else
        shape->ids = more;
    return 0;
}

static int same_lengths(const struct view *a, const struct view *b) {
    if (!b->held) return 1;
    if (a->buffer.ndim != b->buffer.ndim) return 0;
    for (int i = 0; i < a->buffer.ndim; i++)
        if (a->length[i] != b->length[i]) return 0;
    return 1;
}

/* Returns whether result i has x's dimensions, with length `count` for those that are cut or reduced, and result 0's
 * strides. */
static int results_suit(const struct shaped *a, size_t i, size_t count) {
    const struct view *o = &a->out[i];
    if (o->buffer.ndim != a->x.buffer.ndim) return 0;
    for (int d = 0; d < o->buffer.ndim; d++)
        if (o->length[d] != (a->shape.axes >> d & 1 ? count : a->x.length[d]) ||
            (o->length[d] > 1 && o->stride[d] != a->out[0].stride[d]))
            return 0;
    return 1;
}

/* Returns -1 with an exception where arrays do not go together. Results are looked at if there are any. */
static int check_shape(const struct problem_object *p, const struct shaped *a) {
    const tally_shape *shape = &a->shape;
    const size_t element = tally_type_size(p->problem.type);
    const int dims = a->x.buffer.ndim, cuts = shape->cut != TALLY_AXES;
    if (!a->x.held || a->x.itemsize != element || (a->y.held && a->y.itemsize != element) ||
        (a->mask.held && a->mask.itemsize != 1))
        return refuse("arrays do not suit the problem");
    if (dims > TALLY_DIMS_MAX) return refuse("more than 16 dimensions");
    int ok = same_lengths(&a->x, &a->y) && same_lengths(&a->x, &a->mask) &&
             view_is_contiguous(&a->more) && shape->axes >> dims == 0;
    for (size_t i = 0; ok && a->out[0].held && i < p->values; i++)
        ok = results_suit(a, i, cuts ? shape->count : 1);
    if (shape->cut == TALLY_AXES && a->more.held && a->out[0].held)
        ok = ok && a->more.itemsize == sizeof(double) &&
             a->more.n == a->out[0].n * (p->problem.is_complex ? 2 : 1);
    size_t length = 0;
    for (int d = 0; ok && cuts && d < dims; d++)
        if (shape->axes == UINT32_C(1) << d) length = a->x.length[d];
    ok = ok && (!cuts || (dims > 0 && (shape->axes & (shape->axes - 1)) == 0 && shape->axes));
    if (!ok) return refuse("shapes do not suit each other");
    if (shape->cut != TALLY_GROUPS ||
        (a->more.n == length && a->more.itemsize == tally_type_size(shape->ids_type)))
        return 0;
    PyErr_Format(PyExc_ValueError, "%zu elements, but %zu ids", length, a->more.n);
    return -1;
}

struct shaped *core_shape(const struct problem_object *p, PyObject *x, PyObject *y, PyObject *mask,
                          unsigned long axes, PyObject *parts, PyObject *out) {
    struct shaped *a = core_new_shape(p);
    if (!a) return NULL;
    a->shape.axes = (uint32_t)axes;
    if (view_get(x, 0, &a->x) == 0 && view_get(y, 0, &a->y) == 0 &&
        view_get(mask, 0, &a->mask) == 0 && get_parts(parts, a) == 0 &&
        (!out || core_results(p, out, a) == 0) && check_shape(p, a) == 0) {
        a->shape.dims = (unsigned)a->x.buffer.ndim;
        a->shape.length = a->x.length;
        a->shape.x_stride = a->x.stride;
        a->shape.y_stride = a->y.held ? a->y.stride : NULL;
        a->shape.out_stride = out ? a->out[0].stride : NULL;
        a->shape.mask = a->mask.buffer.buf;
        a->shape.mask_stride = a->mask.held ? a->mask.stride : NULL;
        return a;
    }
    core_free_shape(p, a);
    return NULL;
}

/* shaped(x, y, mask, axes, parts, out, device): reduces along the axes whose bits are set in `axes`. For segments and
 * groups one bit is set, that of the axis that they cut. */
static PyObject *problem_shaped(PyObject *object, PyObject *arguments) {
    const struct problem_object *self = (const struct problem_object *)object;
    PyObject *x, *y, *mask, *parts, *out, *spec;
    unsigned long axes;
    struct work work;
    if (!PyArg_ParseTuple(arguments, "OOOkOOO", &x, &y, &mask, &axes, &parts, &out, &spec))
        return NULL;
    tally_device *device = core_device(spec);
    struct shaped *a = device ? core_shape(self, x, y, mask, axes, parts, out) : NULL;
    if (!a) return NULL;
    work_begin(&work, a->x.n * a->x.itemsize + a->shape.count * 8);
    tally_status s = tally_reduce_shaped(device, &self->problem, &a->shape, a->x.buffer.buf,
                                         a->y.buffer.buf, a->place);
    s = work_end(&work, s);
    core_free_shape(self, a);
    if (s != TALLY_OK) return core_raise(s);
    Py_RETURN_NONE;
}

/* ---- On a queue ------------------------------------------------------------------------------ */

/* A reduction whose operands are given when it is launched. */
struct prepared {
    PyObject *problem;
    tally_device *device;
    size_t bytes;            /* of workspace */
    size_t apart;            /* bytes from one value's results to the next one's, if only the
                                 first one's address is given */
    struct shaped *in_shape; /* NULL: all of n elements */
    size_t n;
};

static void free_prepared(PyObject *capsule) {
    struct prepared *a = PyCapsule_GetPointer(capsule, "prepared");
    Py_DECREF(a->problem);
    free(a->in_shape);
    free(a);
}

/* prepare(x, y, mask, axes, parts, device, apart) -> (a capsule for launch(), bytes of workspace, addresses of x,
 * y and mask). The arrays have the addresses and strides of arrays on a GPU, and their elements are not read. x
 * may be a number n: all of n elements are reduced. */
static PyObject *problem_prepare(PyObject *object, PyObject *arguments) {
    const struct problem_object *self = (const struct problem_object *)object;
    PyObject *x, *y, *mask, *parts, *spec;
    unsigned long axes;
    Py_ssize_t apart;
    unsigned long long at[3] = {0};
    if (!PyArg_ParseTuple(arguments, "OOOkOOn", &x, &y, &mask, &axes, &parts, &spec, &apart))
        return NULL;
    struct prepared *a = calloc(1, sizeof *a);
    PyObject *capsule = a ? PyCapsule_New(a, "prepared", free_prepared) : PyErr_NoMemory();
    if (!capsule) {
        free(a);
        return NULL;
    }
    a->problem = Py_NewRef(object);
    a->apart = (size_t)apart;
    if (PyLong_Check(x))
        a->n = PyLong_AsSize_t(x);
    else if ((a->in_shape = core_shape(self, x, y, mask, axes, parts, NULL))) {
        const struct view *views[] = {&a->in_shape->x, &a->in_shape->y, &a->in_shape->mask};
        for (int i = 0; i < 3; i++)
            at[i] = views[i]->n ? (uintptr_t)views[i]->buffer.buf : 0;
        release_arrays(self, a->in_shape);
    }
    if (!PyErr_Occurred() && (a->device = core_device(spec))) {
        PyThreadState *thread = PyEval_SaveThread(); /* kernels may have to be compiled */
        const tally_status s =
            a->in_shape
                ? tally_workspace_shaped(a->device, &self->problem, &a->in_shape->shape, &a->bytes)
                : tally_workspace(a->device, &self->problem, a->n, &a->bytes);
        PyEval_RestoreThread(thread);
        if (s == TALLY_OK)
            return Py_BuildValue("NnKKK", capsule, (Py_ssize_t)a->bytes, at[0], at[1], at[2]);
        core_raise(s);
    }
    Py_DECREF(capsule);
    return NULL;
}

int core_launch_at(PyObject *prepared, const struct addresses *at) {
    const struct prepared *a = PyCapsule_GetPointer(prepared, "prepared");
    if (!a) return -1;
    const struct problem_object *object = (const struct problem_object *)a->problem;
    const tally_problem *problem = &object->problem;
    void *x = (void *)(uintptr_t)at->x, *y = (void *)(uintptr_t)at->y;
    void *workspace = (void *)(uintptr_t)at->workspace, *queue = (void *)(uintptr_t)at->queue;
    tally_status s;
    if (!a->in_shape) {
        const tally_call call = {.x = x,
                                 .y = y,
                                 .n = a->n,
                                 .workspace = workspace,
                                 .workspace_bytes = a->bytes,
                                 .queue = queue,
                                 .results = (void *)(uintptr_t)at->out[0]};
        s = tally_enqueue(a->device, problem, &call);
    } else {
        tally_shape shape = a->in_shape->shape;
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
                                        .outcome = (void *)(uintptr_t)at->outcome};
        s = tally_enqueue_shaped(a->device, problem, &call);
    }
    if (s == TALLY_OK) return 0;
    core_raise(s);
    return -1;
}

int core_is_captured(PyObject *prepared, void *queue) {
    const struct prepared *a = PyCapsule_GetPointer(prepared, "prepared");
    return !a || tally_queue_is_captured(a->device, queue);
}

/* launch(prepared, x, y, mask, workspace, queue, out, outcome): all but `prepared` are addresses, 0 for none;
 * `out` is a tuple of addresses. */
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
    {"shaped", problem_shaped, METH_VARARGS, "shaped(x, y, mask, axes, parts, out, device)"},
    {"prepare", problem_prepare, METH_VARARGS,
     "prepare(x, y, mask, axes, parts, device, apart): what launch() takes"},
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

PyType_Spec core_problem_spec = {
    .name = "tally._core.Problem",
    .basicsize = sizeof(struct problem_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = problem_slots,
};
