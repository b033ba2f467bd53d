/*
 * spelling.c - see spelling.h.
 */
#include "input/spelling.h"

#include "common/types.h"
#include "input/money.h"
#include "input/written.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    SHORT_WORD = 256,  /* bytes; a longer word is copied to the heap */
    INTEGER_TEXT = 24, /* bytes: a sign, the 20 digits of the largest u64, a zero byte */
};

const struct spelling spelling_usual = {.mark = 0};

/* ---- Missing values ---- */

/* Words for a missing value, in any case of letters. */
static const char *const missing_words[] = {"",     "NA",  "N/A",      "null", "none", "-",
                                            "<NA>", "\\N", "#N/A N/A", "#N/A", "#NA",  "NaT"};

/* Returns true for NaN as C libraries print it: nan, -nan(ind), nan(0x8000), -1.#IND, 1.#QNAN0. */
static bool is_nan_text(const char *word) {
    static const char *const kinds[] = {"QNAN", "SNAN", "IND", "NAN"};
    word += *word == '-' || *word == '+';
    if (strncasecmp(word, "nan", 3) == 0) {
        const size_t length = strlen(word);
        return !word[3] || (word[3] == '(' && word[length - 1] == ')');
    }
    word += strspn(word, "0123456789");
    if (strncmp(word, ".#", 2) != 0) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i]);
        if (strncasecmp(word + 2, kinds[i], length) == 0)
            return !word[2 + length + strspn(word + 2 + length, "0123456789")];
    }
    return false;
}

bool spelling_is_known_missing(const char *word) {
    for (size_t i = 0; i < sizeof missing_words / sizeof *missing_words; i++)
        if (strcasecmp(word, missing_words[i]) == 0) return true;
    return is_nan_text(word);
}

bool spelling_is_missing(const struct spelling *s, const char *word) {
    for (size_t i = 0; i < s->na_count; i++)
        if (strcmp(word, s->na[i]) == 0) return true;
    return spelling_is_known_missing(word);
}

bool spelling_is_excel_error(const char *text, const char *end, size_t *length) {
    static const char *const errors[] = {"#N/A N/A", "#N/A",   "#NA",   "#DIV/0!", "#VALUE!",
                                         "#REF!",    "#NAME?", "#NUM!", "#NULL!"};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        *length = strlen(errors[i]);
        if ((size_t)(end - text) >= *length && memcmp(text, errors[i], *length) == 0) return true;
    }
    return false;
}

/* Returns whether two elements are the same number. */
static bool are_equal(tally_type type, const void *a, const void *b) {
    const size_t size = tally_type_size(type);
    static const unsigned char zero[8];
    unsigned char x[8] = {0}, y[8] = {0};
    if (memcmp(a, b, size) == 0) return true;
    if (!type_is_floating(type)) return false;
    memcpy(x, a, size);
    memcpy(y, b, size);
    x[size - 1] &= 0x7f; /* -0 equals 0 */
    y[size - 1] &= 0x7f;
    return memcmp(x, zero, size) == 0 && memcmp(y, zero, size) == 0;
}

/* Returns true if a floating element is an infinity or 0 but its text is neither: the number was
 * rounded out of the type's range. */
static bool is_out_of_range(tally_type type, const char *text, const void *element) {
    tally_value value = {.type = type};
    memcpy(&value.as, element, tally_type_size(type));
    tally_value_convert(&value, TALLY_F64, &value);
    text += *text == '-' || *text == '+';
    if (value.as.f64 == 0) {
        const bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
        text += is_hex ? 2 : 0;
        text += strspn(text, "0.");
        return *text && !strchr(is_hex ? "pP" : "eEdD", *text);
    }
    return isinf(value.as.f64) && *text != 'i' && *text != 'I';
}

/* Writes a hexadecimal number of C, such as 0x10 or -0x1.8p4, as the decimal that equals it. Returns
 * the word itself if it is none, or has more digits than a u64 (without p) or a double holds. */
