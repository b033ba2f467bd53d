/*
 * own_tokens.h - a student's text as tokens, and edits of it.
 */
#ifndef TALLY_CLI_OWN_TOKENS_H
#define TALLY_CLI_OWN_TOKENS_H

#include "teach/own_text.h"

enum { EDITS_MAX = 16384, TYPES_MAX = 32, ARRAYS_MAX = 64 };
enum { DEVICE_WORDS_MAX = 8, TEMPLATES_MAX = 32, TEMPLATE_PARAMETERS_MAX = 8 };

/* The readers that an edit is for, as bits. */
enum { FOR_MODEL = 1 << OWN_MODEL, FOR_CUDA = 1 << OWN_CUDA, FOR_OPENCL = 1 << OWN_OPENCL };
enum { FOR_DEVICES = FOR_CUDA | FOR_OPENCL };

struct own_edit {
    size_t from, to; /* of the file */
    unsigned whom;
    char text[160];
};

/* A function's template with a type that stands in pointers only (own_deduce.h). */
struct own_deduced {
    char name[OWN_NAME]; /* "": no type */
    int pointer,
        value; /* the first parameter of the function that is a pointer to it, or a value of it; -1: none */
};
struct own_template {
    char name[OWN_NAME];
    struct own_deduced parameters[TEMPLATE_PARAMETERS_MAX];
    unsigned count, wanted; /* wanted: as many of them are to be written out */
};

struct own_source {
    char *clean; /* the file without comments, strings and directives: blanks in their place */
    size_t length;
    char *bytes; /* the file; what is the host's becomes blanks */
    struct own_edit *edits;
    size_t edit_count;
    char types[TYPES_MAX][OWN_NAME]; /* names of types that the text defines */
    size_t type_count;
    char arrays[ARRAYS_MAX][OWN_NAME]; /* names of the arrays that it declares, so far */
    size_t array_count;
    char devices[DEVICE_WORDS_MAX][OWN_NAME]; /* macros that say __device__, as HD does */
    size_t device_count;
    struct own_template templates[TEMPLATES_MAX];
    size_t template_count;
    bool helps_to_number; /* a macro, or a function that is no kernel, asks which thread it is */
    struct own_text *out;
};

struct own_token {
    size_t from, to;
};

/* Words of types of integers and of real numbers; NULL ends them. */
extern const char *const own_integer_words[], *const own_real_words[];

/* Makes r->clean, which has blanks for comments, strings and directives. */
void reader_clean(struct own_source *r);
/* Makes text[from..to) blanks, but for ends of lines. */
void reader_blank(char *text, size_t from, size_t to);
/* Returns the line of a place of the file. */
unsigned reader_line(const struct own_source *r, size_t at);
/* Returns whether the line goes on after its end at i: a backslash, and perhaps blanks, stand before it. */
bool line_goes_on(const char *s, size_t i);
/* Note a type that the text defines, and return whether a type has been noted. */
void reader_add_type(struct own_source *r, struct own_token t);
bool reader_has_type(const struct own_source *r, struct own_token t);
/* Replaces [from, to) of the file by `text` in that format, in the texts for `whom`. */
void reader_edit(struct own_source *r, unsigned whom, size_t from, size_t to, const char *format,
                 const char *text);

/* Returns whether a character may be in a name. */
bool is_of_name(char c);
/* Returns the next token at or after i, within [i, end); its from is `end` where there is none. */
struct own_token token_next(const struct own_source *r, size_t i, size_t end);
bool token_is(const struct own_source *r, struct own_token t, const char *word);
bool token_is_one_of(const struct own_source *r, struct own_token t, const char *const *words);
/* Returns the first token of that spelling in [from, end). */
struct own_token token_find(const struct own_source *r, size_t from, size_t end, const char *word);
bool token_is_in(const struct own_source *r, size_t from, size_t end, const char *word);
void token_copy(const struct own_source *r, struct own_token t, char out[OWN_NAME]);
/* Returns the place behind what closes the bracket at `open`. */
size_t token_past_closing(const struct own_source *r, size_t open, size_t end);

#endif
