/*
 * own_complaint.c - see own_complaint.h.
 *
 * g++ speaks of C++, of types that the model puts in place of the text's, and of lines of its own. So the first error is
 * found, and the place in the student's file that it comes from; then its wording is looked up, and a sentence about the
 * text stands in its place. A wording that is not known is passed on as g++'s.
 */
#include "teach/own_complaint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 1024, NAME_BYTES = 160, QUOTED_MOST = 3 };

/* An error, as g++ words it, and the line of the student's file that it comes from; 0: none is known. */
struct complaint {
    unsigned long line;
    char words[LINE_BYTES];
};

/* Returns the number of the line of `file` that a message begins with or names; 0: none. */
static unsigned long line_of(const char *message, const char *file) {
    char named[300];
    snprintf(named, sizeof named, "%s:", file);
    const char *place = strstr(message, named);
    return place ? strtoul(place + strlen(named), NULL, 10) : 0;
}

/* Finds the first error. g++ may find it in the prelude, which stands before the text. Then its line is the one that
 * the last message before it names or, if none does, the next one after it. */
static bool first_error(const char *log, const char *file, struct complaint *out) {
    static const char error[] = "error: ";
    char line[LINE_BYTES];
    unsigned long told = 0;
    bool found = false;
    FILE *f = fopen(log, "re");
    while (f && fgets(line, sizeof line, f) && !(found && out->line)) {
        line[strcspn(line, "\n")] = '\0';
        const unsigned long here = line_of(line, file);
        const char *at = strstr(line, error), *missing = strstr(line, "undefined reference");
        if (here && !at) told = here;
        if (found && !at) out->line = here;
        if (!at && !missing) continue;
        if (found && !here) continue;
        found = true;
        out->line = here ? here : told;
        snprintf(out->words, sizeof out->words, "%s", at ? at + strlen(error) : missing);
    }
    if (f) fclose(f);
    return found;
}

/* ---- Sentences ---- */

/* The names that g++ puts in quotation marks in one message, in its order. */
struct quoted {
    char names[QUOTED_MOST][NAME_BYTES];
};

static void read_quoted(const char *words, struct quoted *q) {
    memset(q, 0, sizeof *q);
    for (size_t i = 0; i < QUOTED_MOST; i++) {
        const char *from = words + strcspn(words, "'`\"");
        if (!*from) return;
        const size_t length = strcspn(from + 1, *from == '"' ? "\"" : "'");
        snprintf(q->names[i], NAME_BYTES, "%.*s", (int)length, from + 1);
        words = from + 1 + length;
        if (!*words) return;
        words++;
    }
}

/* A wording of g++'s, and the sentence for it: %1, %2 and %3 stand for what it puts in quotation marks. A wording with two
 * parts has a * between them. */