static const char *as_decimal(const char *word, char out[SPELLING_PLAIN]) {
    enum { PLACES = 200 };
    const char *at = word + (*word == '-' || *word == '+'), *digits = at + 2;
    double x;
    if (at[0] != '0' || (at[1] != 'x' && at[1] != 'X')) return word;
    digits += strspn(digits, "0");
    const size_t length = strspn(digits, "0123456789abcdefABCDEF.");
    if (length && length <= 16 && !digits[length] && !memchr(digits, '.', length)) {
        const unsigned long long whole = strtoull(digits, NULL, 16);
        snprintf(out, SPELLING_PLAIN, "%s%llu", *word == '-' ? "-" : "", whole);
        return out;
    }
    /* 13 digits of 4 bits fit a double's 53. The printed digits are exact if 2^PLACES x is whole. */
    if (length > 13 || decimal_read(TALLY_F64, word, &x) != DECIMAL_OK ||
        is_out_of_range(TALLY_F64, word, &x))
        return word;
    const double scaled = ldexp(x, PLACES);
    const bool is_exact = isfinite(scaled) && scaled == floor(scaled);
    const int written = is_exact ? snprintf(out, SPELLING_PLAIN, "%.*f", PLACES, x) : -1;
    return written >= 0 && written < SPELLING_PLAIN ? out : word;
}

/* Reads a word of --na as an element, and returns false if no element equals it. An integer may
 * have a point or an exponent, or be hexadecimal. */
static bool read_na_number(const struct spelling *s, tally_type type, const char *word,
                           void *element) {
    struct written w;
    char whole[INTEGER_TEXT], plain[SPELLING_PLAIN], decimal[SPELLING_PLAIN];
    word = spelling_plain(s, word, plain);
    if (type_is_floating(type))
        return decimal_read(type, word, element) == DECIMAL_OK &&
               !is_out_of_range(type, word, element);
    return written_read(as_decimal(word, decimal), &w) &&
           written_print_whole(&w, whole, sizeof whole) &&
           decimal_read(type, whole, element) == DECIMAL_OK;
}

void spelling_na_numbers(const struct spelling *s, tally_type type, struct na_numbers *out) {
    out->type = type;
    out->count = 0;
    for (size_t i = 0; i < s->na_count; i++)
        out->count += read_na_number(s, type, s->na[i], out->element[out->count]);
}

bool spelling_is_na_number(const struct na_numbers *numbers, const void *element) {
    for (size_t i = 0; i < numbers->count; i++)
        if (are_equal(numbers->type, element, numbers->element[i])) return true;
    return false;
}

/* ---- Numbers ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool spelling_normalise(const struct spelling *s, const char *word, char *out) {
    const size_t apart = strlen(s->thousands);
    const char mark = s->mark ? s->mark : '.';
    size_t digits = 0, groups = 0; /* digits of the group that is read; groups before it */
    if (*word == '-' || *word == '+') *out++ = *word++;
    for (;; word++) {
        if (is_digit(*word)) {
            digits++;
            *out++ = *word;
        } else if (apart && strncmp(word, s->thousands, apart) == 0) {
            if (groups ? digits != 3 : digits < 1 || digits > 3 || out[-(ptrdiff_t)digits] == '0')
                return false;
            groups++;
            digits = 0;
            word += apart - 1;
        } else {
            break;
        }
    }
    if (groups && digits != 3) return false;
    if (*word == mark) {
        *out++ = '.';
        word++;
    } else if (*word == '.' || *word == ',') {
        return false;
    }
    if (strpbrk(word, ".,")) return false;
    strcpy(out, word);
    return true;
}

const char *spelling_plain(const struct spelling *s, const char *word, char out[SPELLING_PLAIN]) {
    const bool is_short = !spelling_is_plain(s) && strlen(word) < SPELLING_PLAIN;
    return is_short && spelling_normalise(s, word, out) ? out : word;
}

