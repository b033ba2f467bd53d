/*
 * own_far.h - arrays too long for any memory: only the parts that some blocks touch are mapped.
 */
#ifndef TALLY_LADDER_OWN_FAR_H
#define TALLY_LADDER_OWN_FAR_H

#include "model/model.h"
#include "tally.h"

/* An array of elements of `size` bytes from the address `base` on, and its windows: counts[i] elements from number starts[i]
 * on. Windows ascend and are apart from each other. */
struct own_windows {
    uintptr_t base;
    size_t size;
    const uint64_t *starts, *counts;
    size_t windows;
};

/* Returns the address where the k-th array of a launch begins. */
uintptr_t own_far_base(unsigned k);
/* Maps the windows and makes them buffers of the device. They hold `values`, one window's elements after another's. Returns
 * false where the system does not give these addresses; then nothing is mapped. */
bool own_far_map(model_device *d, const struct own_windows *w, const void *values);
/* Copies the elements of all windows, one window's after another's. */
void own_far_read(const struct own_windows *w, void *values);
void own_far_unmap(model_device *d, const struct own_windows *w);

/* Arrays whose pages are mapped, filled with zeros, when a launch first touches them; at most OWN_FAR_PAGES pages. */
enum { OWN_FAR_ARRAYS = 3, OWN_FAR_PAGES = 20480 };
struct own_pages {
    model_device *device;
    uint64_t bytes[OWN_FAR_ARRAYS]; /* of the array from own_far_base(k) on */
    uintptr_t pages[OWN_FAR_PAGES];
    size_t count;
    bool is_full; /* a launch has touched more than OWN_FAR_PAGES pages */
};

/* Maps the page that holds this address. Returns false if the address lies in no array, or if all OWN_FAR_PAGES pages
 * are in use. It is a launch's on_absent(). */
bool own_pages_touch(void *pages, uintptr_t address);
/* Returns whether an address lies in the range of addresses that such arrays have, or at most 2^42 bytes before it. */
bool own_pages_are_near(uintptr_t address);
/* Returns how many bytes of the k-th array the last launch has read. */
uint64_t own_pages_read(const struct own_pages *p, unsigned k);
void own_pages_forget(struct own_pages *p);

#endif
