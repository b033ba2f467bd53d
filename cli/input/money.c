/*
 * money.c - see money.h.
 *
 * A short number, as nearly all are, is added as an integer to the sum of those with as many
 * places. The digits of a longer number are added to the limbs that they belong to, less than 10^9
 * to each. Carries are settled after at most 2^30 numbers: 2^30 * 10^9 < 2^63, the room of a limb,
 * and 2^30 * 10^18 < 2^127, the room of a sum of short numbers.
 */
#include "input/money.h"

#include "input/written.h"

#include <stdbool.h>
#include <string.h>

static const int64_t BASE = 1000000000;
static const uint32_t CARRY_AFTER = 1u << 30;

/* Moves the sums of short numbers into limbs. A sum is less than 2^30 * 10^18 < 2^90 < 10^36: its
 * digits before the point go into four limbs, those behind it into two, all with the sign of the
 * sum. */
static void gather(struct money *m) {
    for (int p = 0; p <= MONEY_SHORT; p++) {
        int64_t ten = 1;
        for (int i = 0; i < p; i++)
            ten *= 10;
        __int128 whole = m->short_sum[p] / ten;
        const int64_t behind =
            (int64_t)(m->short_sum[p] % ten) * ((int64_t)1000000000000000000 / ten);
        if (!m->short_sum[p]) continue;
        m->short_sum[p] = 0;
        m->limb[MONEY_POINT - 1] += behind / BASE;
        m->limb[MONEY_POINT - 2] += behind % BASE;
        for (int i = 0; i < 3; i++, whole /= BASE)
            m->limb[MONEY_POINT + i] += (int64_t)(whole % BASE);
        m->limb[MONEY_POINT + 3] += (int64_t)whole;
    }
}

/* Makes limbs 0..BASE-1, but for the highest, which has the sign. */
static void carry(struct money *m) {
    gather(m);
    for (int i = 0; i + 1 < MONEY_LIMBS; i++) {
        int64_t over = m->limb[i] / BASE - (m->limb[i] % BASE < 0);
        m->limb[i] -= over * BASE;
        m->limb[i + 1] += over;
    }
    m->since = 0;
}

/* Reads a number. Zeros may stand farther behind the point than its digits may. */
static enum decimal_result parse(const char *text, struct written *w) {
    if (!written_read(text, w)) return DECIMAL_MALFORMED;
    const bool has_point = memchr(w->digits, '.', w->length);
    const long last =
        w->first + 1 + has_point - (long)w->length; /* power of ten of its last digit */
    if (w->places > MONEY_DIGITS) w->places = MONEY_DIGITS;
    return w->first >= MONEY_DIGITS || last < -MONEY_DIGITS ? DECIMAL_RANGE : DECIMAL_OK;
}

void money_add_short(struct money *m, int64_t digits, int places) {
    m->short_sum[places] += digits;
    if (places > m->places) m->places = places;
    if (++m->since == CARRY_AFTER) carry(m);
}

enum decimal_result money_check(const char *text) {
    struct written w;
    return parse(text, &w);
}

enum decimal_result money_add(struct money *m, const char *text) {
    static const int64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    int64_t digits;
    int places;
    const char *end = decimal_split(text, &digits, &places);
    if (end && !*end) return money_add_short(m, digits, places), DECIMAL_OK;
    struct written w;
    enum decimal_result result = parse(text, &w);
    if (result != DECIMAL_OK) return result;
    long power = w.first + 9 * MONEY_POINT;
    for (size_t i = 0; i < w.length; i++) {
        if (w.digits[i] == '.') continue;
        int64_t digit = (w.digits[i] - '0') * tens[power % 9];
        m->limb[power / 9] += w.negative ? -digit : digit;
        power--;
    }
    if (w.places > m->places) m->places = (int)w.places;
    if (++m->since == CARRY_AFTER) carry(m);
    return DECIMAL_OK;
}

void money_merge(struct money *m, const struct money *other) {
    struct money added = *other;
    carry(&added);
    carry(m);
    for (int i = 0; i < MONEY_LIMBS; i++)
        m->limb[i] += added.limb[i];
    if (added.places > m->places) m->places = added.places;
}

static void print_limb(int64_t limb, char digits[9]) {
    for (int i = 8; i >= 0; i--, limb /= 10)
        digits[i] = (char)('0' + limb % 10);
}

const char *money_print(const struct money *money, char text[MONEY_TEXT]) {
    struct money m = *money;
    char digits[9 * MONEY_LIMBS], *to = text;
    carry(&m);
    const bool negative = m.limb[MONEY_LIMBS - 1] < 0;
    if (negative) {
        for (int i = 0; i < MONEY_LIMBS; i++)
            m.limb[i] = -m.limb[i];
        carry(&m);
    }
    for (int i = 0; i < MONEY_LIMBS; i++)
        print_limb(m.limb[i], digits + 9 * (MONEY_LIMBS - 1 - i));
    const int units = 9 * (MONEY_LIMBS - MONEY_POINT) - 1; /* index of the units digit */
    int first = 0;
    while (first < units && digits[first] == '0')
        first++;
    if (negative) *to++ = '-';
    memcpy(to, digits + first, (size_t)(units + 1 - first));
    to += units + 1 - first;
    if (m.places) {
        *to++ = '.';
        memcpy(to, digits + units + 1, (size_t)m.places);
        to += m.places;
    }
    *to = 0;
    return text;
}
