/*
 * own.c - see own.h.
 *
 * Two child processes do the risky work. One is the compiler, with limits on time and memory. The other loads the
 * kernel and runs it on the model. It enters the sandbox (own_sandbox.h) before any of the kernel's code runs, and it
 * writes the command's output.
 */
#include "teach/own.h"

#include "common/arguments.h"
#include "common/message.h"
#include "common/temporary.h"
#include "teach/own_complaint.h"
#include "teach/own_device.h"
#include "teach/own_read.h"
#include "teach/own_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRID_MAX = 1 << 16, TEMPLATE_THREADS = 256 };
enum { TEXT_MAX = 1 << 20, COMPILE_SECONDS = 60, EXEC_FAILED = 127 };

struct work {
    char folder[200];
    char text[256], object[256], log[256], places[256];
    char file[256]; /* the student's, without its folder */
    struct own_text own;
    const struct own_function *kernel;
    unsigned threads;       /* of a block, where the kernel's template takes them */
    unsigned defined_block; /* threads of a block, as a -D defines them; 0: none */
    bool is_loose;          /* a double chosen beside a float, as in `c ? x : 0.0`, is a float */
    bool is_uncounted;      /* compiled with plain numbers for elements: no operator is counted */
    char *bytes;            /* the file as it is, with a 0 behind it */
};

/* ---- Options ---- */

/* Returns whether a text is NAME or NAME=VALUE, on one line. */
static bool is_definition(const char *text) {
    const size_t name =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return name > 0 && !(*text >= '0' && *text <= '9') && (!text[name] || text[name] == '=') &&
           !strpbrk(text, "\n\r\\") && strlen(text) < 200;
}

bool own_option(struct own_options *o, int option) {
    switch (option) {
    case 'k':
        o->spec = optarg;
        return true;
    case 'g':
        if (!argument_count("--grid", optarg, &o->grid)) return o->is_misused = true;
        if (o->grid <= GRID_MAX) return true;
        misused("--grid takes at most %d blocks", GRID_MAX);
        return o->is_misused = true;
    case 'e':
        o->is_misused = !argument_count("--seed", optarg, &o->seed);
        return true;
    case 'D':
        if (o->define_count == OWN_DEFINES_MAX || !is_definition(optarg)) {
            misused("-D takes NAME=VALUE or NAME, %d times at most", OWN_DEFINES_MAX);
            o->is_misused = true;
        } else {
            o->defines[o->define_count++] = optarg;
        }
        return true;
    case 's':
        o->is_misused = !argument_count("--shared", optarg, &o->shared_bytes);
        return true;
    case 'l': {
        const bool digits = *optarg && strspn(optarg, "0123456789") == strlen(optarg);
        o->length = optarg;
        if (!digits && strcmp(optarg, "block") != 0) {
            misused("--length takes a number or block; '%s' is neither", optarg);
            o->is_misused = true;
        }
        return true;
    }
    default:
        return false;
    }
}

bool own_options_fit(const struct own_options *o) {
    if (!o->spec && (o->grid || o->shared_bytes || o->length || o->define_count || o->seed))
        return misused("--grid, --length, --shared, --seed and -D go with --kernel"), false;
    if (o->spec && o->rungs_only)
        return misused("--coarsen and --finish are for rungs; a kernel of your own decides that "
                       "itself"),
               false;
    return true;
}

/* ---- The file ---- */

/* Reads the file into *bytes, which the caller frees whatever this returns. */
static bool read_file(const char *path, char **bytes, size_t *length) {
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return failed("%s: %s", path, strerror(errno)), false;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > TEXT_MAX) {
        close(file);
        return failed("%s is no file of at most %d bytes", path, TEXT_MAX), false;
    }
    *bytes = malloc((size_t)about.st_size + 1);
    ssize_t got = 0, more = *bytes ? 1 : -1;
    while (more > 0 && got < about.st_size) {
        more = read(file, *bytes + got, (size_t)(about.st_size - got));
        if (more > 0) got += more;
    }
    close(file);
    if (more < 0) return failed("%s cannot be read", path), false;
    *length = (size_t)got;
    return !memchr(*bytes, 0, *length) ||
           (failed("%s is no text: it has a zero byte", path), false);
}

