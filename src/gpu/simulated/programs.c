/* programs.c - see programs.h. */
#include "gpu/simulated/programs.h"

#include <string.h>

/* The build lists all programs here: PROGRAM(symbol). */
#define PROGRAM(symbol) extern const struct simulated_program symbol;
#include "programs_list.h"
#undef PROGRAM

static const struct simulated_program *const programs[] = {
#define PROGRAM(symbol) &symbol,
#include "programs_list.h"
#undef PROGRAM
};

/* Takes `word` and the space before it off *text, if it begins so. */
static int take(const char **text, const char *word) {
    size_t length = strlen(word);
    if (**text == ' ') ++*text;
    if (strncmp(*text, word, length) != 0 || ((*text)[length] != ' ' && (*text)[length] != '\0'))
        return 0;
    *text += length;
    return 1;
}

const struct simulated_program *simulated_find(const char *file, const char *const *defines,
                                               size_t count) {
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const char *text = programs[i]->name;
        int same = take(&text, file);
        for (size_t k = 0; k < count && same; k++)
            same = take(&text, defines[k]);
        if (same && *text == '\0') return programs[i];
    }
    return NULL;
}
