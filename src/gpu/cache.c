/* cache.c - see cache.h. */
#include "gpu/cache.h"

#include "base/invariant.h"
#include "base/status.h"
#include "gpu/embed.h"

#include <stdlib.h>
#include <string.h>

void gpu_cache_open(struct gpu_cache *cache, const struct gpu_cache_calls *calls) {
    cache->calls = calls;
    cache->users = 0;
    TAILQ_INIT(&cache->programs);
    TAILQ_INIT(&cache->dropped);
}

static tally_status no_memory(const char *device) {
    return fail(TALLY_ENOMEM, "%s: no memory on the host", device);
}

/* Gives a program's kernels back to the machine. */
static void drop_kernels(const struct gpu_cache *cache, struct gpu_program *program) {
    struct gpu_kernel *kernel;
    LIST_FOREACH(kernel, &program->kernels, link) {
        if (cache->calls->drop) cache->calls->drop(kernel->native);
        kernel->native = NULL;
    }
}

/* Frees the structs of a program whose kernels have been given back. */
static void free_program(struct gpu_program *program) {
    while (!LIST_EMPTY(&program->kernels)) {
        struct gpu_kernel *kernel = LIST_FIRST(&program->kernels);
        LIST_REMOVE(kernel, link);
        free(kernel->name);
        free(kernel);
    }
    free(program->root);
    free(program->file);
    free(program);
}

/* ---- Room ------------------------------------------------------------------------------------ */

/* Returns the number of programs that may be dropped, counted anew: what cache->users must be. */
__attribute__((unused)) static unsigned count_users(const struct gpu_cache *cache) {
    unsigned count = 0;
    struct gpu_program *program;
    TAILQ_FOREACH(program, &cache->programs, link)
    count += !program->stays;
    return count;
}

/* Drops users' programs, the least recently built first, until there is room for one more. If the machine
 * cannot give one back now, the next one is tried; if it can give back none, the cache grows. */
static void make_room(struct gpu_cache *cache, struct gpu *gpu) {
    struct gpu_program *program = TAILQ_LAST(&cache->programs, gpu_program_list), *before;
    for (; program && cache->users >= GPU_CACHE_USERS; program = before) {
        before = TAILQ_PREV(program, gpu_program_list, link);
        if (program->stays || !cache->calls->unload(gpu, program)) continue;
        drop_kernels(cache, program);
        TAILQ_REMOVE(&cache->programs, program, link);
        cache->users--;
#if defined(TALLY_DEBUG)
        TAILQ_INSERT_TAIL(&cache->dropped, program, link);
#else
        free_program(program);
#endif
    }
    TALLY_ASSERT(cache->users == count_users(cache));
}

void gpu_cache_stays(struct gpu_cache *cache, struct gpu_program *program) {
    if (program->stays) return;
    TALLY_ASSERT(cache->users > 0);
    program->stays = true;
    cache->users--;
}

/* ---- Building -------------------------------------------------------------------------------- */

static struct gpu_program *find_program(struct gpu_cache *cache, const char *root) {
    struct gpu_program *program;
    TAILQ_FOREACH(program, &cache->programs, link)
    if (strcmp(program->root, root) == 0) return program;
    return NULL;
}

/* Compiles a program and puts it first on the list. Takes over `root` from the caller, also on
 * failure. */
static tally_status add_program(struct gpu_cache *cache, struct gpu *gpu, const char *device,
                                const struct gpu_text *text, char *root, struct gpu_program **out) {
    struct gpu_program *program = calloc(1, sizeof *program);
    if (!program || !(program->file = strdup(text->file))) {
        free(program);
        free(root);
        return no_memory(device);
    }
    program->root = root;
    program->stays = !text->prelude || !*text->prelude;
    const tally_status status = cache->calls->compile(gpu, text, program);
    if (status != TALLY_OK) {
        free_program(program);
        return status;
    }
    if (!program->stays) {
        make_room(cache, gpu);
        cache->users++;
    }
    TAILQ_INSERT_HEAD(&cache->programs, program, link);
    *out = program;
    return TALLY_OK;
}

tally_status gpu_cache_build(struct gpu_cache *cache, struct gpu *gpu, const char *device,
                             struct gpu_text text, struct gpu_program **out) {
    char *root = embed_root(text.file, text.prelude, text.defines, text.count);
    if (!root) return no_memory(device);
    struct gpu_program *program = find_program(cache, root);
    text.root = root;
    if (!program) return add_program(cache, gpu, device, &text, root, out);
    free(root);
    TAILQ_REMOVE(&cache->programs, program, link);
    TAILQ_INSERT_HEAD(&cache->programs, program, link);
    *out = program;
    return TALLY_OK;
}

/* Adds a kernel that the machine has found; on failure it is not given back. */
static struct gpu_kernel *add_kernel(struct gpu_program *program, const char *name, void *native) {
    struct gpu_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel || !(kernel->name = strdup(name))) {
        free(kernel);
        return NULL;
    }
    kernel->native = native;
    kernel->program = program;
    LIST_INSERT_HEAD(&program->kernels, kernel, link);
    return kernel;
}

tally_status gpu_cache_kernel(struct gpu_cache *cache, struct gpu *gpu, const char *device,
                              struct gpu_program *program, const char *name,
                              struct gpu_kernel **out) {
    struct gpu_kernel *kernel;
    void *native = NULL;
    LIST_FOREACH(kernel, &program->kernels, link)
    if (strcmp(kernel->name, name) == 0) {
        *out = kernel;
        return TALLY_OK;
    }
    const tally_status status = cache->calls->find(gpu, program, name, &native);
    if (status != TALLY_OK) return status;
    kernel = add_kernel(program, name, native);
    if (!kernel) {
        if (cache->calls->drop) cache->calls->drop(native);
        return no_memory(device);
    }
    *out = kernel;
    return TALLY_OK;
}

void gpu_cache_close(struct gpu_cache *cache, struct gpu *gpu,
                     bool (*unload)(struct gpu *gpu, struct gpu_program *program)) {
    struct gpu_program *program;
    while ((program = TAILQ_FIRST(&cache->programs))) {
        TAILQ_REMOVE(&cache->programs, program, link);
        if (unload) drop_kernels(cache, program);
        if (unload) unload(gpu, program);
        free_program(program);
    }
    while ((program = TAILQ_FIRST(&cache->dropped))) {
        TAILQ_REMOVE(&cache->dropped, program, link);
        free_program(program);
    }
}
