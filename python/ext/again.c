/*
 * again.c - calls on tensors on a GPU that have been made before, made again from start to end.
 *
 * A library may lay open a table of functions (dlpack.h) that say at once what a tensor is, and on which stream the
 * library works. With it calls are told apart by their function, their other arguments and the layouts of their tensors.
 * How a call is made, _gpu.py has found out when it was made before, and has handed over by _again(). Whatever is not
 * quite as it was then goes the way by Python, which knows everything.
 *
 * Without the interpreter's lock there is nothing of this: threads would change the table under each other.
 */
#include "core.h"
#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 256, NEAR = 4, MORE = 6, DIMS = 8, TENSORS = 2 };

/* What a tensor is, but for its address: its device, its type, its lengths and strides. All other words are 0. */
struct layout {
    int64_t device, type, dims;
    int64_t length[DIMS], stride[DIMS];
};

/* What tells calls apart. An argument is known by being the same object, which is held and never changes. */
struct key {
    uint64_t function;
    uint64_t count, names; /* arguments; how many of them, the last ones, have names */
    PyObject *name[MORE];  /* these names */
    PyObject *more[MORE];  /* the arguments behind the first; NULL stands for a tensor */
    struct layout tensor[TENSORS];
};

struct again {
    uint64_t hash; /* 0: nothing is here */
    struct key key;
    PyObject *prepared;  /* what core_enqueue() takes */
    PyObject *capturing; /* whether what is put on the stream goes into a graph */
    PyObject *kept;      /* memory to work in, its address, results that wait to be used: pairs */
    uint64_t work;
    void *stream;
    int masked; /* the second tensor is the mask */
};

struct agains {
    const struct dl_exchange *exchange;
    PyObject *is_negated; /* a function of a tensor */
    unsigned next;        /* the one of NEAR places that is given up next */
    struct again place[PLACES];
};

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Finds a tensor's layout and its address. Returns 0, without an exception, if it cannot. */
static int look(const struct agains *a, PyObject *tensor, struct layout *l, uint64_t *address) {
    struct dl_tensor t;
    if (a->exchange->look(tensor, &t) != 0) {
        PyErr_Clear();
        return 0;
    }
    if (t.device.type != DL_CUDA || t.ndim > DIMS || (t.ndim > 0 && !t.strides)) return 0;
    *l = (struct layout){.device = t.device.id,
                         .type = t.dtype.code | t.dtype.bits << 8 | (int64_t)t.dtype.lanes << 16,
                         .dims = t.ndim};
    for (int d = 0; d < t.ndim; d++) {
        l->length[d] = t.shape[d];
        l->stride[d] = t.strides[d];
    }
    *address = (uint64_t)(uintptr_t)t.data + t.byte_offset;
    return 1;
}

/* Makes the key of a call, and its tensors' addresses. Returns 0 if it has none. */
static int make_key(const struct core *core, enum core_function f, PyObject *const *arguments,
                    Py_ssize_t count, PyObject *names, struct key *key, uint64_t address[]) {
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0, all = count + named;
    int tensors = 1;
    *key = (struct key){.function = f, .count = (uint64_t)all, .names = (uint64_t)named};
    if (all > 1 + MORE || !look(core->agains, arguments[0], &key->tensor[0], &address[0])) return 0;
    for (Py_ssize_t i = 0; i < named; i++)
        key->name[i] = PyTuple_GetItem(names, i);
    for (Py_ssize_t i = 1; i < all; i++) {
        if (Py_TYPE(arguments[i]) != core->elsewhere)
            key->more[i - 1] = arguments[i];
        else if (tensors == TENSORS ||
                 !look(core->agains, arguments[i], &key->tensor[tensors], &address[tensors]))
            return 0;
        else
            tensors++;
    }
    return tensors;
}

