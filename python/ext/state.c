/*
 * state.c - State and Groups: tally.h's states as objects. Each has a lock, as only one thread at a time may use a
 * state, and feeding releases the interpreter's lock.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

struct state_object {
    PyObject_HEAD struct problem_object *problem;
    PyThread_type_lock lock;
    tally_state *state;   /* of a State; else NULL */
    tally_groups *groups; /* of a Groups; else NULL */
    size_t count;         /* how many groups there are */
    unsigned long feeder; /* the thread that feeds a Groups; or 0 */
};

/* Takes a state's lock. A thread that waits for it releases the interpreter's lock, which the holder may need to
 * go on. Under the lock of a State no signal's handler runs, which might take it once more: long feeds are of states that
 * no other thread knows, and that are then merged (_states.py). */
static void lock(struct state_object *s) {
    if (PyThread_acquire_lock(s->lock, NOWAIT_LOCK)) return;
    PyThreadState *thread = PyEval_SaveThread();
    PyThread_acquire_lock(s->lock, WAIT_LOCK);
    PyEval_RestoreThread(thread);
}

static void unlock(struct state_object *s) {
    PyThread_release_lock(s->lock);
}

/* Takes two states' locks in the order of their addresses, so that two threads cannot wait for each other. */
static void lock_both(struct state_object *a, struct state_object *b) {
    if (a == b) {
        lock(a);
        return;
    }
    lock(a < b ? a : b);
    lock(a < b ? b : a);
}

static void unlock_both(struct state_object *a, struct state_object *b) {
    unlock(a);
    if (a != b) unlock(b);
}

/* Returns 1; or 0 with a RuntimeError in a signal's handler that runs while its own thread feeds these groups. */
static int can_lock(const struct state_object *s) {
    if (s->feeder != PyThread_get_thread_ident()) return 1;
    PyErr_SetString(PyExc_RuntimeError,
                    "this signal's handler has interrupted a feed of these very groups, which go "
                    "on with it: let it make a note, and use them later");
    return 0;
}

static PyObject *done(tally_status s) {
    if (s != TALLY_OK) return core_raise(s);
    Py_RETURN_NONE;
}

static struct state_object *make(PyTypeObject *type, struct problem_object *problem) {
    struct state_object *self = core_alloc(type);
    if (!self) return NULL;
    self->problem = (struct problem_object *)Py_NewRef((PyObject *)problem);
    if ((self->lock = PyThread_allocate_lock())) return self;
    Py_DECREF(self);
    return (struct state_object *)PyErr_NoMemory();
}

static void object_free(PyObject *object) {
    struct state_object *self = (struct state_object *)object;
    tally_state_destroy(self->state);
    tally_groups_destroy(self->groups);
    if (self->lock) PyThread_free_lock(self->lock);
    Py_XDECREF((PyObject *)self->problem);
    core_free(object);
}

static PyObject *object_problem(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((struct state_object *)object)->problem);
}

static struct state_object *other_of(PyObject *object, PyObject *other) {
    if (PyObject_TypeCheck(other, Py_TYPE(object))) return (struct state_object *)other;
    PyErr_SetString(PyExc_TypeError, "not a state of the same kind");
    return NULL;
}

/* Makes a State, or a Groups with `count` groups: of no elements if `saved` is NULL, else from these saved bytes; or a State as a copy of
 * another one. */
static PyObject *object_new(PyTypeObject *type, PyObject *problem, PyObject *saved, int is_groups,
                            size_t count) {
    PyObject *module = PyType_GetModule(type);
    struct problem_object *p = module ? core_problem(core_of(module), problem) : NULL;
    struct state_object *self = p ? make(type, p) : NULL;
    struct view v;
    if (!self) return NULL;
    self->count = count;
    tally_status s = TALLY_EINVAL;
    if (!saved)
        s = is_groups ? tally_groups_create(&p->problem, count, &self->groups)
                      : tally_state_create(&p->problem, &self->state);
    else if (!is_groups && Py_TYPE(saved) == type) {
        struct state_object *other = (struct state_object *)saved;
        lock(other);
        s = tally_state_copy(other->state, &self->state);
        unlock(other);
    } else if (saved == Py_None)
        PyErr_SetString(PyExc_TypeError,
                        "None is no saved state: give what bytes() has made of one");
    else if (view_get(saved, 0, &v) == 0) {
        const size_t size = v.n * v.itemsize;
        s = is_groups ? tally_groups_load(v.buffer.buf, size, &p->problem, &self->groups)
                      : tally_state_load(v.buffer.buf, size, &p->problem, &self->state);
        view_release(&v);
    }
    const size_t found = s == TALLY_OK && is_groups ? tally_groups_count(self->groups) : count;
    if (found != count)
        PyErr_Format(PyExc_ValueError, "%zu groups have been saved, not %zu", found, count);
    if (s == TALLY_OK && found == count) return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_Occurred() ? NULL : core_raise(s);
}

