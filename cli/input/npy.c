/*
 * npy.c - the reader of .npy headers: a cursor that walks over the text of the dictionary, one
 * function for each thing that can stand there, and a table of element types.
 */
#include "input/npy.h"

#include <stdio.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum {
    RECORD_LIMIT = 1 << 20, /* bytes of a structured array's element */
    NAMES_BYTES = 200,      /* of the fields' names, in messages */
    MAGIC_BYTES = sizeof magic - 1,
    VERSION_BYTES = 2,
    HEADER_LIMIT = 1 << 20 /* no array has a longer header; a damaged length does */
};

struct cursor {
    const char *at, *end;
};

struct fields { /* the dictionary; a field's flag is set once it has been read */
    bool has_descr, has_order, has_shape;
    char descr[64];
    const char *wanted; /* a field of a structured array, or NULL */
    bool is_structured, is_found, has_parts;
    size_t record, offset;
    char names[NAMES_BYTES];
    bool has_zero;    /* one of the lengths in the shape is 0 */
    bool too_large;   /* the product of the others does not fit */
    uint64_t product; /* of the lengths that are not 0 */
    bool is_fortran;
    unsigned dims;
    uint64_t length[NPY_DIMS];
};

/* ---- The parts of the header ---- */

static void skip_space(struct cursor *c) {
    while (c->at < c->end && strchr(" \t\r\n", *c->at) && *c->at)
        c->at++;
}

/* Steps over white space and then over `wanted`. Returns false if another character stands there. */
static bool take(struct cursor *c, char wanted) {
    skip_space(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word) {
    size_t length = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) return false;
    c->at += length;
    return true;
}

/* Reads a string between quotes of either kind. Returns false if there is none, or it has escapes,
 * or it does not fit text[0..size). */
static bool take_string(struct cursor *c, char *text, size_t size) {
    char quote;
    if (take(c, '\''))
        quote = '\'';
    else if (take(c, '"'))
        quote = '"';
    else
        return false;
    const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (!close || (size_t)(close - c->at) >= size) return false;
    size_t length = (size_t)(close - c->at);
    if (memchr(c->at, '\\', length) || memchr(c->at, 0, length)) return false;
    memcpy(text, c->at, length);
    text[length] = 0;
    c->at = close + 1;
    return true;
}

/* Reads a length. One that does not fit 64 bits is read as the largest: the product will not fit
 * either. */
static bool take_length(struct cursor *c, uint64_t *out) {
    skip_space(c);
    const char *first = c->at;
    uint64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value))
            value = UINT64_MAX; /* and the next digit overflows again */
    if (c->at == first) return false;
    take(c, 'L'); /* Python 2 wrote it after a long */
    *out = value;
    return true;
}

/* ---- The fields of the dictionary ---- */

static bool take_shape(struct cursor *c, struct fields *f) {
    f->product = 1;
    if (!take(c, '(')) return false;
    while (!take(c, ')')) {
        uint64_t length;
        if (!take_length(c, &length)) return false;
        if (f->dims < NPY_DIMS) f->length[f->dims] = length;
        f->dims++;
        if (length == 0)
            f->has_zero = true;
        else if (__builtin_mul_overflow(f->product, length, &f->product))
            f->too_large = true;
        if (!take(c, ',')) {
            if (!take(c, ')')) return false;
            break;
        }
    }
    return true;
}

/* ---- Structured arrays ---- */

/* Returns the bytes of a type such as <f8, |V4, <U5 or <M8[ns]; 0 if it is not known. */
static size_t bytes_of(const char *descr) {
    const char *code = descr + (descr[0] && strchr("<>|=", descr[0]));
    size_t bytes = 0;
    if (*code == 'O') return 8;
    for (const char *at = code + (*code != 0); *at >= '0' && *at <= '9' && bytes < RECORD_LIMIT;
         at++)
        bytes = 10 * bytes + (size_t)(*at - '0');
    return *code == 'U' ? 4 * bytes : bytes;
}

static bool take_fields(struct cursor *c, struct fields *f, size_t *bytes, unsigned depth);

/* Reads a field's type, the shape that may follow, and the parenthesis. *bytes becomes the field's
 * size. */
static bool take_type(struct cursor *c, struct fields *f, char descr[64], size_t *bytes,
                      bool *has_parts, unsigned depth) {
    struct fields shape = {.product = 1};
    skip_space(c);
    *descr = 0;
    *has_parts = false;
    if (c->at < c->end && *c->at == '[') {
        *has_parts = true;
        if (!take_fields(c, f, bytes, depth + 1)) return false;
    } else if (!take_string(c, descr, 64) || !(*bytes = bytes_of(descr))) {
        return false;
    }
    if (take(c, ')')) return true;
    if (!take(c, ',')) return false;
    if (take(c, ')')) return true;
    *has_parts = true;
    if (!take_shape(c, &shape) || shape.too_large || shape.product > RECORD_LIMIT) return false;
    *bytes *= shape.has_zero ? 0 : (size_t)shape.product;
    take(c, ',');
    return take(c, ')');
}

