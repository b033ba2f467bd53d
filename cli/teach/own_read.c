/*
 * own_read.c - see own_read.h.
 *
 * This is no parser of C++. The text is cut into declarations at top level, and those of the device are kept. Four
 * things in them are rewritten:
 *
 *   - An array `extern __shared__` loses `__shared__`, as it is defined elsewhere.
 *   - A variable of the device gets a section.
 *   - A type that a pointer or a shared array holds becomes own::element_t<type>, whose operators the model sees.
 *   - OWN_ARM() is put around both arms of `c ? a : b`. It chooses the type if one is a number and one an element.
 */
#include "teach/own_read.h"

#include "tally.h"
#include "teach/own_conditions.h"
#include "teach/own_deduce.h"
#include "teach/own_hints.h"
#include "teach/own_indexes.h"
#include "teach/own_rewrite.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Directives ---- */

/* Returns whether [from, end) asks which thread it is. */
static bool numbers_threads(const struct own_source *r, size_t from, size_t end) {
    return token_is_in(r, from, end, "threadIdx") ||
           token_is_in(r, from, end, "this_thread_block") ||
           token_is_in(r, from, end, "coalesced_threads");
}

/* Returns whether a name is about warps, or about elements for a thread. Its number is then not the threads of a
 * block. */
static bool names_a_warp(const struct own_source *r, struct own_token t) {
    static const char *const words[] = {"warp", "lane", "factor", "coarse", "per", NULL};
    char name[OWN_NAME];
    token_copy(r, t, name);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (const char *const *word = words; *word; word++)
        if (strstr(name, *word)) return true;
    return false;
}

/* Notes a macro: `#define N 256` may be the threads of a block, `#define T int` names a type. */
static void note_define(struct own_source *r, size_t from, size_t end) {
    const struct own_token name = token_next(r, from, end), value = token_next(r, name.to, end);
    if (value.from >= end || value.from == name.to) return;
    if (token_is_in(r, value.from, end, "__device__") && r->device_count < DEVICE_WORDS_MAX)
        token_copy(r, name, r->devices[r->device_count++]);
    if (token_is_one_of(r, value, own_integer_words) || token_is_one_of(r, value, own_real_words))
        reader_add_type(r, name);
    if (token_next(r, value.to, end).from >= end && !names_a_warp(r, name))
        hint_block(r, value, end);
}

/* Keeps the directives that choose or define, and puts blanks for #include, #pragma and the like. Any other directive
 * is a failure. In r->clean all become blanks, as they are no declarations, and so do the lines that `c` leaves out. */
static bool read_directives(struct own_source *r, struct own_conditions *c, char *why, size_t room,
                            unsigned *line) {
    static const char *const kept[] = {"define", "undef", "if",    "ifdef", "ifndef",
                                       "elif",   "else",  "endif", "error", NULL};
    static const char *const left_out[] = {"include", "pragma", "line", "warning", "ident", NULL};
    for (size_t i = 0; i < r->length;) {
        size_t end = i;
        while (end < r->length && (r->clean[end] != '\n' || line_goes_on(r->clean, end)))
            end++;
        const struct own_token mark = token_next(r, i, end);
        const bool digraph = mark.from + 1 < end && memcmp(r->clean + mark.from, "%:", 2) == 0;
        const bool holds = conditions_hold(c);
        if (mark.from < end && (r->clean[mark.from] == '#' || digraph)) {
            const struct own_token word = token_next(r, mark.to + digraph, end);
            if (word.from < end && token_is_one_of(r, word, left_out)) {
                reader_blank(r->bytes, i, end);
            } else if (word.from < end && !token_is_one_of(r, word, kept)) {
                snprintf(why, room, "#%.*s is not for a kernel here", (int)(word.to - word.from),
                         r->clean + word.from);
                *line = reader_line(r, mark.from);
                return false;
            } else if (word.from < end) {
                if (token_is(r, word, "define") && holds) {
                    note_define(r, word.to, end);
                    r->helps_to_number |= numbers_threads(r, word.to, end);
                    rewrite_arms(r, word.to, end, true);
                }
                conditions_read(c, r, word, end);
            }
            reader_blank(r->clean, i, end);
        } else if (!holds) {
            reader_blank(r->clean, i, end);
        }
        i = end + 1;
    }
    return true;
}

/* ---- Namespaces ---- */

