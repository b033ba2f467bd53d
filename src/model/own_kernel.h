/*
 * own_kernel.h - the description of a kernel that is compiled at run time. The text before such a kernel (own_lane.hpp,
 * which this file precedes) fills it, and the kernel's loader (ladder/own.c) reads it.
 */
enum { OWN_OTHER, OWN_POINTER, OWN_INTEGER, OWN_DEFAULT, OWN_PARAMETERS_MAX = 8 };

struct own_parameter {
    unsigned
        kind; /* OWN_POINTER to elements, OWN_INTEGER, OWN_DEFAULT: a class without members, OWN_OTHER */
    unsigned is_const;
    unsigned bytes; /* of the parameter itself */
    char type[8];   /* "f32": of a pointer's elements, or of the integer */
};
/* A variable in global memory. */
struct own_variable {
    const volatile void *at;
    unsigned element; /* bytes of its elements */
    char type[8];     /* of these, as above; "" for a structure */
};
struct own_kernel {
    const char *name, *parameter_names; /* with commas between them */
    void (*call)(void *const *arguments);
    const void *start;
    unsigned count;
    struct own_parameter parameters[OWN_PARAMETERS_MAX];
};
