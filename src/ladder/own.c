/*
 * own.c - a kernel that was compiled at run time, on the model.
 *
 * The object is one of own_lane.hpp. Before it is loaded its file is looked at: whatever would run during
 * loading - constructors, resolvers, other libraries - is refused or left out, and the names and places of
 * its shared arrays are noted, so that a fault can say input_s[3]. Launches are then those of model.h.
 */
#include "base/fpenv.h"
#include "base/status.h"
#include "base/table.h"
#include "base/types.h"
#include "gpu/embed.h"
#include "ladder/own_far.h"
#include "ladder/own_object.h"
#include "ladder/run.h"
#include "ladder/step.h"
#include "model/model.h"
#include "model/own_kernel.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED_MAX = 48 << 10, NAME_MAX_BYTES = 64 };

struct tally_own {
    void *handle;
    struct own_object object;
    const struct own_kernel *kernels;
    size_t count;
    model_device *device;
    char *initial; /* what the variables in global memory held at first */
    char names
        [4][NAME_MAX_BYTES]; /* input, output, length, second input of the kernel described last */
};

extern const struct embedded embedded_own[];

const char *tally_own_prelude(void) {
    return (const char *)embedded_own[0].bytes;
}

/* The flags of tally_model_kernels() in model/CMakeLists.txt, and those that C++ and a loaded object need. Without
 * -fno-thread-jumps two barriers may come of one in the text. -fno-delete-null-pointer-checks has accesses to address
 * 0 stay as they are, so that the model sees them. A variable of a thread that nothing starts holds no useful number. */
const char *tally_own_flags(void) {
    return "-std=gnu++20 -fPIC -fvisibility=hidden -fsanitize=thread,bounds "
           "-fsanitize-coverage=trace-pc --param=tsan-distinguish-volatile=1 -Og -g1 "
           "-ftrivial-auto-var-init=pattern "
           "-fno-reorder-blocks -fno-reorder-blocks-and-partition -fno-lto -ffp-contract=off "
           "-fno-thread-jumps -fno-delete-null-pointer-checks "
           "-fcf-protection=none -fno-exceptions -fno-rtti -fno-threadsafe-statics "
           "-fno-asynchronous-unwind-tables -fno-builtin -fno-stack-protector -fno-math-errno "
           "-fno-tree-loop-distribute-patterns -fwrapv -Werror=frame-larger-than=32768 "
           "-nostdinc -nostdlib";
}

/* ---- Loading ---- */

static tally_status bind_hooks(tally_own *own, const char *object) {
    void *const *table = dlsym(own->handle, "tally_hook_table");
    const char *const *names = dlsym(own->handle, "tally_hook_names");
    own->kernels = dlsym(own->handle, "tally_own_kernels");
    const size_t *count = dlsym(own->handle, "tally_own_kernel_count");
    if (!table || !names || !own->kernels || !count)
        return fail(TALLY_EFORMAT, "%s was not compiled behind tally_own_prelude()", object);
    own->count = *count;
    void **hooks = *table;
    for (size_t i = 0; names[i]; i++)
        if (!(hooks[i] = model_hook(names[i])))
            return fail(TALLY_EFORMAT, "%s: the model has no hook '%s'", object, names[i]);
    return TALLY_OK;
}

/* Makes the kernel's own variables in global memory known to the model, and remembers what they hold. */
static tally_status adopt_variables(tally_own *own) {
    const struct own_span *global = &own->object.global;
    if (!global->bytes) return TALLY_OK;
    own->initial = malloc(global->bytes);
    if (!own->initial || model_adopt(own->device, (void *)global->base, global->bytes) != MODEL_OK)
        return fail(TALLY_ENOMEM, "no memory for the kernel's variables");
    memcpy(own->initial, (const void *)global->base, global->bytes);
    return TALLY_OK;
}

static tally_status load(tally_own *own, const char *object) {
    tally_status status = own_object_read(object, &own->object);
    if (status != TALLY_OK) return status;
    own->handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!own->handle) return fail(TALLY_EFORMAT, "%s", dlerror());
    status = bind_hooks(own, object);
    if (status != TALLY_OK) return status;
    own_object_settle(&own->object, (uintptr_t)dlsym(own->handle, "tally_hook_names"));
    if (model_open(&own->device) != MODEL_OK) return fail(TALLY_ENOMEM, "no memory for the model");
    /* The lines are read now: later the process may not be allowed to open files. */
    model_place place = {.site = (uintptr_t)own->kernels[0].call + 1};
    if (own->count) model_find_line(&place);
    return adopt_variables(own);
}

