/* single.c - see single.h. */
#include "gpu/single.h"

#include "base/paths.h"
#include "base/types.h"

#include <stdbool.h>

/* SAME() lists operators for which another one gives the same bits of one float: X(asked, the other, its monoid, which
 * extreme). All of them make the canonical NaN of a NaN, and none changes -0 but norms, which make +0 of it. */
#define SAME(X)                                                                                    \
    X(TALLY_SUM, TALLY_MAX, MONOID_EXTREMES, WANT_GREATEST)                                        \
    X(TALLY_MEAN, TALLY_MAX, MONOID_EXTREMES, WANT_GREATEST)                                       \
    X(TALLY_NORM1, TALLY_NORMINF, MONOID_EXTREMES, WANT_LEAST | WANT_GREATEST)                     \
    X(TALLY_NORM2, TALLY_NORMINF, MONOID_EXTREMES, WANT_LEAST | WANT_GREATEST)

const struct shaped *single_for(const struct shaped *s, struct single *room) {
    const struct problem *p = s->p;
    const bool are_floats = type_is_float(p->type) && p->values == 1 && p->value[0].type == p->type;
    if (s->cut != TALLY_AXES || s->each != 1 || s->mask || s->means || p->skip_nan || !are_floats)
        return s;
    *room = (struct single){*p, *s};
    room->s.p = &room->p;
    switch (p->value[0].op) {
#define CASE(asked, same, monoid, wanted)                                                          \
    case asked:                                                                                    \
        room->p.value[0].op = same;                                                                \
        room->p.monoids = MONOID_BIT(monoid);                                                      \
        room->p.extremes = wanted;                                                                 \
        break;
        SAME(CASE)
#undef CASE
    default:
        return s;
    }
    TALLY_PATH("rows of one float");
    return &room->s;
}