/* Reads a field's name, or its title and name. */
static bool take_name(struct cursor *c, char name[64]) {
    char title[64];
    if (!take(c, '(')) return take_string(c, name, 64);
    return take_string(c, title, sizeof title) && take(c, ',') && take_string(c, name, 64) &&
           take(c, ')');
}

/* Reads the list of fields. At depth 0, where the fields are the array's own, looks for the wanted
 * one. */
static bool take_fields(struct cursor *c, struct fields *f, size_t *bytes, unsigned depth) {
    *bytes = 0;
    if (depth > 8 || !take(c, '[')) return false;
    while (!take(c, ']')) {
        char name[64], descr[64];
        size_t size;
        bool has_parts;
        if (!take(c, '(') || !take_name(c, name) || !take(c, ',') ||
            !take_type(c, f, descr, &size, &has_parts, depth))
            return false;
        const size_t used = strlen(f->names);
        if (!depth && *name && used + strlen(name) + 2 < NAMES_BYTES)
            snprintf(f->names + used, NAMES_BYTES - used, "%s%s", used ? " " : "", name);
        if (!depth && *name && f->wanted && strcmp(name, f->wanted) == 0 && !f->is_found) {
            f->is_found = true;
            f->has_parts = has_parts;
            f->offset = *bytes;
            snprintf(f->descr, sizeof f->descr, "%s", descr);
        }
        *bytes += size;
        if (*bytes > RECORD_LIMIT) return false;
        if (!take(c, ',')) return take(c, ']');
    }
    return true;
}

/* Reads one "key: value". Returns NULL, or the message that says what is wrong. */
static const char *take_field(struct cursor *c, struct fields *f) {
    char key[24];
    if (!take_string(c, key, sizeof key) || !take(c, ':')) return "its header is damaged";
    if (strcmp(key, "descr") == 0 && !f->has_descr) {
        f->has_descr = true;
        skip_space(c);
        if (c->at < c->end && *c->at == '[')
            return take_fields(c, f, &f->record, 0) && (f->is_structured = f->record > 0)
                       ? NULL
                       : "it holds a structured array whose dtype is not understood; save the "
                         "field "
                         "as an array of its own";
        return take_string(c, f->descr, sizeof f->descr) ? NULL
                                                         : "the dtype in its header is damaged";
    }
    if (strcmp(key, "fortran_order") == 0 && !f->has_order) {
        f->has_order = true;
        f->is_fortran = take_word(c, "True");
        return f->is_fortran || take_word(c, "False")
                   ? NULL
                   : "the fortran_order in its header is neither True nor False";
    }
    if (strcmp(key, "shape") == 0 && !f->has_shape) {
        f->has_shape = true;
        return take_shape(c, f) ? NULL : "the shape in its header is damaged";
    }
    return "its header has a field that does not belong there, or one twice";
}

static const char *take_dictionary(struct cursor *c, struct fields *f) {
    if (!take(c, '{')) return "its header is damaged: no dictionary";
    while (!take(c, '}')) {
        const char *problem = take_field(c, f);
        if (problem) return problem;
        if (!take(c, ',')) {
            if (!take(c, '}')) return "its header is damaged";
            break;
        }
    }
    skip_space(c);
    if (c->at != c->end) return "its header is damaged: something follows the dictionary";
    if (!f->has_descr || !f->has_order || !f->has_shape)
        return "its header lacks one of descr, fortran_order and shape";
    return NULL;
}

/* ---- The element type ---- */

static const struct {
    const char *code;
    tally_type type; /* 0: two bytes that only the user can name */
    size_t bytes;
} types[] = {
    {"i1", TALLY_I8, 1}, {"i2", TALLY_I16, 2}, {"i4", TALLY_I32, 4}, {"i8", TALLY_I64, 8},
    {"u1", TALLY_U8, 1}, {"u2", TALLY_U16, 2}, {"u4", TALLY_U32, 4}, {"u8", TALLY_U64, 8},
    {"b1", TALLY_U8, 1}, {"f2", TALLY_F16, 2}, {"f4", TALLY_F32, 4}, {"f8", TALLY_F64, 8},
    {"V2", 0, 2},
};