tally_status tally_own_open(const char *object, tally_own **out) {
    if (!object || !out) return fail(TALLY_EINVAL, "tally_own_open: an argument is NULL");
    tally_own *own = calloc(1, sizeof *own);
    if (!own) return fail(TALLY_ENOMEM, "no memory for a kernel");
    const tally_status status = load(own, object);
    if (status != TALLY_OK) {
        tally_own_close(own);
        return status;
    }
    *out = own;
    return TALLY_OK;
}

void tally_own_close(tally_own *own) {
    if (!own) return;
    model_close(own->device);
    if (own->handle) dlclose(own->handle);
    own_object_forget(&own->object);
    free(own->initial);
    free(own);
}

/* ---- What a kernel takes ---- */

/* The numbers of the parameters that are the input, the output, the length and the second input; -1: there is none. */
struct roles {
    int input, output, length, second;
};

/* Writes the i-th parameter's name to out; "" where it has none. */
static void parameter_name(const struct own_kernel *k, unsigned i, char out[NAME_MAX_BYTES]) {
    const char *from = k->parameter_names;
    for (; i > 0 && from; i--)
        if ((from = strchr(from, ','))) from++;
    snprintf(out, NAME_MAX_BYTES, "%.*s", from ? (int)strcspn(from, ",") : 0, from ? from : "");
}

