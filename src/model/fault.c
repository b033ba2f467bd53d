/*
 * fault.c - from a fault to a sentence that names kernel, block, lanes and source line.
 *
 * Lines come from the program's debugging information, read by libbacktrace (which comes with gcc)
 * when the first line is asked for. Without either the sentence says less, but is still right.
 */
#include "model/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fault_at(struct model_device *d, model_fault_kind kind, uintptr_t address, unsigned size,
              uintptr_t site, unsigned lane) {
    if (d->fault.kind) return;
    d->fault.kind = kind;
    d->fault.kernel = d->launch->kernel->name;
    d->fault.address = address;
    d->fault.size = size;
    d->fault.here.site = site;
    d->fault.here.block = d->block;
    d->fault.here.lane = lane;
}

void fault_other(struct model_device *d, uintptr_t site, unsigned block, unsigned lane) {
    d->fault.other.site = site;
    d->fault.other.block = block;
    d->fault.other.lane = lane;
}

void fault_stray(struct model_device *d, const model_lane *lane, unsigned source) {
    if (d->stray.kind) return;
    d->stray = (model_fault){
        .kind = MODEL_FAULT_STRAY,
        .kernel = d->launch->kernel->name,
        .address = lane->shuffle_mask,
        .here = {.site = lane->site, .block = d->block, .lane = lane->index},
        .other = {.block = d->block, .lane = lane->index / MODEL_WARP * MODEL_WARP + source}};
    const model_lane *other = &d->lanes[d->stray.other.lane];
    if (d->stray.other.lane < d->launch->block && other->state != LANE_DONE)
        d->stray.other.site = other->site;
}

/* Returns whether a fault is a race of two lanes of one warp, or of two warps of one block. */
static bool is_race_of(const model_fault *f, bool one_warp) {
    const bool is_one = f->here.lane / MODEL_WARP == f->other.lane / MODEL_WARP && !f->warps;
    return f->kind == MODEL_FAULT_RACE && f->here.block == f->other.block && is_one == one_warp;
}

/* Returns whether two faults are of the same two instructions. Where b is of lanes that are not known one by one, one
 * instruction tells. */
static bool is_of_one_pair(const model_fault *a, const model_fault *b) {
    if (b->warps && b->here.lane == b->other.lane)
        return a->here.site == b->here.site || a->other.site == b->here.site;
    return (a->here.site == b->here.site && a->other.site == b->other.site) ||
           (a->here.site == b->other.site && a->other.site == b->here.site);
}

bool fault_forgive(struct model_device *d) {
    if (!d->launch->forgives) return false;
    /* A race between warps is told in place of one within a warp: __syncwarp() would mend the latter alone. */
    if (is_race_of(&d->noted, true) && is_race_of(&d->fault, false) &&
        is_of_one_pair(&d->noted, &d->fault))
        d->noted = d->fault;
    /* A read of what nothing had written is better told as the race with the write, once that comes. */
    const bool explains = d->noted.kind == MODEL_FAULT_UNWRITTEN &&
                          d->fault.kind == MODEL_FAULT_RACE && d->noted.address == d->fault.address;
    if (!d->noted.kind || explains) d->noted = d->fault;
    memset(&d->fault, 0, sizeof d->fault);
    return true;
}

/* ---- Source lines --------------------------------------------------------------------------- */

#ifdef MODEL_HAVE_BACKTRACE
#include <backtrace.h>
#include <pthread.h>

static struct backtrace_state *lines;
static pthread_once_t lines_once = PTHREAD_ONCE_INIT;

static void ignore_error(void *data, const char *message, int number) {
    (void)data, (void)message, (void)number;
}

static void open_lines(void) {
    lines = backtrace_create_state(NULL, 1, ignore_error, NULL);
}

static bool is_header(const char *file) {
    const char *dot = strrchr(file, '.');
    return dot && (strcmp(dot, ".h") == 0 || strcmp(dot, ".hpp") == 0);
}

/* Returns whether a function, by its mangled name, is an assignment or a constructor of a class. The compiler writes those
 * that copy, at the line of the class. */
static bool is_of_class(const char *function) {
    return function && strncmp(function, "_ZN", 3) == 0 &&
           (strstr(function, "aSE") || strstr(function, "C1E") || strstr(function, "C2E") ||
            strstr(function, "C4E"));
}

/* Notes a line. It is called for the innermost of inlined functions first. The code of operators.h
 * counts as the kernel's line, as does a copy of a structure; a helper in the kernel's own file as the helper's. */