static const struct {
    const char *words, *sentence;
} sentences[] = {
    {"always_inline", "a __device__ function is inlined here, so that it cannot call itself"},
    {"frame-larger-than", "a thread's own variables take more than 32768 bytes here"},
    {"static assertion failed: ", ""},
    {"poisoned", "'%1' would go around the model, and is not for a kernel here"},
    {"own_dimension",
     "threadIdx, blockIdx, blockDim and gridDim have three parts: write threadIdx.x, "
     "or .y or .z"},
    {"was not declared*did you mean", "neither the text nor CUDA C, as it is understood here, "
                                      "declares '%1'; is '%2' meant?"},
    {"was not declared", "neither the text nor CUDA C, as it is understood here, declares '%1'"},
    {"has not been declared",
     "neither the text nor CUDA C, as it is understood here, declares '%1'"},
    {"undefined reference to `operator",
     "new and delete are not here: a kernel has its arrays, shared memory and its own variables"},
    {"undefined reference", "the text does not define the function '%1', and the model has no "
                            "library"},
    {"does not name a type",
     "'%1' is no type that the text or CUDA C, as it is understood here, declares"},
    {"invalid operands of types", "no operator of C++ is for operands of types '%1' and '%2'"},
    {"no match for 'operator", "no '%1' is for these operands"},
    {"no match for call to", "the call '%1' fits no function of that name"},
    {"for array subscript", "what is in brackets is no integer, or what stands before them is no "
                            "array"},
    {"no matching function for call to '__shfl",
     "a shuffle takes a mask, a value and a number of lanes, as in "
     "__shfl_down_sync(0xffffffff, v, 16)"},
    {"no matching function for call to 'atomic",
     "the call '%1' fits no atomic: it takes an address, as in atomicAdd(&sum, v)"},
    {"no matching function", "the call '%1' fits no function of that name"},
    {"too few arguments to function", "the call of '%1' has too few arguments"},
    {"too many arguments to function", "the call of '%1' has too many arguments"},
    {"cannot convert", "a value of type '%1' does not become '%2'"},
    {"invalid conversion", "a value of type '%1' does not become '%2'"},
    {"invalid cast", "a value of type '%1' does not become '%2'"},
    {"has no member named", "'%1' has no member '%2'"},
    {"redefinition of", "'%1' is defined twice"},
    {"redeclar", "'%1' is declared twice"},
    {"conflicting declaration", "'%1' is declared twice, with two types"},
    {"assignment of read-only", "'%1' is const, and is assigned to"},
    {"of read-only", "'%1' is const, and is changed"},
    {"lvalue required", "what is assigned to, or whose address is taken, is no variable"},
    {"cannot be used as a function", "'%1' is no function, and is called"},
    {"a function-definition is not allowed", "a function begins within another: perhaps a } is "
                                             "missing before it"},
    {"array bound is not", "an array's length here is no constant; a launch gives that of "
                           "extern __shared__ arrays"},
    {"size of*constant", "the length of '%1' is no constant; a launch gives that of "
                         "extern __shared__ arrays"},
    {"not usable in a constant expression",
     "'%1' is no constant, and stands where one is needed, as in an array's length"},
    {"is not a constant",
     "'%1' is no constant, and stands where one is needed, as in an array's length"},
    {"stray", "a character that C++ has not: perhaps a quotation mark, a minus or a blank of a "
              "word processor"},
    {"missing terminating", "a quotation mark that is not closed"},
    {"unable to find numeric literal", "'%1' is no ending of a number"},
    {"invalid suffix", "'%1' is no ending of a number"},
    {"uninitialized const", "'%1' is const, and has no value"},
    {"expected*at end of input", "'%1' is missing at the end of the text"},
    {"expected ',' or ';' before", "';' is missing before '%3'"},
    {"expected '*before", "'%1' is missing before '%2'"},
    {"expected '*at end of member", "'%1' is missing at the end of this line"},
    {"before numeric constant", "something is missing before the number"},
    {"expected*before", "something is missing, or too much, before '%1'"},
    {"expected", "the text is not C++ here: something is missing or too much"},
    {"is not a member of 'std'",
     "the standard library is not here, but for min, max, abs, plus and numeric_limits"},
    {"is not a member of", "'%2' has no '%1' here"},
    {"kernel<", "a kernel returns nothing: it begins with __global__ void"},
    {"forbids declaration of",
     "'%1' is declared without a type; a kernel begins with __global__ void"},
    {"discards qualifiers", "something const is changed"},
    {"request for member", "'%2' is no structure, and has no member '%1'"},
    {"switch quantity not", "a switch is over integers"},
    {"extended character", "a character that C++ has not: perhaps a quotation mark, a minus or a "
                           "blank of a word processor"},
    {"declared void", "a parameter of a type that is not here"},
    {"break statement not within", "a break stands outside of a loop"},
    {"continue statement not within", "a continue stands outside of a loop"},
    {"jump to label", "a goto jumps over a declaration"},
};

/* Returns whether both parts of a wording stand in the message, in their order. */
static bool fits(const char *message, const char *words) {
    char first[64];
    const char *star = strchr(words, '*');
    if (!star) return strstr(message, words) != NULL;
    snprintf(first, sizeof first, "%.*s", (int)(star - words), words);
    const char *at = strstr(message, first);
    return at && strstr(at + strlen(first), star + 1);
}

