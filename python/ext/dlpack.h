/*
 * dlpack.h - the structs of DLPack 1 and of the form before it, which are a public and stable ABI: a tensor, one that is
 * handed over, and the table of functions by which a library says what its tensors are.
 */
#ifndef TALLY_PYTHON_DLPACK_H
#define TALLY_PYTHON_DLPACK_H

#include <stdint.h>

struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*release)(struct dl_managed *);
};

struct dl_version {
    uint32_t major, minor;
};

struct dl_versioned {
    struct dl_version version;
    void *context;
    void (*release)(struct dl_versioned *);
    uint64_t flags; /* bit 0: read-only */
    struct dl_tensor tensor;
};

/* What `__dlpack_c_exchange_api__` of a type points to, a capsule of the name DL_EXCHANGE. Functions return 0, or -1
 * with an exception. */
#define DL_EXCHANGE "dlpack_exchange_api"
struct dl_exchange {
    struct dl_version version;
    struct dl_exchange *before; /* the same for an older version, or NULL */
    void *allocate, *take, *give;
    int (*look)(void *object, struct dl_tensor *out);               /* what a tensor is; or NULL */
    int (*stream)(int32_t device_type, int32_t device, void **out); /* on which the library works */
};

enum { DL_INT, DL_UINT, DL_FLOAT, DL_OPAQUE, DL_BFLOAT, DL_COMPLEX, DL_BOOL };
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

#endif
