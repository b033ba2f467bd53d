/* along.c - see along.h. */
#include "along.h"

int is_along(const tally_shape *s) {
    return s->cut != TALLY_AXES && s->dims > 0;
}

unsigned axis_of(const tally_shape *s) {
    unsigned d = 0;
    while (d + 1 < s->dims && !(s->axes >> d & 1))
        d++;
    return d;
}

size_t length_along(const tally_shape *s) {
    return is_along(s) ? s->length[axis_of(s)] : s->n;
}

uint64_t offset_along(const tally_shape *s, size_t i) {
    if (!s->offsets) return length_along(s) / s->count * i;
    return s->offsets_type == TALLY_I32 ? (uint64_t)((const int32_t *)s->offsets)[i]
                                        : (uint64_t)((const int64_t *)s->offsets)[i];
}

/* Returns the id of index i; INT64_MAX for an id that no int64 holds. */
static int64_t id_along(const tally_shape *s, size_t i) {
    switch (s->ids_type) {
    case TALLY_I8:
        return ((const int8_t *)s->ids)[i];
    case TALLY_I16:
        return ((const int16_t *)s->ids)[i];
    case TALLY_I32:
        return ((const int32_t *)s->ids)[i];
    case TALLY_U8:
        return ((const uint8_t *)s->ids)[i];
    case TALLY_U16:
        return ((const uint16_t *)s->ids)[i];
    case TALLY_U32:
        return ((const uint32_t *)s->ids)[i];
    case TALLY_U64: {
        const uint64_t id = ((const uint64_t *)s->ids)[i];
        return id > INT64_MAX ? INT64_MAX : (int64_t)id;
    }
    default:
        return ((const int64_t *)s->ids)[i];
    }
}

void number_parts(const tally_shape *s, size_t *part) {
    const size_t n = length_along(s);
    for (size_t i = 0; i < n; i++) {
        const int64_t id = s->cut == TALLY_GROUPS ? id_along(s, i) : -1;
        part[i] = id >= 0 && (uint64_t)id < s->count ? (size_t)id : SIZE_MAX;
    }
    for (size_t p = 0; s->cut == TALLY_SEGMENTS && p < s->count; p++)
        for (size_t i = (size_t)offset_along(s, p); i < offset_along(s, p + 1); i++)
            part[i] = p;
}
