/* program.c - see program.h. */
#include "cuda/program.h"

#include "base/pool.h"
#include "base/status.h"
#include "cuda/compiler.h"
#include "gpu/disk_cache.h"
#include "gpu/embed.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels in a text ---------------------------------------------------------------------- */

static const char mark[] = "\nKERNEL "; /* before a kernel's name: kernels/kernel.h */

/* Returns how many kernels a text has. */
static unsigned count_kernels(const char *text) {
    unsigned count = 0;
    while ((text = strstr(text, mark))) {
        text += sizeof mark - 1;
        count++;
    }
    return count;
}

unsigned program_kernels_in(const char *root) {
    char *text = embed_expand(root);
    const unsigned count = text ? count_kernels(text) : 0;
    free(text);
    return count;
}

/* Returns the text with one kernel alone, which the caller frees: the others become functions that nobody calls. Returns NULL
 * without memory, or if there is no such kernel. */
static char *text_of_kernel(const char *text, const char *name) {
    const size_t length = strlen(name);
    char *out = strdup(text), *at = out;
    bool is_there = false;
    for (; out && (at = strstr(at, mark)); at += sizeof mark - 1) {
        const char *own = at + sizeof mark - 1;
        const bool is_it = strncmp(own, name, length) == 0 && own[length] == '(';
        is_there |= is_it;
        if (!is_it) memcpy(at, "\nHIDDEN ", sizeof mark - 1);
    }
    if (is_there) return out;
    free(out);
    return NULL;
}

/* ---- Images --------------------------------------------------------------------------------- */

/* The work of several threads, each of which takes the next image until none is left. */
struct work {
    const char *root, *file, *text, *compiler;
    const char *const *names; /* or NULL */
    const struct program_target *target;
    bool anew;
    struct program *out;
    atomic_uint next;
    _Atomic tally_status status; /* the last failure */
};

/* Makes image number i. */
static tally_status make_image(const struct work *w, unsigned i) {
    const struct program_target *t = w->target;
    struct program_image *image = &w->out->image[i];
    char *part = w->names ? text_of_kernel(w->text, w->names[i]) : NULL;
    const char *text = part ? part : w->text;
    tally_status status = TALLY_OK;
    if (w->names && !part)
        return fail(TALLY_EINVAL, "%s has no kernel %s, or there is no memory for its text",
                    w->file, w->names[i]);
    image->key = disk_cache_key(w->compiler, w->root, text);
    if (image->key && !w->anew) image->bytes = disk_cache_load(image->key, &image->size);
    image->found = image->bytes != NULL;
    if (!image->found)
        status =
            compiler_run(text, w->file, t->major, t->minor, t->driver, &image->bytes, &image->size);
    free(part);
    return status;
}

static void *make_images(void *context) {
    struct work *w = context;
    for (unsigned i; (i = atomic_fetch_add(&w->next, 1)) < w->out->count;) {
        const tally_status status = make_image(w, i);
        if (status != TALLY_OK) w->status = status;
    }
    return NULL;
}

/* Makes all images by several threads, which it also ends; by the calling thread alone if none can be started. */
static tally_status make_all(struct work *w) {
    pthread_t thread[GPU_PROGRAM_PARTS];
    sigset_t all, before;
    unsigned threads = 0, most = pool_cores();
    if (most > w->out->count) most = w->out->count;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* only the caller's threads take signals */
    while (threads + 1 < most && pthread_create(&thread[threads], NULL, make_images, w) == 0)
        threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    make_images(w);
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
    return w->status;
}

/* Makes again, by the calling thread, the images that other threads could not make: tally_error() has a line for each
 * thread, and this one is to have theirs. */
static tally_status make_failed(const struct work *w) {
    tally_status status = TALLY_OK;
    for (unsigned i = 0; i < w->out->count && status == TALLY_OK; i++) {
        struct program_image *image = &w->out->image[i];
        if (image->bytes) continue;
        free(image->key);
        image->key = NULL;
        status = make_image(w, i);
    }
    return status;
}

tally_status program_make(const char *root, const char *file, const char *const *names,
                          unsigned count, const struct program_target *target, bool anew,
                          struct program *out) {
    char compiler[COMPILER_NAME];
    *out = (struct program){.count = names ? count : 1};
    tally_status status = compiler_name(target->major, target->minor, target->driver, compiler);
    if (status != TALLY_OK) return status;
    char *text = embed_expand(root);
    if (!text) return fail(TALLY_ENOMEM, "no memory to compile %s", file);
    struct work work = {.root = root,
                        .file = file,
                        .text = text,
                        .compiler = compiler,
                        .names = names,
                        .target = target,
                        .anew = anew,
                        .out = out};
    status = make_all(&work);
    if (status != TALLY_OK) status = make_failed(&work);
    free(text);
    return status;
}

bool program_was_found(const struct program *p) {
    for (unsigned i = 0; i < p->count; i++)
        if (p->image[i].found) return true;
    return false;
}

void program_keep(const struct program *p) {
    for (unsigned i = 0; i < p->count; i++)
        if (p->image[i].key && !p->image[i].found)
            disk_cache_store(p->image[i].key, p->image[i].bytes, p->image[i].size, DISK_CACHE_MOST);
}

void program_free(struct program *p) {
    for (unsigned i = 0; i < p->count; i++) {
        free(p->image[i].bytes);
        free(p->image[i].key);
    }
    p->count = 0;
}
