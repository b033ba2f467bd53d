/* own_tell.c - see own_tell.h. */
#include "ladder/own_tell.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void say(struct own_teller *t, const char *format,
                                                      ...) {
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
static int nearest_array(const struct own_teller *t, uintptr_t address, uintptr_t *base,
                         size_t *n) {
    const struct {
        int role;
        uintptr_t base;
        size_t count;
    } arrays[] = {{t->roles.input, t->input, length_of(t->how)},
                  {t->roles.second, t->second, length_of(t->how)},
                  {t->roles.output, t->output, t->how->outputs},
                  {t->roles.partials, t->partials, t->how->outputs}};
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
static void say_element(struct own_teller *t, uintptr_t address) {
    const uintptr_t global = t->own->object.global.base;
    char name[OWN_NAME_BYTES];
    const char *shared;
    struct own_span span = {0, 0};
    uintptr_t base = 0;
    size_t n = 0;
    size_t bytes_each = 0;
    if (own_object_array(&t->own->object, address, &shared, &span)) {
        const model_array *a = model_array_at(t->own->device, span.base);
        if (a) bytes_each = a->element;
    } else if (own_object_variable(&t->own->object, address, &shared, &span)) {
        const struct own_variable *v = own_find_variable(t->own, span.base);
        if (v) bytes_each = v->element;
    }
    if (own_object_say(&t->own->object, address, bytes_each ? bytes_each : t->size,
                       t->out->sentence + t->length, sizeof t->out->sentence - t->length)) {
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
    own_parameter_name(t->kernel, (unsigned)role, name);
    say(t, "%s[%lld]", name, (long long)(bytes < 0 ? (bytes - size + 1) / size : bytes / size));
}

static void say_length_of(struct own_teller *t, uintptr_t address) {
    char name[OWN_NAME_BYTES];
    uintptr_t base = 0;
    size_t n = 0;
    const int role = nearest_array(t, address, &base, &n);
    if (role < 0) return;
    own_parameter_name(t->kernel, (unsigned)role, name);
    say(t, ", but %s has %zu element%s", name, n, n == 1 ? "" : "s");
}

static void say_line(struct own_teller *t, const char *before, const model_place *place) {
    if (place->line) say(t, "%sline %u", before, place->line);
}

static void tell_race(struct own_teller *t, const model_fault *f) {
    const char *const deed[2] = {"reads", "writes"};
    const bool same_block = f->here.block == f->other.block;
    if (!same_block)
        say(t, "lane %u of block %u and lane %u of block %u touch ", f->other.lane, f->other.block,
            f->here.lane, f->here.block);
    else if (f->other.lane == f->here.lane)
        say(t,
            f->warps ? "lane %u and one of another warp of block %u touch "
                     : "lane %u and another of block %u touch ",
            f->here.lane, f->here.block);
    else
        say(t, "lanes %u and %u of block %u touch ", f->other.lane, f->here.lane, f->here.block);
    say_element(t, f->address);
    say(t, same_block ? " without a barrier between them"
                      : ", and blocks have no barrier between them");
    if (!f->other.line || !f->here.line) return;
    say(t, ": line %u %s, line %u %s", f->other.line, deed[f->other.writes], f->here.line,
        deed[f->here.writes]);
}

void own_tell_order(struct own_teller *t, const model_fault *f) {
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

void own_tell_stray(struct own_teller *t, const model_fault *f) {
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
    if (f->overwrites) return f->here.block != f->other.block ? 4 : 3;
    const bool is_one_line = f->here.writes && f->other.writes && f->here.line == f->other.line;
    if (f->here.block == f->other.block && is_one_line && f->here.line) return 5;
    return f->here.block != f->other.block
               ? 2
               : f->here.lane / MODEL_WARP == f->other.lane / MODEL_WARP && !f->warps;
}

void own_tell_untried(struct own_teller *t, const model_fault *f) {
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
static void tell_in_its_words(struct own_teller *t, const model_fault *f) {
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

void own_tell(struct own_teller *t, const model_fault *f) {
    static const tally_own_fault kinds[] = {[MODEL_FAULT_NONE] = TALLY_OWN_RIGHT,
                                            [MODEL_FAULT_BARRIER] = TALLY_OWN_BARRIER,
                                            [MODEL_FAULT_SHUFFLE] = TALLY_OWN_BARRIER,
                                            [MODEL_FAULT_BOUNDS] = TALLY_OWN_BOUNDS,
                                            [MODEL_FAULT_ALIGNMENT] = TALLY_OWN_ALIGNMENT,
                                            [MODEL_FAULT_UNWRITTEN] = TALLY_OWN_UNWRITTEN,
                                            [MODEL_FAULT_RACE] = TALLY_OWN_RACE,
                                            [MODEL_FAULT_ORDER] = TALLY_OWN_ORDER,
                                            [MODEL_FAULT_STRAY] = TALLY_OWN_SHUFFLE,
                                            [MODEL_FAULT_PROMISE] = TALLY_OWN_PROMISE,
                                            [MODEL_FAULT_STACK] = TALLY_OWN_STACK,
                                            [MODEL_FAULT_ENDLESS] = TALLY_OWN_ENDLESS};
    t->out->fault = kinds[f->kind];
    t->out->line = f->here.line;
    t->out->other_line = f->other.line;
    t->out->detail = f->kind == MODEL_FAULT_ORDER     ? f->fence
                     : f->kind == MODEL_FAULT_SHUFFLE ? 1
                     : f->kind == MODEL_FAULT_BARRIER ? (f->other.site ? 0 : 2)
                     : f->kind == MODEL_FAULT_PROMISE ? f->promise
                     : f->kind == MODEL_FAULT_ENDLESS ? !f->waits
                     : f->kind != MODEL_FAULT_RACE    ? 0
                                                      : race_detail(f);
    switch (f->kind) {
    case MODEL_FAULT_ORDER:
        own_tell_order(t, f);
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
            if (*f->array)
                say(t, "%s[%lld]", f->array, (long long)f->address);
            else
                say(t, "index %lld of an array", (long long)f->address);
            say_line(t, ", ", &f->here);
            say(t, ", which is outside of %s", *f->array ? "the array" : "it");
            return;
        }
        say_element(t, f->address);
        say_line(t, ", ", &f->here);
        if (own_object_is_near(&t->own->object, f->address))
            say(t, ", which is outside of the array");
        else
            say_length_of(t, f->address);
        return;
    case MODEL_FAULT_PROMISE:
        say(t,
            f->promise ? "lane %u of block %u reads " : "lane %u of block %u comes to an assert()",
            f->here.lane, f->here.block);
        if (f->promise) say_element(t, f->address);
        say(t,
            f->promise ? " by __ldg(), and the kernel has written there" : " that does not hold");
        say_line(t, ": ", &f->here);
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
