/* shown.c - see shown.h. */
#include "device/shown.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "base/unaligned.h"

#include <stdlib.h>
#include <string.h>

/* Most elements of an allocated piece: enough work for all threads of a device, or for a launch. */
#define PIECE_MOST ((size_t)1 << 20)

struct problem shown_problem(const struct problem *p) {
    struct problem plain = *p;
    plain.skip_nan = 0;
    return plain;
}

/* ---- Which elements are shown ----------------------------------------------------------------- */

#define IS_NAN_F16(v)  (((v)&0x7fffu) > 0x7c00u)
#define IS_NAN_BF16(v) (((v)&0x7fffu) > 0x7f80u)
#define IS_NAN(v)      ((v) != (v))

#define HIDE(type, is_nan)                                                                         \
    do {                                                                                           \
        const type *e = (const type *)x;                                                           \
        if (step == 1)                                                                             \
            for (size_t i = 0; i < n; i++) {                                                       \
                const unsigned char nan = is_nan(e[i]);                                            \
                any |= nan;                                                                        \
                shown[i] = (unsigned char)(shown[i] & (nan ^ 1));                                  \
            }                                                                                      \
        else                                                                                       \
            for (size_t i = 0; i < n; i++) {                                                       \
                const unsigned char nan = is_nan(e[(ptrdiff_t)i * step]);                          \
                any |= nan;                                                                        \
                shown[i] = (unsigned char)(shown[i] & (nan ^ 1));                                  \
            }                                                                                      \
    } while (0)

/* Clears shown[i] where the i-th of n elements, `step` apart, is a NaN; returns whether one is. */
static int hide(tally_type type, const void *x, ptrdiff_t step, size_t n, unsigned char *shown) {
    unsigned char any = 0;
    switch (type) {
    case TALLY_F16:
        HIDE(unaligned_u16, IS_NAN_F16);
        break;
    case TALLY_BF16:
        HIDE(unaligned_u16, IS_NAN_BF16);
        break;
    case TALLY_F32:
        HIDE(unaligned_f32, IS_NAN);
        break;
    case TALLY_F64:
        HIDE(unaligned_f64, IS_NAN);
        break;
    default: /* integers are no NaNs */
        break;
    }
    return any;
}

/* Sets shown[i] to 1 if the i-th element of the slice is shown, else to 0. Returns whether an element is hidden. The
 * slice has at most SHOWN_BLOCK elements. */
static int look(tally_type type, const struct slice *in, unsigned char *shown) {
    memset(shown, 1, in->n);
    const int in_x = hide(type, in->x, 1, in->n, shown);
    return (in->y && hide(type, in->y, 1, in->n, shown)) || in_x;
}

static struct slice first_of(const struct slice *in, size_t most) {
    return (struct slice){in->x, in->y, in->n < most ? in->n : most};
}

static void drop_first(struct slice *in, size_t n, size_t element) {
    in->x = (const char *)in->x + n * element;
    if (in->y) in->y = (const char *)in->y + n * element;
    in->n -= n;
}

tally_status shown_is_all(const struct problem *p, const struct slice *in, int *is_all) {
    unsigned char shown[SHOWN_BLOCK];
    struct slice left = *in;
    *is_all = 1;
    while (left.n > 0 && *is_all) {
        if (stop_asked()) return stop_status();
        const struct slice block = first_of(&left, SHOWN_BLOCK);
        *is_all = !look(p->type, &block, shown);
        drop_first(&left, block.n, type_size(p->type));
    }
    return TALLY_OK;
}

/* ---- Pieces ------------------------------------------------------------------------------------ */

static void lay_out(struct shown_pieces *s, int is_indexed) {
    const size_t element = type_size(s->type);
    s->piece.x = scratch_array(&s->scratch, s->room, element);
    if (s->left.y) s->piece.y = scratch_array(&s->scratch, s->room, element);
    if (is_indexed) s->index = scratch_array(&s->scratch, s->room, sizeof *s->index);
}