static void write_sentence(const char *sentence, const struct quoted *q, char *out, size_t room) {
    size_t used = 0;
    for (; *sentence && used + 1 < room; sentence++) {
        const unsigned k = sentence[0] == '%' ? (unsigned)(sentence[1] - '1') : QUOTED_MOST;
        if (k < QUOTED_MOST) {
            const int added = snprintf(out + used, room - used, "%s", q->names[k]);
            used += (size_t)added < room - used ? (size_t)added : room - used - 1;
            sentence++;
        } else {
            out[used++] = *sentence;
        }
    }
    out[used] = '\0';
}

/* Returns the place behind the `>` that closes a list, whose first element begins at `from`. */
static char *past_list(char *from) {
    for (int depth = 1; *from && depth > 0; from++)
        depth += (*from == '<') - (*from == '>');
    return from;
}

/* Takes the names of types that the model puts in place of the text's out of a name: `own::element_t<float>` is float, and
 * `at<own::text_t<float *> >`, as own_deduce.c writes a call, is `at`. */
static void take_out_types(char *name) {
    static const char *const within[] = {"own::element_t<", "own::real<", "own::whole<"};
    static const char *const whole[] = {"<own::text_t<", "<own::bare_t<", ", own::text_t<",
                                        ", own::bare_t<"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        for (char *at; (at = strstr(name, whole[i]));) {
            const char *end = past_list(at + strlen(whole[i]));
            if (*at == '<') end = past_list((char *)end);
            memmove(at, end, strlen(end) + 1);
        }
    for (size_t i = 0; i < sizeof within / sizeof *within; i++)
        for (char *at; (at = strstr(name, within[i]));) {
            const char *from = at + strlen(within[i]), *end = past_list((char *)from);
            const size_t length = (size_t)(end - from) - (end > from && end[-1] == '>');
            memmove(at, from, length);
            memmove(at + length, end, strlen(end) + 1);
        }
}

static void say(const char *message, char *out, size_t room) {
    struct quoted q;
    read_quoted(message, &q);
    for (size_t i = 0; i < QUOTED_MOST; i++)
        take_out_types(q.names[i]);
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        if (!fits(message, sentences[i].words)) continue;
        if (strstr(sentences[i].words, "did you mean") && strncmp(q.names[1], "own", 3) == 0)
            continue;
        if (*sentences[i].sentence)
            write_sentence(sentences[i].sentence, &q, out, room);
        else
            snprintf(out, room, "%s",
                     strstr(message, sentences[i].words) + strlen(sentences[i].words));
        return;
    }
    snprintf(out, room, "C++ does not take it; g++ says: %.900s", message);
}

/* Returns the line of the host's function of that name; 0: the text has none. */
static unsigned host_line(const struct own_text *text, const char *name) {
    for (size_t i = 0; i < text->host_count; i++)
        if (strcmp(text->hosts[i].name, name) == 0) return text->hosts[i].line;
    return 0;
}

bool own_complaint(const char *log, const char *file, const struct own_text *text, char *out,
                   size_t room) {
    struct complaint c = {0};
    char sentence[LINE_BYTES];
    if (!first_error(log, file, &c) || strstr(c.words, "signal terminated")) return false;
    struct quoted q;
    read_quoted(c.words, &q);
    const unsigned host = strstr(c.words, "declared") ? host_line(text, q.names[0]) : 0;
    if (host)
        snprintf(sentence, sizeof sentence,
                 "'%s' is a function of the host, line %u: a kernel calls those that begin with "
                 "__device__",
                 q.names[0], host);
    else
        say(c.words, sentence, sizeof sentence);
    if (c.line)
        snprintf(out, room, "%s:%lu: %s", file, c.line, sentence);
    else
        snprintf(out, room, "%s does not compile: %s", file, sentence);
    return true;
}