/* Makes `name ::` blanks wherever it stands, and `using namespace name;`. */
static void drop_qualifier(struct own_source *r, struct own_token name) {
    struct own_token before = {0, 0}, earlier = before;
    char word[OWN_NAME];
    token_copy(r, name, word);
    for (struct own_token t = token_next(r, 0, r->length); t.from < r->length;
         earlier = before, before = t, t = token_next(r, t.to, r->length)) {
        if (t.from == name.from || !token_is(r, t, word)) continue;
        const struct own_token colon = token_next(r, t.to, r->length),
                               second = token_next(r, colon.to, r->length);
        const bool is_using = token_is(r, before, "namespace") && token_is(r, earlier, "using");
        if (!is_using && !(token_is(r, colon, ":") && token_is(r, second, ":"))) continue;
        if (is_using && !token_is(r, colon, ";")) continue;
        const size_t from = is_using ? earlier.from : t.from, to = is_using ? colon.to : second.to;
        reader_blank(r->bytes, from, to);
        reader_blank(r->clean, from, to);
    }
}

/* Drops the text's namespaces: what one holds becomes global, and no name needs a qualifier. So `a::b::f` is f. Those of
 * libraries, such as cooperative_groups, are not the text's. */
static void drop_namespaces(struct own_source *r) {
    static const char *const others[] = {"std", "cooperative_groups", "own", "cuda", NULL};
    for (struct own_token t = token_find(r, 0, r->length, "namespace"); t.from < r->length;
         t = token_find(r, t.to, r->length, "namespace")) {
        const struct own_token first = token_next(r, t.to, r->length);
        struct own_token last = token_next(r, first.to, r->length);
        while (last.from < r->length && (token_is(r, last, ":") || is_of_name(r->clean[last.from])))
            last = token_next(r, last.to, r->length);
        if (last.from >= r->length || !token_is(r, last, "{")) continue;
        for (struct own_token n = first; n.from < last.from; n = token_next(r, n.to, r->length))
            if (is_of_name(r->clean[n.from]) && !token_is_one_of(r, n, others) &&
                !token_is(r, n, "inline"))
                drop_qualifier(r, n);
    }
}

/* ---- Declarations ---- */

/* Notes the name of each parameter: the last word before a comma, a bracket or `=`. */
static void note_parameters(const struct own_source *r, size_t from, size_t end,
                            struct own_function *out) {
    struct own_token name = {from, from};
    bool done = false;
    for (struct own_token t = token_next(r, from, end);; t = token_next(r, t.to, end)) {
        const bool ends = t.from >= end || token_is(r, t, ",");
        if (ends && name.to > name.from) {
            const size_t at = strlen(out->parameters);
            snprintf(out->parameters + at, sizeof out->parameters - at, "%s%.*s", at ? "," : "",
                     (int)(name.to - name.from), r->clean + name.from);
        }
        if (t.from >= end) return;
        if (ends) {
            name = (struct own_token){t.to, t.to};
            done = false;
        }
        done |= token_is(r, t, "[") || token_is(r, t, "=");
        if (!done && is_of_name(r->clean[t.from])) name = t;
    }
}

/* Puts `__global` before a kernel's pointers: OpenCL C must know the memory that they point to. */
static void place_parameters(struct own_source *r, size_t from, size_t end) {
    for (size_t start = from; start < end;) {
        const size_t to = token_find(r, start, end, ",").from;
        const struct own_token first = token_next(r, start, to);
        if (token_is_in(r, start, to, "*") || token_is_in(r, start, to, "["))
            reader_edit(r, FOR_OPENCL, first.from, first.from, "%s", "__global ");
        start = to + 1;
    }
}

/* One parameter of a template, [from, end): its kind, its name, and the value that it has by default. */
struct parameter {
    struct own_token kind, name, value;
    bool is_type, is_flag;
};

static struct parameter read_parameter(const struct own_source *r, size_t from, size_t end) {
    struct parameter p = {.kind = token_next(r, from, end), .value = {end, end}};
    p.is_type = token_is(r, p.kind, "typename") || token_is(r, p.kind, "class");
    p.name = p.kind;
    for (struct own_token t = p.kind; t.from < end; t = token_next(r, t.to, end)) {
        p.is_flag |= token_is(r, t, "bool");
        if (token_is(r, t, "=")) {
            p.value = token_next(r, t.to, end);
            p.value.to = end;
            break;
        }
        if (is_of_name(r->clean[t.from])) p.name = t;
    }
    return p;
}

/* Returns whether a number of that name says how many threads a block has; "itemsPerThread" does not. */
static bool names_a_block(const struct own_source *r, struct own_token t) {
    static const char *const words[] = {"block", "thread", "dim", NULL};
    char name[OWN_NAME];
    token_copy(r, t, name);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (strstr(name, "per")) return false;
    for (const char *const *word = words; *word; word++)
        if (strstr(name, *word)) return true;
    return false;
}

