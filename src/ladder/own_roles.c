/* own_roles.c - see own_roles.h. */
#include "ladder/own_roles.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

void own_parameter_name(const struct own_kernel *k, unsigned i, char out[OWN_NAME_BYTES]) {
    const char *from = k->parameter_names;
    for (; i > 0 && from; i--)
        if ((from = strchr(from, ','))) from++;
    snprintf(out, OWN_NAME_BYTES, "%.*s", from ? (int)strcspn(from, ",") : 0, from ? from : "");
}

static bool names_an_output(const struct own_kernel *k, int i) {
    static const char *const words[] = {"out", "result", "sum", "total", "partial", "dst", "res"};
    char name[OWN_NAME_BYTES];
    own_parameter_name(k, (unsigned)i, name);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (strstr(name, words[w])) return true;
    return false;
}

/* Returns whether the second of two arrays is the input. The first is, unless only the second is const, or, where
 * both or neither are const, only the first has the name of an output. */
static bool swapped(const struct own_kernel *k, int first, int second) {
    const bool is_const = k->parameters[first].is_const;
    if (is_const != (bool)k->parameters[second].is_const) return !is_const;
    return names_an_output(k, first) && !names_an_output(k, second);
}

/* Returns which of three arrays is the output: the one that is not const; if several are not, the one with the name of an
 * output, else the last. */
static int output_of_three(const struct own_kernel *k, const int pointers[3]) {
    int found = -1, written = 0;
    for (int i = 0; i < 3; i++)
        if (!k->parameters[pointers[i]].is_const) found = i, written++;
    for (int i = 0; i < 3 && written != 1; i++)
        if (!k->parameters[pointers[i]].is_const && names_an_output(k, pointers[i])) return i;
    return written == 1 ? found : 2;
}

/* Sets the roles of three arrays of which one is for partial results: it is not const, its name says so, and another one
 * that is not const has the name of an output. Returns false if there is none. */
static bool find_partials(const struct own_kernel *k, const int pointers[3], struct own_roles *r) {
    static const char *const words[] = {"partial", "tmp",   "temp", "scratch",
                                        "work",    "inter", "buf"};
    bool is_partial[3] = {false, false, false};
    int output = -1, partials = -1;
    for (int i = 0; i < 3; i++) {
        char name[OWN_NAME_BYTES];
        own_parameter_name(k, (unsigned)pointers[i], name);
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            is_partial[i] |= strstr(name, words[w]) != NULL;
        if (k->parameters[pointers[i]].is_const) continue;
        if (is_partial[i])
            partials = i;
        else if (names_an_output(k, pointers[i]))
            output = i;
    }
    if (output < 0 || partials < 0) return false;
    r->output = pointers[output];
    r->partials = pointers[partials];
    r->input = pointers[3 - output - partials];
    return true;
}

tally_status own_find_roles(const struct own_kernel *k, struct own_roles *r) {
    int pointers[3] = {-1, -1, -1}, count = 0;
    *r = (struct own_roles){-1, -1, -1, -1, -1};
    for (unsigned i = 0; i < k->count; i++) {
        const struct own_parameter *p = &k->parameters[i];
        char name[OWN_NAME_BYTES];
        own_parameter_name(k, i, name);
        if (p->kind == OWN_OTHER)
            return fail(TALLY_EUNSUPPORTED,
                        "kernel %s: parameter %s is neither a pointer to numbers nor an integer%s",
                        k->name, name,
                        p->bytes ? ""
                                 : "; for wide loads take float * and cast it in the kernel, as in "
                                   "(const float4 *)input");
        if (p->kind == OWN_INTEGER && r->length >= 0)
            return fail(TALLY_EUNSUPPORTED,
                        "kernel %s takes two integers: nobody knows what to pass for %s", k->name,
                        name);
        if (p->kind == OWN_INTEGER) r->length = (int)i;
        if (p->kind == OWN_POINTER && count == 3)
            return fail(TALLY_EUNSUPPORTED,
                        "kernel %s takes four arrays; it may take (input, output, n), "
                        "(input, output), (array, n) or (a, b, output, n)",
                        k->name);
        if (p->kind == OWN_POINTER) pointers[count++] = (int)i;
    }
    if (count == 0) return fail(TALLY_EUNSUPPORTED, "kernel %s takes no array to reduce", k->name);
    const bool turned = count == 2 && swapped(k, pointers[0], pointers[1]);
    r->input = pointers[turned];
    if (count == 2) r->output = pointers[!turned];
    if (count == 3 && !find_partials(k, pointers, r)) {
        const int output = output_of_three(k, pointers);
        r->output = pointers[output];
        r->input = pointers[output == 0];
        r->second = pointers[output == 2 ? 1 : 2];
    }
    for (int i = 0; i < count; i++)
        if (strcmp(k->parameters[r->input].type, k->parameters[pointers[i]].type) != 0)
            return fail(TALLY_EUNSUPPORTED, "kernel %s: its arrays have different types, %s and %s",
                        k->name, k->parameters[r->input].type, k->parameters[pointers[i]].type);
    return TALLY_OK;
}

static const char *name_of(tally_own *own, const struct own_kernel *k, int role, unsigned place) {
    if (role < 0) return NULL;
    own_parameter_name(k, (unsigned)role, own->names[place]);
    return own->names[place];
}

tally_status tally_own_describe(const tally_own *own, size_t i, tally_own_kernel *out) {
    struct own_roles r;
    tally_type type;
    if (!own || !out || i >= own->count) return fail(TALLY_EINVAL, "there is no such kernel");
    const struct own_kernel *k = &own->kernels[i];
    tally_status status = own_find_roles(k, &r);
    if (status == TALLY_OK) status = tally_type_parse(k->parameters[r.input].type, &type);
    if (status != TALLY_OK) return status;
    tally_own *names = (tally_own *)own;
    name_of(names, k, r.partials, 4);
    char roles[9] = "";
    for (unsigned p = 0; p < k->count; p++)
        roles[p] = (int)p == r.input                      ? 'i'
                   : (int)p == r.output                   ? 'o'
                   : (int)p == r.second                   ? 'j'
                   : (int)p == r.partials                 ? 'p'
                   : k->parameters[p].kind == OWN_DEFAULT ? 'd'
                   : k->parameters[p].bytes == 4          ? '4'
                                                          : '8';
    *out = (tally_own_kernel){.name = k->name,
                              .input = name_of(names, k, r.input, 0),
                              .output = name_of(names, k, r.output, 1),
                              .length = name_of(names, k, r.length, 2),
                              .second = name_of(names, k, r.second, 3),
                              .type = type,
                              .shared_bytes = own->object.shared_used,
                              .is_dynamic = own->object.dynamic_name[0] != '\0'};
    if (r.length >= 0) tally_type_parse(k->parameters[r.length].type, &out->length_type);
    memcpy(out->roles, roles, sizeof roles);
    return TALLY_OK;
}
