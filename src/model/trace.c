/*
 * trace.c - the accesses of a step, instruction by instruction and lane by lane, for launches that ask for them.
 *
 * What the lanes of a warp did together becomes a model_access: the array, each lane's place in it and the
 * value there, what it cost, and the line of the kernel's text. Lines and shared arrays are looked up once.
 */
#include "model/machine.h"

#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

/* Looks an origin up by its site, or by an address within its array; NULL where it is new. */
static origin *find_origin(const struct model_device *d, uintptr_t at, bool array) {
    for (origin *o = d->origins; o; o = o->next)
        if (array ? at - o->site < o->size : o->size == 0 && o->site == at) return o;
    return NULL;
}

static origin *add_origin(struct model_device *d, uintptr_t site) {
    origin *o = calloc(1, sizeof *o);
    if (!o) {
        d->out_of_memory = true;
        return NULL;
    }
    o->site = site;
    o->next = d->origins;
    d->origins = o;
    return o;
}

static void set_line(struct model_device *d, model_access *m, uintptr_t site) {
    origin *o = find_origin(d, site, false);
    if (!o && (o = add_origin(d, site))) {
        model_place place = {.site = site};
        model_find_line(&place);
        memcpy(o->name, place.file, sizeof o->name - 1);
        o->line = place.line;
    }
    m->file = o ? o->name : "";
    m->line = o ? o->line : 0;
}

/* Returns which of d->guesses a shared address belongs to. Without symbols a shared array seems to
 * start at the first address that the launch accesses. Another one starts at the first address
 * below all known arrays. */
static unsigned guess_array(struct model_device *d, uintptr_t address) {
    const unsigned most = sizeof d->guesses / sizeof *d->guesses;
    unsigned best = d->guess_count;
    for (unsigned i = 0; i < d->guess_count; i++)
        if (d->guesses[i] <= address &&
            (best == d->guess_count || d->guesses[i] > d->guesses[best]))
            best = i;
    if (best < d->guess_count) return best;
    if (d->guess_count < most) d->guess_count++;
    best = d->guess_count - 1;
    d->guesses[best] = address;
    return best;
}

/* Sets the access's array and name: those of the shared array around an address. */
static void set_shared(struct model_device *d, model_access *m, uintptr_t address) {
    origin *o = find_origin(d, address, true);
    if (!o) {
        char name[sizeof o->name];
        uintptr_t start;
        size_t bytes;
        if (place_array(address, &start, &bytes, name, sizeof name) && (o = add_origin(d, start))) {
            o->size = bytes;
            memcpy(o->name, name, sizeof name);
        }
    }
    static const char *const guessed[] = {"", "shared2", "shared3", "shared4"};
    const unsigned guess = o ? 0 : guess_array(d, address);
    m->array = (const void *)(o ? o->site : d->guesses[guess]);
    m->name = o ? o->name : guessed[guess];
}

static void set_global(struct model_device *d, model_access *m, uintptr_t address) {
    const region *r = memory_buffer_at(d, address, m->size);
    m->array = r ? (const void *)r->base : NULL;
}

/* ---- Accesses ---- */

static model_access *add(struct model_device *d, uintptr_t site) {
    if (d->trace_count == d->trace_capacity) {
        const size_t capacity = d->trace_capacity ? 2 * d->trace_capacity : 64;
        model_access *more = realloc(d->trace, capacity * sizeof *more);
        if (!more) {
            d->out_of_memory = true;
            return NULL;
        }
        d->trace = more;
        d->trace_capacity = capacity;
    }
    model_access *m = &d->trace[d->trace_count++];
    memset(m, 0, sizeof *m);
    m->warp = (unsigned)(d->warp - d->warps);
    m->name = "";
    set_line(d, m, site);
    return m;
}

static model_access_kind kind_of(unsigned kind) {
    kind &= ACCESS_ATOMIC;
    return kind == ACCESS_ATOMIC ? MODEL_ATOMIC : kind == ACCESS_WRITE ? MODEL_WRITE : MODEL_READ;
}

/* Makes an access for each array in which the lanes' addresses lie; the first has the counts. */
void trace_access(struct model_device *d, const warp_access *a, bool shared,
                  const model_warp_step *before) {
    const model_warp_step *now = d->warp;
    bool first = true;
    for (uint32_t left = shared ? a->shared : a->global; left;) {
        model_access *m = add(d, a->site);
        if (!m) return;
        m->kind = kind_of(a->kind);
        m->shared = shared;
        m->size = a->size;
        if (first) {
            m->transactions = now->transactions - before->transactions;
            m->fewest_transactions = now->fewest_transactions - before->fewest_transactions;
            m->bank_conflicts = now->bank_conflicts - before->bank_conflicts;
        }
        for (uint32_t lanes = left; lanes; lanes &= lanes - 1) {
            const unsigned l = (unsigned)__builtin_ctz(lanes);
            const void *array = m->array;
            const char *name = m->name;
            (shared ? set_shared : set_global)(d, m, a->address[l]);
            if (array && m->array != array) { /* in another array: part of a later access */
                m->array = array;
                m->name = name;
                continue;
            }
            m->lanes |= UINT32_C(1) << l;
            m->place[l] = a->address[l] - (uintptr_t)m->array;
            m->value[l] = a->value[l];
            if (m->kind == MODEL_ATOMIC) m->given[l] = a->value[l];
        }
        left &= ~m->lanes;
        first = false;
    }
}

void trace_apply(struct model_device *d, const warp_access *a) {
    model_access *m = add(d, a->site);
    if (!m) return;
    m->kind = MODEL_APPLY;
    m->lanes = a->applied;
}

void trace_exchange(struct model_device *d, const uint64_t got[MODEL_WARP]) {
    model_access *m = add(d, d->group[0]->site);
    if (!m) return;
    m->kind = MODEL_EXCHANGE;
    for (unsigned i = 0; i < d->group_size; i++) {
        const model_lane *lane = d->group[i];
        const unsigned l = lane->index % MODEL_WARP;
        m->lanes |= UINT32_C(1) << l;
        m->place[l] = lane->shuffle_source < MODEL_WARP ? lane->shuffle_source : l;
        m->given[l] = lane->shuffle_value;
        m->value[l] = got[i];
    }
}

void trace_finish(struct model_device *d) {
    for (size_t i = 0; i < d->trace_count; i++) {
        model_access *m = &d->trace[i];
        if (m->kind != MODEL_WRITE && m->kind != MODEL_ATOMIC) continue;
        for (uint32_t lanes = m->lanes; lanes; lanes &= lanes - 1) {
            const unsigned l = (unsigned)__builtin_ctz(lanes);
            m->value[l] = 0;
            memcpy(&m->value[l], (const char *)m->array + m->place[l], m->size < 8 ? m->size : 8);
        }
    }
}

void trace_release(struct model_device *d) {
    while (d->origins) {
        origin *next = d->origins->next;
        free(d->origins);
        d->origins = next;
    }
    free(d->trace);
}