bool spelling_is_number(const struct spelling *s, const char *word) {
    char plain[SPELLING_PLAIN];
    double x;
    return decimal_read(TALLY_F64, spelling_plain(s, word, plain), &x) == DECIMAL_OK;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Returns true if a decimal equals one of the numbers of --na exactly. */
static bool is_na_decimal(const struct spelling *s, const char *word) {
    struct written number, other;
    char plain[SPELLING_PLAIN], decimal[SPELLING_PLAIN];
    if (!written_read(word, &number)) return false;
    for (size_t i = 0; i < s->na_count; i++) {
        const char *na = as_decimal(spelling_plain(s, s->na[i], plain), decimal);
        if (written_read(na, &other) && written_compare(&number, &other) == 0) return true;
    }
    return false;
}

enum spelling_result spelling_read(const struct spelling *s, tally_type type, char *word,
                                   size_t length, void *element) {
    size_t first = 0;
    while (first < length && is_blank(word[first]))
        first++;
    while (length > first && is_blank(word[length - 1]))
        length--;
    memset(word + length, 0, DECIMAL_SPARE);
    word += first;
    if (strlen(word) != length - first) return SPELLING_MALFORMED; /* a zero byte */
    if (s->skip_na && spelling_is_missing(s, word)) return SPELLING_MISSING;
    if (!spelling_is_plain(s)) {
        char stack_word[SHORT_WORD], *plain = length < SHORT_WORD ? stack_word : malloc(length + 1);
        const bool is_spelled = plain && spelling_normalise(s, word, plain);
        if (is_spelled) {
            memset(word, 0, length - first); /* `plain` is not longer than the word */
            strcpy(word, plain);
        }
        if (plain != stack_word) free(plain);
        if (!is_spelled) return SPELLING_MALFORMED;
    }
    const enum decimal_result result = type ? decimal_read(type, word, element) : money_check(word);
    if (result != DECIMAL_OK) return result == DECIMAL_RANGE ? SPELLING_RANGE : SPELLING_MALFORMED;
    if (!type) memcpy(element, &(char *){word}, sizeof word);
    if (!s->skip_na || !s->has_na_number) return SPELLING_NUMBER;
    if (!type) return is_na_decimal(s, word) ? SPELLING_MISSING : SPELLING_NUMBER;
    struct na_numbers numbers;
    spelling_na_numbers(s, type, &numbers);
    return spelling_is_na_number(&numbers, element) ? SPELLING_MISSING : SPELLING_NUMBER;
}

/* ---- What is wrong ---- */

bool spelling_is_date(const char *word) {
    size_t parts = 0;
    const bool has_year = strspn(word, "0123456789") == 4;
    char mark = 0;
    for (;; parts++) {
        const size_t digits = strspn(word, "0123456789");
        if (!digits || digits > 4) return false;
        word += digits;
        if (!*word || !strchr("-/.:", *word) || (mark && *word != mark)) break;
        mark = *word++;
    }
    const bool is_short = mark == ':' || (has_year && mark != '.');
    return mark && parts >= (is_short ? 1 : 2) && (!*word || strchr(" T:.Z", *word));
}

/* Returns whether the word has a mark and is a number in this spelling. */
static bool reads_as(const char *word, char mark, const char *thousands) {
    struct spelling other = {.mark = mark};
    char plain[64];
    double x;
    snprintf(other.thousands, sizeof other.thousands, "%s", thousands);
    return strpbrk(word, ".,' ") && strlen(word) < sizeof plain &&
           spelling_normalise(&other, word, plain) &&
           decimal_read(TALLY_F64, plain, &x) == DECIMAL_OK;
}

const char *spelling_hint(const struct spelling *s, const char *word, char out[160]) {
    static const struct {
        char mark;
        const char *thousands, *hint;
    } spellings[] = {
        {'.', ",", "--thousands , reads such numbers"},
        {',', "", "--decimal-mark , reads such numbers"},
        {',', ".", "--decimal-mark , --thousands . reads such numbers"},
        {',', " ", "--decimal-mark , --thousands ' ' reads such numbers"},
        {'.', " ", "--thousands ' ' reads such numbers"},
        {'.', "'", "--thousands \"'\" reads such numbers"},
        {'.', "", "numbers have the mark that --decimal-mark tells"},
    };
    const size_t length = strlen(word);
    *out = 0;
    if (!s->skip_na && spelling_is_known_missing(word)) return "--skip-na leaves such words out";
    if (spelling_is_date(word)) return "that is a date or a time, and only numbers are reduced";
    if (reads_as(word, ',', "") && reads_as(word, '.', ","))
        return "--decimal-mark , or --thousands , tells how it is meant";
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (reads_as(word, spellings[i].mark, spellings[i].thousands)) return spellings[i].hint;
    if (length && length <= 3 && strspn(word, ".?*-_") == length)
        snprintf(out, 160, "--na '%s' leaves such words out", word);
    return out;
}