/* Cuts "mine.cu:sum" in two, unless there is a file of the whole name. */
static bool split(const char *spec, char path[256], const char **kernel) {
    const char *colon = strrchr(spec, ':');
    *kernel = NULL;
    if (strlen(spec) > 250) return misused("--kernel: the name is too long"), false;
    snprintf(path, 256, "%s", spec);
    if (access(spec, F_OK) == 0 || !colon) return true;
    path[colon - spec] = '\0';
    *kernel = colon + 1;
    return true;
}

static bool choose(struct work *w, const char *name, const char *preferred) {
    char list[512] = "";
    for (size_t i = 0; i < w->own.kernel_count; i++) {
        if (name && strcmp(w->own.kernels[i].name, name) == 0)
            return w->kernel = &w->own.kernels[i], true;
        if (!name && preferred && strcmp(w->own.kernels[i].name, preferred) == 0)
            return w->kernel = &w->own.kernels[i], true;
        if (strlen(list) + OWN_NAME + 2 < sizeof list)
            strcat(strcat(list, i ? ", " : ""), w->own.kernels[i].name);
    }
    if (w->own.kernel_count == 0)
        return failed(w->own.is_cut ? "%s has a __global__ function that does not come to its end"
                                    : "%s has no __global__ function",
                      w->file),
               false;
    if (name) return failed("%s has no kernel %s; it has %s", w->file, name, list), false;
    if (w->own.kernel_count > 1)
        return failed("%s has several kernels: choose one, as in %s:%s (it has %s)", w->file,
                      w->file, w->own.kernels[0].name, list),
               false;
    w->kernel = &w->own.kernels[0];
    return true;
}

static bool read_text(struct work *w, const struct own_options *o) {
    char path[256], why[200];
    const char *name;
    size_t length;
    unsigned line;
    if (!split(o->spec, path, &name) || !read_file(path, &w->bytes, &length)) return false;
    w->bytes[length] = '\0';
    const char *slash = strrchr(path, '/');
    snprintf(w->file, sizeof w->file, "%s", slash ? slash + 1 : path);
    for (size_t i = 0; i < o->define_count; i++) { /* -D THREADS=128 may be a block's threads */
        const char *equals = strchr(o->defines[i], '=');
        const unsigned long n = equals ? strtoul(equals + 1, NULL, 10) : 0;
        if (n >= 32 && n <= 1024 && (n & (n - 1)) == 0) w->defined_block = (unsigned)n;
    }
    const bool good = own_text_read(w->bytes, length, o->defines, o->define_count, &w->own, why,
                                    sizeof why, &line);
    if (!good && line) return failed("%s:%u: %s", w->file, line, why), false;
    if (!good) return failed("%s: %s", w->file, why), false;
    return choose(w, name, o->preferred);
}

/* ---- Compiling ---- */

static bool make_folder(struct work *w) {
    const char *place = temporary_folder();
    if (strlen(place) > 150) place = "/tmp";
    snprintf(w->folder, sizeof w->folder, "%s/tally-XXXXXX", place);
    if (!mkdtemp(w->folder)) return failed("no folder for the compiler in %s", place), false;
    snprintf(w->text, sizeof w->text, "%s/own.cpp", w->folder);
    snprintf(w->object, sizeof w->object, "%s/own.so", w->folder);
    snprintf(w->log, sizeof w->log, "%s/log", w->folder);
    snprintf(w->places, sizeof w->places, "%s/places", w->folder);
    return true;
}

static void remove_folder(const struct work *w) {
    if (!*w->folder) return;
    unlink(w->text);
    unlink(w->object);
    unlink(w->log);
    unlink(w->places);
    rmdir(w->folder);
}

/* Returns the C++ name of an element type; NULL if it has none. */
static const char *type_words(tally_type type) {
    static const char *const words[] = {
        [TALLY_I8] = "signed char",   [TALLY_I16] = "short",
        [TALLY_I32] = "int",          [TALLY_I64] = "long long",
        [TALLY_U8] = "unsigned char", [TALLY_U16] = "unsigned short",
        [TALLY_U32] = "unsigned int", [TALLY_U64] = "unsigned long long",
        [TALLY_F32] = "float",        [TALLY_F64] = "double"};
    return (size_t)type < sizeof words / sizeof *words ? words[type] : NULL;
}

/* Returns the functor for a template's parameter: one named after the operator, else the first; NULL if none is
 * there. */
