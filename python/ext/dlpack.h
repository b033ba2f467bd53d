/*
 * dlpack.h - the structs of DLPack 1 and of its older form, which are a public and stable ABI: a tensor, a tensor whose
 * ownership is handed over, and the table of functions with which a library describes its tensors.
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

/* The table of functions in `__dlpack_c_exchange_api__` of a type, which is a capsule of the name DL_EXCHANGE.
 * Functions return 0, or -1 with an exception. */
#define DL_EXCHANGE "dlpack_exchange_api"
struct dl_exchange {
    struct dl_version version;
    struct dl_exchange *before; /* the table of an older version, or NULL */
    void *allocate, *take, *give;
    int (*look)(void *object, struct dl_tensor *out); /* describes a tensor; or NULL */
    int (*stream)(int32_t device_type, int32_t device, void **out); /* the library's current one */
};

enum { DL_INT, DL_UINT, DL_FLOAT, DL_OPAQUE, DL_BFLOAT, DL_COMPLEX, DL_BOOL };
enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

#endif