void shown_begin(struct shown_pieces *s, const tally_device *device, const struct problem *p,
                 const struct slice *in) {
    const int may_allocate = device && device != cpu_calling_thread() && in->n > SHOWN_BLOCK;
    const int is_indexed = (p->extremes & WANT_INDEX) != 0;
    s->type = p->type;
    s->left = *in;
    s->piece = (struct slice){0};
    s->index = NULL;
    s->next = 0;
    s->scratch = (struct scratch){0};
    s->room =
        in->n < PIECE_MOST ? (in->n + SHOWN_BLOCK - 1) / SHOWN_BLOCK * SHOWN_BLOCK : PIECE_MOST;
    if (may_allocate) lay_out(s, is_indexed);
    if (may_allocate && scratch_create(&s->scratch, 0)) {
        TALLY_PATH("pieces for a device");
        lay_out(s, is_indexed);
    } else {
        TALLY_PATH("small pieces");
        s->room = SHOWN_BLOCK;
        s->piece = (struct slice){s->own_x, in->y ? s->own_y : NULL, 0};
        if (is_indexed) s->index = s->own_index;
    }
}

void shown_end(struct shown_pieces *s) {
    scratch_destroy(&s->scratch);
}

/* Writes every element, but moves on only after a shown one, so that there is no branch per element. */
#define PACK(type)                                                                                 \
    for (size_t i = 0, k = 0; i < n; i++) {                                                        \
        ((type *)to)[k] = ((const type *)from)[i];                                                 \
        k += shown[i];                                                                             \
    }

static void pack(void *to, const void *from, size_t element, const unsigned char *shown, size_t n) {
    if (element == 2)
        PACK(unaligned_u16)
    else if (element == 4)
        PACK(unaligned_u32)
    else
        PACK(unaligned_u64)
}

/* Packs the shown elements of a block behind the piece, which has room for all of the block. */
static void add_block(struct shown_pieces *s, const struct slice *block) {
    const size_t element = type_size(s->type), at = s->piece.n * element;
    size_t count = 0;
    look(s->type, block, s->shown);
    pack((char *)(uintptr_t)s->piece.x + at, block->x, element, s->shown, block->n);
    if (block->y) pack((char *)(uintptr_t)s->piece.y + at, block->y, element, s->shown, block->n);
    for (size_t i = 0; s->index && i < block->n; i++) {
        s->index[s->piece.n + count] = s->next + i;
        count += s->shown[i];
    }
    if (!s->index)
        for (size_t i = 0; i < block->n; i++)
            count += s->shown[i];
    s->piece.n += count;
}

tally_status shown_next(struct shown_pieces *s) {
    s->piece.n = 0;
    while (s->left.n > 0 && s->piece.n < s->room) {
        if (stop_asked()) return stop_status();
        const size_t room = s->room - s->piece.n;
        const struct slice block = first_of(&s->left, room < SHOWN_BLOCK ? room : SHOWN_BLOCK);
        add_block(s, &block);
        drop_first(&s->left, block.n, type_size(s->type));
        s->next += block.n;
    }
    return TALLY_OK;
}

/* ---- Masks ------------------------------------------------------------------------------------- */

static size_t step_of(const struct extent *e) {
    return e->x < 0 ? (size_t)-e->x : (size_t)e->x;
}

/* Sets of[] to the shape's axes along which an array moves, from the largest step of x in memory to the smallest.
 * Axes of equal steps keep their order. Returns how many axes these are. */
static unsigned sort_axes(struct shaped *s, struct extent **of) {
    const unsigned reduces = s->cut == TALLY_AXES ? s->reduces : 1;
    unsigned count = 0;
    for (unsigned d = 0; d < s->keeps + reduces; d++) {
        struct extent *one = d < s->keeps ? &s->kept[d] : &s->reduced[d - s->keeps];
        if (one->x == 0 && one->y == 0 && one->mask == 0) continue;
        unsigned k = count++;
        for (; k > 0 && step_of(of[k - 1]) < step_of(one); k--)
            of[k] = of[k - 1];
        of[k] = one;
    }
    return count;
}

/* Appends an axis; or merges it with the axis before it, if one step along that axis is as long as the whole new axis
 * in all arrays. */
static void add_axis(struct shown_axes *a, const struct extent *e) {
    struct extent *last = a->count > 0 ? &a->of[a->count - 1] : NULL;
    const ptrdiff_t length = (ptrdiff_t)e->length;
    if (!last || last->x != e->x * length || last->y != e->y * length ||
        last->mask != e->mask * length) {
        a->of[a->count++] = *e;
        return;
    }
    const size_t outer = last->length;
    *last = *e;
    last->length *= outer;
}