static PyObject *with_other(PyObject *object, PyObject *other, int is_subtracted) {
    struct state_object *self = (struct state_object *)object, *right = other_of(object, other);
    if (!right || !can_lock(self) || !can_lock(right)) return NULL;
    lock_both(self, right);
    const tally_status s = is_subtracted  ? tally_state_subtract(self->state, right->state)
                           : self->groups ? tally_groups_merge(self->groups, right->groups)
                                          : tally_state_merge(self->state, right->state);
    unlock_both(self, right);
    return done(s);
}

static PyObject *object_merge(PyObject *object, PyObject *other) {
    return with_other(object, other, 0);
}

static PyObject *state_subtract(PyObject *object, PyObject *part) {
    return with_other(object, part, 1);
}

/* Returns bytes that the engine has filled: a saved state, or the wire form as int64, which is empty where there is none. */
static PyObject *filled(struct state_object *self, int is_words) {
    if (!can_lock(self)) return NULL;
    lock(self);
    const size_t size = is_words       ? 8 * tally_state_words(self->state)
                        : self->groups ? tally_groups_size(self->groups)
                                       : tally_state_size(self->state);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    void *to = bytes ? PyBytes_AsString(bytes) : NULL;
    tally_status s = TALLY_OK;
    if (bytes && is_words && size > 0)
        s = tally_state_to_words(self->state, to);
    else if (bytes && !is_words)
        s = self->groups ? tally_groups_save(self->groups, to, size)
                         : tally_state_save(self->state, to, size);
    unlock(self);
    if (s == TALLY_OK) return bytes;
    Py_XDECREF(bytes);
    return core_raise(s);
}

static PyObject *object_save(PyObject *object, PyObject *unused) {
    (void)unused;
    return filled((struct state_object *)object, 0);
}

/* ---- State ----------------------------------------------------------------------------------- */

/* State(problem, saved) */
static PyObject *state_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyObject *problem, *saved = NULL;
    (void)names;
    if (!PyArg_ParseTuple(arguments, "O|O", &problem, &saved)) return NULL;
    return object_new(type, problem, saved, 0, 0);
}

/* Bytes of a feed on the CPU that takes no longer than some milliseconds, so that signals wait for its end. */
#define SHORT_FEED ((size_t)1 << 20)

/* feed(x, y, device): a state that other threads know is fed less than SHORT_FEED bytes, or WORTH_RELEASING on a device. */
static PyObject *state_feed(PyObject *object, PyObject *arguments) {
    struct state_object *self = (struct state_object *)object;
    PyObject *a, *b, *spec;
    struct view x, y;
    struct work work;
    if (!PyArg_ParseTuple(arguments, "OOO", &a, &b, &spec)) return NULL;
    tally_device *device = core_device(spec);
    if (!device || core_pair(self->problem, a, b, &x, &y) < 0) return NULL;
    lock(self);
    work_begin(&work, x.n * x.itemsize);
    if (spec == Py_None && x.n * x.itemsize < SHORT_FEED) tally_stop_when(NULL, NULL);
    tally_status s = tally_state_feed(self->state, device, x.buffer.buf, y.buffer.buf, x.n);
    s = work_end(&work, s);
    unlock(self);
    view_release(&x);
    view_release(&y);
    return done(s);
}

/* feed_resident(x, y, n, device): x and y are addresses of the device's memory. */
static PyObject *state_feed_resident(PyObject *object, PyObject *arguments) {
    struct state_object *self = (struct state_object *)object;
    unsigned long long x, y;
    Py_ssize_t n;
    PyObject *spec;
    struct work work;
    if (!PyArg_ParseTuple(arguments, "KKnO", &x, &y, &n, &spec)) return NULL;
    tally_device *device = core_device(spec);
    if (!device) return NULL;
    lock(self);
    work_begin(&work, SIZE_MAX);
    tally_status s = tally_state_feed_resident(self->state, device, (void *)(uintptr_t)x,
                                               (void *)(uintptr_t)y, (size_t)n);
    s = work_end(&work, s);
    unlock(self);
    return done(s);
}