static int note_line(void *data, uintptr_t pc, const char *file, int line, const char *function) {
    model_place *place = data;
    (void)pc;
    if (!file || line <= 0 ||
        (place->line && !place->is_copied && (!is_header(place->file) || is_header(file))))
        return 0;
    place->is_copied = is_of_class(function);
    const char *name = strrchr(file, '/');
    snprintf(place->file, sizeof place->file, "%s", name ? name + 1 : file);
    place->line = (unsigned)line;
    return 0;
}

void model_find_line(model_place *place) {
    pthread_once(&lines_once, open_lines);
    if (lines && place->site)
        backtrace_pcinfo(lines, place->site - 1, note_line, ignore_error, place);
}

struct symbol {
    char *name;
    size_t size, bytes;
    uintptr_t start;
};

static void note_symbol(void *data, uintptr_t address, const char *name, uintptr_t value,
                        uintptr_t bytes) {
    struct symbol *s = data;
    if (!name || address - value >= bytes) return;
    s->start = value;
    s->bytes = bytes;
    snprintf(s->name, s->size, "%.*s", (int)strcspn(name, "."), name); /* gcc appends .0, .1 */
}

bool place_array(uintptr_t address, uintptr_t *start, size_t *bytes, char *name, size_t size) {
    struct symbol found = {.name = name, .size = size};
    pthread_once(&lines_once, open_lines);
    if (lines) backtrace_syminfo(lines, address, note_symbol, ignore_error, &found);
    *start = found.start;
    *bytes = found.bytes;
    return found.bytes > 0;
}
#else
void model_find_line(model_place *place) {
    (void)place;
}

bool place_array(uintptr_t address, uintptr_t *start, size_t *bytes, char *name, size_t size) {
    (void)address, (void)start, (void)bytes, (void)name, (void)size;
    return false;
}
#endif

/* ---- The sentence --------------------------------------------------------------------------- */

typedef struct sentence {
    char *text;
    size_t size, length;
} sentence;

__attribute__((format(printf, 2, 3))) static void say(sentence *s, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int more = vsnprintf(s->text + s->length, s->size - s->length, format, list);
    va_end(list);
    if (more > 0) s->length += (size_t)more;
    if (s->length >= s->size) s->length = s->size - 1;
}

static void say_place(sentence *s, const model_place *place) {
    if (place->line)
        say(s, " at %s:%u", place->file, place->line);
    else if (place->site)
        say(s, " at address 0x%llx", (unsigned long long)place->site);
}

/* Says "lanes 0-15, 20": all lanes of the block with this state and site. */
static void say_lanes(sentence *s, const struct model_device *d, lane_state state, uintptr_t site) {
    const char *before = " ";
    unsigned said = 0, count = 0;
    for (unsigned i = 0; i < d->launch->block; i++)
        count += d->lanes[i].state == state && (state == LANE_DONE || d->lanes[i].site == site);
    say(s, count == 1 ? "lane" : "lanes");
    for (unsigned i = 0; i < d->launch->block; i++) {
        unsigned first = i;
        while (i < d->launch->block && d->lanes[i].state == state &&
               (state == LANE_DONE || d->lanes[i].site == site))
            i++;
        if (i == first) continue;
        if (++said > 8) {
            say(s, ", ...");
            break;
        }
        say(s, i - first > 1 ? "%s%u-%u" : "%s%u", before, first, i - 1);
        before = ", ";
    }
}

static const char *memory_name(const struct model_device *d, uintptr_t address) {
    return memory_is_shared(d, address) ? "shared" : "global";
}

/* Says where an access lies that is out of bounds: in a guard, across a buffer's end, or how far from the nearest
 * buffer. */
static void say_outside(sentence *s, const struct model_device *d, uintptr_t address, size_t size) {
    const region *before = NULL, *after = NULL;
    for (size_t i = 0; i < d->buffer_count; i++)
        if (d->buffers[i].base <= address)
            before = &d->buffers[i];
        else if (!after)
            after = &d->buffers[i];
    const size_t offset = before ? address - before->base : 0;
    if (before && offset < before->size && memory_is_guarded(before, offset, size)) {
        say(s, " in a guard, from byte %zu on of a buffer of %zu", offset, before->size);
        return;
    }
    say(s, " outside every buffer");
    const uintptr_t past = before ? address - before->base - before->size : UINTPTR_MAX;
    if (before && address < before->base + before->size)
        say(s, " (across the end of one of %zu bytes)", before->size);
    else if (after && after->base - address < past && after->base - address < 65536)
        say(s, " (%zu bytes before the start of one of %zu)", (size_t)(after->base - address),
            after->size);
    else if (before && past < 65536)
        say(s, " (%zu bytes past the end of one of %zu)", (size_t)past, before->size);
}