/* Returns whether the name of a template's type is one for elements, and not one for a functor, such as Op. */
static bool is_element(const struct own_source *r, struct own_token name) {
    static const char *const words[] = {"op", "fun", "reduc", "combine", "oper", "fn", NULL};
    char text[OWN_NAME];
    token_copy(r, name, text);
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (const char *const *word = words; *word; word++)
        if (strncmp(text, *word, strlen(*word)) == 0 || (strstr(text, *word) && strlen(*word) > 2))
            return false;
    return text[0] != 'f' || text[1] != '\0';
}

/* Returns whether the body that opens at `body` uses a template's number as the threads of a block: times blockIdx.x, or as a
 * shared array's length. */
static bool is_used_as_block(const struct own_source *r, struct own_token name, size_t body) {
    const size_t end = token_past_closing(r, body, r->length);
    bool is_shared = false;
    struct own_token before = {body, body};
    for (struct own_token t = token_next(r, body, end); t.from < end;
         before = t, t = token_next(r, t.to, end)) {
        is_shared = token_is(r, t, "__shared__") || (is_shared && !token_is(r, t, ";"));
        if (t.to - t.from != name.to - name.from ||
            memcmp(r->clean + t.from, r->clean + name.from, name.to - name.from) != 0)
            continue;
        if (is_shared && token_is(r, before, "[") && token_is(r, token_next(r, t.to, end), "]"))
            return true;
        if (hint_follows_block(r, body, t)) return true;
    }
    return false;
}

/* Writes the argument for a template's parameter: the elements' type or a functor for a type, a block's threads for a
 * number, false for a flag. A default value is taken instead, except for the type of elements. Returns false if none of
 * these fits. */
static bool take_parameter(const struct own_source *r, const struct parameter *p, size_t body,
                           char text[OWN_NAME]) {
    const bool is_functor = p->is_type && !is_element(r, p->name);
    const char *word = is_functor   ? OWN_FUNCTOR
                       : p->is_type ? "OWN_T"
                       : p->is_flag ? "false"
                       : p->kind.from < p->name.from &&
                               (names_a_block(r, p->name) || is_used_as_block(r, p->name, body))
                           ? OWN_THREADS
                           : NULL;
    if (p->value.from < p->value.to && (!p->is_type || is_functor))
        token_copy(r, p->value, text);
    else if (word)
        snprintf(text, OWN_NAME, "%s", word);
    return word || p->value.from < p->value.to;
}

/* Notes the arguments of the template whose parameters begin with the bracket at `open`. Returns false, and writes
 * `why`, if one is not known. */
static bool note_template(struct own_source *r, size_t open, size_t body, struct own_function *k,
                          char *why, size_t room) {
    const size_t close = token_past_closing(r, open, body) - 1;
    for (size_t from = open + 1, to; from < close; from = to + 1) {
        char text[OWN_NAME] = "";
        to = token_find(r, from, close, ",").from;
        const struct parameter p = read_parameter(r, from, to);
        const size_t used = strlen(k->arguments);
        if (!take_parameter(r, &p, body, text))
            return snprintf(
                       why, room,
                       "nobody knows what the template's %.*s is to be; give it a value there, "
                       "as in `int %.*s = 4`",
                       (int)(p.name.to - p.name.from), r->clean + p.name.from,
                       (int)(p.name.to - p.name.from), r->clean + p.name.from),
                   false;
        k->takes_block |= strcmp(text, OWN_THREADS) == 0;
        if (strcmp(text, OWN_THREADS) != 0 && !p.is_type && names_a_block(r, p.name))
            hint_block(r, p.value, close);
        snprintf(k->arguments + used, sizeof k->arguments - used, "%s%s", used ? ", " : "", text);
    }
    return true;
}

static bool note_kernel(struct own_source *r, size_t from, size_t body, char *why, size_t room,
                        unsigned *line) {
    struct own_text *out = r->out;
    struct own_token t = token_find(r, from, body, "__global__"), name = {0, 0};
    *line = reader_line(r, t.from);
    if (out->kernel_count == OWN_KERNELS_MAX)
        return snprintf(why, room, "more than %d kernels", OWN_KERNELS_MAX), false;
    for (t = token_next(r, t.to, body); t.from < body; t = token_next(r, t.to, body)) {
        if (token_is(r, t, "__launch_bounds__")) {
            const struct own_token open = token_next(r, t.to, body);
            if (open.from < body && token_is(r, open, "("))
                t.to = token_past_closing(r, open.from, body);
            continue;
        }
        if (token_is(r, t, "(")) break;
        name = t;
    }
    if (t.from >= body || !is_of_name(r->clean[name.from]))
        return snprintf(why, room, "a __global__ function without a name and parameters"), false;
    struct own_function *k = &out->kernels[out->kernel_count++];
    *k = (struct own_function){.line = reader_line(r, name.from)};
    token_copy(r, name, k->name);
    const size_t close = token_past_closing(r, t.from, body);
    note_parameters(r, t.to, close ? close - 1 : close, k);
    place_parameters(r, t.to, close ? close - 1 : close);
    hint_strides(r, body, token_past_closing(r, body, r->length));
    const struct own_token first = token_next(r, from, body);
    return !token_is(r, first, "template") ||
           note_template(r, token_next(r, first.to, body).from, body, k, why, room);
}

