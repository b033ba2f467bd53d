/*
 * written.c - see written.h.
 */
#include "input/written.h"

#include <string.h>

/* Larger exponents are read as about this one. It is far below LONG_MAX, so that sums of a length
 * and an exponent do not overflow. */
static const long EXPONENT_MOST = 100000000;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_zero_or_point(char c) {
    return c == '0' || c == '.';
}

/* Drops the zeros at both ends of the digits, and a point beside them. */
static void strip(struct written *w) {
    for (; w->length && is_zero_or_point(*w->digits); w->digits++, w->length--)
        w->first -= *w->digits == '0';
    while (w->length && is_zero_or_point(w->digits[w->length - 1]))
        w->length--;
    if (!w->length) w->first = 0;
}

bool written_read(const char *text, struct written *w) {
    long whole = 0, behind = 0, exponent = 0;
    w->negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    w->digits = text;
    for (; is_digit(*text); text++)
        whole++;
    if (*text == '.')
        for (text++; is_digit(*text); text++)
            behind++;
    w->length = (size_t)(text - w->digits);
    if (!whole && !behind) return false;
    if (*text && strchr("eEdD", *text)) {
        const bool down = text[1] == '-';
        text += 1 + (text[1] == '-' || text[1] == '+');
        if (!is_digit(*text)) return false;
        for (; is_digit(*text); text++)
            if (exponent < EXPONENT_MOST) exponent = 10 * exponent + (*text - '0');
        if (down) exponent = -exponent;
    }
    if (*text) return false;
    w->first = whole - 1 + exponent;
    w->places = behind > exponent ? behind - exponent : 0;
    strip(w);
    return true;
}

static int compare_magnitudes(const struct written *a, const struct written *b) {
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    for (size_t i = 0, j = 0;; i++, j++) {
        i += i < a->length && a->digits[i] == '.';
        j += j < b->length && b->digits[j] == '.';
        if (i == a->length || j == b->length) return (j == b->length) - (i == a->length);
        if (a->digits[i] != b->digits[j]) return a->digits[i] < b->digits[j] ? -1 : 1;
    }
}

static int sign_of(const struct written *w) {
    return !w->length ? 0 : w->negative ? -1 : 1;
}

int written_compare(const struct written *a, const struct written *b) {
    const int sign = sign_of(a), other = sign_of(b);
    if (sign != other) return sign < other ? -1 : 1;
    return sign * compare_magnitudes(a, b);
}

bool written_print_whole(const struct written *w, char *out, size_t size) {
    if (w->first < 0 || (size_t)w->first + 3 > size) return false; /* a sign, digits, a zero byte */
    char *const end = out + (sign_of(w) < 0) + w->first + 1;
    if (sign_of(w) < 0) *out++ = '-';
    for (size_t i = 0; i < w->length; i++) {
        if (w->digits[i] == '.') continue;
        if (out == end) return false;
        *out++ = w->digits[i];
    }
    memset(out, '0', (size_t)(end - out));
    *end = 0;
    return true;
}