/* Says where some lanes wait, and what keeps the others from them. */
static void say_waiting(sentence *s, const struct model_device *d, const model_fault *f) {
    const model_lane *here = &d->lanes[f->here.lane], *other = &d->lanes[f->other.lane];
    say_lanes(s, d, here->state, f->here.site);
    say(s, ": waiting at a %s", f->kind == MODEL_FAULT_BARRIER ? "barrier" : "shuffle");
    say_place(s, &f->here);
    if (other == here) {
        say(s, ", but they name different lanes to shuffle with");
        return;
    }
    say(s, ", while ");
    say_lanes(s, d, other->state, f->other.site);
    if (other->state == LANE_DONE) {
        say(s, " left the kernel");
        return;
    }
    say(s, " wait at a %s", other->state == LANE_SHUFFLE ? "shuffle" : "barrier");
    say_place(s, &f->other);
}

/* Says which access is out of bounds. A size of 0 stands for an index outside an array of known length. */
static void say_bounds(sentence *s, const struct model_device *d, const model_fault *f) {
    if (f->size == 0) {
        say(s, "lane %u: index %lld", f->here.lane, (long long)f->address);
        say_place(s, &f->here);
        say(s, " outside its array");
        return;
    }
    say(s, "lane %u: access of %u bytes", f->here.lane, f->size);
    say_place(s, &f->here);
    say_outside(s, d, f->address, f->size);
}

static void say_race(sentence *s, const struct model_device *d, const model_fault *f) {
    const bool is_one_block = f->other.block == f->here.block;
    if (!is_one_block)
        say(s, "lane %u and block %u, lane %u", f->here.lane, f->other.block, f->other.lane);
    else if (f->other.lane == f->here.lane)
        say(s, "lane %u and another", f->here.lane);
    else
        say(s, "lanes %u and %u", f->other.lane, f->here.lane);
    say(s, ": data race on %u bytes of %s memory, accessed", f->size, memory_name(d, f->address));
    say_place(s, &f->other);
    say(s, " and");
    say_place(s, &f->here);
    say(s, ": at least one writes, and %s is between", is_one_block ? "no barrier" : "nothing");
}

void fault_describe(struct model_device *d, model_fault *f) {
    sentence s = {f->text, sizeof f->text, 0};
    model_find_line(&f->here);
    model_find_line(&f->other);
    model_find_line(&f->between);
    f->here.block = d->numbers[f->here.block];
    f->other.block = d->numbers[f->other.block];

    say(&s, "kernel %s, block %u, ", f->kernel, f->here.block);
    switch (f->kind) {
    case MODEL_FAULT_BARRIER:
    case MODEL_FAULT_SHUFFLE:
        say_waiting(&s, d, f);
        break;
    case MODEL_FAULT_BOUNDS:
        say_bounds(&s, d, f);
        break;
    case MODEL_FAULT_ALIGNMENT:
        say(&s, "lane %u: access of %u bytes", f->here.lane, f->size);
        say_place(&s, &f->here);
        say(&s, " at an address that is no multiple of %u", f->size);
        break;
    case MODEL_FAULT_UNWRITTEN:
        say(&s, "lane %u: reads %u bytes of %s memory", f->here.lane, f->size,
            memory_name(d, f->address));
        say_place(&s, &f->here);
        say(&s, " that nothing has written yet");
        break;
    case MODEL_FAULT_RACE:
        say_race(&s, d, f);
        break;
    case MODEL_FAULT_ORDER:
        say(&s, "lane %u: reads %u bytes of global memory", f->here.lane, f->size);
        say_place(&s, &f->here);
        say(&s, " that block %u, lane %u, wrote", f->other.block, f->other.lane);
        say_place(&s, &f->other);
        say(&s, ", and no fence stands %s the atomic", f->fence == 2 ? "behind" : "before");
        say_place(&s, &f->between);
        break;
    case MODEL_FAULT_PROMISE:
        say(&s, "lane %u: ", f->here.lane);
        say(&s, f->promise ? "__ldg() reads what the kernel has written" : "an assert() fails");
        say_place(&s, &f->here);
        break;
    case MODEL_FAULT_STRAY:
        say(&s, "lane %u: a shuffle", f->here.lane);
        say_place(&s, &f->here);
        say(&s, " takes the value of lane %u, which takes no part in it", f->other.lane);
        break;
    case MODEL_FAULT_STACK:
        say(&s, "lane %u", f->here.lane);
        say_place(&s, &f->here);
        say(&s, " has more variables of its own than the %zu KiB of a lane's stack hold",
            STACK / 1024);
        break;
    case MODEL_FAULT_ENDLESS:
        say(&s, "lane %u", f->here.lane);
        say_place(&s, &f->here);
        say(&s,
            " and its warp executed %llu basic blocks without a barrier: it may wait for a "
            "lane or block that runs later",
            (unsigned long long)d->spent);
        break;
    case MODEL_FAULT_NONE:
        break;
    }
}