/* Replaces a template, for a device, by a function with the arguments of take_parameter(). OpenCL C has no templates. A
 * kernel of CUDA's becomes extern "C", so that its name finds it. A type gets its name before the text (own_device.c),
 * a number or a flag within the kernel. Other functions of CUDA's stay templates. */
static void drop_template(struct own_source *r, size_t from, size_t end, bool is_kernel) {
    const struct own_token first = token_next(r, from, end), open = token_next(r, first.to, end);
    char values[sizeof r->edits->text] = "";
    if (is_kernel && !token_is(r, first, "template") && !token_is(r, first, "extern"))
        reader_edit(r, FOR_CUDA, first.from, token_is(r, first, "static") ? first.to : first.from,
                    "%s", "extern \"C\" ");
    if (!token_is(r, first, "template") || !token_is(r, open, "<")) return;
    const size_t close = token_past_closing(r, open.from, end);
    for (size_t at = open.to, to; at < close - 1; at = to + 1) {
        to = token_find(r, at, close - 1, ",").from;
        const struct parameter p = read_parameter(r, at, to);
        const size_t used = p.is_type ? strlen(r->out->types) : strlen(values);
        char text[OWN_NAME] = "";
        if (!p.is_type && !r->out->number_line) r->out->number_line = reader_line(r, p.name.from);
        take_parameter(r, &p, end, text);
        if (p.is_type)
            snprintf(r->out->types + used, sizeof r->out->types - used, "%s%.*s ",
                     is_kernel ? "" : "?", (int)(p.name.to - p.name.from), r->clean + p.name.from);
        else
            snprintf(values + used, sizeof values - used, " constexpr %.*s = %s;",
                     (int)(p.name.to - p.kind.from), r->clean + p.kind.from, text);
    }
    if (is_kernel) reader_edit(r, FOR_CUDA, first.from, close, "%s", "extern \"C\"");
    if (is_kernel && *values) reader_edit(r, FOR_CUDA, end + 1, end + 1, "%s", values);
    reader_edit(r, FOR_OPENCL, first.from, close, "%s", "");
}

/* Notes the first word that is for the lanes of a warp, such as __shfl_down_sync, and its line. */
static void note_warp_words(struct own_source *r, size_t from, size_t end) {
    static const char *const words[] = {"__shfl",     "__syncwarp",   "__ballot",  "__any_sync",
                                        "__all_sync", "__activemask", "__reduce_", "__match_"};
    for (struct own_token t = token_next(r, from, end); t.from < end && !*r->out->warp_word;
         t = token_next(r, t.to, end))
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strncmp(r->clean + t.from, words[i], strlen(words[i])) == 0) {
                token_copy(r, t, r->out->warp_word);
                r->out->warp_line = reader_line(r, t.from);
            }
}

/* Notes the names of types: typedef int T; using T = int; template <typename T>. */
static void note_types(struct own_source *r, size_t from, size_t end) {
    for (struct own_token t = token_next(r, from, end); t.from < end; t = token_next(r, t.to, end))
        if (token_is(r, t, "typename") || token_is(r, t, "class"))
            reader_add_type(r, token_next(r, t.to, end));
    const struct own_token first = token_next(r, from, end);
    if (token_is(r, first, "using")) reader_add_type(r, token_next(r, first.to, end));
    if (!token_is(r, first, "typedef")) return;
    struct own_token name = first;
    for (struct own_token t = token_next(r, first.to, end); t.from < end;
         t = token_next(r, t.to, end))
        if (is_of_name(r->clean[t.from])) name = t;
    reader_add_type(r, name);
}

/* Returns whether a declaration that names neither __global__ nor __device__ is the host's. */
static bool is_hosts(const struct own_source *r, size_t from, size_t head, size_t end,
                     bool has_body) {
    static const char *const kept[] = {"struct",  "union",         "enum",
                                       "typedef", "static_assert", "constexpr",
                                       "class",   "namespace",     NULL};
    const struct own_token first = token_next(r, from, end);
    if (token_is_in(r, from, end, "std") && !token_is_in(r, from, end, "__device__")) return true;
    for (struct own_token t = token_next(r, from, end); t.from < end; t = token_next(r, t.to, end))
        if (t.to - t.from > 4 && memcmp(r->clean + t.from, "cuda", 4) == 0) return true;
    if (token_is(r, first, "using"))
        return token_is(r, token_next(r, first.to, end), "namespace") &&
               !token_is_in(r, from, end, "cooperative_groups") && !token_is_in(r, from, end, "cg");
    if (token_is_one_of(r, first, kept)) return false;
    if (has_body) return token_is_in(r, from, head, "(");
    const struct own_token open = token_find(r, from, head, "("),
                           equals = token_find(r, from, head, "=");
    return open.from < equals.from && open.from < head;
}

