/*
 * own_object.h - examines the object file of a kernel that was compiled at run time: may it be loaded, and where are
 * its arrays?
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
    size_t shared_used;                      /* bytes of `shared` that its arrays take */
    char dynamic_name[64];       /* of the array whose size the launch gives; "" where none */
    struct own_array *arrays;    /* those in `shared` */
    struct own_array *variables; /* those in `global` */
    size_t array_count, variable_count;
    uintptr_t anchor; /* where the exported symbol tally_hook_names lies */
};

/* Reads the file into *out, with addresses as in the file. Removes constructors and destructors from the file, so that
 * nothing runs when it is loaded. Returns TALLY_EFORMAT for an object that needs other libraries, has resolvers or
 * cannot be changed; TALLY_ENOMEM. */
tally_status own_object_read(const char *path, struct own_object *out);
/* Turns the addresses into those of the loaded object, in which tally_hook_names lies at `anchor`. */
void own_object_settle(struct own_object *o, uintptr_t anchor);
/* Frees what own_object_read() has allocated, also where it failed. */
void own_object_forget(struct own_object *o);

/* Returns whether an address lies in the object's shared arrays, or not far past them. */
bool own_object_is_near(const struct own_object *o, uintptr_t address);
/* Finds the shared array that an address lies in, or not far past: its name and its span. False where there is
 * none. */
bool own_object_array(const struct own_object *o, uintptr_t address, const char **name,
                      struct own_span *span);
/* Finds the variable in global memory that an address lies in: its name and its span. False where there is none. */
bool own_object_variable(const struct own_object *o, uintptr_t address, const char **name,
                         struct own_span *span);
/* Writes "input_s[3]" to text[0..room) for an address in, or not far past, a shared array of elements of `element`
 * bytes. Returns false for any other address. */
bool own_object_say(const struct own_object *o, uintptr_t address, size_t element, char *text,
                    size_t room);

#endif
