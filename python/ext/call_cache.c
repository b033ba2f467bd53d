/*
 * call_cache.c - a cache of calls on GPU tensors: a call like an earlier one is launched without any Python code.
 *
 * A key says what a call is: its function, its other arguments, the layouts of its tensors, and the stream that their
 * library works on. An entry says how the call is made: a prepared reduction, and results that wait to be written.
 * _repeated.py adds an entry after it has made a call the general way. A call that is not exactly like its entry goes that
 * way again.
 *
 * A library may export DLPack's table of functions (dlpack.h), which describe a tensor in some nanoseconds. For other
 * libraries the tensor's own methods are called.
 *
 * A free-threaded interpreter has no such cache: its threads would change the table under each other.
 */
#include "core.h"
#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

/* The most entries; entries among which one hash is looked for; arguments after the first; dimensions of a tensor;
 * tensors of a call. */
enum { ENTRIES = 256, WAYS = 4, MORE = 6, DIMS = 8, TENSORS = 2 };

/* The layout of a tensor: all but its address. Unused words are 0. */
struct layout {
    int64_t device, type, dims;
    int64_t length[DIMS], stride[DIMS];
};

/* The words of a key that are compared bit by bit. A name is known by its object: names of arguments are interned. */
struct call {
    uint64_t function;
    uint64_t count, names; /* arguments; how many of them, the last ones, have names */
    PyObject *name[MORE];
    struct layout tensor[TENSORS];
    void *stream;
};

struct key {
    struct call call;
    PyObject *more[MORE]; /* the arguments after the first; NULL stands for a tensor */
};

struct entry {
    uint64_t hash; /* 0: the entry is free */
    struct key key;
    PyObject *prepared; /* of Problem.prepare() */
    /* A list of (result, its address, workspace, its address), or a workspace and its address. */
    PyObject *results;
    PyObject *refill; /* refill(): adds to the list; with a workspace, returns a result */
    int is_masked;    /* the second tensor is the mask */
};

struct call_cache {
    const struct dl_exchange *exchange; /* NULL: tensors are described by their methods */
    PyObject *is_negated, *stream;      /* is_negated(tensor); stream(device) -> its address */
    PyObject *requires_grad;            /* the name of a tensor's attribute */
    unsigned victim;                    /* which of WAYS entries is replaced next */
    struct entry entry[ENTRIES];
};

/* ---- Layouts --------------------------------------------------------------------------------- */