static const struct own_functor *choose_functor(const struct own_text *text, tally_op op) {
    static const char *const words[][4] = {[TALLY_SUM] = {"sum", "add", "plus"},
                                           [TALLY_PROD] = {"prod", "mul", "times"},
                                           [TALLY_MIN] = {"min", "less"},
                                           [TALLY_MAX] = {"max", "greater"},
                                           [TALLY_AND] = {"and"},
                                           [TALLY_OR] = {"or"},
                                           [TALLY_XOR] = {"xor"}};
    for (size_t i = 0; i < text->functor_count && op <= TALLY_XOR; i++)
        for (size_t k = 0; k < 4 && words[op][k]; k++)
            if (strcasestr(text->functors[i].name, words[op][k])) return &text->functors[i];
    return text->functor_count ? &text->functors[0] : NULL;
}

static bool defines(const struct own_options *o, const char *name) {
    for (size_t i = 0; i < o->define_count; i++)
        if (strncmp(o->defines[i], name, strlen(name)) == 0 &&
            strcspn(o->defines[i], "=") == strlen(name))
            return true;
    return false;
}

/* Writes #define NAME VALUE for each -D. */
static void write_defines(FILE *f, const struct own_options *o) {
    for (size_t i = 0; i < o->define_count; i++) {
        const char *equals = strchr(o->defines[i], '=');
        fprintf(f, "#define %.*s %s\n", (int)strcspn(o->defines[i], "="), o->defines[i],
                equals ? equals + 1 : "1");
    }
}

static bool write_cpp(const struct work *w, const struct own_options *o, tally_op op,
                      tally_type type) {
    const struct own_function *k = w->kernel;
    const char *t = type_words(type);
    FILE *f = fopen(w->text, "we");
    if (!f) return failed("%s: %s", w->text, strerror(errno)), false;
    char name[16];
    snprintf(name, sizeof name, "%s", tally_op_name(op));
    for (char *c = name; *c; c++)
        *c = (char)(*c - ('a' - 'A'));
    fprintf(f, "#define OWN_OP_%s 1\n%s#line 1 \"own_lane.hpp\"\n%s\n", name,
            w->is_uncounted ? "#define OWN_UNCOUNTED 1\n"
            : w->is_loose   ? "#define OWN_LOOSE 1\n"
                            : "",
            tally_own_prelude());
    fprintf(f, "#define OWN_T %s\n#define " OWN_THREADS " %u\n", t ? t : "float", w->threads);
    const struct own_functor *functor = choose_functor(&w->own, op);
    if (functor)
        fprintf(f, "#define " OWN_FUNCTOR " %s%s\n", functor->name,
                functor->is_template ? "<OWN_T>" : "");
    else
        fputs("#define " OWN_FUNCTOR " OWN_T\n", f);
    if (w->own.needs_t && !defines(o, "T")) fputs("using T = OWN_T;\n", f);
    write_defines(f, o);
    fputs("#line 1 \"", f);
    for (const char *c = w->file; *c; c++)
        fputc(*c == '"' || *c == '\\' || *c < ' ' ? '_' : *c, f);
    fputs("\"\n", f);
    fputs(w->own.texts[OWN_MODEL], f);
    fputs("\n#line 1 \"own_lane.hpp\"\n", f);
    if (**w->own.dynamic) fputs("OWN_DYNAMIC char own_dynamic[49152];\n", f);
    fprintf(f,
            "OWN_EXPORTED const own_kernel tally_own_kernels[];\n"
            "OWN_EXPORTED const size_t tally_own_kernel_count;\n"
            "constinit const own_kernel tally_own_kernels[] = "
            "{own::kernel<&::%s%s%s%s>::describe(\"%s\", "
            "\"%s\")};\nconstinit const size_t tally_own_kernel_count = 1;\n",
            k->name, *k->arguments ? "<" : "", k->arguments, *k->arguments ? ">" : "", k->name,
            k->parameters);
    fputs("OWN_EXPORTED const own_variable tally_own_variables[];\n"
          "constinit const own_variable tally_own_variables[] = {",
          f);
    for (size_t i = 0; i < w->own.variable_count; i++)
        fprintf(f, "own::variable(::%s), ", w->own.variables[i]);
    fputs("{}};\n", f);
    if (fclose(f) != 0) return failed("%s: %s", w->text, strerror(errno)), false;
    return true;
}

/* Writes the linker script. gcc ignores the section of a shared array in a template's function, and gives the array a
 * section of its own. The script puts that one into model_shared, too. */