static uint64_t hash_of(const struct key *key) {
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof *key / sizeof hash; i++) {
        uint64_t word;
        memcpy(&word, (const char *)key + i * sizeof word, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash | 1;
}

static struct again *find(struct agains *a, const struct key *key, uint64_t hash) {
    for (unsigned i = 0; i < NEAR; i++) {
        struct again *place = &a->place[(hash / 2 + i) % PLACES];
        if (place->hash == hash && memcmp(&place->key, key, sizeof *key) == 0) return place;
    }
    return NULL;
}

/* Takes what a place points to for its own, ... */
static void hold(const struct again *a) {
    for (int i = 0; i < MORE; i++) {
        Py_XINCREF(a->key.name[i]);
        Py_XINCREF(a->key.more[i]);
    }
    Py_INCREF(a->prepared);
    Py_INCREF(a->capturing);
    Py_INCREF(a->kept);
}

/* ... and gives it up. */
static void forget(const struct again *a) {
    for (int i = 0; i < MORE; i++) {
        Py_XDECREF(a->key.name[i]);
        Py_XDECREF(a->key.more[i]);
    }
    Py_XDECREF(a->prepared);
    Py_XDECREF(a->capturing);
    Py_XDECREF(a->kept);
}

static void forget_place(struct again *place) {
    struct again old = *place;
    *place = (struct again){.hash = 0};
    if (old.hash) forget(&old);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Returns whether function(argument), or function() for NULL, is false; an exception counts as
 * true, and is gone. */
static int is_false(PyObject *function, PyObject *argument) {
    PyObject *value = PyObject_CallFunctionObjArgs(function, argument, NULL);
    const int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    if (truth < 0) PyErr_Clear();
    return truth == 0;
}

/* Returns whether a call goes as it did: no tensor is negated lazily, and the library works on the
 * same stream, which is not made a graph of. */
static int is_as_it_was(const struct core *core, const struct again *known,
                        PyObject *const *arguments) {
    void *stream;
    for (uint64_t i = 0; i < known->key.count; i++)
        if (Py_TYPE(arguments[i]) == core->elsewhere &&
            !is_false(core->agains->is_negated, arguments[i]))
            return 0;
    if (!is_false(known->capturing, NULL)) return 0;
    if (core->agains->exchange->stream(DL_CUDA, (int32_t)known->key.tensor[0].device, &stream) == 0)
        return stream == known->stream;
    PyErr_Clear();
    return 0;
}

/* Makes a call with its tensors at these addresses; its result is one of those that wait. NULL without an exception: there
 * is none. */
static PyObject *make(const struct again *known, const uint64_t address[]) {
    PyObject *waiting = PyTuple_GetItem(known->kept, 2), *result = NULL;
    const Py_ssize_t n = PyList_Size(waiting);
    if (n <= 0) return NULL;
    PyObject *pair = Py_NewRef(PyList_GetItem(waiting, n - 1));
    const struct addresses at = {.x = address[0],
                                 .y = known->masked ? 0 : address[1],
                                 .mask = known->masked ? address[1] : 0,
                                 .workspace = known->work,
                                 .queue = (uint64_t)(uintptr_t)known->stream,
                                 .out = PyLong_AsUnsignedLongLong(PyTuple_GetItem(pair, 1)),
                                 .written = 1};
    if (PyList_SetSlice(waiting, n - 1, n, NULL) == 0 && core_enqueue_at(known->prepared, &at) == 0)
        result = Py_NewRef(PyTuple_GetItem(pair, 0));
    Py_DECREF(pair);
    return result;
}

PyObject *core_again(struct core *core, enum core_function f, PyObject *const *arguments,
                     Py_ssize_t count, PyObject *names) {
    struct key key;
    uint64_t address[TENSORS] = {0};
    PyObject *result = NULL;
    if (!core->agains || !core->agains->exchange || core->watched) return NULL;
    if (!make_key(core, f, arguments, count, names, &key, address)) return NULL;
    const struct again *place = find(core->agains, &key, hash_of(&key));
    if (!place) return NULL;
    struct again known = *place; /* which the calls below may change */
    hold(&known);
    if (is_as_it_was(core, &known, arguments)) result = make(&known, address);
    forget(&known);
    return result;
}

/* ---- From Python ----------------------------------------------------------------------------- */

/* Returns whether an argument never changes, so that it may be known by being the same object.
 * `type`: PyTorch's types of elements are of it. */
static int is_constant(PyObject *argument, PyTypeObject *type) {
    if (argument == Py_None || PyBool_Check(argument) || PyType_Check(argument) ||
        Py_TYPE(argument) == type || PyLong_CheckExact(argument) || PyFloat_CheckExact(argument) ||
        PyUnicode_CheckExact(argument))
        return 1;
    if (!PyTuple_CheckExact(argument)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(argument); i++)
        if (!PyLong_CheckExact(PyTuple_GetItem(argument, i))) return 0;
    return 1;
}

static int are_constants(const struct key *key, PyTypeObject *type) {
    for (int i = 0; i < MORE; i++)
        if (key->more[i] && !is_constant(key->more[i], type)) return 0;
    return 1;
}

/* The free place near where a hash belongs, or one that is given up for it. */
static struct again *room_for(struct agains *a, uint64_t hash) {
    for (unsigned i = 0; i < NEAR; i++) {
        struct again *place = &a->place[(hash / 2 + i) % PLACES];
        if (!place->hash || place->hash == hash) return place;
    }
    return &a->place[(hash / 2 + a->next++ % NEAR) % PLACES];
}

/* _again(function, names, arguments, prepared, capturing, kept, stream, masked): how a call of the function in Python with
 * these arguments, of which the last have names (None: none has), is made again. */
PyObject *core_remember(PyObject *module, PyObject *arguments) {
    struct core *core = core_of(module);
    PyObject *function, *names, *all, *list[1 + MORE];
    unsigned long long stream;
    struct again made = {.hash = 0};
    uint64_t address[TENSORS];
    int f = 0;
    if (!PyArg_ParseTuple(arguments, "OOO!OOO!Kp", &function, &names, &PyTuple_Type, &all,
                          &made.prepared, &made.capturing, &PyTuple_Type, &made.kept, &stream,
                          &made.masked))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(all);
    while (f < FUNCTIONS && core->slow[f] != function)
        f++;
    if (f == FUNCTIONS || count < 1 || count > 1 + MORE || !core->agains || !core->agains->exchange)
        Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < count; i++)
        list[i] = PyTuple_GetItem(all, i);
    if (names == Py_None) names = NULL;
    if (!make_key(core, (enum core_function)f, list, count - (names ? PyTuple_Size(names) : 0),
                  names, &made.key, address))
        Py_RETURN_NONE;
    PyObject *type = PyObject_GetAttrString(list[0], "dtype");
    if (!type) return NULL;
    const int constant = are_constants(&made.key, Py_TYPE(type));
    Py_DECREF(type);
    made.hash = hash_of(&made.key);
    made.work = PyLong_AsUnsignedLongLong(PyTuple_GetItem(made.kept, 1));
    made.stream = (void *)(uintptr_t)stream;
    if (PyErr_Occurred()) return NULL;
    if (!constant) Py_RETURN_NONE;
    struct again *place = room_for(core->agains, made.hash), old = *place;
    hold(&made);
    *place = made;
    if (old.hash) forget(&old);
    Py_RETURN_NONE;
}

/* Forgets all calls. */
PyObject *core_forget(PyObject *module, PyObject *unused) {
    struct agains *a = core_of(module)->agains;
    (void)unused;
    for (int i = 0; a && i < PLACES; i++)
        forget_place(&a->place[i]);
    Py_RETURN_NONE;
}

/* _watch(more): so many more want to hear what becomes of calls, which then go the way by Python. */
PyObject *core_watch(PyObject *module, PyObject *more) {
    const long by = PyLong_AsLong(more);
    if (PyErr_Occurred()) return NULL;
    core_of(module)->watched += by;
    Py_RETURN_NONE;
}

/* ---- The module's ---------------------------------------------------------------------------- */

#ifdef Py_GIL_DISABLED
int core_open_agains(struct core *core, PyTypeObject *type) {
    (void)core, (void)type;
    return 0;
}
#else
/* Returns the table of a type; NULL, without an exception, where it has none that is known here. */
static const struct dl_exchange *exchange_of(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const struct dl_exchange *table = capsule && PyCapsule_IsValid(capsule, DL_EXCHANGE)
                                          ? PyCapsule_GetPointer(capsule, DL_EXCHANGE)
                                          : NULL;
    Py_XDECREF(capsule); /* (the table outlives it) */
    PyErr_Clear();
    while (table && table->version.major > 1)
        table = table->before;
    return table && table->version.major == 1 && table->look ? table : NULL;
}

int core_open_agains(struct core *core, PyTypeObject *type) {
    struct agains *a = core->agains ? core->agains : calloc(1, sizeof *a);
    if (!a) {
        PyErr_NoMemory();
        return -1;
    }
    core->agains = a;
    for (int i = 0; i < PLACES; i++)
        forget_place(&a->place[i]);
    Py_XDECREF(a->is_negated);
    a->is_negated = PyObject_GetAttrString((PyObject *)type, "is_neg");
    a->exchange = exchange_of(type);
    return a->is_negated ? 0 : -1;
}
#endif

int core_visit_agains(struct core *core, visitproc visit, void *arg) {
    struct agains *a = core->agains;
    for (int i = 0; a && i < PLACES; i++) {
        Py_VISIT(a->place[i].capturing);
        Py_VISIT(a->place[i].kept);
    }
    return 0;
}

void core_close_agains(struct core *core) {
    struct agains *a = core->agains;
    core->agains = NULL;
    for (int i = 0; a && i < PLACES; i++)
        forget_place(&a->place[i]);
    if (a) Py_XDECREF(a->is_negated);
    free(a);
}
