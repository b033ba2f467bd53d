/*
 * own.c - a kernel that was compiled at run time: how it is compiled, and loaded. See own.h.
 */
#include "ladder/own.h"

#include "base/status.h"
#include "gpu/embed.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern const struct embedded embedded_own[];

const char *tally_own_prelude(void) {
    return (const char *)embedded_own[0].bytes;
}

/* The flags of tally_model_kernels() in model/CMakeLists.txt, and those that C++ and a loaded object need. Without
 * -fno-thread-jumps the compiler may make two barriers of one. With -fno-delete-null-pointer-checks it keeps accesses
 * to address 0, so that the model sees them. -ftrivial-auto-var-init=pattern fills uninitialized variables, so that no
 * kernel is right by luck. */
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

static tally_status bind_hooks(tally_own *own, const char *object) {
    void *const *table = dlsym(own->handle, "tally_hook_table");
    const char *const *names = dlsym(own->handle, "tally_hook_names");
    own->kernels = dlsym(own->handle, "tally_own_kernels");
    const size_t *count = dlsym(own->handle, "tally_own_kernel_count");
    if (!table || !names || !own->kernels || !count)
        return fail(TALLY_EFORMAT, "%s was not compiled behind tally_own_prelude()", object);
    own->count = *count;
    own->variables = dlsym(own->handle, "tally_own_variables");
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
    /* Read the debugging information now: later the process may not be allowed to open files. */
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

const struct own_variable *own_find_variable(const tally_own *own, uintptr_t address) {
    for (const struct own_variable *v = own->variables; v && v->at; v++)
        if ((uintptr_t)v->at == address) return v;
    return NULL;
}

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