/* Returns whether a function of the device's at the top of the file may be made `static`, so that its shared arrays
 * lie where those of the kernel do. Those of a template are put there by the linker (own.c). */
static bool may_be_static(const struct own_source *r, size_t from, size_t head) {
    return !token_is(r, token_next(r, from, head), "template") &&
           !token_is_in(r, from, head, "static") && !token_is_in(r, from, head, "extern") &&
           !token_is_in(r, from, token_find(r, from, head, "(").from, ":");
}

/* Words that a kernel may use on a GPU and not here, each with what to say. A word that ends with * stands for all that
 * begin so. */
static const struct {
    const char *word, *why;
} absent[] = {
    {"__shfl", "is now __shfl_sync(0xffffffff, v, lane): since CUDA 9 a shuffle names its lanes"},
    {"syncthreads", "is __syncthreads() in CUDA C"},
    {"__syncthread", "is __syncthreads() in CUDA C"},
    {"__sync_threads", "is __syncthreads() in CUDA C"},
    {"threadfence", "is __threadfence() in CUDA C"},
    {"cudaDeviceSynchronize",
     "is for the host: a kernel waits by __syncthreads(), and for its block only"},
    {"cudaMalloc", "is for the host: a kernel has its arrays, shared memory and its own variables"},
    {"cudaMemcpy", "is for the host: a kernel reads and writes its arrays itself"},
    {"get_local_id", "is OpenCL C; CUDA C has threadIdx.x"},
    {"get_global_id", "is OpenCL C; CUDA C has blockIdx.x * blockDim.x + threadIdx.x"},
    {"__shfl_down",
     "is now __shfl_down_sync(0xffffffff, v, delta): since CUDA 9 a shuffle names the "
     "lanes that take part"},
    {"__shfl_up",
     "is now __shfl_up_sync(0xffffffff, v, delta): since CUDA 9 a shuffle names the lanes "
     "that take part"},
    {"__shfl_xor", "is now __shfl_xor_sync(0xffffffff, v, lanes): since CUDA 9 a shuffle names the "
                   "lanes that take part"},
    {"__ballot", "is now __ballot_sync(0xffffffff, p): since CUDA 9 it names the lanes that vote"},
    {"__any", "is now __any_sync(0xffffffff, p): since CUDA 9 it names the lanes that vote"},
    {"__all", "is now __all_sync(0xffffffff, p): since CUDA 9 it names the lanes that vote"},
    {"this_grid",
     "is not here: blocks run one after another on the model, so that no barrier can span "
     "the grid; let the last block combine, or launch a second time"},
    {"grid_group", "is not here: blocks run one after another on the model, so that no barrier can "
                   "span the grid; let the last block combine, or launch a second time"},
    {"this_cluster", "is not here: the model has no clusters of blocks"},
    {"cub",
     "is a library, whose code is not here; write the block's reduction out, as the rungs do"},
    {"thrust", "is a library for the host; write the reduction out, as the rungs do"},
    {"wmma", "is for matrix units, which the model has not"},
    {"texture", "is not here: the model has no textures; read the array itself"},
    {"cudaTextureObject_t", "is not here: the model has no textures; read the array itself"},
    {"tex1D*", "is not here: the model has no textures; read the array itself"},
    {"surf1D*", "is not here: the model has no surfaces; write the array itself"},
    {"__half*", "is not here: elements are float, double or integers"},
    {"half", "is not here: elements are float, double or integers"},
    {"half2", "is not here: elements are float, double or integers"},
    {"__nv_bfloat16*", "is not here: elements are float, double or integers"},
    {"malloc", "is not here: a kernel has its arrays, shared memory and its own variables"},
    {"__pipeline_memcpy_async", "is not here: load the element and store it"},
    {"memcpy_async", "is not here: load the element and store it"},
    {"clock", "is not here: the model knows nothing of time"},
    {"clock64", "is not here: the model knows nothing of time"},
    {"__nanosleep", "is not here: the model knows nothing of time"},
    {"atomic_ref", "is of cuda::std, which is not here; atomicAdd() and its like are"},
    {"barrier", "is of cuda::std, which is not here; __syncthreads() is"},
};

