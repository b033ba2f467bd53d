/*
 * module.c - tally._core itself: its state, its errors, devices, buffers.
 */
#include "core.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct core *core_of(PyObject *module) {
    return PyModule_GetState(module);
}

void *core_alloc(PyTypeObject *type) {
    return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}

void core_free(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* ---- Errors --------------------------------------------------------------------------------- */

PyObject *core_raise(tally_status status) {
    PyObject *const types[] = {[TALLY_EINVAL] = PyExc_ValueError,
                               [TALLY_ETYPE] = PyExc_TypeError,
                               [TALLY_EDEVICE] = PyExc_ValueError,
                               [TALLY_ENOMEM] = PyExc_MemoryError,
                               [TALLY_ERANGE] = PyExc_OverflowError,
                               [TALLY_EFORMAT] = PyExc_ValueError,
                               [TALLY_EUNSUPPORTED] = PyExc_NotImplementedError,
                               [TALLY_ECOMPILE] = PyExc_ValueError,
                               [TALLY_ELOST] = PyExc_RuntimeError,
                               [TALLY_ESTOPPED] = PyExc_KeyboardInterrupt};
    if (status == TALLY_ESTOPPED && PyErr_Occurred())
        return NULL; /* the signal's handler has raised */
    PyErr_SetString(types[status], tally_error());
    return NULL;
}

/* ---- Devices -------------------------------------------------------------------------------- */

/* The open devices. Each is opened once for the process and never closed: calls of other threads may be using it. */
static struct opened {
    char spec[64];
    tally_device *device;
    struct opened *next;
} * opened; /* changed atomically, so that readers need no lock */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static tally_device *find_opened(const char *spec) {
    const struct opened *o = __atomic_load_n(&opened, __ATOMIC_ACQUIRE);
    while (o && strcmp(o->spec, spec) != 0)
        o = o->next;
    return o ? o->device : NULL;
}

static tally_status open_once(const char *spec, tally_device **out) {
    pthread_mutex_lock(&opening);
    tally_status s = TALLY_OK;
    if (!(*out = find_opened(spec))) {
        struct opened *o = calloc(1, sizeof *o);
        s = o ? tally_open(spec, &o->device) : TALLY_ENOMEM;
        if (s == TALLY_OK) {
            strcpy(o->spec, spec);
            o->next = opened;
            *out = o->device;
            __atomic_store_n(&opened, o, __ATOMIC_RELEASE);
        } else
            free(o);
    }
    pthread_mutex_unlock(&opening);
    return s;
}

static tally_device *open_by_text(const char *spec) {
    tally_device *device = find_opened(spec);
    if (device) return device;
    PyThreadState *thread = PyEval_SaveThread(); /* opening a GPU takes a while */
    const tally_status s = open_once(spec, &device);
    PyEval_RestoreThread(thread);
    if (s != TALLY_OK) core_raise(s);
    return device;
}

tally_device *core_cpu(void) {
    return open_by_text("cpu");
}

tally_device *core_device(PyObject *spec) {
    Py_ssize_t length;
    if (!spec || spec == Py_None) return core_cpu();
    const char *text = PyUnicode_Check(spec) ? PyUnicode_AsUTF8AndSize(spec, &length) : NULL;
    if (!text && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "device= is a text such as \"cpu\" or \"cuda:0\", not %R",
                     spec);
    if (!text) return NULL;
    if (length < 64 && strlen(text) == (size_t)length) return open_by_text(text);
    PyErr_Format(PyExc_ValueError, "%R is no device", spec);
    return NULL;
}

static PyObject *devices(PyObject *module, PyObject *unused) {
    tally_device_info info[32];
    size_t count = 0;
    (void)module, (void)unused;
    tally_status s = tally_device_list(info, 32, &count);
    if (s != TALLY_OK) return core_raise(s);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count && i < 32; i++) {
        PyObject *entry = Py_BuildValue("{s:s,s:s,s:s,s:I,s:I,s:K}", "spec", info[i].spec, "name",
                                        info[i].name, "isa", info[i].isa, "units", info[i].units,
                                        "threads", info[i].threads, "memory", info[i].memory_bytes);
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

/* ---- Work without the interpreter's lock ---------------------------------------------------- */

/* Bytes of an array from which on the lock is released: to release and take it again costs about as much as to reduce
 * so many. */
#define WORTH_RELEASING ((size_t)32 << 10)

static int signals(void *context) {
    struct work *w = context;
    PyEval_RestoreThread(w->thread);
    if (PyErr_CheckSignals() != 0) w->stopped = 1;
    w->thread = PyEval_SaveThread();
    return w->stopped;
}

void work_begin(struct work *w, size_t bytes) {
    w->thread = NULL;
    w->stopped = 0;
    if (bytes < WORTH_RELEASING) return;
    w->thread = PyEval_SaveThread();
    tally_stop_when(signals, w);
}

tally_status work_end(struct work *w, tally_status s) {
    if (!w->thread) return s;
    tally_stop_when(NULL, NULL);
    PyEval_RestoreThread(w->thread);
    return w->stopped ? TALLY_ESTOPPED : s;
}

/* ---- Buffers -------------------------------------------------------------------------------- */

int view_get(PyObject *object, int writable, struct view *v) {
    v->held = 0;
    v->n = 0;
    v->itemsize = 1;
    v->buffer.buf = NULL;
    v->buffer.ndim = 0;
    if (!object || object == Py_None) return 0;
    if (PyObject_GetBuffer(object, &v->buffer, PyBUF_STRIDES | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    v->held = 1;
    v->n = 1;
    v->itemsize = (size_t)v->buffer.itemsize;
    for (int i = 0; i < v->buffer.ndim; i++) {
        const size_t length = (size_t)v->buffer.shape[i];
        v->n *= length;
        if (i < TALLY_DIMS_MAX) {
            v->length[i] = length;
            v->stride[i] = v->itemsize ? v->buffer.strides[i] / v->buffer.itemsize : 0;
        }
        if (length > 1 && v->itemsize && v->buffer.strides[i] % v->buffer.itemsize != 0) {
            PyErr_SetString(PyExc_ValueError, "strides are no multiples of an element");
            view_release(v);
            return -1;
        }
    }
    return 0;
}

void view_release(struct view *v) {
    if (v->held) PyBuffer_Release(&v->buffer);
    v->held = 0;
}

int view_is_contiguous(const struct view *v) {
    return !v->held || v->n == 0 || PyBuffer_IsContiguous(&v->buffer, 'C');
}

PyObject *core_number(const tally_value *value) {
    tally_value wide;
    if (value->type >= TALLY_F16) return PyFloat_FromDouble(tally_value_double(value));
    if (value->type >= TALLY_U8) return PyLong_FromUnsignedLongLong(tally_value_bits(value));
    if (tally_value_convert(value, TALLY_I64, &wide) == TALLY_OK)
        return PyLong_FromLongLong(wide.as.i64);
    Py_RETURN_NONE;
}

/* ---- What Python tells the module ----------------------------------------------------------- */

/* _numpy(ndarray, scalars, arrays, pair, empty): stores the objects of NumPy's that fast.c needs. scalars: NumPy's
 * types in the order of tally_type, None where there is none; arrays: an array of no dimensions of each of these
 * types. The other arguments are as in struct core. */
static PyObject *set_numpy(PyObject *module, PyObject *arguments) {
    struct core *core = core_of(module);
    PyObject *ndarray, *scalars, *arrays, *pair, *empty;
    if (!PyArg_ParseTuple(arguments, "O!O!O!OO", &PyType_Type, &ndarray, &PyTuple_Type, &scalars,
                          &PyTuple_Type, &arrays, &pair, &empty))
        return NULL;
    if (!core->no_index && !(core->no_index = PyTuple_New(0))) return NULL;
    for (int i = 0; i < CORE_TYPES; i++) {
        PyObject *type = PyTuple_GetItem(scalars, i), *array = PyTuple_GetItem(arrays, i);
        Py_buffer b;
        if (!type || !array) return NULL;
        if (type == Py_None) continue;
        if (PyObject_GetBuffer(array, &b, PyBUF_WRITABLE) < 0) return NULL;
        core->scalar_data[i] = b.buf;
        PyBuffer_Release(&b);
        CORE_SET(core->scalar[i], type);
        CORE_SET(core->scalar_array[i], array);
    }
    CORE_SET(core->empty, empty);
    CORE_SET(core->pair, pair);
    CORE_SET(core->ndarray, ndarray);
    Py_RETURN_NONE;
}

/* _tensor_type(type, call, stream): a call whose first argument is of that very type goes to call(function in Python, arguments
 * ...), unless the cache has it. stream(device) returns the address of the library's current stream. */
static PyObject *set_tensor_type(PyObject *module, PyObject *arguments) {
    struct core *core = core_of(module);
    PyObject *type, *call, *stream;
    if (!PyArg_ParseTuple(arguments, "O!OO", &PyType_Type, &type, &call, &stream)) return NULL;
    CORE_SET(core->tensor_type, type);
    CORE_SET(core->tensor_call, call);
    if (core_open_calls(core, core->tensor_type, stream) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"launch", core_launch, METH_VARARGS,
     "launch(prepared, x, y, mask, workspace, queue, out, outcome): addresses."},
    {"_tensor_type", set_tensor_type, METH_VARARGS, "_tensor_type(type, call, stream)"},
    {"_cache_call", core_cache_call, METH_VARARGS, "Adds a call on tensors to the cache."},
    {"_clear_calls", core_clear_calls, METH_NOARGS, "Empties the cache."},
    {"_cached_calls", core_cached_calls, METH_NOARGS, "How many calls the cache holds."},
    {"_defer_checks", core_defer_checks, METH_O, "So many more checked() statements are open."},
    {"_numpy", set_numpy, METH_VARARGS, "The fast calls' part of NumPy."},
    {"_bind", core_bind, METH_VARARGS,
     "_bind(name, function, doc): the fast call in front of a function."},
    {"terms", core_terms, METH_VARARGS, "A step of arrays that are added up over ranks."},
    {"terms_shared", core_terms_shared, METH_VARARGS,
     "The same where GPUs read each other's memory."},
    {"terms_sizes", core_terms_sizes, METH_VARARGS, "How much memory they need."},
    {"devices", devices, METH_NOARGS, "The devices that are here, as dictionaries."},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module) {
    struct core *core = core_of(module);
    const struct {
        PyType_Spec *spec;
        PyTypeObject **place;
    } types[] = {{&core_problem_spec, &core->problem},
                 {&core_state_spec, &core->state},
                 {&core_groups_spec, &core->groups},
                 {&core_tensor_spec, &core->tensor}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        PyObject *type = PyType_FromModuleAndSpec(module, types[i].spec, NULL);
        *types[i].place = (PyTypeObject *)type;
        if (!type || PyModule_AddType(module, *types[i].place) < 0) return -1;
    }
    return PyModule_AddStringConstant(module, "version", tally_version());
}

/* The objects that a module owns, but for the cache of calls. */
#define OWNED(X)                                                                                   \
    for (int i = 0; i < FUNCTIONS; i++)                                                            \
        X(core->general[i]);                                                                       \
    for (int i = 0; i < CORE_TYPES; i++) {                                                         \
        X(core->scalar[i]);                                                                        \
        X(core->scalar_array[i]);                                                                  \
    }                                                                                              \
    for (int i = 0; i < 256; i++)                                                                  \
        X(core->small_index[i]);                                                                   \
    X(core->tensor_type);                                                                          \
    X(core->tensor_call);                                                                          \
    X(core->no_index);                                                                             \
    X(core->ndarray);                                                                              \
    X(core->empty);                                                                                \
    X(core->pair);                                                                                 \
    X(core->problem);                                                                              \
    X(core->state);                                                                                \
    X(core->groups);                                                                               \
    X(core->tensor)

static int traverse(PyObject *module, visitproc visit, void *arg) {
    struct core *core = core_of(module);
    OWNED(Py_VISIT);
    return core_visit_calls(core, visit, arg);
}

static int clear(PyObject *module) {
    struct core *core = core_of(module);
    core_close_calls(core);
    OWNED(Py_CLEAR);
    return 0;
}

/* (The functions' texts live as long as the state: a function object points to them.) */
static void release(void *module) {
    struct core *core = core_of(module);
    if (!core) return;
    clear(module);
    for (int i = 0; i < FUNCTIONS; i++)
        Py_CLEAR(core->docs[i]);
}

/* Slots of newer interpreters, by number, as older headers have no names for them. The one of CPython 3.12 says that
 * each interpreter may have a lock of its own, the one of 3.13 that the module needs no lock. */
enum { SLOT_INTERPRETERS = 3, SLOT_GIL = 4 };
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
    {0, NULL}, /* from 3.12 on SLOT_INTERPRETERS */
    {0, NULL}, /* without a lock SLOT_GIL */
    {0, NULL},
};

struct PyModuleDef core_module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "tally._core",
    .m_doc =
        "The part of the package that is C. Its callers are in Python; nothing here is public.",
    .m_size = sizeof(struct core),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

#ifdef Py_LIMITED_API
/* Returns whether this interpreter is a free-threaded one. Its objects are laid out in another way,
 * so that nothing here may touch one: a text is handed on to Python's own functions. */
static int is_free_threaded(void) {
    PyObject *flags = PySys_GetObject("abiflags"); /* borrowed */
    const char *text = flags ? PyUnicode_AsUTF8AndSize(flags, NULL) : NULL;
    return text && strchr(text, 't');
}
#endif

PyMODINIT_FUNC PyInit__core(void) {
#ifdef Py_LIMITED_API
    if (is_free_threaded()) {
        PyErr_SetString(PyExc_ImportError,
                        "this build of tally is for interpreters with a lock; a free-threaded one "
                        "wants its own: pip install . from the sources");
        return NULL;
    }
#endif
    PyObject *version = PySys_GetObject("hexversion"); /* borrowed */
    if (version && PyLong_AsLong(version) >= 0x030C0000)
        slots[1] = (PyModuleDef_Slot){SLOT_INTERPRETERS, (void *)2};
#ifdef Py_GIL_DISABLED
    slots[2] = (PyModuleDef_Slot){SLOT_GIL, (void *)1};
#endif
    return PyModuleDef_Init(&core_module);
}
