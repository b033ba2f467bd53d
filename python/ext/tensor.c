/*
 * tensor.c - Tensor: an array of another library, taken by DLPack and exported as a buffer without copying.
 *
 * Only a tensor in the host's memory exports the buffer protocol. That has no bfloat16, which is exported as 'H'.
 */
#include "core.h"
#include "dlpack.h"

#include <string.h>

struct tensor_object {
    PyObject_HEAD struct dl_managed *managed;
    struct dl_versioned *versioned;
    const struct dl_tensor *tensor;
    Py_ssize_t itemsize, shape[64], strides[64];
};

/* Returns the buffer protocol's format of a tensor's elements; NULL if it has none. */
static const char *format_of(const struct dl_tensor *t) {
    static const char *const formats[][5] = {/* of 8, 16, 32, 64 and 128 bits */
                                             [DL_INT] = {"b", "h", "i", "q"},
                                             [DL_UINT] = {"B", "H", "I", "Q"},
                                             [DL_FLOAT] = {NULL, "e", "f", "d"},
                                             [DL_BFLOAT] = {NULL, "H"},
                                             [DL_COMPLEX] = {NULL, NULL, NULL, "Zf", "Zd"},
                                             [DL_BOOL] = {"?"}};
    int at = 0;
    while (at < 4 && t->dtype.bits != 8 << at)
        at++;
    return t->dtype.lanes == 1 && t->dtype.code <= DL_BOOL && t->dtype.bits == 8 << at
               ? formats[t->dtype.code][at]
               : NULL;
}

static int take(struct tensor_object *self, PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        self->versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        self->tensor = &self->versioned->tensor;
        if (self->versioned->version.major != 1) {
            PyErr_Format(PyExc_BufferError, "DLPack %u is not known here",
                         (unsigned)self->versioned->version.major);
            self->versioned = NULL;
            return -1;
        }
        return PyCapsule_SetName(capsule, "used_dltensor_versioned");
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        self->managed = PyCapsule_GetPointer(capsule, "dltensor");
        self->tensor = &self->managed->tensor;
        return PyCapsule_SetName(capsule, "used_dltensor");
    }
    PyErr_SetString(PyExc_TypeError, "not a DLPack capsule that nobody has used");
    return -1;
}

static int lay_out(struct tensor_object *self) {
    const struct dl_tensor *t = self->tensor;
    if (t->ndim < 0 || t->ndim > 64 || (t->ndim > 0 && !t->shape) || t->dtype.bits % 8 != 0) {
        PyErr_SetString(PyExc_BufferError, "the tensor has no form that can be read here");
        return -1;
    }
    self->itemsize = t->dtype.bits / 8 * t->dtype.lanes;
    Py_ssize_t side = self->itemsize;
    for (int i = t->ndim; i-- > 0;) {
        self->shape[i] = (Py_ssize_t)t->shape[i];
        self->strides[i] = t->strides ? (Py_ssize_t)t->strides[i] * self->itemsize : side;
        side *= self->shape[i];
    }
    return 0;
}

/* Tensor(capsule) */
static PyObject *tensor_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
    PyObject *capsule;
    (void)names;
    if (!PyArg_ParseTuple(arguments, "O", &capsule)) return NULL;
    struct tensor_object *self = core_alloc(type);
    if (self && take(self, capsule) == 0 && lay_out(self) == 0) return (PyObject *)self;
    Py_XDECREF((PyObject *)self);
    return NULL;
}

static void tensor_free(PyObject *object) {
    struct tensor_object *self = (struct tensor_object *)object;
    if (self->managed && self->managed->release) self->managed->release(self->managed);
    if (self->versioned && self->versioned->release) self->versioned->release(self->versioned);
    core_free(object);
}

static int is_read_only(const struct tensor_object *self) {
    return self->versioned && self->versioned->flags & 1;
}

static int tensor_buffer(PyObject *object, Py_buffer *b, int flags) {
    struct tensor_object *self = (struct tensor_object *)object;
    const struct dl_tensor *t = self->tensor;
    const char *format = format_of(t);
    b->obj = NULL;
    if (t->device.type != DL_CPU && t->device.type != DL_CUDA_HOST &&
        t->device.type != DL_CUDA_MANAGED) {
        PyErr_SetString(PyExc_BufferError, "the tensor does not lie in the host's memory");
        return -1;
    }
    if (!format) {
        PyErr_Format(PyExc_BufferError,
                     "elements of DLPack's code %d and %d bits are not known here",
                     (int)t->dtype.code, (int)t->dtype.bits);
        return -1;
    }
    if ((flags & PyBUF_WRITABLE) && is_read_only(self)) {
        PyErr_SetString(PyExc_BufferError, "the tensor is read-only");
        return -1;
    }
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        PyErr_SetString(PyExc_BufferError, "a tensor has strides");
        return -1;
    }
    b->buf = (char *)t->data + t->byte_offset;
    b->itemsize = self->itemsize;
    b->readonly = is_read_only(self);
    b->format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)format : NULL;
    b->ndim = t->ndim;
    b->shape = self->shape;
    b->strides = self->strides;
    b->suboffsets = NULL;
    b->internal = NULL;
    b->len = self->itemsize;
    for (int i = 0; i < t->ndim; i++)
        b->len *= self->shape[i];
    b->obj = Py_NewRef(object);
    return 0;
}

/* is_bfloat(): returns whether elements are bfloat16, whose format 'H' is also that of uint16. */
static PyObject *tensor_is_bfloat(PyObject *object, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(((const struct tensor_object *)object)->tensor->dtype.code == DL_BFLOAT);
}

static PyMethodDef tensor_methods[] = {
    {"is_bfloat", tensor_is_bfloat, METH_NOARGS, "Whether elements are bfloat16."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_new, (void *)tensor_new},
    {Py_tp_dealloc, (void *)tensor_free},
    {Py_tp_methods, tensor_methods},
    {Py_bf_getbuffer, (void *)tensor_buffer},
    {Py_tp_doc, (void *)"Tensor(capsule): an array taken by DLPack."},
    {0, NULL},
};

PyType_Spec core_tensor_spec = {
    .name = "tally._core.Tensor",
    .basicsize = sizeof(struct tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_slots,
};