size_t shown_plan(struct shaped *s, struct shown_axes *from) {
    struct extent *of[SHOWN_AXES];
    const unsigned count = sort_axes(s, of);
    size_t bytes = 1;
    from->count = 0;
    for (unsigned d = 0; d < count; d++) {
        add_axis(from, of[d]);
        if (__builtin_mul_overflow(bytes, of[d]->length, &bytes)) return SIZE_MAX;
    }
    if (count == 0) from->of[from->count++] = (struct extent){.length = 1};
    ptrdiff_t step = 1;
    for (unsigned d = count; d-- > 0; step *= (ptrdiff_t)of[d]->length)
        of[d]->mask = step;
    return bytes;
}

int shown_is_needed(const struct shaped *s) {
    return s->p->skip_nan && s->results > 0 && (s->cut == TALLY_AXES ? s->each : s->n) > 0;
}

/* A position in the shape: the index along each axis, and the offset in each array. */
struct place {
    size_t index[SHOWN_AXES];
    struct extent at;
};

/* Moves to the next line of the innermost axis; returns whether there is one. */
static int next_line(const struct shown_axes *a, struct place *p) {
    for (unsigned d = a->count - 1; d-- > 0;) {
        const struct extent *e = &a->of[d];
        p->at.x += e->x;
        p->at.y += e->y;
        p->at.mask += e->mask;
        if (++p->index[d] < e->length) return 1;
        p->index[d] = 0;
        p->at.x -= (ptrdiff_t)e->length * e->x;
        p->at.y -= (ptrdiff_t)e->length * e->y;
        p->at.mask -= (ptrdiff_t)e->length * e->mask;
    }
    return 0;
}

/* Writes the mask's bytes for n elements of a line, from number `first` on. Returns whether an element is a NaN. */
static int look_along(const struct shaped *s, const struct extent *line, const struct extent *at,
                      size_t first, size_t n, unsigned char *shown) {
    const ptrdiff_t size = (ptrdiff_t)type_size(s->p->type), i = (ptrdiff_t)first;
    if (s->mask)
        for (size_t k = 0; k < n; k++)
            shown[k] = s->mask[at->mask + (i + (ptrdiff_t)k) * line->mask] != 0;
    else
        memset(shown, 1, n);
    const int in_x = hide(s->p->type, s->x + (at->x + i * line->x) * size, line->x, n, shown);
    return (s->y && hide(s->p->type, s->y + (at->y + i * line->y) * size, line->y, n, shown)) ||
           in_x;
}

/* Writes the mask; sets *any to whether an element is a NaN. */
static tally_status look_at_all(const struct shaped *s, const struct shown_axes *a,
                                unsigned char *shown, int *any) {
    const struct extent *line = &a->of[a->count - 1];
    struct place p = {{0}, {.length = 0}};
    size_t looked = 0;
    *any = 0;
    do
        for (size_t i = 0, n; i < line->length; i += n) {
            n = line->length - i < SHOWN_BLOCK ? line->length - i : SHOWN_BLOCK;
            *any |= look_along(s, line, &p.at, i, n, shown);
            shown += n;
            looked += n;
            if (looked < SHOWN_BLOCK) continue;
            looked = 0;
            if (stop_asked()) return stop_status();
        }
    while (next_line(a, &p));
    return TALLY_OK;
}

tally_status shown_mask(struct shaped *s, unsigned char **owned) {
    struct shaped masked = *s;
    struct shown_axes axes;
    int any;
    *owned = NULL;
    if (!shown_is_needed(s)) return TALLY_OK;
    const size_t bytes = shown_plan(&masked, &axes);
    unsigned char *mask = bytes < PTRDIFF_MAX ? malloc(bytes) : NULL;
    if (!mask) return fail(TALLY_ENOMEM, "no memory for a mask of the elements that are no NaN");
    const tally_status status = look_at_all(s, &axes, mask, &any);
    if (status != TALLY_OK || !any) {
        TALLY_PATH("a shape without a NaN");
        free(mask);
        return status;
    }
    TALLY_PATH("a shape with a NaN");
    masked.mask = *owned = mask;
    *s = masked;
    return TALLY_OK;
}
