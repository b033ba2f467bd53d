/*
 * guess.c - see guess.h.
 */
#include "input/guess.h"

#include <string.h>

enum {
    LONGEST_NUMBER = 40, /* bytes: a constant array of bytes may look like one long number */
    LEAST_LINES = 16     /* bytes: fewer may be an element or two that look like lines */
};

static bool is_blank(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool guess_text(const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if ((bytes[i] < ' ' && !is_blank(bytes[i])) || bytes[i] == 127) return false;
    return true;
}

/* Returns whether each two bytes are a zero and a byte of text, the zero at place `zero` of 0 and 1. */
static bool is_half_zero(const unsigned char *bytes, size_t size, size_t zero) {
    for (size_t i = 0; i + 1 < size; i += 2)
        if (bytes[i + zero] || !bytes[i + !zero] || !guess_text(bytes + i + !zero, 1)) return false;
    return size > 3;
}

const char *guess_wide_text(const unsigned char *bytes, size_t size) {
    if (size >= 4 && (!memcmp(bytes, "\xff\xfe\0", 4) || !memcmp(bytes, "\0\0\xfe\xff", 4)))
        return "UTF-32";
    if (size >= 2 && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2)))
        return "UTF-16";
    return is_half_zero(bytes, size, 1)   ? "UTF-16LE"
           : is_half_zero(bytes, size, 0) ? "UTF-16BE"
                                          : NULL;
}

bool guess_lines(const unsigned char *bytes, size_t size) {
    if (size < LEAST_LINES || !memchr(bytes, '\n', size)) return false;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] > 127) return false;
    return guess_text(bytes, size);
}

/* Returns whether a word looks like a decimal number: it has a digit, and else only signs, points
 * and e. */
static bool is_number(const unsigned char *word, size_t length) {
    bool has_digit = false;
    if (length > LONGEST_NUMBER) return false;
    for (size_t i = 0; i < length; i++) {
        bool is_digit = word[i] >= '0' && word[i] <= '9';
        has_digit |= is_digit;
        if (!is_digit && (!word[i] || !strchr("+-.eE", word[i]))) return false;
    }
    return has_digit;
}

bool guess_numbers(const unsigned char *bytes, size_t size, bool is_cut) {
    size_t words = 0;
    for (size_t i = 0; i < size;) {
        size_t end = i;
        if (bytes[i] == '#' && (!i || bytes[i - 1] == '\n')) { /* a comment */
            while (end < size && bytes[end] != '\n')
                end++;
            i = end + 1;
            continue;
        }
        while (end < size && !is_blank(bytes[end]))
            end++;
        if (end == size && is_cut && words) return true; /* the last word is not all there */
        if (end > i && !is_number(bytes + i, end - i)) return false;
        words += end > i;
        i = end + 1;
    }
    return words > 0;
}