static bool write_places(const struct work *w) {
    FILE *f = fopen(w->places, "we");
    if (!f) return failed("%s: %s", w->places, strerror(errno)), false;
    fputs("SECTIONS { model_shared : { *(model_shared) *(.bss._ZZ*) } } INSERT AFTER .bss;\n", f);
    return fclose(f) == 0 || (failed("%s: %s", w->places, strerror(errno)), false);
}

/* The flag fills uninitialized variables with a pattern. Without it one may be 0 by luck, so that a wrong kernel seems
 * right. g++ before 12 does not know the flag: there the text is compiled without it. */
#define NEWER_FLAG "-ftrivial-auto-var-init=pattern"

_Noreturn static void become_compiler(const struct work *w, bool is_old) {
    enum { WORDS = 64 };
    char flags[1024], symbols[OWN_DYNAMIC_MAX][128], *words[WORDS], *rest = NULL;
    size_t count = 0;
    const int log = open(w->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setenv("LC_ALL", "C", 1);
    unsetenv("CPATH");
    unsetenv("CPLUS_INCLUDE_PATH");
    own_limit(COMPILE_SECONDS);
    words[count++] = "g++";
    snprintf(flags, sizeof flags, "%s", tally_own_flags());
    for (char *word = strtok_r(flags, " ", &rest); word && count < WORDS - 16;
         word = strtok_r(NULL, " ", &rest))
        if (!is_old || strcmp(word, NEWER_FLAG) != 0) words[count++] = word;
    words[count++] = "-shared";
    words[count++] = "-fmax-errors=1";
    words[count++] = "-fno-diagnostics-show-caret";
    words[count++] = "-Wl,-z,defs,--build-id=none";
    words[count++] = "-T";
    words[count++] = (char *)w->places;
    for (size_t i = 0; i < OWN_DYNAMIC_MAX && *w->own.dynamic[i]; i++) {
        snprintf(symbols[i], sizeof symbols[i], "-Wl,--defsym=%s=own_dynamic", w->own.dynamic[i]);
        words[count++] = symbols[i];
    }
    words[count++] = "-o";
    words[count++] = (char *)w->object;
    words[count++] = (char *)w->text;
    words[count] = NULL;
    execvp(words[0], words);
    _exit(EXEC_FAILED);
}

static int wait_for(pid_t child) {
    int word = 0;
    while (waitpid(child, &word, 0) < 0 && errno == EINTR)
        ;
    return word;
}

/* Writes the line that says why the compiler refused the text. */
static void tell_refusal(const struct work *w) {
    char line[1400];
    if (own_complaint(w->log, w->file, &w->own, line, sizeof line))
        failed("%s", line);
    else
        failed("%s takes too much time or memory to compile", w->file);
}

/* Returns whether the compiler is too old for NEWER_FLAG. */
static bool refused_flag(const struct work *w) {
    char line[1024];
    bool refused = false;
    FILE *log = fopen(w->log, "re");
    while (log && !refused && fgets(line, sizeof line, log))
        refused = strstr(line, "unrecognized command") && strstr(line, NEWER_FLAG);
    if (log) fclose(log);
    return refused;
}

enum outcome { COMPILED, REFUSED, NOT_COMPILED };

/* Runs the compiler. Returns REFUSED if w->log has its reason, and NOT_COMPILED if the line is already written. */
static enum outcome run_compiler(const struct work *w, bool is_old) {
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return failed("no process for the compiler: %s", strerror(errno)), NOT_COMPILED;
    if (child == 0) become_compiler(w, is_old);
    const int word = wait_for(child);
    if (WIFEXITED(word) && WEXITSTATUS(word) == EXEC_FAILED)
        return failed("a kernel of your own is compiled by g++, which is not here; install it"),
               NOT_COMPILED;
    if (WIFSIGNALED(word))
        return failed("%s: the compiler takes too much time or memory (%s)", w->file,
                      strsignal(WTERMSIG(word))),
               NOT_COMPILED;
    if (WEXITSTATUS(word) != 0 && !is_old && refused_flag(w)) return run_compiler(w, true);
    return WEXITSTATUS(word) == 0 ? COMPILED : REFUSED;
}

/* Compiles the text, in up to three tries. The first has classes for elements, whose operators are counted. The second
 * has OWN_LOOSE, which is less strict about `c ? a : b`. C++ does not take the classes for numbers everywhere, for
 * example in a template of two equal types: the third has plain numbers. An error message is that of the last try,
 * whose types are the text's own. */
static bool compile(struct work *w, const struct own_options *o, tally_op op, tally_type type) {
    if (!write_cpp(w, o, op, type) || !write_places(w)) return false;
    enum outcome outcome = run_compiler(w, false);
    for (unsigned try = 0; try < 2 && outcome == REFUSED; try++) {
        w->is_loose = true;
        w->is_uncounted = try == 1;
        if (!write_cpp(w, o, op, type)) return false;
        outcome = run_compiler(w, false);
    }
    if (outcome == REFUSED) tell_refusal(w);
    return outcome == COMPILED;
}

/* ---- Running ---- */

static int run_shut(const struct work *w, const struct own_options *o,
                    int (*run)(void *context, struct own_kernel *kernel), void *context) {
    struct own_kernel k = {.line = w->kernel->line,
                           .template_block = w->kernel->takes_block ? w->threads : 0,
                           .block_count = w->own.block_count,
                           .is_serial = w->kernel->is_serial,
                           .counts_blocks = w->kernel->counts_blocks,
                           .is_flat = w->own.is_flat,
                           .width = w->own.width,
                           .height = w->own.height};
    static char buffer[1 << 16];
    snprintf(k.file, sizeof k.file, "%s", w->file);
    snprintf(k.name, sizeof k.name, "%s", w->kernel->name);
    memcpy(k.blocks, w->own.blocks, sizeof k.blocks);
    if (w->defined_block) {
        k.blocks[0] = w->defined_block;
        k.block_count = 1;
    }
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (tally_own_open(w->object, &k.own) != TALLY_OK)
        return failed("%s", tally_error()), OWN_NOT_JUDGED;
    if (tally_own_describe(k.own, 0, &k.is) != TALLY_OK)
        return failed("%s:%u: %s", k.file, k.line, tally_error()), OWN_NOT_JUDGED;
    remove_folder(w);
    k.text = w->bytes;
    if (o->svg && strcmp(o->svg, "-") != 0) {
        static char svg_buffer[1 << 16];
        if (!(k.svg = fopen(o->svg, "we")))
            return failed("%s: %s", o->svg, strerror(errno)), OWN_NOT_JUDGED;
        setvbuf(k.svg, svg_buffer, _IOFBF, sizeof svg_buffer);
    }
    own_limit(o->seconds);
    if (!own_shut(k.svg ? fileno(k.svg) : -1))
        return failed("this system cannot shut a process off (seccomp), so that no kernel of your "
                      "own is run"),
               OWN_NOT_JUDGED;
    const int status = run(context, &k);
    tally_own_close(k.own);
    return status;
}

static int tell_signal(const struct work *w, const struct own_options *o, int number) {
    if (number == SIGFPE)
        return failed("%s: kernel %s divides an integer by zero", w->file, w->kernel->name);
    if (number == SIGXCPU || number == SIGKILL)
        return failed("%s: kernel %s took more than %u s of processor time", w->file,
                      w->kernel->name, o->seconds);
    return failed("%s: kernel %s ended its process (%s)", w->file, w->kernel->name,
                  strsignal(number));
}

static int run_apart(const struct work *w, const struct own_options *o,
                     int (*run)(void *context, struct own_kernel *kernel), void *context) {
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return failed("no process for the kernel: %s", strerror(errno)), OWN_NOT_JUDGED;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int status = run_shut(w, o, run, context);
        fflush(NULL);
        _exit(status);
    }
    int word = 0;
    while (o->device && waitpid(child, &word, WNOHANG) == 0) {
        own_device_answer(o->page, o->device, &w->own, w->kernel, w->file, o);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (!o->device) word = wait_for(child);
    if (WIFSIGNALED(word)) return tell_signal(w, o, WTERMSIG(word)), OWN_NOT_JUDGED;
    return WEXITSTATUS(word);
}

int own_in_process(const struct own_options *o, tally_op op, tally_type type,
                   int (*run)(void *context, struct own_kernel *kernel), void *context) {
    struct work *w = calloc(1, sizeof *w);
    if (!w) return failed("no memory for a kernel"), OWN_NOT_JUDGED;
    int status = OWN_NOT_JUDGED;
    w->threads = o->block ? o->block : TEMPLATE_THREADS;
    if (read_text(w, o) && make_folder(w) && compile(w, o, op, type))
        status = run_apart(w, o, run, context);
    remove_folder(w);
    own_text_forget(&w->own);
    free(w->bytes);
    free(w);
    return status;
}