static PyObject *state_negate(PyObject *object, PyObject *unused) {
    struct state_object *self = (struct state_object *)object;
    (void)unused;
    lock(self);
    const tally_status s = tally_state_negate(self->state);
    unlock(self);
    return done(s);
}

static PyObject *state_begin_at(PyObject *object, PyObject *first) {
    struct state_object *self = (struct state_object *)object;
    const unsigned long long at = PyLong_AsUnsignedLongLong(first);
    if (PyErr_Occurred()) return NULL;
    lock(self);
    const tally_status s = tally_state_begin_at(self->state, at);
    unlock(self);
    return done(s);
}

static PyObject *state_count(PyObject *object, PyObject *unused) {
    struct state_object *self = (struct state_object *)object;
    (void)unused;
    lock(self);
    const uint64_t n = tally_state_count(self->state);
    unlock(self);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *state_value(PyObject *object, PyObject *unused) {
    struct state_object *self = (struct state_object *)object;
    tally_value value[TALLY_VALUES_MAX];
    (void)unused;
    lock(self);
    const tally_status s = tally_state_value(self->state, value);
    unlock(self);
    return s == TALLY_OK ? core_values(self->problem, value) : core_raise(s);
}

/* divided(divisor, type) */
static PyObject *state_divided(PyObject *object, PyObject *arguments) {
    struct state_object *self = (struct state_object *)object;
    long long divisor;
    const char *name;
    tally_type type = 0;
    tally_value value;
    if (!PyArg_ParseTuple(arguments, "Lz", &divisor, &name)) return NULL;
    if (name && tally_type_parse(name, &type) != TALLY_OK) return core_raise(TALLY_ETYPE);
    lock(self);
    const tally_status s = tally_state_divided(self->state, divisor, type, &value);
    unlock(self);
    return s == TALLY_OK ? core_number(&value) : core_raise(s);
}

static PyObject *state_words(PyObject *object, PyObject *unused) {
    (void)unused;
    return filled((struct state_object *)object, 1);
}

static PyObject *state_from_words(PyObject *object, PyObject *words) {
    struct state_object *self = (struct state_object *)object;
    struct view v;
    if (view_get(words, 0, &v) < 0) return NULL;
    lock(self);
    tally_status s = TALLY_OK;
    if (v.n * v.itemsize != 8 * tally_state_words(self->state) || v.n == 0 ||
        !view_is_contiguous(&v))
        PyErr_Format(PyExc_ValueError, "%zu words of 8 bytes are wanted",
                     tally_state_words(self->state));
    else
        s = tally_state_from_words(self->state, v.buffer.buf);
    unlock(self);
    view_release(&v);
    return PyErr_Occurred() ? NULL : done(s);
}

static PyMethodDef state_methods[] = {
    {"feed", state_feed, METH_VARARGS, "feed(x, y, device)"},
    {"feed_resident", state_feed_resident, METH_VARARGS,
     "feed_resident(x, y, n, device): addresses"},
    {"merge", object_merge, METH_O, "merge(other)"},
    {"subtract", state_subtract, METH_O, "subtract(part)"},
    {"negate", state_negate, METH_NOARGS, "negate()"},
    {"begin_at", state_begin_at, METH_O, "begin_at(first)"},
    {"count", state_count, METH_NOARGS, "count()"},
    {"value", state_value, METH_NOARGS, "value(): a tuple"},
    {"divided", state_divided, METH_VARARGS, "divided(divisor, type)"},
    {"save", object_save, METH_NOARGS, "save(): bytes"},
    {"words", state_words, METH_NOARGS, "words(): bytes of int64"},
    {"from_words", state_from_words, METH_O, "from_words(words)"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef common[] = {
    {"problem", object_problem, NULL, "what is asked", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot state_slots[] = {
    {Py_tp_new, (void *)state_new},
    {Py_tp_dealloc, (void *)object_free},
    {Py_tp_methods, state_methods},
    {Py_tp_getset, common},
    {Py_tp_doc, (void *)"State(problem, saved)"},
    {0, NULL},
};

PyType_Spec core_state_spec = {
    .name = "tally._core.State",
    .basicsize = sizeof(struct state_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = state_slots,
};

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Groups(problem, count, saved) */
static PyObject *groups_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyObject *problem, *saved = NULL;
    Py_ssize_t count;
    (void)names;
    if (!PyArg_ParseTuple(arguments, "On|O", &problem, &count, &saved)) return NULL;
    if (count >= 0) return object_new(type, problem, saved, 1, (size_t)count);
    PyErr_SetString(PyExc_ValueError, "groups must not be negative");
    return NULL;
}

/* feed(x, mask, parts, device): feeds a contiguous array of one dimension; `parts` are groups, as for
 * Problem.shaped(). */
static PyObject *groups_feed(PyObject *object, PyObject *arguments) {
    struct state_object *self = (struct state_object *)object;
    PyObject *x, *mask, *parts, *spec;
    struct work work;
    if (!PyArg_ParseTuple(arguments, "OOOO", &x, &mask, &parts, &spec)) return NULL;
    tally_device *device = core_device(spec);
    struct shaped *a = device && can_lock(self)
                           ? core_shape(self->problem, x, Py_None, mask, 1, parts, NULL)
                           : NULL;
    if (!a) return NULL;
    tally_status s = TALLY_OK;
    if (a->shape.cut != TALLY_GROUPS || a->shape.count != self->count || a->shape.dims != 1 ||
        !view_is_contiguous(&a->x) || !view_is_contiguous(&a->mask))
        PyErr_SetString(PyExc_ValueError, "arrays do not suit the groups");
    else {
        a->shape.dims = a->shape.axes = 0;
        a->shape.n = a->x.n;
        lock(self);
        self->feeder = PyThread_get_thread_ident();
        work_begin(&work, a->x.n * a->x.itemsize);
        s = tally_groups_feed(self->groups, device, &a->shape, a->x.buffer.buf, NULL);
        s = work_end(&work, s);
        self->feeder = 0;
        unlock(self);
    }
    core_free_shape(self->problem, a);
    return PyErr_Occurred() ? NULL : done(s);
}

/* values(out): writes the groups' values to a tuple of contiguous arrays. */
static PyObject *groups_values(PyObject *object, PyObject *out) {
    struct state_object *self = (struct state_object *)object;
    struct shaped *a = can_lock(self) ? core_new_shape(self->problem) : NULL;
    if (!a) return NULL;
    tally_status s = TALLY_OK;
    if (core_results(self->problem, out, a) == 0) {
        for (size_t i = 0; i < self->problem->values; i++)
            if (a->out[i].n != self->count || !view_is_contiguous(&a->out[i]))
                PyErr_SetString(PyExc_ValueError, "results do not suit the problem");
        if (!PyErr_Occurred()) {
            lock(self);
            s = tally_groups_values(self->groups, a->place);
            unlock(self);
        }
    }
    core_free_shape(self->problem, a);
    return PyErr_Occurred() ? NULL : done(s);
}

/* counts(out): writes the number of each group's elements to a contiguous array of 64-bit integers. */
static PyObject *groups_counts(PyObject *object, PyObject *out) {
    struct state_object *self = (struct state_object *)object;
    struct view v;
    tally_status s = TALLY_OK;
    if (!can_lock(self) || view_get(out, 1, &v) < 0) return NULL;
    const int ok = v.held && v.n == self->count && v.itemsize == 8 && view_is_contiguous(&v);
    if (ok) {
        lock(self);
        s = tally_groups_counts(self->groups, v.buffer.buf);
        unlock(self);
    } else
        PyErr_SetString(PyExc_ValueError, "results do not suit the groups");
    view_release(&v);
    return ok ? done(s) : NULL;
}

static PyMethodDef groups_methods[] = {
    {"feed", groups_feed, METH_VARARGS, "feed(x, mask, parts, device)"},
    {"merge", object_merge, METH_O, "merge(other)"},
    {"values", groups_values, METH_O, "values(out)"},
    {"counts", groups_counts, METH_O, "counts(out)"},
    {"save", object_save, METH_NOARGS, "save(): bytes"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot groups_slots[] = {
    {Py_tp_new, (void *)groups_new},
    {Py_tp_dealloc, (void *)object_free},
    {Py_tp_methods, groups_methods},
    {Py_tp_getset, common},
    {Py_tp_doc, (void *)"Groups(problem, count, saved)"},
    {0, NULL},
};

PyType_Spec core_groups_spec = {
    .name = "tally._core.Groups",
    .basicsize = sizeof(struct state_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = groups_slots,
};