/* Returns whether a kept declaration has a word that is not here. If so, writes `why` and its line. */
static bool find_absent(const struct own_source *r, size_t from, size_t end, char *why, size_t room,
                        unsigned *line) {
    struct own_token before = {from, from}, earlier = before;
    for (struct own_token t = token_next(r, from, end); t.from < end;
         t = token_next(r, t.to, end)) {
        const char *said = NULL;
        const size_t size = t.to - t.from;
        for (size_t i = 0; i < sizeof absent / sizeof *absent && !said; i++) {
            const size_t length = strlen(absent[i].word);
            const bool all = absent[i].word[length - 1] == '*';
            if (all ? size >= length - 1 &&
                          memcmp(r->clean + t.from, absent[i].word, length - 1) == 0
                    : token_is(r, t, absent[i].word))
                said = absent[i].why;
        }
        /* `barrier`, `half`, `texture` and the like may be names of the text's own. */
        const struct own_token after = token_next(r, t.to, end);
        const bool is_scoped =
            token_is(r, before, ":") || (after.from < end && token_is(r, after, ":"));
        const bool is_type =
            after.from < end && (is_of_name(r->clean[after.from]) ||
                                 (token_is(r, t, "texture") && token_is(r, after, "<")));
        const bool is_plain = r->clean[t.from] != '_' && !token_is(r, t, "this_grid") &&
                              !token_is(r, t, "malloc") && !token_is(r, t, "syncthreads") &&
                              !token_is(r, t, "threadfence") &&
                              memcmp(r->clean + t.from, "cuda", 4) != 0 &&
                              memcmp(r->clean + t.from, "get_", 4) != 0 &&
                              strncmp(r->clean + t.from, "clock", 5) != 0 &&
                              strncmp(r->clean + t.from, "tex1D", 5) != 0;
        if (said && is_plain && !is_scoped && !(is_type && !is_of_name(r->clean[before.from])))
            said = NULL;
        const bool launches = token_is(r, t, "<") && token_is(r, before, "<") &&
                              token_is(r, earlier, "<") && t.from == before.to &&
                              before.from == earlier.to;
        if (said || launches) {
            *line = reader_line(r, t.from);
            if (launches)
                snprintf(why, room,
                         "<<<...>>> in a kernel is not here: a kernel starts no others on the "
                         "model; launch it from the host");
            else
                snprintf(why, room, "%.*s %s", (int)size, r->clean + t.from, said);
            return true;
        }
        earlier = before;
        before = t;
    }
    return false;
}

/* Notes a class that has an operator(). */
static void note_functor(struct own_source *r, size_t from, size_t end) {
    const struct own_token first = token_next(r, from, end);
    struct own_token word = first;
    struct own_text *out = r->out;
    const bool is_template = token_is(r, first, "template");
    if (is_template) {
        const struct own_token open = token_next(r, first.to, end);
        if (!token_is(r, open, "<")) return;
        word = token_next(r, token_past_closing(r, open.from, end), end);
    }
    const struct own_token named = token_find(r, from, end, "operator");
    if (!(token_is(r, word, "struct") || token_is(r, word, "class")) || named.from >= end ||
        !token_is(r, token_next(r, named.to, end), "(") || out->functor_count == OWN_FUNCTORS_MAX)
        return;
    token_copy(r, token_next(r, word.to, end), out->functors[out->functor_count].name);
    out->functors[out->functor_count++].is_template = is_template;
}

/* Notes `const int BLOCK = 256;` and `enum { BLOCK = 256 };`, which may be the threads of a block. */
static void note_constant(struct own_source *r, size_t from, size_t end) {
    const struct own_token equals = token_find(r, from, end, "=");
    struct own_token name = token_next(r, from, end);
    if (token_is(r, name, "enum")) {
        struct own_token before = name;
        for (struct own_token t = name; t.from < end; before = t, t = token_next(r, t.to, end))
            if (token_is(r, t, "=") && !names_a_warp(r, before))
                hint_block(r, token_next(r, t.to, end), end);
        return;
    }
    if (equals.from >= end || !(token_is_in(r, from, equals.from, "const") ||
                                token_is_in(r, from, equals.from, "constexpr")))
        return;
    for (struct own_token t = name; t.from < equals.from; t = token_next(r, t.to, end))
        name = t;
    const struct own_token value = token_next(r, equals.to, end);
    if (token_is(r, token_next(r, value.to, end), ";") && !names_a_warp(r, name))
        hint_block(r, value, end);
}

/* Returns the __device__ of a declaration's head, or the macro that stands for it. */
static struct own_token find_device(const struct own_source *r, size_t from, size_t head) {
    struct own_token t = token_find(r, from, head, "__device__");
    for (size_t i = 0; i < r->device_count && t.from >= head; i++)
        t = token_find(r, from, head, r->devices[i]);
    return t;
}

