/*
 * device.h - the interface of a device: all that the engine uses of one.
 *
 * A device folds arrays into states, evaluates leaves of the canonical tree and reduces in parts. A device that has
 * memory or queues of its own also lowers states there, by the arithmetic that all devices share. Plans, merging and
 * saving of states are the engine's, the same for every device. A new device is one folder with one struct
 * device_kind, and one line in engine/devices.c, or for a GPU in gpu/machines.h.
 */
#ifndef TALLY_DEVICE_H
#define TALLY_DEVICE_H

#include "exact/terms.h"
#include "problem/monoid.h"
#include "problem/shape.h"
#include "tally.h"
#include <stdbool.h>
#include <stddef.h>

/* Elements of a problem's inputs that lie side by side: x[0..n), and for dot y[0..n); otherwise y is NULL. The arrays
 * are the caller's. */
struct slice {
    const void *x, *y;
    size_t n;
};

struct tree; /* tree.h */

struct device_kind {
    const char *name; /* the part of a spec before ':' */
    /* Opens the device that `options`, the part of the spec after ':' or "", describes, in a context of
     * the caller's or, for NULL, one of its own. */
    tally_status (*open)(const char *options, void *context, tally_device **out);
    void (*close)(tally_device *device);
    void (*describe)(const tally_device *device, tally_device_info *out);
    /* count() returns how many devices of this kind the machine has; list() describes the i-th without opening it. */
    size_t (*count)(void);
    void (*list)(size_t i, tally_device_info *out);

    /* Folds a slice of n > 0 elements in host memory into the states of all monoids but MONOID_TREE; the elements
     * follow those that the state knows, and into->n grows by n. On failure the state is as it was. */
    tally_status (*fold)(tally_device *device, const struct problem *p, const struct slice *in,
                         struct state *into);
    /* Evaluates x[0..n), n > 0, in host memory. Writes to out[] the value of each node of 2^level leaves; level is 0
     * or tree_level. At level 0 the last leaf may be incomplete; at a higher level all nodes are complete. */
    tally_status (*leaves)(tally_device *device, const struct problem *p, const void *x, size_t n,
                           unsigned level, void *out);
    unsigned tree_level; /* the level of the nodes that this device evaluates fastest; at most 20 */
    /* Reduces in parts, down to the results; arrays and results lie in host memory. */
    tally_status (*shaped)(tally_device *device, const struct shaped *s);
    /* Brings the elements of a TALLY_GROUPS shape into the order of their groups, without elements that are masked or
     * whose id is outside of all groups. The caller frees *out with sorted_free(); on failure there is nothing to
     * free. */
    tally_status (*sort)(tally_device *device, const struct shaped *s, struct sorted *out);
    /* shaped_resident() does what shaped() does, for arrays and results that lie on the device. The others are the
     * calls behind tally_workspace_shaped() and tally_enqueue_shaped(). All are NULL where a device's memory is the
     * host's, or it has no queues. */
    tally_status (*shaped_resident)(tally_device *device, const struct shaped *s);
    tally_status (*shaped_workspace)(tally_device *device, const struct shaped *s, size_t *bytes);
    tally_status (*shaped_enqueue)(tally_device *device, const struct shaped *s,
                                   const tally_shaped_call *call);
    /* Reduces n > 0 resident elements to the problem's values. NULL where a device's memory is the host's. */
    tally_status (*resident)(tally_device *device, const struct problem *p, const struct slice *in,
                             tally_value *out);
    /* Folds n > 0 resident elements into a clear state, for all monoids but MONOID_TREE. copy_out() copies resident
     * bytes to host memory. Both are NULL where resident() is; copy_out() also where several devices are opened as
     * one. */
    tally_status (*fold_resident)(tally_device *device, const struct problem *p,
                                  const struct slice *in, struct state *into);
    tally_status (*copy_out)(tally_device *device, void *to, const void *from, size_t bytes);
    /* Folds an array that lies on `count` devices which are opened as one, in[i] on the i-th, into a clear state, and
     * its leaves into a clear tree. NULL where one device is opened. */
    tally_status (*distributed)(tally_device *device, const struct problem *p,
                                const struct slice *in, size_t count, struct state *into,
                                struct tree *tree);
    /* The calls behind tally_workspace() and tally_enqueue(). NULL where a device has no queues. */
    tally_status (*workspace)(tally_device *device, const struct problem *p, size_t n,
                              size_t *bytes);
    tally_status (*enqueue)(tally_device *device, const struct problem *p, const tally_call *call);
    /* Returns whether a queue of the caller's is captured into a graph. NULL where there are no such graphs. */
    bool (*is_captured)(tally_device *device, void *queue);
    /* The calls behind tally_words_measure(), tally_enqueue_words(), tally_enqueue_values() and
     * tally_enqueue_shared(). NULL where enqueue() is. */
    tally_status (*words_measure)(tally_device *device, const struct problem *p, size_t n,
                                  size_t count, tally_words *out);
    tally_status (*enqueue_words)(tally_device *device, const struct problem *p,
                                  const tally_words_call *call);
    tally_status (*enqueue_values)(tally_device *device, const struct problem *p,
                                   const tally_values_call *call);
    tally_status (*enqueue_shared)(tally_device *device, const struct problem *p,
                                   const tally_shared_call *call);
    /* Runs one step of adding up arrays over ranks (exact/terms.h), on the caller's queue. With a plan of NULL it
     * only compiles the kernels, so that no later step has to compile. NULL where a device has no queues. */
    tally_status (*terms)(tally_device *device, enum terms_step step, const terms_plan *plan,
                          const tally_terms_call *call);
    /* The call behind tally_terms_shared(), for `ranks` ranks. With a plan of NULL it only compiles the
     * kernels. NULL where terms() is. */
    tally_status (*terms_shared)(tally_device *device, const terms_plan *plan, unsigned ranks,
                                 const tally_terms_shared_call *call);
    /* The calls behind tally_device_time(), NULL where a device cannot time itself, and tally_device_read(). */
    tally_status (*time)(tally_device *device, const struct problem *p, const struct slice *in,
                         tally_value *out, double *seconds);
    tally_status (*read)(tally_device *device, const void *bytes, size_t size, double *seconds);
};

struct tally_device {
    const struct device_kind *kind; /* each kind's own struct begins with this one */
};

/* The kinds of devices: the CPU, and one for each line of gpu/machines.h. */
extern const struct device_kind cpu_device_kind, cuda_device_kind, opencl_device_kind,
    model_device_kind;

/* Returns the device that a call uses where its device is NULL: the calling thread. */
tally_device *cpu_calling_thread(void);

/* Returns TALLY_EUNSUPPORTED with the line "<device> <what>", where <device> is the device's name for
 * tally_open(), or "the calling thread" if `device` is NULL. */
tally_status device_refuses(const tally_device *device, const char *what);

/* Returns TALLY_EUNSUPPORTED if the problem has skip_nan: for calls that neither pack nor mask elements (shown.h). */
tally_status device_skips_nothing(const tally_device *device, const struct problem *p);

#endif
