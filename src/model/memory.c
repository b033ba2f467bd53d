/*
 * memory.c - buffers and their shadow.
 *
 * Every byte that kernels may touch has a cell in a shadow, which remembers whether anything has been
 * written there and who read and wrote last, and when. With that each access is checked as it happens:
 *
 *   bounds      it lies within one buffer and in no guard of it, or in shared memory
 *   alignment   its address is a multiple of its size
 *   unwritten   what it reads has been written: in shared memory, by this block
 *   race        the thread that accessed the word before is ordered before this access, unless both read or
 *               both are atomic or volatile, or the one that is not is a guess (machine.h)
 *   overwrite   a volatile store does not change what a thread has stored that is not ordered before it:
 *               volatile makes nothing atomic (for launches that forgive)
 *   order       if a volatile access meets another block's volatile write, which that block has announced by an
 *               atomic, a fence stands before the atomic
 *
 * Ordered before an access are: what the same lane did before; what any lane of the block did before the last
 * barrier, or a lane of the same warp before the warp's last __syncwarp(); earlier launches. And what another
 * block did, if it then fenced and did an atomic at some location, and this block then did an atomic there and
 * fenced: the message passing of CUDA's memory model, seen per location.
 *
 * A cell keeps one reader and one writer. The last writer is enough, because a second one is either
 * ordered after it or a race by itself. Of several readers it keeps the first of the launch that is
 * another block's, else the last, and whether there were more in that step.
 */
#include "base/invariant.h"
#include "model/machine.h"

#include <stdlib.h>
#include <string.h>

#define PADDING 256 /* bytes before and after a buffer that no code may touch; and its alignment */
#define GAP                                                                                        \
    ((size_t)48                                                                                    \
     << 10) /* more such bytes behind a buffer: an access far past the end is still told as this buffer's */

/* The linker's names for the ends of the kernels' __shared__ arrays. */
extern char __start_model_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_model_shared[] __attribute__((weak, visibility("hidden")));

void memory_find_shared(struct model_device *d) {
    const uintptr_t start = (uintptr_t)__start_model_shared, stop = (uintptr_t)__stop_model_shared;
    const model_span ours[2] = {{start, stop - start}, {0, 0}};
    memcpy(d->shared, d->launch->shared ? d->launch->shared : ours, sizeof d->shared);
}

bool memory_is_shared(const struct model_device *d, uintptr_t address) {
    return address - d->shared[0].base < d->shared[0].bytes ||
           address - d->shared[1].base < d->shared[1].bytes;
}

/* ---- Regions -------------------------------------------------------------------------------- */

static bool region_shadow(region *r, unsigned shift) {
    r->shift = shift;
    r->cells = calloc((r->size >> shift) + 1, sizeof *r->cells);
    return r->cells != NULL;
}

/* Cuts a region's cells down to 2^shift bytes each; every new one is a copy of the old one around it. */
static bool region_refine(struct model_device *d, region *r, unsigned shift) {
    cell *const coarse = r->cells;
    const unsigned finer = r->shift - shift;
    if (!region_shadow(r, shift)) {
        r->cells = coarse;
        r->shift = shift + finer;
        d->out_of_memory = true;
        return false;
    }
    const size_t count = (r->size >> shift) + 1;
    for (size_t i = 0; i < count; i++)
        r->cells[i] = coarse[i >> finer];
    free(coarse);
    return true;
}