/* Notes the name of a function of the host. */
static void note_host(struct own_source *r, size_t from, size_t head) {
    struct own_text *out = r->out;
    const struct own_token open = token_find(r, from, head, "(");
    struct own_token name = {head, head};
    for (struct own_token t = token_next(r, from, open.from); t.from < open.from;
         t = token_next(r, t.to, open.from))
        name = t;
    if (open.from >= head || name.from >= head || !is_of_name(r->clean[name.from]) ||
        out->host_count == OWN_HOSTS_MAX)
        return;
    token_copy(r, name, out->hosts[out->host_count].name);
    out->hosts[out->host_count++].line = reader_line(r, name.from);
}

/* Reads the declaration [from, end), whose body, if it has one, begins at `head`. */
static bool read_declaration(struct own_source *r, size_t from, size_t head, size_t end, char *why,
                             size_t room, unsigned *line) {
    const bool has_body = r->clean[end - 1] == '}';
    const struct own_token device = find_device(r, from, head);
    bool is_variable =
        !token_is_in(r, from, head, "(") &&
        (token_is_in(r, from, head, "__constant__") || token_is_in(r, from, head, "__managed__"));
    note_types(r, from, head);
    if (!has_body || token_is(r, token_next(r, from, end), "enum")) note_constant(r, from, end);
    if (token_is_in(r, from, head, "__global__")) {
        const size_t before = r->out->kernel_count;
        if (has_body && !note_kernel(r, from, head, why, room, line)) return false;
        if (r->out->kernel_count > before) {
            struct own_function *k = &r->out->kernels[before];
            k->is_serial = !numbers_threads(r, head, end);
            k->counts_blocks = hint_counts_blocks(r, head, end);
        }
    } else if (device.from < head) {
        const struct own_token open = token_find(r, from, head, "("),
                               equals = token_find(r, from, head, "=");
        const bool is_function = open.from < equals.from && open.from < head;
        is_variable = !is_function && (!has_body || !(open.from < head));
        if (is_variable)
            reader_edit(r, FOR_MODEL, device.from, device.to, "%s", "OWN_DEVICE_VARIABLE");
        else if (is_function && may_be_static(r, from, head))
            reader_edit(r, FOR_MODEL, device.from, device.from, "%s", "static ");
    } else if (!token_is_in(r, from, head, "__constant__") &&
               !token_is_in(r, from, head, "__shared__") &&
               !token_is_in(r, from, head, "__managed__") &&
               is_hosts(r, from, head, end, has_body)) {
        if (has_body) note_host(r, from, head);
        reader_blank(r->bytes, from, end);
        return true;
    }
    if (!token_is_in(r, from, head, "__global__"))
        r->helps_to_number |= numbers_threads(r, from, end);
    if (is_variable) note_variables(r, from, end);
    note_functor(r, from, end);
    if (find_absent(r, from, end, why, room, line)) return false;
    rewrite_declaration(r, from, end);
    rewrite_arms(r, from, end, false);
    if (!token_is_in(r, from, head, "__global__")) deduce_note(r, from, head);
    if (has_body) deduce_calls(r, head, end);
    rewrite_indexes(r, has_body ? head : from, end);
    rewrite_for_opencl(r, from, end);
    drop_template(r, from, head, token_is_in(r, from, head, "__global__"));
    note_warp_words(r, from, end);
    return true;
}

/* Cuts the text into declarations, and reads each of them. */
static bool read_declarations(struct own_source *r, char *why, size_t room, unsigned *line) {
    size_t from = 0, head = 0;
    for (size_t i = 0; i < r->length; i++) {
        const char c = r->clean[i];
        if (c == '(' || c == '[') i = token_past_closing(r, i, r->length) - 1;
        if (c == '{') {
            const struct own_token first = token_next(r, from, i),
                                   second = token_next(r, first.to, i);
            const bool is_namespace =
                (token_is(r, first, "namespace") ||
                 (token_is(r, first, "inline") && token_is(r, second, "namespace"))) &&
                !token_is_in(r, from, i, "(") && !token_is_in(r, from, i, "=");
            if (is_namespace ||
                (token_is(r, first, "extern") && second.from >= i)) { /* extern "C" { */
                reader_blank(r->bytes, first.from, i + 1);
                from = i + 1;
                continue;
            }
            const size_t end = token_past_closing(r, i, r->length);
            if (!head) head = i;
            i = end - 1;
            const struct own_token after = token_next(r, end, r->length);
            const bool goes_on =
                after.from < r->length &&
                (token_is(r, after, ";") || token_is(r, after, ",") || token_is(r, after, "="));
            const bool is_type =
                !token_is_in(r, from, head, "(") || token_is_in(r, from, head, "=");
            if (goes_on || (is_type && after.from < r->length && is_of_name(r->clean[after.from]) &&
                            token_is(r, first, "typedef")))
                continue;
            if (!read_declaration(r, from, head, end, why, room, line)) return false;
            from = end;
            head = 0;
        } else if (c == '}') { /* of an extern "C" or a namespace */
            reader_blank(r->bytes, i, i + 1);
            from = i + 1;
            head = 0;
        } else if (c == ';') {
            if (!read_declaration(r, from, head ? head : i, i + 1, why, room, line)) return false;
            from = i + 1;
            head = 0;
        }
    }
    return true;
}

