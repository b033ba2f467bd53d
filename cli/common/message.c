/*
 * message.c - one line for every failure.
 *
 * File names come from outside and may hold line breaks or terminal escapes, so control characters
 * are shown as '?', those of Unicode too: a message stays one line, and can do nothing to a terminal. A progress line that
 * stands on the terminal is erased first.
 */
#include "common/message.h"

#include "common/progress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Decodes the UTF-8 character that *at begins with. Returns its length in bytes; 0 for invalid
 * UTF-8. */
static size_t decode(const unsigned char *at, size_t left, uint32_t *character) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = *at < 0x80   ? 1
                    : *at < 0xc2 ? 0
                    : *at < 0xe0 ? 2
                    : *at < 0xf0 ? 3
                    : *at < 0xf5 ? 4
                                 : 0;
    if (!length || length > left) return 0;
    uint32_t c = length == 1 ? *at : *at & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (at[i] & 0x3f);
    }
    if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
    *character = c;
    return length;
}

/* Returns true for characters that are invisible or that control a terminal: control characters,
 * spaces other than ' ', and marks of the direction of writing. */
static bool is_hidden(uint32_t c) {
    return c < ' ' || (c >= 0x7f && c <= 0xa0) || c == 0xad || (c >= 0x2000 && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x206f) || c == 0x3000 ||
           c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) || c >= 0xe0000;
}

const char *quoted(const char *text, size_t length, char out[QUOTED_BYTES]) {
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t used = 0;
    *out = 0;
    while (at < end && used < QUOTED_BYTES - 16) {
        uint32_t c = 0;
        size_t size = decode(at, (size_t)(end - at), &c);
        if (size && !is_hidden(c))
            memcpy(out + used, at, size), used += size;
        else if (size > 1)
            used += (size_t)sprintf(out + used, "\\u%04x", c);
        else
            used += (size_t)sprintf(out + used, "\\x%02x", *at);
        at += size ? size : 1;
    }
    snprintf(out + used, QUOTED_BYTES - used, at < end ? "..." : "");
    return out;
}

/* Replaces hidden characters, and bytes that are no UTF-8, by '?'. */
static void mask(char *line) {
    char *to = line;
    for (const char *at = line; *at;) {
        uint32_t c = 0;
        size_t size = decode((const unsigned char *)at, strlen(at), &c);
        if (size && !is_hidden(c)) {
            memmove(to, at, size);
            to += size;
        } else {
            *to++ = '?';
        }
        at += size ? size : 1;
    }
    *to = 0;
}

static void say(const char *format, va_list arguments) {
    char line[8192];
    vsnprintf(line, sizeof line, format, arguments);
    mask(line);
    progress_end();
    fprintf(stderr, "tally: %s\n", line);
}

int failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return STATUS_FAILED;
}

int misused(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return STATUS_USAGE;
}

int finish_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_OK;
    return failed("cannot write to standard output: %s", strerror(errno));
}