static bool names_an_output(const struct own_kernel *k, int i) {
    static const char *const words[] = {"out", "result", "sum", "total", "partial", "dst", "res"};
    char name[NAME_MAX_BYTES];
    parameter_name(k, (unsigned)i, name);
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

static tally_status find_roles(const struct own_kernel *k, struct roles *r) {
    int pointers[3] = {-1, -1, -1}, count = 0;
    *r = (struct roles){-1, -1, -1, -1};
    for (unsigned i = 0; i < k->count; i++) {
        const struct own_parameter *p = &k->parameters[i];
        char name[NAME_MAX_BYTES];
        parameter_name(k, i, name);
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
    if (count == 3) {
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
    parameter_name(k, (unsigned)role, own->names[place]);
    return own->names[place];
}

tally_status tally_own_describe(const tally_own *own, size_t i, tally_own_kernel *out) {
    struct roles r;
    tally_type type;
    if (!own || !out || i >= own->count) return fail(TALLY_EINVAL, "there is no such kernel");
    const struct own_kernel *k = &own->kernels[i];
    tally_status status = find_roles(k, &r);
    if (status == TALLY_OK) status = tally_type_parse(k->parameters[r.input].type, &type);
    if (status != TALLY_OK) return status;
    tally_own *names = (tally_own *)own;
    char roles[9] = "";
    for (unsigned p = 0; p < k->count; p++)
        roles[p] = (int)p == r.input                      ? 'i'
                   : (int)p == r.output                   ? 'o'
                   : (int)p == r.second                   ? 'j'
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

/* ---- Faults in words ---- */

struct teller {
    const tally_own *own;
    const struct own_kernel *kernel;
    struct roles roles;
    const tally_own_launch *how;
    uintptr_t input, output, second;
    size_t size; /* of an element */
    tally_type type;
    tally_own_result *out;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct teller *t, const char *format, ...) {
    const size_t room = sizeof t->out->sentence - t->length;
    va_list list;
    va_start(list, format);
    int more = vsnprintf(t->out->sentence + t->length, room, format, list);
    va_end(list);
    if (more > 0) t->length += (size_t)more < room ? (size_t)more : room - 1;
}

/* Returns how many bytes an address lies outside of an array; 0: inside. */
static uintptr_t how_far(uintptr_t address, uintptr_t base, size_t bytes) {
    return address < base           ? base - address
           : address - base < bytes ? 0
                                    : address - base - bytes + 1;
}

/* Returns how many elements the kernel's input has. */
static size_t length_of(const tally_own_launch *how) {
    return how->far ? (size_t)how->far->n : how->n;
}

/* Returns the parameter whose array an address lies in or nearest to, with its base and its number of elements; -1
 * where the address is far from all. */
static int nearest_array(const struct teller *t, uintptr_t address, uintptr_t *base, size_t *n) {
    const struct {
        int role;
        uintptr_t base;
        size_t count;
    } arrays[] = {{t->roles.input, t->input, length_of(t->how)},
                  {t->roles.second, t->second, length_of(t->how)},
                  {t->roles.output, t->output, t->how->outputs}};
    uintptr_t best = (uintptr_t)1 << (t->how->far ? 42 : 30);
    int role = -1;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (arrays[i].role < 0) continue;
        const uintptr_t far = how_far(address, arrays[i].base, arrays[i].count * t->size);
        if (far >= best) continue;
        best = far;
        role = arrays[i].role;
        *base = arrays[i].base;
        *n = arrays[i].count;
    }
    return role;
}

/* Says which element of which array lies at an address. */
static void say_element(struct teller *t, uintptr_t address) {
    const uintptr_t global = t->own->object.global.base;
    char name[NAME_MAX_BYTES];
    uintptr_t base = 0;
    size_t n = 0;
    if (own_object_say(&t->own->object, address, t->size, t->out->sentence + t->length,
                       sizeof t->out->sentence - t->length)) {
        t->length = strlen(t->out->sentence);
        return;
    }
    if (address - global < t->own->object.global.bytes) {
        say(t, "a variable of global memory");
        return;
    }
    const int role = nearest_array(t, address, &base, &n);
    const intptr_t bytes = (intptr_t)(address - base), size = (intptr_t)t->size;
    if (role < 0) {
        say(t, "memory that is none of its arrays");
        return;
    }
    parameter_name(t->kernel, (unsigned)role, name);
    say(t, "%s[%lld]", name, (long long)(bytes < 0 ? (bytes - size + 1) / size : bytes / size));
}

static void say_length_of(struct teller *t, uintptr_t address) {
    char name[NAME_MAX_BYTES];
    uintptr_t base = 0;
    size_t n = 0;
    const int role = nearest_array(t, address, &base, &n);
    if (role < 0) return;
    parameter_name(t->kernel, (unsigned)role, name);
    say(t, ", but %s has %zu element%s", name, n, n == 1 ? "" : "s");
}

static void say_line(struct teller *t, const char *before, const model_place *place) {
    if (place->line) say(t, "%sline %u", before, place->line);
}

static void tell_race(struct teller *t, const model_fault *f) {
    const char *const deed[2] = {"reads", "writes"};
    const bool same_block = f->here.block == f->other.block;
    if (!same_block)
        say(t, "lane %u of block %u and lane %u of block %u touch ", f->other.lane, f->other.block,
            f->here.lane, f->here.block);
    else if (f->other.lane == f->here.lane)
        say(t, "lane %u and another of block %u touch ", f->here.lane, f->here.block);
    else
        say(t, "lanes %u and %u of block %u touch ", f->other.lane, f->here.lane, f->here.block);
    say_element(t, f->address);
    say(t, same_block ? " without a barrier between them"
                      : ", and blocks have no barrier between them");
    if (!f->other.line || !f->here.line) return;
    say(t, ": line %u %s, line %u %s", f->other.line, deed[f->other.writes], f->here.line,
        deed[f->here.writes]);
}

/* A fence is missing beside the atomic by which one block tells another that a value is there. */
static void tell_order(struct teller *t, const model_fault *f) {
    say(t, "block %u reads ", f->here.block);
    say_element(t, f->address);
    say_line(t, ", ", &f->here);
    say(t, ", which block %u writes", f->other.block);
    say_line(t, ", ", &f->other);
    say(t, f->fence == 2 ? ", and no __threadfence() stands behind the atomic"
                         : ", and no __threadfence() stands between that and the atomic");
    say_line(t, ", ", &f->between);
    if (f->fence == 1) say(t, "; __threadfence_block() orders it for its own block only");
}

static void tell_stray(struct teller *t, const model_fault *f) {
    char *text = t->out->stray;
    const size_t room = sizeof t->out->stray;
    const unsigned lane = f->other.lane % MODEL_WARP;
    const bool named = f->address >> lane & 1;
    int used = snprintf(text, room,
                        "the shuffle on line %u, of mask 0x%08llx, gives lane %u of block %u the "
                        "value of lane %u, which %s",
                        f->here.line, (unsigned long long)f->address, f->here.lane, f->here.block,
                        f->other.lane,
                        !named ? "the mask does not name: it does not take part"
                        : f->other.lane >= t->how->block ? "the block does not have"
                        : f->other.site                  ? "does not take part: it is elsewhere"
                                        : "does not take part: it has left the kernel");
    if (used >= (int)room) text[room - 1] = '\0';
    t->out->stray_line = f->here.line;
    t->out->stray_detail = 1;
    t->out->stray_fault = TALLY_OWN_SHUFFLE;
}

/* Returns the detail of a race: see tally_own_result. */
static int race_detail(const model_fault *f) {
    return f->here.block != f->other.block
               ? 2
               : f->here.lane / MODEL_WARP == f->other.lane / MODEL_WARP;
}

/* Says what a race is where the result is wrong. */
static void tell_untried(struct teller *t, const model_fault *f) {
    char kept[sizeof t->out->sentence];
    memcpy(kept, t->out->sentence, sizeof kept);
    t->length = 0;
    tell_race(t, f);
    snprintf(t->out->stray, sizeof t->out->stray, "%.199s", t->out->sentence);
    memcpy(t->out->sentence, kept, sizeof kept);
    t->length = strlen(kept);
    t->out->stray_line = f->here.line;
    t->out->stray_other_line = f->other.line;
    t->out->stray_detail = race_detail(f);
    t->out->stray_fault = TALLY_OWN_RACE;
}

/* Says the model's sentence without the kernel's name, which the reader knows, and with "on line 7" for
 * "at mine.cu:7". */
static void tell_in_its_words(struct teller *t, const model_fault *f) {
    const char *from = strstr(f->text, ", ");
    for (from = from ? from + 2 : f->text; *from;) {
        const char *place = f->here.file[0] ? strstr(from, f->here.file) : NULL;
        if (!place || place - from < 3 || strncmp(place - 3, "at ", 3) != 0) break;
        say(t, "%.*s", (int)(place - 3 - from), from);
        from = place + strlen(f->here.file) + 1;
        say(t, "on line %.*s", (int)strspn(from, "0123456789"), from);
        from += strspn(from, "0123456789");
    }
    say(t, "%s", from);
}

static void tell(struct teller *t, const model_fault *f) {
    static const tally_own_fault kinds[] = {[MODEL_FAULT_NONE] = TALLY_OWN_RIGHT,
                                            [MODEL_FAULT_BARRIER] = TALLY_OWN_BARRIER,
                                            [MODEL_FAULT_SHUFFLE] = TALLY_OWN_BARRIER,
                                            [MODEL_FAULT_BOUNDS] = TALLY_OWN_BOUNDS,
                                            [MODEL_FAULT_ALIGNMENT] = TALLY_OWN_ALIGNMENT,
                                            [MODEL_FAULT_UNWRITTEN] = TALLY_OWN_UNWRITTEN,
                                            [MODEL_FAULT_RACE] = TALLY_OWN_RACE,
                                            [MODEL_FAULT_ORDER] = TALLY_OWN_ORDER,
                                            [MODEL_FAULT_STRAY] = TALLY_OWN_SHUFFLE,
                                            [MODEL_FAULT_STACK] = TALLY_OWN_STACK,
                                            [MODEL_FAULT_ENDLESS] = TALLY_OWN_ENDLESS};
    t->out->fault = kinds[f->kind];
    t->out->line = f->here.line;
    t->out->other_line = f->other.line;
    t->out->detail = f->kind == MODEL_FAULT_ORDER     ? f->fence
                     : f->kind == MODEL_FAULT_SHUFFLE ? 1
                     : f->kind == MODEL_FAULT_BARRIER ? (f->other.site ? 0 : 2)
                     : f->kind != MODEL_FAULT_RACE    ? 0
                                                      : race_detail(f);
    switch (f->kind) {
    case MODEL_FAULT_ORDER:
        tell_order(t, f);
        return;
    case MODEL_FAULT_RACE:
        tell_race(t, f);
        return;
    case MODEL_FAULT_UNWRITTEN:
        say(t, "lane %u of block %u reads ", f->here.lane, f->here.block);
        say_element(t, f->address);
        say(t, ", which nothing has written");
        say_line(t, ": ", &f->here);
        return;
    case MODEL_FAULT_BOUNDS:
        say(t, "lane %u of block %u touches ", f->here.lane, f->here.block);
        if (f->size == 0) {
            say(t, "index %lld of an array", (long long)f->address);
            say_line(t, ", ", &f->here);
            say(t, ", which is outside of it");
            return;
        }
        say_element(t, f->address);
        say_line(t, ", ", &f->here);
        if (own_object_is_near(&t->own->object, f->address))
            say(t, ", which is outside of the array");
        else
            say_length_of(t, f->address);
        return;
    case MODEL_FAULT_ENDLESS:
        say(t, "lane %u of block %u goes on and on, and its block comes to no end", f->here.lane,
            f->here.block);
        say_line(t, ": ", &f->here);
        return;
    default:
        tell_in_its_words(t, f);
    }
}

/* ---- Running ---- */

enum { FAR_BLOCKS_MAX = 16 }; /* most blocks that a far launch runs */

void own_fill_identity(tally_op op, tally_type type, void *out, size_t count) {
    tally_value value;
    const size_t size = tally_type_size(type);
    const tally_problem problem = {.op = op, .type = type, .out = type};
    if (tally_reduce(NULL, &problem, NULL, NULL, 0, &value) != TALLY_OK)
        memset(&value, 0, sizeof value);
    const uint64_t bits = tally_value_bits(&value);
    for (size_t i = 0; i < count; i++)
        memcpy((char *)out + i * size, &bits, size);
}

static tally_status check(const tally_own *own, const struct own_kernel *k,
                          const tally_own_launch *how) {
    const size_t shared = own->object.shared_used + how->shared_bytes;
    if (how->block < 1 || how->block > MODEL_BLOCK_MAX || how->grid < 1)
        return fail(TALLY_EINVAL, "a launch needs a grid, and a block of 1 to 1024 threads");
    if (how->far && (how->far->block_count > FAR_BLOCKS_MAX ||
                     (how->far->windows && how->far->block_count != how->outputs)))
        return fail(TALLY_EINVAL, "a far launch runs 16 blocks at most, each with an output");
    if (shared > SHARED_MAX)
        return fail(TALLY_EUNSUPPORTED,
                    "kernel %s asks for %zu bytes of shared memory; a block has %d", k->name,
                    shared, SHARED_MAX);
    if (how->n && !how->x) return fail(TALLY_EINVAL, "tally_own_run: x is NULL");
    if (how->width && (!how->height || how->block % (how->width * (uint64_t)how->height) != 0))
        return fail(TALLY_EINVAL, "a block's threads are a multiple of its width and height");
    return TALLY_OK;
}

static tally_status note_touched(struct teller *t, model_device *d) {
    tally_own_result *r = t->out;
    const int writes = t->roles.output >= 0 && !t->how->far;
    const unsigned blocks = writes && t->how->grid > 2 ? t->how->grid : 2;
    model_reach *spans = calloc(blocks, sizeof *spans);
    if (!spans) return fail(TALLY_ENOMEM, "no memory for what %u blocks touch", blocks);
    model_touched(d, (const void *)t->input, false, spans, 2);
    for (unsigned b = 0; b < 2; b++)
        if (spans[b].to) {
            r->first[b] = spans[b].from / t->size;
            r->last[b] = (spans[b].to + t->size - 1) / t->size;
        }
    r->all_written = t->roles.output >= 0;
    if (writes) {
        model_touched(d, (const void *)t->output, true, spans, blocks);
        for (unsigned b = 0; b < blocks; b++) {
            const size_t end = (spans[b].to + t->size - 1) / t->size;
            if (end > r->written) r->written = end;
        }
        model_touched(d, (const void *)t->output, false, spans, blocks);
        for (unsigned b = 0; b < blocks && !r->combines; b++)
            r->combines = spans[b].to - spans[b].from > t->size;
    }
    free(spans);
    return TALLY_OK;
}

/* Sets the counts. What the kernel leaves to be combined is as many values as it writes; one where its blocks combine
 * the output themselves. With atomics it is as many as they take, but at most one for each warp, as further atomics
 * may be counters. The useful operations are no more than those it did: it may end early, or start each sum from no
 * element. */
static void take_counts(struct teller *t, const model_counts *counts) {
    const uint64_t warps = (uint64_t)t->how->grid * ((t->how->block + MODEL_WARP - 1) / MODEL_WARP);
    tally_ladder_counts *out = &t->out->counts;
    uint64_t left = t->roles.output < 0 ? t->how->grid : t->out->written;
    if (counts->atomics) left = counts->atomics < warps ? counts->atomics : warps;
    if (t->out->combines) left = 1;
    counts_take(out, counts, t->how->n, left > 1 ? left : 1);
    if (out->useful > out->operations) out->useful = out->operations;
}

static void pass_on(void *context, const model_step *step) {
    step_tell(context, 0, step);
}

/* Values are read as elements where they have an element's size, else as unsigned integers. */
static struct step_array array_of(const void *teller, const model_access *m) {
    const struct teller *t = teller;
    tally_type type = t->type;
    if (m->size && m->size % t->size)
        type = m->size == 1 ? TALLY_U8 : m->size == 2 ? TALLY_U16 : TALLY_U32;
    struct step_array array = {"", STEP_ELEMENTS, type, 0};
    struct own_span span;
    const unsigned l = (unsigned)__builtin_ctz(m->lanes);
    if (m->kind == MODEL_EXCHANGE || m->kind == MODEL_APPLY) return array;
    if (m->shared) {
        array.name = "shared";
        if (own_object_array(&t->own->object, (uintptr_t)m->array + m->place[l], &array.name,
                             &span))
            array.base = span.base;
    } else if ((uintptr_t)m->array == t->input) {
        array.name = t->own->names[0];
    } else if (t->roles.second >= 0 && (uintptr_t)m->array == t->second) {
        array.name = t->own->names[3];
    } else if (t->roles.output >= 0 && (uintptr_t)m->array == t->output) {
        array.name = t->own->names[1];
    } else {
        array.name = "a variable";
    }
    return array;
}

/* Allocates the arrays and fills them. */
static bool near_arrays(model_device *d, const struct teller *t, const void *identity, void **in,
                        void **second, void **out) {
    const tally_own_launch *how = t->how;
    const size_t bytes = how->n * t->size, out_bytes = how->outputs * t->size;
    if (model_allocate(d, bytes, in) != MODEL_OK ||
        (how->y && model_allocate(d, bytes, second) != MODEL_OK) ||
        model_allocate(d, out_bytes, out) != MODEL_OK)
        return false;
    model_write(d, *in, how->x, bytes);
    if (*second) model_write(d, *second, how->y, bytes);
    model_write(d, *out, identity, out_bytes);
    return true;
}

/* The arrays of a far launch: x, y and the output, of which each block that runs has one element. */
struct far_arrays {
    struct own_windows x, y, output;
    uint64_t blocks[FAR_BLOCKS_MAX], ones[FAR_BLOCKS_MAX];
};

static void describe_far(const struct teller *t, struct far_arrays *a) {
    const tally_own_far *f = t->how->far;
    a->x = (struct own_windows){own_far_base(0), t->size, f->starts, f->counts, f->windows};
    a->y = a->x;
    a->y.base = own_far_base(1);
    a->output = (struct own_windows){own_far_base(2), t->size, a->blocks, a->ones, f->block_count};
    for (size_t i = 0; i < f->block_count; i++) {
        a->blocks[i] = f->blocks[i];
        a->ones[i] = 1;
    }
}

/* Does the same as near_arrays() for arrays of which only windows are there. */
static bool far_arrays(model_device *d, const struct teller *t, const void *identity, void **in,
                       void **second, void **out) {
    const tally_own_launch *how = t->how;
    struct far_arrays a;
    describe_far(t, &a);
    if (!own_far_map(d, &a.x, how->x)) return false;
    if (how->y && !own_far_map(d, &a.y, how->y)) {
        own_far_unmap(d, &a.x);
        return false;
    }
    if (!own_far_map(d, &a.output, identity)) {
        own_far_unmap(d, &a.x);
        if (how->y) own_far_unmap(d, &a.y);
        return false;
    }
    *in = (void *)a.x.base;
    if (how->y) *second = (void *)a.y.base;
    *out = (void *)a.output.base;
    return true;
}

/* Copies what the launch left in such arrays, and takes them from the device. */
static void far_back(model_device *d, const struct teller *t, void *input, void *output) {
    struct far_arrays a;
    describe_far(t, &a);
    if (input) own_far_read(&a.x, input);
    if (output) own_far_read(&a.output, output);
    own_far_unmap(d, &a.x);
    if (t->second) own_far_unmap(d, &a.y);
    own_far_unmap(d, &a.output);
}

/* Runs a far launch without windows, in which what is left to see is which elements the threads read: pages hold zeros. */
static tally_status launch_on_pages(tally_own *own, struct teller *t) {
    const tally_own_launch *how = t->how;
    const tally_own_far *far = how->far;
    const model_kernel kernel = {t->kernel->name, t->kernel->call, t->kernel->count};
    const model_span shared[2] = {{own->object.shared.base, own->object.shared.bytes},
                                  {own->object.dynamic.base, how->shared_bytes}};
    uint64_t length = how->length;
    uintptr_t bases[OWN_FAR_ARRAYS];
    void *arguments[OWN_PARAMETERS_MAX] = {0};
    const int roles[OWN_FAR_ARRAYS] = {t->roles.input, t->roles.second, t->roles.output};
    struct own_pages *pages = calloc(1, sizeof *pages);
    if (!pages) return fail(TALLY_ENOMEM, "no memory for the kernel's arrays");
    pages->device = own->device;
    for (unsigned k = 0; k < OWN_FAR_ARRAYS; k++) {
        bases[k] = own_far_base(k);
        if (roles[k] < 0) continue;
        arguments[roles[k]] = &bases[k];
        pages->bytes[k] = (k == 2 ? how->outputs : far->n) * t->size;
    }
    if (t->roles.length >= 0) arguments[t->roles.length] = &length;
    t->input = bases[0];
    t->second = bases[1];
    t->output = bases[2];
    if (own->initial)
        memcpy((void *)own->object.global.base, own->initial, own->object.global.bytes);
    const model_launch l = {.kernel = &kernel,
                            .grid = how->grid,
                            .block = how->block,
                            .told = far->told,
                            .first = far->first,
                            .only = far->blocks,
                            .only_count = (unsigned)far->block_count,
                            .on_absent = own_pages_touch,
                            .owner = pages,
                            .arguments = arguments,
                            .shared = shared,
                            .forgives = 1};
    model_counts counts = {0};
    model_set_patience(own->device, how->patience, how->patience);
    const model_status ran = model_run(own->device, &l, &counts);
    t->out->is_complete = ran == MODEL_OK;
    t->out->work = model_work(own->device);
    if (ran == MODEL_EFAULT) tell(t, model_last_fault(own->device));
    const uintptr_t address = (uintptr_t)model_last_fault(own->device)->address;
    t->out->far_left = t->out->fault == TALLY_OWN_ENDLESS ||
                       (t->out->fault == TALLY_OWN_BOUNDS && own_pages_are_near(address));
    t->out->far_read = own_pages_read(pages, 0) / t->size;
    const bool is_full = pages->is_full;
    own_pages_forget(pages);
    free(pages);
    if (is_full) return fail(TALLY_EUNSUPPORTED, "a far launch touches more pages than there are");
    return ran == MODEL_OK || ran == MODEL_EFAULT
               ? TALLY_OK
               : fail(TALLY_ENOMEM, "no memory for the kernel's arrays");
}

static tally_status launch(tally_own *own, struct teller *t, tally_type type,
                           struct step_listener *listener, void *input, void *output) {
    const tally_own_launch *how = t->how;
    const size_t bytes = how->n * t->size, out_bytes = how->outputs * t->size;
    const model_kernel kernel = {t->kernel->name, t->kernel->call, t->kernel->count};
    const model_span shared[2] = {{own->object.shared.base, own->object.shared.bytes},
                                  {own->object.dynamic.base, how->shared_bytes}};
    uint64_t length = how->length;
    void *in = NULL, *second = NULL, *out = NULL, *arguments[OWN_PARAMETERS_MAX] = {0};
    model_device *d = own->device;
    tally_status status = TALLY_ENOMEM;
    void *identity = malloc(out_bytes + 1);
    if (!identity) return fail(status, "no memory for the kernel's arrays");
    own_fill_identity(how->op, type, identity, how->outputs);
    const bool is_there = how->far ? far_arrays(d, t, identity, &in, &second, &out)
                                   : near_arrays(d, t, identity, &in, &second, &out);
    free(identity);
    if (!is_there) {
        if (how->far) return fail(TALLY_EUNSUPPORTED, "arrays of that length have no place here");
        goto end;
    }
    if (own->initial && !how->keeps)
        memcpy((void *)own->object.global.base, own->initial, own->object.global.bytes);

    t->input = (uintptr_t)in;
    t->output = (uintptr_t)out;
    t->second = (uintptr_t)second;
    arguments[t->roles.input] = &in;
    if (t->roles.second >= 0) arguments[t->roles.second] = &second;
    if (t->roles.output >= 0) arguments[t->roles.output] = &out;
    if (t->roles.length >= 0) arguments[t->roles.length] = &length;
    const model_launch l = {.kernel = &kernel,
                            .grid = how->grid,
                            .block = how->block,
                            .width = how->width,
                            .height = how->height,
                            .order = how->order,
                            .only = how->far ? how->far->blocks : NULL,
                            .only_count = how->far ? (unsigned)how->far->block_count : 0,
                            .arguments = arguments,
                            .on_step = listener->on_step ? pass_on : NULL,
                            .context = listener,
                            .shared = shared,
                            .forgives = how->forgives,
                            .work_most = how->work_most,
                            .accesses = listener->on_step && how->accesses};
    model_counts counts = {0};
    model_set_patience(d, how->patience ? how->patience : 16 * (uint64_t)how->n + 4096,
                       3 * (uint64_t)how->n + 4096);
    const model_status ran = model_run(d, &l, &counts);
    status = ran == MODEL_OK || ran == MODEL_EFAULT ? TALLY_OK : TALLY_ENOMEM;
    t->out->is_complete = ran == MODEL_OK;
    t->out->work = model_work(d);
    if (how->work_most && t->out->work > how->work_most) {
        status = fail(TALLY_EUNSUPPORTED,
                      "kernel %s takes more than %llu million steps on the model for %zu elements",
                      t->kernel->name, (unsigned long long)(how->work_most / 1000000), how->n);
        if (how->far) far_back(d, t, NULL, NULL);
        goto end;
    }
    if (ran == MODEL_EFAULT)
        tell(t, model_last_fault(d));
    else if (model_noted_fault(d)->kind != MODEL_FAULT_NONE)
        tell(t, model_noted_fault(d));
    if (t->out->fault == TALLY_OWN_RIGHT && model_unfenced_read(d)->kind != MODEL_FAULT_NONE) {
        tell_order(t, model_unfenced_read(d));
        snprintf(t->out->note, sizeof t->out->note, "%s", t->out->sentence);
        t->out->sentence[t->length = 0] = '\0';
    }
    if (model_stray_shuffle(d)->kind != MODEL_FAULT_NONE)
        tell_stray(t, model_stray_shuffle(d));
    else if (model_untried_read(d)->kind != MODEL_FAULT_NONE)
        tell_untried(t, model_untried_read(d));
    if (status == TALLY_OK) status = note_touched(t, d);
    take_counts(t, &counts);
    if (how->far) {
        far_back(d, t, input, output);
        return status == TALLY_ENOMEM ? fail(status, "no memory for the kernel's arrays") : status;
    }
    if (input) model_read(d, input, in, bytes);
    if (output) model_read(d, output, out, out_bytes);
end:
    if (how->far) return status;
    model_free(d, in);
    model_free(d, second);
    model_free(d, out);
    return status == TALLY_ENOMEM ? fail(status, "no memory for the kernel's arrays") : status;
}

tally_status tally_own_run(tally_own *own, size_t i, const tally_own_launch *how,
                           void (*on_step)(void *context, const tally_ladder_step *step),
                           void *context, void *input, void *output, tally_own_result *out) {
    tally_own_kernel kernel = {0};
    if (!own || !how || !out) return fail(TALLY_EINVAL, "tally_own_run: an argument is NULL");
    tally_status status = tally_own_describe(own, i, &kernel);
    if (status == TALLY_OK) status = check(own, &own->kernels[i], how);
    if (status != TALLY_OK) return status;
    memset(out, 0, sizeof *out);
    struct teller t = {.own = own,
                       .kernel = &own->kernels[i],
                       .how = how,
                       .size = tally_type_size(kernel.type),
                       .type = kernel.type,
                       .out = out};
    find_roles(t.kernel, &t.roles);
    const uint64_t n = how->n;
    struct step_listener listener = {.on_step = on_step,
                                     .context = context,
                                     .threads = how->block,
                                     .by = {.array_of = array_of, .owner = &t, .n = &n}};
    listener.caller = fp_env_enter();
    status = how->far && !how->far->windows
                 ? launch_on_pages(own, &t)
                 : launch(own, &t, kernel.type, &listener, input, output);
    fp_env_leave(listener.caller);
    free(listener.accesses);
    if (status == TALLY_OK && listener.out_of_memory)
        return fail(TALLY_ENOMEM, "no memory for the accesses of a step");
    return status;
}
