/*
 * own_object.h - the file of a kernel that was compiled at run time: what may be loaded, and what lies where.
 */
#ifndef TALLY_LADDER_OWN_OBJECT_H
#define TALLY_LADDER_OWN_OBJECT_H

#include "tally.h"

#include <stdbool.h>
#include <stdint.h>

struct own_span {
    uintptr_t base;
    size_t bytes;
};

struct own_array {
    char name[64];
    struct own_span span;
};

struct own_object {
    struct own_span shared, dynamic, global; /* its sections of these kinds; 0 bytes: none */
    size_t shared_used;                      /* of `shared`: without what lies between arrays */
    char dynamic_name[64];    /* of the array whose size the launch gives; "" where none */
    struct own_array *arrays; /* shared ones */
    size_t array_count;
    uintptr_t anchor; /* of the exported symbol tally_hook_names */
};

/* Reads the file and makes it one that runs nothing when it is loaded: its constructors are left out.
 * TALLY_EFORMAT for an object that needs others, or has resolvers. Addresses are as in the file. */
tally_status own_object_read(const char *path, struct own_object *out);
/* Makes them addresses of the loaded object: `anchor` is where its tally_hook_names lies. */
void own_object_settle(struct own_object *o, uintptr_t anchor);
void own_object_forget(struct own_object *o);

/* Fills an array with the operator's identity: what the host puts into an output (ladder/own.c). */
void own_fill_identity(tally_op op, tally_type type, void *out, size_t count);

/* Whether an address lies in its shared arrays, or not far past them. */
bool own_object_is_near(const struct own_object *o, uintptr_t address);
/* Finds the shared array that an address lies in, or not far past: its name, where it begins and its bytes. */
bool own_object_array(const struct own_object *o, uintptr_t address, const char **name,
                      struct own_span *span);
/* Writes "input_s[3]" to text[0..room) for an address in, or not far past, a shared array; false for any other. */
bool own_object_say(const struct own_object *o, uintptr_t address, size_t element, char *text,
                    size_t room);

#endif
