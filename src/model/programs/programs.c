/* programs.c - see programs.h. */
#include "model/programs/programs.h"

#include <stdbool.h>
#include <string.h>

/* The build lists all programs here: PROGRAM(symbol). */
#define PROGRAM(symbol) extern const struct model_program symbol;
#include "programs_list.h"
#undef PROGRAM

static const struct model_program *const programs[] = {
#define PROGRAM(symbol) &symbol,
#include "programs_list.h"
#undef PROGRAM
};

/* Returns how many words the text has; they stand one blank apart. */
static size_t word_count(const char *text) {
    size_t count = 1;
    for (; *text; text++)
        count += *text == ' ';
    return count;
}

/* Returns whether `word` is one of the text's words. */
static bool has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    while (text) {
        if (strncmp(text, word, length) == 0 && (text[length] == ' ' || text[length] == '\0'))
            return true;
        text = strchr(text, ' ');
        if (text) text++;
    }
    return false;
}

const struct model_program *model_program_find(const char *file, const char *const *defines,
                                               size_t count) {
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const char *name = programs[i]->name;
        size_t found = 1;
        bool same = has_word(name, file);
        for (size_t k = 0; k < count && same; k++)
            if (strcmp(defines[k], "LOOSE") != 0) { /* the model has no other program for it */
                same = has_word(name, defines[k]);
                found++;
            }
        same = same && word_count(name) == found;
        if (same) return programs[i];
    }
    return NULL;
}

const model_kernel *model_program_kernel(const struct model_program *program, const char *name) {
    for (const model_kernel *const *kernel = program->kernels; *kernel; kernel++)
        if (strcmp((*kernel)->name, name) == 0) return *kernel;
    return NULL;
}
