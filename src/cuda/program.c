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

/* Returns the text with kernel number `only` alone, which the caller frees; NULL without memory. The others become functions
 * that nobody calls. */
static char *text_of_kernel(const char *text, unsigned only) {
    char *out = strdup(text), *at = out;
    for (unsigned i = 0; out && (at = strstr(at, mark)); i++, at += sizeof mark - 1)
        if (i != only) memcpy(at, "\nHIDDEN ", sizeof mark - 1);
    return out;
}

/* ---- Images --------------------------------------------------------------------------------- */

/* The work of several threads, each of which takes the next image until none is left. */
struct work {
    const struct gpu_text *of;
    const struct program_target *target;
    const char *text, *compiler;
    bool anew;
    struct program *out;
    atomic_uint next;
    _Atomic tally_status status; /* the last failure */
};

/* Makes image number i. */
static tally_status make_image(const struct work *w, unsigned i) {
    const struct program_target *t = w->target;
    struct program_image *image = &w->out->image[i];
    char *part = w->out->count > 1 ? text_of_kernel(w->text, i) : NULL;
    const char *text = part ? part : w->text;
    tally_status status = TALLY_OK;
    if (w->out->count > 1 && !part)
        return fail(TALLY_ENOMEM, "no memory to compile %s", w->of->file);
    image->key = disk_cache_key(w->compiler, w->of->root, text);
    if (image->key && !w->anew) image->bytes = disk_cache_load(image->key, &image->size);
    image->found = image->bytes != NULL;
    if (!image->found)
        status = compiler_run(text, w->of->file, t->major, t->minor, t->driver, &image->bytes,
                              &image->size);
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

/* Makes all images, by threads that end with it; by this one alone where none can be started. */
static tally_status make_all(struct work *w) {
    pthread_t thread[GPU_PROGRAM_PARTS];
    sigset_t all, before;
    unsigned threads = 0, most = pool_cores();
    if (most > w->out->count) most = w->out->count;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the caller's threads' */
    while (threads + 1 < most && pthread_create(&thread[threads], NULL, make_images, w) == 0)
        threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    make_images(w);
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
    return w->status;
}

tally_status program_make(const struct gpu_text *of, const struct program_target *target, bool anew,
                          struct program *out) {
    char compiler[COMPILER_NAME];
    *out = (struct program){.count = 1};
    tally_status status = compiler_name(target->major, target->minor, target->driver, compiler);
    if (status != TALLY_OK) return status;
    char *text = embed_expand(of->root);
    if (!text) return fail(TALLY_ENOMEM, "no memory to compile %s", of->file);
    const unsigned kernels = count_kernels(text);
    const bool plain = !of->prelude || !*of->prelude;
    if (plain && kernels > 1 && kernels <= GPU_PROGRAM_PARTS) out->count = kernels;
    struct work work = {
        .of = of, .target = target, .text = text, .compiler = compiler, .anew = anew, .out = out};
    status = make_all(&work);
    if (status != TALLY_OK && out->count > 1) { /* so that this thread has the compiler's words */
        program_free(out);
        *out = (struct program){.count = 1};
        work.next = 0;
        status = make_image(&work, 0);
    }
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