region *memory_buffer_at(struct model_device *d, uintptr_t address, size_t size) {
    size_t low = 0, high = d->buffer_count;
    region *r = d->buffers + d->last_buffer;
    if (d->last_buffer < high && address - r->base < r->size && size <= r->base + r->size - address)
        return r;
    while (low < high) { /* the last buffer that starts at or before the address */
        size_t middle = low + (high - low) / 2;
        if (d->buffers[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return NULL;
    r = d->buffers + low - 1;
    if (address - r->base > r->size || size > r->base + r->size - address) return NULL;
    d->last_buffer = low - 1;
    return r;
}

static region *page_at(struct model_device *d, uintptr_t address) {
    uintptr_t base = address & ~(uintptr_t)(PAGE - 1);
    if (d->last_page < d->page_count && d->pages[d->last_page].base == base)
        return &d->pages[d->last_page];
    for (size_t i = 0; i < d->page_count; i++)
        if (d->pages[i].base == base) {
            d->last_page = i;
            return &d->pages[i];
        }
    if (d->page_count == d->page_capacity) {
        size_t capacity = d->page_capacity ? 2 * d->page_capacity : 4;
        region *more = realloc(d->pages, capacity * sizeof *more);
        if (!more) {
            d->out_of_memory = true;
            return NULL;
        }
        d->pages = more;
        d->page_capacity = capacity;
    }
    region *r = &d->pages[d->page_count];
    *r = (region){.base = base, .size = PAGE};
    if (!region_shadow(r, 4)) {
        d->out_of_memory = true;
        return NULL;
    }
    d->last_page = d->page_count++;
    return r;
}

/* Makes room for one more buffer. */
static bool make_room(struct model_device *d) {
    if (d->buffer_count < d->buffer_capacity) return true;
    size_t capacity = d->buffer_capacity ? 2 * d->buffer_capacity : 8;
    region *more = realloc(d->buffers, capacity * sizeof *more);
    if (!more) return false;
    d->buffers = more;
    d->buffer_capacity = capacity;
    return true;
}

static void insert(struct model_device *d, region r) {
    size_t at = d->buffer_count++;
    for (; at > 0 && d->buffers[at - 1].base > r.base; at--)
        d->buffers[at] = d->buffers[at - 1];
    d->buffers[at] = r;
    TALLY_ASSERT(at == 0 || d->buffers[at - 1].base + d->buffers[at - 1].size <= r.base);
}

model_status memory_add(struct model_device *d, size_t bytes, void **out) {
    if (!make_room(d) || bytes > SIZE_MAX / 4) return MODEL_ENOMEM;
    region r = {.size = bytes};
    r.allocation = malloc(bytes + 3 * PADDING + GAP);
    if (!r.allocation || !region_shadow(&r, 4)) {
        free(r.allocation);
        return MODEL_ENOMEM;
    }
    r.base = ((uintptr_t)r.allocation + 2 * PADDING - 1) & ~(uintptr_t)(PADDING - 1);
    memset((void *)r.base, 0xa5, bytes); /* unwritten memory holds no useful number */

    insert(d, r);
    *out = (void *)r.base;
    return MODEL_OK;
}

model_status memory_adopt(struct model_device *d, void *memory, size_t bytes) {
    region r = {.base = (uintptr_t)memory, .size = bytes};
    if (!make_room(d) || !region_shadow(&r, 4)) return MODEL_ENOMEM;
    for (size_t i = 0; i <= r.size >> r.shift; i++)
        r.cells[i].known = 1;
    insert(d, r);
    return MODEL_OK;
}

model_status memory_remove(struct model_device *d, void *memory) {
    region *r = memory_buffer_at(d, (uintptr_t)memory, 0);
    if (!r || r->base != (uintptr_t)memory) return MODEL_EINVAL;
    const size_t i = (size_t)(r - d->buffers);
    free(r->cells);
    free(r->allocation);
    d->buffer_count--;
    memmove(r, r + 1, (d->buffer_count - i) * sizeof *r);
    return MODEL_OK;
}

model_status memory_set_guards(struct model_device *d, void *memory, const model_guard *guards,
                               size_t count) {
    if (count > MODEL_GUARDS) return MODEL_EINVAL;
    for (size_t i = 0; i < d->buffer_count; i++)
        if (d->buffers[i].base == (uintptr_t)memory) {
            region *r = &d->buffers[i];
            r->guard_count = (unsigned)count;
            if (count > 0) memcpy(r->guards, guards, count * sizeof *guards);
            return MODEL_OK;
        }
    return MODEL_EINVAL;
}

bool memory_is_guarded(const region *r, size_t offset, size_t size) {
    for (unsigned i = 0; i < r->guard_count; i++)
        if (offset < r->guards[i].to && offset + size > r->guards[i].from) return true;
    return false;
}

model_status memory_mark_known(struct model_device *d, region *r, size_t offset, size_t bytes) {
    size_t ends = offset | (offset + bytes == r->size ? 0 : offset + bytes);
    unsigned shift = r->shift;
    while (shift > 0 && (ends & (((size_t)1 << shift) - 1)))
        shift--;
    if (bytes && shift < r->shift && !region_refine(d, r, shift)) {
        d->out_of_memory = false;
        return MODEL_ENOMEM;
    }
    for (size_t i = offset >> shift; bytes && i <= (offset + bytes - 1) >> shift; i++)
        r->cells[i].known = 1;
    return MODEL_OK;
}

/* Forgets all epochs, which start over; memory known to be written stays so. */
void memory_forget_epochs(struct model_device *d) {
    for (size_t b = 0; b < d->buffer_count; b++) {
        region *r = &d->buffers[b];
        for (size_t i = 0; i < (r->size >> r->shift) + 1; i++)
            r->cells[i] = (cell){.known = r->cells[i].known};
    }
    for (size_t w = 0; w < d->page_count; w++)
        memset(d->pages[w].cells, 0, ((d->pages[w].size >> d->pages[w].shift) + 1) * sizeof(cell));
}

/* Frees all pages where there are too many. Otherwise they stay from launch to launch, as kernels are
 * often launched again. */
void memory_trim_pages(struct model_device *d) {
    if (d->page_count <= PAGES_KEPT) return;
    for (size_t i = 0; i < d->page_count; i++)
        free(d->pages[i].cells);
    d->page_count = 0;
}

/* Copies each page's part of the shared arrays to d->saved, or from there. */
static void copy_shared(struct model_device *d, bool back) {
    TALLY_ASSERT(d->saved_size >= d->page_count * PAGE);
    for (size_t i = 0; i < 2 * d->page_count; i++) {
        const model_span *shared = &d->shared[i % 2];
        const uintptr_t base = d->pages[i / 2].base, stop = shared->base + shared->bytes;
        const uintptr_t from = base > shared->base ? base : shared->base;
        const uintptr_t to = base + PAGE < stop ? base + PAGE : stop;
        char *saved = d->saved + i / 2 * PAGE + (from - base);
        if (from >= to) continue;
        if (back)
            memcpy((void *)from, saved, to - from);
        else
            memcpy(saved, (const void *)from, to - from);
    }
}

bool memory_save_shared(struct model_device *d) {
    const size_t size = d->page_count * PAGE;
    if (size > d->saved_size) {
        char *more = realloc(d->saved, size);
        if (!more) return false;
        d->saved = more;
        d->saved_size = size;
    }
    copy_shared(d, false);
    return true;
}

void memory_restore_shared(struct model_device *d) {
    copy_shared(d, true);
}

void memory_release(struct model_device *d) {
    for (size_t i = 0; i < d->buffer_count; i++) {
        free(d->buffers[i].cells);
        free(d->buffers[i].allocation);
    }
    for (size_t i = 0; i < d->page_count; i++)
        free(d->pages[i].cells);
    free(d->buffers);
    free(d->pages);
}

/* ---- Checks --------------------------------------------------------------------------------- */

unsigned memory_block_of(const struct model_device *d, uint32_t epoch) {
    unsigned low = 0, high = d->launch ? d->block : (unsigned)d->counts.blocks - 1;
    while (low < high) {
        unsigned middle = low + (high - low + 1) / 2;
        if (d->block_epochs[middle] <= epoch)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* A pair of atomics at one location by which values of another block reach the running lane: one of that block, then one
 * of this block. passed_on() takes the pair with the most fences. */
struct passing {
    const handshake *given, *taken; /* NULL: there is no such pair */
    bool released, acquired; /* a fence stands before the writer's atomic; behind the reader's */
    bool barred;             /* a barrier of the block stands behind the reader's */
};

static struct passing passed_on(const struct model_device *d, uint32_t epoch, unsigned lane) {
    struct passing best = {0};
    if (d->acquired_count == 0) return best;
    unsigned block = memory_block_of(d, epoch);
    size_t low = 0, high = d->release_count;
    while (low < high) { /* the first atomic of that block or a later one */
        size_t middle = low + (high - low) / 2;
        if (d->releases[middle].block < block)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < d->release_count && d->releases[low].block == block; low++) {
        const handshake *given = &d->releases[low];
        if (epoch > given->epoch || (epoch == given->epoch && lane != given->lane)) continue;
        for (unsigned i = 0; i < d->acquired_count; i++) {
            const handshake *taken = &d->acquired[i];
            if (taken->location != given->location ||
                (taken->epoch >= d->epoch && taken->lane != d->lane->index))
                continue;
            /* After a barrier each lane's own fence is one behind the atomic. */
            const bool barred = taken->epoch < d->barrier_epoch;
            const bool fenced = taken->fenced || (barred && d->lane->last_fence > taken->epoch);
            if (best.given && given->fenced + fenced <= best.released + best.acquired) continue;
            best = (struct passing){given, taken, given->fenced, fenced, barred};
            if (best.released && best.acquired) return best;
        }
    }
    return best;
}

/* Returns whether a pair of atomics orders what `lane` did in `epoch` before an access of the running lane. A volatile
 * access is not held back by a cache and needs no fence behind the reader's atomic. */
static bool is_ordered(const struct model_device *d, uint32_t epoch, unsigned lane, bool relaxed) {
    const struct passing p = passed_on(d, epoch, lane);
    return p.released && (p.acquired || relaxed);
}

/* Returns whether the running warp's lanes have met since one of them, `by`, did something in `epoch`. */
static bool met(const struct model_device *d, uint32_t epoch, unsigned by) {
    return epoch < d->warp_epoch && !(by & CELL_WARPS) &&
           (by & CELL_LANE) / MODEL_WARP == d->lane->index / MODEL_WARP;
}

/* Returns whether nothing orders an earlier access in `epoch` before one that the running lane does now. `by` is
 * the lane that did it, with its flags. */
static bool is_concurrent(const struct model_device *d, uint32_t epoch, unsigned by, bool relaxed) {
    if (epoch < d->launch_epoch) return false;
    if (epoch >= d->block_epoch)
        return epoch >= d->barrier_epoch && !met(d, epoch, by) &&
               ((by & CELL_LANE) != d->lane->index || (by & CELL_MANY));
    return !is_ordered(d, epoch, by & CELL_LANE, relaxed);
}

/* Returns whether an earlier access may collide with one that the running lane does now. */
static bool unordered(const struct model_device *d, uint32_t epoch, unsigned by, bool relaxed) {
    return !(relaxed && (by & CELL_RELAXED)) && is_concurrent(d, epoch, by, relaxed);
}

/* Returns whether lanes have handed what this instruction reads to a compare and swap. */
static bool is_tried(const struct model_device *d, uintptr_t site) {
    for (unsigned i = 0; i < d->tried_count; i++)
        if (d->tried[i] == site) return true;
    return false;
}

static void note_tried(struct model_device *d, uintptr_t site) {
    if (d->tried_count < TRIED_READS && !is_tried(d, site)) d->tried[d->tried_count++] = site;
}

/* Turns a race into a guess of the lane that read plainly; returns false if the race is no
 * guess. */
static bool is_guess(struct model_device *d, uintptr_t address, unsigned size, unsigned kind,
                     uintptr_t site, uint32_t epoch, unsigned by, int32_t by_site, bool by_writes) {
    const bool reads_plainly = kind == ACCESS_READ && by_writes && (by & CELL_RELAXED);
    const bool was_read = (kind & ACCESS_SWAP) && !by_writes;
    if (!d->launch->forgives || !(reads_plainly || was_read)) return false;
    if (was_read && epoch < d->block_epoch)
        return is_tried(d, d->anchor + (uintptr_t)(intptr_t)by_site);
    model_guess *g = &d->lanes[reads_plainly ? d->lane->index : by & CELL_LANE].guess;
    if (g->address && g->address != address) return false;
    d->unsettled += !g->address;
    *g = (model_guess){.address = address,
                       .size = size,
                       .read_site = reads_plainly ? site : d->anchor + (uintptr_t)(intptr_t)by_site,
                       .lane = d->lane->index,
                       .other_lane = by & CELL_LANE,
                       .other_block = memory_block_of(d, epoch),
                       .site = site,
                       .other_site = d->anchor + (uintptr_t)(intptr_t)by_site,
                       .writes = kind & ACCESS_WRITE,
                       .other_writes = by_writes};
    return true;
}

/* Notes a compare and swap of the running lane at an address: its earlier read there was a guess,
 * and no race. */
static void try_guess(struct model_device *d, cell *c, uintptr_t address) {
    model_guess *g = &d->lane->guess;
    if (g->address == address) {
        note_tried(d, g->read_site);
        g->address = 0;
        d->unsettled--;
    }
    for (unsigned i = 0; i < 2 && d->lane->read_address == address; i++)
        note_tried(d, d->lane->read_sites[i]);
    if (c->read >= d->block_epoch && (c->reader & (CELL_LANE | CELL_RELAXED)) == d->lane->index) {
        note_tried(d, d->anchor + (uintptr_t)(intptr_t)c->read_site);
        c->read = 0;
    }
}

void memory_settle_guesses(struct model_device *d) {
    if (d->fault.kind) return; /* which ends the launch */
    for (unsigned i = 0; d->unsettled && i < d->launch->block; i++) {
        model_guess *g = &d->lanes[i].guess;
        if (!g->address) continue;
        fault_at(d, MODEL_FAULT_RACE, g->address, g->size, g->site, g->lane);
        d->fault.here.writes = g->writes;
        d->fault.other.writes = g->other_writes;
        fault_other(d, g->other_site, g->other_block, g->other_lane);
        if (is_tried(d, g->read_site)) {
            if (!d->untried.kind) d->untried = d->fault;
            memset(&d->fault, 0, sizeof d->fault);
        } else {
            fault_forgive(d);
        }
        g->address = 0;
        d->unsettled--;
    }
}

/* Returns whether the running lane has done an atomic at a place. Its later store there follows what others did there
 * before, as all threads see one order of the accesses to one place. */
static bool has_swapped(const struct model_device *d, uintptr_t address) {
    for (unsigned i = 0; i < d->acquired_count; i++)
        if (d->acquired[i].location == address && d->acquired[i].lane == d->lane->index)
            return true;
    return false;
}

/* Notes that the running lane reads what another block has passed on: by a flag, a lock or a counter. */
static void note_passed(struct model_device *d, uintptr_t address, const cell *c) {
    if (!(c->writer & CELL_PASSES) || c->write < d->launch_epoch || c->write >= d->block_epoch)
        return;
    const unsigned block = memory_block_of(d, c->write);
    if (d->seen[block] < d->seen[d->block]) d->seen[d->block] = d->seen[block];
    d->seen_at = d->seen_at == 0 || d->seen_at == address ? address : 1;
}

/* Returns whether the running lane, or one of several of its block, was the last to read a cell. */
static bool has_read(const struct model_device *d, const cell *c) {
    return c->read >= d->block_epoch &&
           ((c->reader & CELL_LANE) == d->lane->index || (c->reader & CELL_MANY));
}

/* Returns whether what stood last in a cell is ordered before a volatile store of the running lane. A place that both
 * threads read before they store is no flag that orders their stores to itself: each may have read before the other stored. */
static bool is_passed(const struct model_device *d, uintptr_t address, const cell *c) {
    if ((c->writer & CELL_ATOMIC) && has_swapped(d, address)) return true;
    if (!is_concurrent(d, c->write, c->writer, true)) return true;
    if (c->write >= d->block_epoch) return false;
    if (!(c->writer & CELL_CHANGES) && has_read(d, c)) return true;
    return d->seen_at != address && memory_block_of(d, c->write) >= d->seen[d->block];
}

/* Notes a volatile store over what an unordered thread has stored. It is a race if it changes the value: the one that is
 * left depends on who comes last, and a sum by `+=` loses a term. Threads that store one value, such as a flag, may. */
static void note_overwrite(struct model_device *d, uintptr_t address, unsigned size, uintptr_t site,
                           const cell *c) {
    if (d->overwrite.kind || !(c->writer & CELL_RELAXED) || is_passed(d, address, c)) return;
    fault_at(d, MODEL_FAULT_RACE, address, size, site, d->lane->index);
    fault_other(d, d->anchor + (uintptr_t)(intptr_t)c->write_site, memory_block_of(d, c->write),
                c->writer & CELL_LANE);
    d->fault.here.writes = d->fault.other.writes = d->fault.overwrites = true;
    d->overwrite = d->fault;
    memset(&d->fault, 0, sizeof d->fault);
    memcpy(d->before, (const void *)address, size);
}

void memory_settle_overwrite(struct model_device *d) {
    const model_fault *o = &d->overwrite;
    if (!o->kind) return;
    const bool changes = memcmp(d->before, (const void *)(uintptr_t)o->address, o->size) != 0;
    if (changes && !d->fault.kind) {
        d->fault = *o;
        fault_forgive(d);
    }
    d->overwrite.kind = MODEL_FAULT_NONE;
}

/* Returns whether the running lane reads a value that another block wrote by a volatile store and
 * announced by an atomic without a fence before it. A GPU may let the atomic be seen first. */
static bool overtakes(const struct model_device *d, uint32_t epoch, unsigned by, unsigned kind) {
    const bool is_atomic = (kind & ACCESS_ATOMIC) == ACCESS_ATOMIC;
    if (!(by & CELL_RELAXED) || (by & CELL_ATOMIC) || is_atomic || !(kind & ACCESS_RELAXED) ||
        epoch < d->launch_epoch || epoch >= d->block_epoch)
        return false;
    const struct passing p = passed_on(d, epoch, by & CELL_LANE);
    return p.given && !p.released;
}

/* Returns whether an access is unordered only because the reader's block has no fence behind its atomic. A barrier
 * stands there instead, and the block has not read the place before the atomic, so that no cache has an old value. */
static bool lacks_only_a_fence(const struct model_device *d, const struct passing *p,
                               const cell *c) {
    const bool was_read = c->read >= d->block_epoch && c->read <= (p->taken ? p->taken->epoch : 0);
    return d->launch->forgives && p->released && p->barred && !was_read;
}

/* Handles an access that nothing orders behind the cell's last write, if `by_writes`, or its last read. Returns whether
 * the lane may go on. The access is not yet noted in the cell. */
static bool race(struct model_device *d, uintptr_t address, unsigned size, unsigned kind,
                 uintptr_t site, const cell *c, bool by_writes) {
    const uint32_t epoch = by_writes ? c->write : c->read;
    const unsigned by = by_writes ? c->writer : c->reader;
    const int32_t by_site = by_writes ? c->write_site : c->read_site;
    if (is_guess(d, address, size, kind, site, epoch, by, by_site, by_writes)) return true;
    const struct passing p =
        epoch < d->block_epoch ? passed_on(d, epoch, by & CELL_LANE) : (struct passing){0};
    const bool is_order = by_writes && p.given && !(kind & ACCESS_WRITE);
    const bool is_late = lacks_only_a_fence(d, &p, c);
    if (is_late && !is_order) return true;
    fault_at(d, is_order ? MODEL_FAULT_ORDER : MODEL_FAULT_RACE, address, size, site,
             d->lane->index);
    if (is_order) {
        const handshake *at = p.released ? p.taken : p.given;
        d->fault.fence = p.released ? 2 : p.given->fenced_block;
        d->fault.between = (model_place){.site = at->site, .block = d->numbers[at->block]};
    }
    d->fault.here.writes = kind & ACCESS_WRITE;
    d->fault.other.writes = by_writes;
    d->fault.warps = !by_writes && (by & CELL_WARPS);
    fault_other(d, d->anchor + (uintptr_t)(intptr_t)by_site, memory_block_of(d, epoch),
                by & CELL_LANE);
    if (!is_late) return fault_forgive(d);
    if (!d->unfenced.kind) d->unfenced = d->fault;
    memset(&d->fault, 0, sizeof d->fault);
    return true;
}

/* Asks the launch's owner for a buffer at an address. Returns the buffer if it holds all bytes of the access, else
 * NULL. */
static region *absent_buffer(struct model_device *d, uintptr_t address, unsigned size) {
    const model_launch *l = d->launch;
    return l->on_absent && l->on_absent(l->owner, address) ? memory_buffer_at(d, address, size)
                                                           : NULL;
}

bool memory_is_written(struct model_device *d, uintptr_t address, size_t bytes) {
    const region *r = memory_buffer_at(d, address, bytes);
    if (!r || bytes == 0) return false;
    const size_t from = (address - r->base) >> r->shift;
    const size_t to = (address - r->base + bytes - 1) >> r->shift;
    for (size_t i = from; i <= to; i++)
        if (r->cells[i].write >= d->launch_epoch && r->cells[i].write > 0) return true;
    return false;
}

size_t memory_bytes_read(const struct model_device *d, uintptr_t base) {
    size_t bytes = 0;
    for (size_t b = 0; b < d->buffer_count; b++) {
        const region *r = &d->buffers[b];
        if (r->base != base) continue;
        for (size_t i = 0; i << r->shift < r->size; i++)
            if (r->cells[i].read >= d->launch_epoch) bytes += (size_t)1 << r->shift;
    }
    return bytes;
}

void memory_note_asked(struct model_device *d, uintptr_t address, unsigned size) {
    model_lane *me = d->lane;
    uint64_t value = 0;
    memcpy(&value, (const void *)address, size < sizeof value ? size : sizeof value);
    if (me->asked == address && me->asked_value == value) d->waited = d->spent;
    me->asked = address;
    me->asked_value = value;
}

/* Returns whether a read of that cell may be one that waits: a variable in global memory, or what an atomic or another
 * block has written. */
static bool may_wait(const struct model_device *d, const region *r, const cell *c, bool shared) {
    if (c->write >= d->launch_epoch &&
        ((c->writer & CELL_ATOMIC) || (!shared && c->write < d->block_epoch)))
        return true;
    return !shared && !r->allocation;
}

/* Notes a read of the running lane in a cell; `mark` is the lane with its flags. */
static void note_read(struct model_device *d, cell *c, uint16_t mark, int32_t near) {
    const unsigned me = d->lane->index;
    const bool relaxed = mark & CELL_RELAXED;
    if (c->read >= d->barrier_epoch && !met(d, c->read, c->reader)) {
        /* It was read before in this step. A plain reader stays noted where an atomic one follows. */
        const unsigned by = c->reader & CELL_LANE;
        unsigned more = c->reader & (CELL_MANY | CELL_WARPS);
        if (by != me) more |= CELL_MANY;
        if (by / MODEL_WARP != me / MODEL_WARP) more |= CELL_WARPS;
        if (!relaxed || (c->reader & CELL_RELAXED)) {
            c->read = d->epoch;
            c->reader = mark;
            c->read_site = near;
        }
        c->reader |= (uint16_t)more;
    } else if (c->read < d->launch_epoch || c->read >= d->block_epoch ||
               is_ordered(d, c->read, c->reader & CELL_LANE, false)) {
        c->read = d->epoch;
        c->reader = mark;
        c->read_site = near;
    }
}

bool memory_check(struct model_device *d, uintptr_t address, unsigned size, unsigned kind,
                  uintptr_t site) {
    const bool shared = memory_is_shared(d, address);
    const bool relaxed = kind & ACCESS_RELAXED;
    const unsigned me = d->lane->index;
    const bool atomic = (kind & ACCESS_ATOMIC) == ACCESS_ATOMIC;
    const uint16_t mark =
        (uint16_t)(me | (relaxed ? CELL_RELAXED : 0) | (atomic ? CELL_ATOMIC : 0));
    const int32_t near = (int32_t)(site - d->anchor);

    if (address & (size - 1)) {
        fault_at(d, MODEL_FAULT_ALIGNMENT, address, size, site, me);
        return false;
    }
    region *r = shared ? page_at(d, address) : memory_buffer_at(d, address, size);
    if (!r && !shared) r = absent_buffer(d, address, size);
    if (!r) {
        if (!d->out_of_memory) fault_at(d, MODEL_FAULT_BOUNDS, address, size, site, me);
        return false;
    }
    const size_t offset = address - r->base;
    if (r->guard_count > 0 && memory_is_guarded(r, offset, size)) {
        fault_at(d, MODEL_FAULT_BOUNDS, address, size, site, me);
        return false;
    }
    if (size < (size_t)1 << r->shift && !region_refine(d, r, (unsigned)__builtin_ctz(size)))
        return false;

    if (kind == ACCESS_READ) {
        model_lane *l = d->lane;
        l->read_sites[1] = l->read_address == address ? l->read_sites[0] : site;
        l->read_sites[0] = site;
        l->read_address = address;
    }
    const uint32_t oldest = shared ? d->block_epoch : d->launch_epoch;
    cell *c = r->cells + (offset >> r->shift), *end = r->cells + ((offset + size - 1) >> r->shift);
    const cell *const first = c;
    for (; c <= end; c++) {
        if ((kind & ACCESS_SWAP) && d->launch->forgives) try_guess(d, c, address);
        if ((kind & ACCESS_READ) && (shared ? c->write < oldest : !c->known)) {
            fault_at(d, MODEL_FAULT_UNWRITTEN, address, size, site, me);
            if (!fault_forgive(d)) return false;
        }
        if (c->write >= oldest && unordered(d, c->write, c->writer, relaxed) &&
            !race(d, address, size, kind, site, c, true))
            return false;
        if (!shared && c->write >= oldest && overtakes(d, c->write, c->writer, kind) &&
            !race(d, address, size, kind, site, c, true))
            return false;
        if (kind & ACCESS_WRITE) {
            if (relaxed && !atomic && d->launch->forgives && c->write >= oldest)
                note_overwrite(d, address, size, site, c);
            if (c->read >= oldest && unordered(d, c->read, c->reader, relaxed) &&
                !race(d, address, size, kind, site, c, false))
                return false;
            if (relaxed && !shared && (kind & ACCESS_READ)) note_passed(d, address, c);
            c->write = d->epoch;
            c->writer = (uint16_t)(mark | (has_read(d, c) ? CELL_CHANGES : 0) |
                                   (relaxed && d->lane->fenced ? CELL_PASSES : 0));
            c->write_site = near;
            c->known = 1;
        } else {
            if (relaxed && !shared) note_passed(d, address, c);
            if (c == first && may_wait(d, r, c, shared)) memory_note_asked(d, address, size);
            note_read(d, c, mark, near);
        }
    }
    return true;
}