/* ---- All of it ---- */

static int by_place(const void *a, const void *b) {
    const struct own_edit *x = a, *y = b;
    if (x->from != y->from) return (x->from > y->from) - (x->from < y->from);
    return (x->to > y->to) -
           (x->to < y->to); /* an insertion stands before what is replaced there */
}

/* Returns the file with the edits that are for one reader; NULL without memory. */
static char *write_text(const struct own_source *r, unsigned whom) {
    char *text = malloc(r->length + r->edit_count * sizeof r->edits->text + 1);
    size_t at = 0, length = 0;
    if (!text) return NULL;
    for (size_t i = 0; i < r->edit_count; i++) {
        const struct own_edit *e = &r->edits[i];
        if (e->from < at || !(e->whom & whom)) continue;
        memcpy(text + length, r->bytes + at, e->from - at);
        length += e->from - at;
        length += (size_t)sprintf(text + length, "%s", e->text);
        for (size_t k = e->from; k < e->to; k++) /* an edit keeps its lines */
            if (r->bytes[k] == '\n') text[length++] = '\n';
        at = e->to;
    }
    memcpy(text + length, r->bytes + at, r->length - at);
    text[length + r->length - at] = '\0';
    return text;
}

static bool write_texts(struct own_source *r) {
    bool good = true;
    qsort(r->edits, r->edit_count, sizeof *r->edits, by_place);
    for (unsigned i = 0; i < OWN_READERS; i++)
        good &= (r->out->texts[i] = write_text(r, 1u << i)) != NULL;
    return good;
}

static bool read_all(struct own_source *r, struct own_conditions *c, char *why, size_t room,
                     unsigned *line) {
    reader_clean(r);
    drop_namespaces(r);
    if (!read_directives(r, c, why, room, line)) return false;
    /* T is a type of every text: its own, or the one that is asked for. */
    snprintf(r->types[r->type_count++], OWN_NAME, "T");
    const size_t asked = r->type_count;
    if (!read_declarations(r, why, room, line)) return false;
    bool defines = false;
    for (size_t i = 0; i < r->type_count; i++)
        defines |= i != asked - 1 && strcmp(r->types[i], "T") == 0;
    r->out->needs_t = token_is_in(r, 0, r->length, "T") && !defines;
    r->out->is_cut = r->out->kernel_count == 0 && token_is_in(r, 0, r->length, "__global__");
    *line = 0;
    for (size_t i = 0; i < r->out->kernel_count; i++)
        r->out->kernels[i].is_serial &= !r->helps_to_number;
    r->out->is_flat = true;
    for (struct own_token t = token_find(r, 0, r->length, "threadIdx"); t.from < r->length;
         t = token_find(r, t.to, r->length, "threadIdx")) {
        const struct own_token part = token_next(r, token_next(r, t.to, r->length).to, r->length);
        if (part.from < r->length && (token_is(r, part, "y") || token_is(r, part, "z")))
            r->out->is_flat = false;
    }
    if (r->edit_count == EDITS_MAX) return snprintf(why, room, "the text is too long"), false;
    return write_texts(r) || (snprintf(why, room, "no memory for it"), false);
}

bool own_text_read(const char *bytes, size_t length, const char *const *defines,
                   size_t define_count, struct own_text *out, char *why, size_t room,
                   unsigned *line) {
    struct own_source r = {.length = length, .out = out};
    struct own_conditions c;
    conditions_begin(&c, defines, define_count, tally_own_prelude());
    *out = (struct own_text){0};
    *line = 0;
    r.bytes = malloc(length + 1);
    r.clean = malloc(length + 1);
    r.edits = malloc(EDITS_MAX * sizeof *r.edits);
    bool good = r.bytes && r.clean && r.edits;
    if (good) {
        memcpy(r.bytes, bytes, length);
        memcpy(r.clean, bytes, length);
        r.bytes[length] = r.clean[length] = '\0';
        good = read_all(&r, &c, why, room, line);
    } else {
        snprintf(why, room, "no memory for it");
    }
    free(r.bytes);
    free(r.clean);
    free(r.edits);
    return good;
}

void own_text_forget(struct own_text *t) {
    for (unsigned i = 0; i < OWN_READERS; i++) {
        free(t->texts[i]);
        t->texts[i] = NULL;
    }
}