/* Returns what to call a dtype that is not supported, and advice on how to convert it. */
static const char *unsupported(const char *code) {
    if (code[0] && strspn(code + 1, "0123456789") != strcspn(code + 1, "["))
        return "not a number type of Tally; convert it with astype()";
    switch (code[0]) {
    case 'c':
        return "complex numbers; save a.real and a.imag instead";
    case 'O':
        return "Python objects; save an array of numbers instead";
    case 'S':
    case 'a':
    case 'U':
        return "strings; save an array of numbers instead";
    case 'M':
    case 'm':
        return "dates or times; save a.view('i8') instead";
    case 'f':
        return "extended floats; save a.astype('f8') instead";
    default:
        return "not a number type of Tally; convert it with astype()";
    }
}

static bool read_descr(const char *descr, struct npy_header *out) {
    bool has_order = descr[0] && strchr("<>|=", descr[0]);
    const char *code = descr + has_order;
    if (strcmp(code, "bfloat16") == 0 && descr[0] != '>') {
        out->type = TALLY_BF16;
        out->element = 2;
        return true;
    }
    bool opaque = strcmp(code, "V2") == 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(code, types[i].code) != 0 || (opaque && descr[0] == '>')) continue;
        out->type = types[i].type;
        out->element = types[i].bytes;
        out->big_endian = descr[0] == '>' ||
                          (descr[0] != '<' && !opaque && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
        return true;
    }
    snprintf(out->problem, sizeof out->problem, "its dtype '%s' is not supported: %s", descr,
             unsupported(code));
    return false;
}

/* ---- The whole header ---- */

static enum npy_result bad(struct npy_header *out, const char *problem) {
    snprintf(out->problem, sizeof out->problem, "%s", problem);
    return NPY_BAD;
}

/* Returns whether the field that is wanted is there. */
static bool check_field(const struct fields *f, struct npy_header *out) {
    const size_t size = sizeof out->problem;
    if (!f->is_structured && f->wanted)
        snprintf(out->problem, size, "it holds no structured array, so it has no field %s",
                 f->wanted);
    else if (f->is_structured && !f->wanted)
        snprintf(out->problem, size,
                 "it holds a structured array; name a field, as in FILE:%.*s; its fields are %s",
                 (int)strcspn(f->names, " "), f->names, f->names);
    else if (f->is_structured && !f->is_found)
        snprintf(out->problem, size, "it has no field %s; its fields are %s", f->wanted, f->names);
    else if (f->is_structured && f->has_parts)
        snprintf(out->problem, size,
                 "its field %s holds several values; save it as an array of its own", f->wanted);
    else
        return true;
    return false;
}

static enum npy_result read_text(struct cursor c, const char *field, struct npy_header *out) {
    struct fields f = {.wanted = field};
    const char *problem = take_dictionary(&c, &f);
    if (problem) return bad(out, problem);
    if (!check_field(&f, out) || !read_descr(f.descr, out)) return NPY_BAD;
    out->count = f.has_zero ? 0 : f.product;
    out->dims = f.dims;
    memcpy(out->length, f.length, sizeof out->length);
    out->is_fortran = f.is_fortran;
    out->record = f.record;
    out->offset = f.offset;
    const size_t step = f.record ? f.record : out->element;
    if (!f.has_zero && (f.too_large || f.product > INT64_MAX / step))
        return bad(out, "the shape in its header is too large for any file");
    return NPY_OK;
}

bool npy_recognise(const unsigned char *bytes, size_t size) {
    return size >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

enum npy_result npy_read(const unsigned char *bytes, size_t size, const char *field,
                         struct npy_header *out) {
    memset(out, 0, sizeof *out);
    out->needed = MAGIC_BYTES + VERSION_BYTES;
    if (size < out->needed) return NPY_MORE;
    if (!npy_recognise(bytes, size)) return bad(out, "it does not open as a .npy file does");
    unsigned version = bytes[MAGIC_BYTES];
    if (version < 1 || version > 3 || bytes[MAGIC_BYTES + 1] != 0) {
        snprintf(out->problem, sizeof out->problem,
                 "its .npy format version %u.%u is not one of 1.0, 2.0 and 3.0", version,
                 bytes[MAGIC_BYTES + 1]);
        return NPY_BAD;
    }
    size_t width = version == 1 ? 2 : 4; /* of the length, the least significant byte first */
    size_t start = out->needed + width;
    size_t length = 0;
    out->needed = start;
    if (size < start) return NPY_MORE;
    for (size_t i = 0; i < width; i++)
        length |= (size_t)bytes[start - width + i] << (8 * i);
    if (length > HEADER_LIMIT)
        return bad(out, "its header is damaged: it would be over 1 MiB long");
    out->needed = start + length;
    if (size < out->needed) return NPY_MORE;
    const char *text = (const char *)bytes + start;
    return read_text((struct cursor){text, text + length}, field, out);
}
