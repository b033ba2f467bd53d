/*
 * terms.c - arrays that are added up over ranks, element by element (tally.h), for torch_distributed.py and _peers.py,
 * which pass arrays as addresses.
 */
#include "core.h"

#include <string.h>

/* Writes the addresses of a tuple to out; returns how many there are, or -1 with an exception set. */
static int addresses_of(PyObject *tuple, void *out[], int most) {
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count > most) {
        PyErr_Format(PyExc_ValueError, "%zd addresses; at most %d", count, most);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred()) return -1;
    }
    return (int)count;
}

/* terms(step, device, type, n, ranks, spare, divisor, addresses): step 0 to 2; addresses are those of x, bounds, words,
 * spare, failed, workspace, out, outcome and the queue, 0 where there is none. */
PyObject *core_terms(PyObject *module, PyObject *arguments) {
    void *at[9] = {0};
    PyObject *spec, *addresses;
    const char *type;
    int step;
    unsigned long long n, spare;
    tally_terms terms = {.shard = 0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "iOsKIKIO!", &step, &spec, &type, &n, &terms.ranks, &spare,
                          &terms.divisor, &PyTuple_Type, &addresses) ||
        addresses_of(addresses, at, 9) < 0)
        return NULL;
    tally_device *device = spec == Py_None ? NULL : core_device(spec);
    if (spec != Py_None && !device) return NULL;
    tally_status s = tally_type_parse(type, &terms.type);
    if (s != TALLY_OK) return core_raise(s);
    terms.n = (size_t)n;
    terms.spare = (size_t)spare;
    const tally_terms_call call = {.x = at[0],
                                   .bounds = at[1],
                                   .words = at[2],
                                   .spare = at[3],
                                   .failed = at[4],
                                   .workspace = at[5],
                                   .out = at[6],
                                   .outcome = at[7],
                                   .queue = at[8],
                                   .count = terms.n};
    PyThreadState *thread = PyEval_SaveThread();
    s = step == 0   ? tally_terms_bounds(device, &terms, &call)
        : step == 1 ? tally_terms_words(device, &terms, &call)
                    : tally_terms_values(device, &terms, &call);
    PyEval_RestoreThread(thread);
    if (s != TALLY_OK) return core_raise(s);
    Py_RETURN_NONE;
}

/* terms_shared(device, type, n, divisor, mine, addresses of terms, addresses of sums, arrays, mailbox, outcome, queue) */
PyObject *core_terms_shared(PyObject *module, PyObject *arguments) {
    const char *type;
    unsigned long long n, mine, mailbox, outcome, queue;
    PyObject *spec, *terms_of, *sums_of;
    void *x[TALLY_MAILBOX_RANKS] = {0};
    tally_terms terms = {.shard = 0};
    tally_terms_shared_call call = {.failure = TALLY_OK};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OsKIKO!O!IKKK", &spec, &type, &n, &terms.divisor, &mine,
                          &PyTuple_Type, &terms_of, &PyTuple_Type, &sums_of, &call.arrays, &mailbox,
                          &outcome, &queue))
        return NULL;
    const int ranks = addresses_of(terms_of, x, TALLY_MAILBOX_RANKS);
    const int sums = ranks < 0 ? -1 : addresses_of(sums_of, call.out, TALLY_MAILBOX_RANKS);
    if (sums < 0) return NULL;
    if (ranks != sums || mine >= (unsigned)ranks) {
        PyErr_SetString(PyExc_ValueError, "each rank has an address of terms and one of sums");
        return NULL;
    }
    tally_device *device = core_device(spec);
    if (!device) return NULL;
    tally_status s = tally_type_parse(type, &terms.type);
    if (s != TALLY_OK) return core_raise(s);
    memcpy(call.x, x, sizeof x);
    terms.n = (size_t)n;
    terms.ranks = (unsigned)ranks;
    call.mine = (size_t)mine;
    call.mailbox = (void *)(uintptr_t)mailbox;
    call.outcome = (void *)(uintptr_t)outcome;
    call.queue = (void *)(uintptr_t)queue;
    PyThreadState *thread = PyEval_SaveThread();
    s = tally_terms_shared(device, &terms, &call);
    PyEval_RestoreThread(thread);
    if (s != TALLY_OK) return core_raise(s);
    Py_RETURN_NONE;
}

/* terms_sizes(type, n, ranks, spare): returns the fields of tally_terms_sizes: (the word's type, bounds, words,
 * spare words, bytes of workspace, rows). */
PyObject *core_terms_sizes(PyObject *module, PyObject *arguments) {
    const char *type;
    unsigned long long n, spare;
    tally_terms terms = {.shard = 0};
    tally_terms_sizes sizes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sKIK", &type, &n, &terms.ranks, &spare)) return NULL;
    tally_status s = tally_type_parse(type, &terms.type);
    terms.n = (size_t)n;
    terms.spare = (size_t)spare;
    if (s == TALLY_OK) s = tally_terms_measure(&terms, &sizes);
    if (s != TALLY_OK) return core_raise(s);
    return Py_BuildValue("(sKKKKK)", tally_type_name(sizes.word), (unsigned long long)sizes.bounds,
                         (unsigned long long)sizes.words, (unsigned long long)sizes.spare,
                         (unsigned long long)sizes.workspace_bytes, (unsigned long long)sizes.rows);
}