static int describe_by_table(const struct dl_exchange *exchange, PyObject *tensor, struct layout *l,
                             uint64_t *address) {
    struct dl_tensor t;
    if (exchange->look(tensor, &t) != 0) return 0;
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

/* Calls a method without arguments that returns an integer. Returns that, or -1 with an exception. */
static int64_t call_for_number(PyObject *object, const char *method) {
    PyObject *value = PyObject_CallMethod(object, method, NULL);
    const int64_t number = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    return number;
}

/* Copies a tuple of numbers. Returns their count, or -1, with or without an exception. */
static Py_ssize_t copy_numbers(PyObject *tuple, int64_t *to) {
    const Py_ssize_t n = tuple && PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    for (Py_ssize_t i = 0; i < n && n <= DIMS; i++)
        to[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    return n <= DIMS ? n : -1;
}

static int describe_by_methods(PyObject *tensor, struct layout *l, uint64_t *address) {
    PyObject *is_cuda = PyObject_GetAttrString(tensor, "is_cuda");
    PyObject *dtype = PyObject_GetAttrString(tensor, "dtype");
    PyObject *shape = PyObject_GetAttrString(tensor, "shape");
    PyObject *strides = PyObject_CallMethod(tensor, "stride", NULL);
    *l = (struct layout){.type =
                             (int64_t)(intptr_t)dtype}; /* (a dtype lives as long as its library) */
    l->dims = copy_numbers(shape, l->length);
    const int fits =
        is_cuda == Py_True && l->dims >= 0 && copy_numbers(strides, l->stride) == l->dims;
    Py_XDECREF(is_cuda);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    if (!fits || PyErr_Occurred()) return 0;
    l->device = call_for_number(tensor, "get_device");
    *address = (uint64_t)call_for_number(tensor, "data_ptr");
    return !PyErr_Occurred();
}

/* Finds a tensor's layout and address. Returns 0, without an exception, if it cannot. */
static int describe(const struct call_cache *cache, PyObject *tensor, struct layout *l,
                    uint64_t *address) {
    const int ok = cache->exchange ? describe_by_table(cache->exchange, tensor, l, address)
                                   : describe_by_methods(tensor, l, address);
    if (!ok) PyErr_Clear();
    return ok;
}

/* Finds the stream that the library works on. Returns 0, without an exception, if it cannot. */
static int find_stream(const struct call_cache *cache, int64_t device, void **stream) {
    if (cache->exchange) {
        if (cache->exchange->stream(DL_CUDA, (int32_t)device, stream) == 0) return 1;
    } else {
        PyObject *address = PyObject_CallFunction(cache->stream, "L", (long long)device);
        *stream = address ? PyLong_AsVoidPtr(address) : NULL;
        Py_XDECREF(address);
        if (!PyErr_Occurred()) return 1;
    }
    PyErr_Clear();
    return 0;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Returns whether an argument is compared by value: a number, a text, or a tuple of integers. */
static int is_plain(PyObject *argument) {
    if (PyLong_CheckExact(argument) || PyFloat_CheckExact(argument) ||
        PyUnicode_CheckExact(argument))
        return 1;
    if (!PyTuple_CheckExact(argument)) return 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(argument); i++)
        if (!PyLong_CheckExact(PyTuple_GetItem(argument, i))) return 0;
    return 1;
}

/* Returns whether an argument never changes: a plain one, or one that is_same() knows by its address: None, a bool, a
 * type, or a dtype of the library's, whose Python type is `type`. */
static int is_constant(PyObject *argument, PyTypeObject *type) {
    return argument == Py_None || PyBool_Check(argument) || PyType_Check(argument) ||
           Py_TYPE(argument) == type || is_plain(argument);
}

static int is_same(PyObject *a, PyObject *b) {
    if (a == b) return 1;
    return a && b && Py_TYPE(a) == Py_TYPE(b) && is_plain(a) &&
           PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

/* Makes the key of a call, and its tensors' addresses. Returns 0, without an exception, if the call can have no key. */
static int make_key(const struct core *core, enum core_function f, PyObject *const *arguments,
                    Py_ssize_t count, PyObject *names, struct key *key, uint64_t address[]) {
    const struct call_cache *cache = core->calls;
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0, all = count + named;
    int tensors = 1;
    memset(key, 0, sizeof *key);
    struct call *c = &key->call;
    c->function = f;
    c->count = (uint64_t)all;
    c->names = (uint64_t)named;
    if (all > 1 + MORE || !describe(cache, arguments[0], &c->tensor[0], &address[0]) ||
        !find_stream(cache, c->tensor[0].device, &c->stream))
        return 0;
    for (Py_ssize_t i = 0; i < named; i++)
        c->name[i] = PyTuple_GetItem(names, i);
    for (Py_ssize_t i = 1; i < all; i++) {
        if (Py_TYPE(arguments[i]) != core->tensor_type)
            key->more[i - 1] = arguments[i];
        else if (tensors == TENSORS ||
                 !describe(cache, arguments[i], &c->tensor[tensors], &address[tensors]))
            return 0;
        else
            tensors++;
    }
    return 1;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t hash_of(const struct key *key) {
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof key->call / sizeof hash; i++) {
        uint64_t word;
        memcpy(&word, (const char *)&key->call + i * sizeof word, sizeof word);
        hash = mix(hash, word);
    }
    for (int i = 0; i < MORE; i++) {
        PyObject *argument = key->more[i];
        hash = mix(hash, argument && is_plain(argument) ? (uint64_t)PyObject_Hash(argument)
                                                        : (uint64_t)(uintptr_t)argument);
    }
    return hash | 1;
}

static int is_key(const struct key *a, const struct key *b) {
    if (memcmp(&a->call, &b->call, sizeof a->call) != 0) return 0;
    for (int i = 0; i < MORE; i++)
        if (!is_same(a->more[i], b->more[i])) return 0;
    return 1;
}

static struct entry *find(struct call_cache *cache, const struct key *key, uint64_t hash) {
    for (unsigned i = 0; i < WAYS; i++) {
        struct entry *e = &cache->entry[(hash / 2 + i) % ENTRIES];
        if (e->hash == hash && is_key(&e->key, key)) return e;
    }
    return NULL;
}

/* Returns a free entry among those of a hash, or one to replace. */
static struct entry *find_free(struct call_cache *cache, uint64_t hash) {
    for (unsigned i = 0; i < WAYS; i++) {
        struct entry *e = &cache->entry[(hash / 2 + i) % ENTRIES];
        if (!e->hash || e->hash == hash) return e;
    }
    return &cache->entry[(hash / 2 + cache->victim++ % WAYS) % ENTRIES];
}

/* Calls change() for each object of an entry: Py_IncRef() or Py_DecRef(). */
static void hold(const struct entry *e, void (*change)(PyObject *)) {
    for (int i = 0; i < MORE; i++) {
        if (e->key.call.name[i]) change(e->key.call.name[i]);
        if (e->key.more[i]) change(e->key.more[i]);
    }
    change(e->prepared);
    change(e->results);
    change(e->refill);
}

/* Puts an entry, which is free if its hash is 0, in another's place. */
static void replace(struct entry *e, const struct entry *by) {
    const struct entry old = *e;
    if (by->hash) hold(by, Py_IncRef);
    *e = *by;
    if (old.hash) hold(&old, Py_DecRef);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* Returns whether an object, which it releases, is false. NULL, with an exception that is cleared, is not. */
static int is_false(PyObject *value) {
    const int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    if (truth < 0) PyErr_Clear();
    return truth == 0;
}

/* Returns whether a call can be launched as its entry says: no tensor is negated lazily or has a gradient, which the general
 * way refuses where gradients are followed, and no graph is captured. */
static int can_launch(const struct core *core, const struct entry *e, PyObject *const *arguments) {
    const struct call_cache *cache = core->calls;
    for (uint64_t i = 0; i < e->key.call.count; i++)
        if (Py_TYPE(arguments[i]) == core->tensor_type &&
            (!is_false(PyObject_CallFunctionObjArgs(cache->is_negated, arguments[i], NULL)) ||
             !is_false(PyObject_GetAttr(arguments[i], cache->requires_grad))))
            return 0;
    return !core_is_captured(e->prepared, e->key.call.stream);
}

/* Takes a result from those that wait. Returns NULL if there is none, with or without an exception. */
static PyObject *pop_result(const struct entry *e) {
    Py_ssize_t n = PyList_Size(e->results);
    if (n == 0) {
        PyObject *done = PyObject_CallFunctionObjArgs(e->refill, NULL);
        if (!done) return NULL;
        Py_DECREF(done);
        n = PyList_Size(e->results);
    }
    if (n <= 0) return NULL;
    PyObject *item = Py_NewRef(PyList_GetItem(e->results, n - 1));
    if (PyList_SetSlice(e->results, n - 1, n, NULL) < 0) Py_CLEAR(item);
    return item;
}

/* Returns a result for a call, and sets its address and that of a workspace in *at. *item becomes an object that
 * keeps the workspace alive, or NULL if the entry does that. Returns NULL if there is no result, with or without
 * an exception. */
static PyObject *take_result(const struct call_cache *cache, const struct entry *e,
                             struct addresses *at, PyObject **item) {
    struct layout layout;
    PyObject *result = NULL;
    *item = NULL;
    if (PyTuple_Check(e->results)) {
        result = PyObject_CallFunctionObjArgs(e->refill, NULL);
        if (result && !describe(cache, result, &layout, &at->out[0])) Py_CLEAR(result);
        at->workspace = PyLong_AsUnsignedLongLong(PyTuple_GetItem(e->results, 1));
        return result;
    }
    *item = pop_result(e);
    if (!*item) return NULL;
    at->out[0] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(*item, 1));
    at->workspace = PyLong_AsUnsignedLongLong(PyTuple_GetItem(*item, 3));
    return Py_NewRef(PyTuple_GetItem(*item, 0));
}

/* Launches a call with its tensors at these addresses. Returns its result, or NULL, with or without an exception. */
static PyObject *launch(const struct call_cache *cache, const struct entry *e,
                        const uint64_t address[]) {
    struct addresses at = {
        .x = address[0],
        .y = e->is_masked ? 0 : address[1],
        .mask = e->is_masked ? address[1] : 0,
        .queue = (uint64_t)(uintptr_t)e->key.call.stream,
        .outs = 1,
    };
    PyObject *item, *result = take_result(cache, e, &at, &item);
    if (result && (PyErr_Occurred() || core_launch_at(e->prepared, &at) != 0)) Py_CLEAR(result);
    Py_XDECREF(item);
    return result;
}

PyObject *core_call_again(struct core *core, enum core_function f, PyObject *const *arguments,
                          Py_ssize_t count, PyObject *names) {
    struct key key;
    uint64_t address[TENSORS] = {0};
    PyObject *result = NULL;
    if (!core->calls || core->checks) return NULL;
    if (!make_key(core, f, arguments, count, names, &key, address)) return NULL;
    const struct entry *found = find(core->calls, &key, hash_of(&key));
    if (!found) return NULL;
    struct entry e = *found; /* Python code may replace the entry meanwhile */
    hold(&e, Py_IncRef);
    if (can_launch(core, &e, arguments)) result = launch(core->calls, &e, address);
    hold(&e, Py_DecRef);
    return result;
}

/* ---- From Python ----------------------------------------------------------------------------- */

static int are_constants(const struct key *key, PyTypeObject *type) {
    for (int i = 0; i < MORE; i++)
        if (key->more[i] && !is_constant(key->more[i], type)) return 0;
    return 1;
}

/* _cache_call(function, names, arguments, prepared, results, refill, is_masked): adds the entry
 * of a call of the Python function with these arguments, the last of which have names (None: none has). */
PyObject *core_cache_call(PyObject *module, PyObject *arguments) {
    struct core *core = core_of(module);
    PyObject *function, *names, *all, *list[1 + MORE];
    struct entry made = {.hash = 0};
    uint64_t address[TENSORS];
    int f = 0;
    if (!PyArg_ParseTuple(arguments, "OOO!OOOp", &function, &names, &PyTuple_Type, &all,
                          &made.prepared, &made.results, &made.refill, &made.is_masked))
        return NULL;
    if (!PyList_Check(made.results) && !PyTuple_Check(made.results)) {
        PyErr_SetString(PyExc_TypeError, "results are a list, or a workspace and its address");
        return NULL;
    }
    const Py_ssize_t count = PyTuple_Size(all);
    while (f < FUNCTIONS && core->general[f] != function)
        f++;
    if (f == FUNCTIONS || count < 1 || count > 1 + MORE || !core->calls) Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < count; i++)
        list[i] = PyTuple_GetItem(all, i);
    if (names == Py_None) names = NULL;
    if (!make_key(core, (enum core_function)f, list, count - (names ? PyTuple_Size(names) : 0),
                  names, &made.key, address))
        Py_RETURN_NONE;
    PyObject *dtype = PyObject_GetAttrString(list[0], "dtype");
    if (!dtype) return NULL;
    const int constant = are_constants(&made.key, Py_TYPE(dtype));
    Py_DECREF(dtype);
    if (!constant) Py_RETURN_NONE;
    made.hash = hash_of(&made.key);
    replace(find_free(core->calls, made.hash), &made);
    Py_RETURN_NONE;
}

static void clear_entries(struct call_cache *cache) {
    for (int i = 0; cache && i < ENTRIES; i++)
        replace(&cache->entry[i], &(struct entry){.hash = 0});
}

/* _clear_calls(): empties the cache. */
PyObject *core_clear_calls(PyObject *module, PyObject *unused) {
    (void)unused;
    clear_entries(core_of(module)->calls);
    Py_RETURN_NONE;
}

/* _cached_calls(): how many calls the cache holds. */
PyObject *core_cached_calls(PyObject *module, PyObject *unused) {
    const struct call_cache *cache = core_of(module)->calls;
    long count = 0;
    (void)unused;
    for (int i = 0; cache && i < ENTRIES; i++)
        count += cache->entry[i].hash != 0;
    return PyLong_FromLong(count);
}

/* _defer_checks(more): adds to the number of open checked() statements. While any is open, calls go the general way. */
PyObject *core_defer_checks(PyObject *module, PyObject *more) {
    const long by = PyLong_AsLong(more);
    if (PyErr_Occurred()) return NULL;
    core_of(module)->checks += by;
    Py_RETURN_NONE;
}

/* ---- Opening and closing the cache ----------------------------------------------------------- */

#ifdef Py_GIL_DISABLED
int core_open_calls(struct core *core, PyTypeObject *type, PyObject *stream) {
    (void)core, (void)type, (void)stream;
    return 0;
}
#else
/* Returns a type's table of functions; NULL, without an exception, if it has none of a known version. */
static const struct dl_exchange *exchange_of(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const struct dl_exchange *table = capsule && PyCapsule_IsValid(capsule, DL_EXCHANGE)
                                          ? PyCapsule_GetPointer(capsule, DL_EXCHANGE)
                                          : NULL;
    Py_XDECREF(capsule); /* (the table outlives it) */
    PyErr_Clear();
    while (table && table->version.major > 1)
        table = table->before;
    return table && table->version.major == 1 && table->look && table->stream ? table : NULL;
}

int core_open_calls(struct core *core, PyTypeObject *type, PyObject *stream) {
    struct call_cache *cache = core->calls ? core->calls : calloc(1, sizeof *cache);
    if (!cache) {
        PyErr_NoMemory();
        return -1;
    }
    core->calls = cache;
    clear_entries(cache);
    CORE_SET(cache->stream, stream);
    cache->exchange = exchange_of(type);
    Py_CLEAR(cache->is_negated);
    cache->is_negated = PyObject_GetAttrString((PyObject *)type, "is_neg");
    if (!cache->requires_grad) cache->requires_grad = PyUnicode_InternFromString("requires_grad");
    return cache->is_negated && cache->requires_grad ? 0 : -1;
}
#endif

int core_visit_calls(struct core *core, visitproc visit, void *arg) {
    struct call_cache *cache = core->calls;
    for (int i = 0; cache && i < ENTRIES; i++) {
        Py_VISIT(cache->entry[i].results);
        Py_VISIT(cache->entry[i].refill);
    }
    if (cache) Py_VISIT(cache->stream);
    return 0;
}

void core_close_calls(struct core *core) {
    struct call_cache *cache = core->calls;
    core->calls = NULL;
    clear_entries(cache);
    if (cache) {
        Py_XDECREF(cache->is_negated);
        Py_XDECREF(cache->requires_grad);
        Py_XDECREF(cache->stream);
    }
    free(cache);
}
