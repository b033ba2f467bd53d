/* own_device.c - see own_device.h. */
#include "teach/own_device.h"

#include "common/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REPEATS = 9, COMPILE_SECONDS = 120 };

struct own_page *own_page_make(void) {
    void *page = mmap(NULL, sizeof(struct own_page), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void wait_a_little(void) {
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

void own_device_ask(struct own_page *page) {
    __sync_synchronize();
    page->asked = 1;
    while (!page->answered)
        wait_a_little();
    __sync_synchronize();
}

/* ---- Checks of the question, as its process is not trusted ---- */

static bool good_host(const struct own_host *h) {
    return h->block >= 1 && h->block <= 1024 && h->grid <= 1u << 16 && h->form <= OWN_WHOLE_GRID &&
           h->per_thread <= 2 && h->shared_per_thread <= 2 && h->segment <= 1u << 24 &&
           (h->form != OWN_SEGMENTS || h->segment > 0);
}

static bool is_good(struct own_question *q) {
    q->is.roles[8] = q->nearest[sizeof q->nearest - 1] = '\0';
    for (size_t i = 0; q->is.roles[i]; i++)
        if (!strchr("io48jdp", q->is.roles[i])) return false;
    for (size_t i = 0; i < OWN_DEVICE_LENGTHS; i++)
        if (q->lengths[i] > own_host_most(&q->host)) return false;
    for (size_t i = 0; i < OWN_DEVICE_TIMES; i++)
        if (q->times[i] > own_host_most(&q->timed)) return false;
    return good_host(&q->host) && good_host(&q->timed) && q->block <= 1024 &&
           tally_type_name(q->is.type) && tally_op_name(q->op);
}

/* ---- In the device's process ---- */

struct job {
    struct own_page *page;
    struct own_question q; /* a copy that nobody else can change */
    struct own_answer *a;
    const char *device;
    struct own_kernel kernel;
    struct own_session session;
};

static const char *c_name(tally_type type) {
    static const char *const names[] = {
        [TALLY_I8] = "signed char",   [TALLY_I16] = "short",         [TALLY_I32] = "int",
        [TALLY_I64] = "long",         [TALLY_U8] = "unsigned char",  [TALLY_U16] = "unsigned short",
        [TALLY_U32] = "unsigned int", [TALLY_U64] = "unsigned long", [TALLY_F32] = "float",
        [TALLY_F64] = "double"};
    return (size_t)type < sizeof names / sizeof *names && names[type] ? names[type] : "float";
}

/* Returns the device's text, preceded by definitions of the types that its templates, or T, stand
 * for. The caller frees it; NULL without memory. */
static char *whole_text(const struct job *j, const struct own_text *text, bool is_opencl) {
    const char *body = text->texts[is_opencl ? OWN_OPENCL : OWN_CUDA], *type = c_name(j->q.is.type);
    const size_t room = strlen(body) + 2048;
    char *all = malloc(room), names[sizeof text->types], *rest = NULL;
    size_t used = 0;
    if (!all) return NULL;
    snprintf(names, sizeof names, "%s", text->types);
    char seen[sizeof names + 8] = " ";
    if (text->needs_t) {
        used += (size_t)snprintf(all + used, room - used, "typedef %s T; ", type);
        strcat(seen, "T ");
    }
    if (text->number_line)
        used += (size_t)snprintf(all + used, room - used, "enum { " OWN_THREADS " = %u }; ",
                                 j->q.block);
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        char marked[OWN_NAME + 4];
        if (*name == '?' && !is_opencl) continue;
        name += *name == '?';
        snprintf(marked, sizeof marked, " %.60s ", name);
        if (strstr(seen, marked)) continue;
        if (strlen(seen) + strlen(marked) < sizeof seen) strcat(seen, marked + 1);
        used += (size_t)snprintf(all + used, room - used, "typedef %s %s; ", type, name);
    }
    snprintf(all + used, room - used, "\n#line 1 \"%s\"\n%s", j->kernel.file, body);
    return all;
}

/* Copies to the answer the compiler's first message about the student's file; if there is none, all
 * that was said. */
static void tell_compiler(struct job *j, const char *said) {
    char named[sizeof j->kernel.file + 2];
    const size_t length = (size_t)snprintf(named, sizeof named, "%s", j->kernel.file);
    const char *from = strstr(said, named);
    while (from && from[length] != ':' && from[length] != '(')
        from = strstr(from + 1, named);
    const char *end = from ? strstr(from, "; ") : NULL;
    if (!from) from = said;
    snprintf(j->a->why, sizeof j->a->why, "%.*s", end ? (int)(end - from) : (int)strlen(from),
             from);
}

static bool compile(struct job *j, const struct own_text *text) {
    const bool is_opencl = strncmp(j->device, "opencl", 6) == 0;
    const size_t size = tally_type_size(j->q.is.type);
    const size_t threads = j->q.block                           ? j->q.block
                           : j->q.host.form == OWN_ONE_BLOCK    ? 1024
                           : j->q.host.block > j->q.timed.block ? j->q.host.block
                                                                : j->q.timed.block;
    char *all = whole_text(j, text, is_opencl);
    tally_own_text t = {.text = all,
                        .file = j->kernel.file,
                        .kernel = j->kernel.name,
                        .type = j->q.is.type,
                        .dynamic_bytes = j->session.options->shared_bytes};
    memcpy(t.roles, j->q.is.roles, sizeof t.roles);
    if (!t.dynamic_bytes)
        t.dynamic_bytes =
            (j->q.host.shared_per_thread ? j->q.host.shared_per_thread : 1) * threads * size;
    const bool good = all && tally_own_compile(j->device, &t, &j->session.program) == TALLY_OK;
    if (!good) tell_compiler(j, all ? tally_error() : "no memory");
    free(all);
    return good;
}

/* Runs the kernel for n elements. Returns false if the device has failed, so that no further run
 * makes sense. */
static bool run_for(struct job *j, const struct own_host *host, uint64_t n, unsigned repeats,
                    struct own_run *out) {
    j->page->now = n;
    j->page->started++;
    j->session.repeats = repeats;
    const bool good = own_host_run(&j->session, host, n, OWN_DATA, 0, NULL, NULL, out);
    if (!good) {
        j->a->fault_n = n;
        snprintf(j->a->fault, sizeof j->a->fault, "the device stops it: %s", tally_error());
    } else if (out->result.fault != TALLY_OWN_RIGHT && !*j->a->fault) {
        j->a->fault_n = n;
        snprintf(j->a->fault, sizeof j->a->fault, "%s", out->result.sentence);
    }
    j->page->now = 0;
    return good;
}

/* Times the nearest rung and the production reduction for the same n, and notes the roof. */
static void time_rungs(struct job *j, uint64_t n, struct own_time *t) {
    const char *only[] = {j->q.nearest, "tally"};
    const char *const *const from = *j->q.nearest ? only : only + 1;
    tally_ladder_options o = {.op = j->q.op,
                              .type = j->q.is.type,
                              .only = (void *)from,
                              .only_count = *j->q.nearest ? 2 : 1,
                              .n = (size_t)n};
    static tally_ladder_report report;
    void *x = own_elements_make(&j->session, n);
    if (!x) return;
    o.x = x;
    if (j->q.timed.block && !(j->q.timed.block & (j->q.timed.block - 1)))
        o.block = j->q.timed.block;
    if (tally_ladder_run(j->device, &o, &report) == TALLY_OK) {
        snprintf(j->a->name, sizeof j->a->name, "%s", report.name);
        t->roof = report.roof_seconds;
        for (size_t i = 0; i < report.count; i++)
            *(strcmp(report.rows[i].name, "tally") == 0 ? &t->tally : &t->nearest) =
                report.rows[i].seconds;
    }
    free(x);
}

_Noreturn static void be_device(struct job *j, const struct own_text *text) {
    struct own_run run;
    const int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (!compile(j, text)) _exit(STATUS_FAILED);
    bool lives = true;
    for (size_t i = 0; lives && i < OWN_DEVICE_LENGTHS && j->q.lengths[i]; i++) {
        struct own_length *l = &j->a->lengths[i];
        lives = run_for(j, &j->q.host, j->q.lengths[i], 1, &run);
        if (lives)
            *l = (struct own_length){true, run.is_right && !run.result.fault, run.value,
                                     run.expected};
    }
    for (size_t i = 0; lives && i < OWN_DEVICE_TIMES && j->q.times[i]; i++) {
        struct own_time *t = &j->a->times[i];
        lives = run_for(j, &j->q.timed, j->q.times[i], REPEATS, &run);
        t->roof = t->nearest = t->tally = (double)NAN;
        t->seconds = run.seconds;
        t->right = run.is_right && !run.result.fault;
        if (lives) time_rungs(j, j->q.times[i], t);
        t->done = lives;
    }
    _exit(STATUS_OK); /* skips the driver's exit handlers, which may hang */
}

/* ---- In the command's process ---- */

/* Waits for the device's process, and ends it where a launch takes too long. */
static void look_on(struct job *j, pid_t child) {
    unsigned long launches = 0;
    double since = 0;
    int word = 0;
    for (;;) {
        struct timespec t;
        const pid_t ended = waitpid(child, &word, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR)) break;
        clock_gettime(CLOCK_MONOTONIC, &t);
        const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
        if (since == 0 || launches != j->page->started) since = now;
        launches = j->page->started;
        const uint64_t n = j->page->now;
        const double limit = n ? OWN_DEVICE_SECONDS + 3 : COMPILE_SECONDS;
        if (now - since > limit) {
            kill(child, SIGKILL);
            waitpid(child, &word, 0);
            if (n)
                snprintf(j->a->why, sizeof j->a->why,
                         "with n = %" PRIu64 " it does not end: it was stopped after %.0f s", n,
                         limit);
            else
                snprintf(j->a->why, sizeof j->a->why, "the device's compiler does not end");
            return;
        }
        wait_a_little();
    }
    if (!WIFSIGNALED(word) || *j->a->why) return;
    if (j->page->now)
        snprintf(j->a->why, sizeof j->a->why, "with n = %" PRIu64 " the device's process ended: %s",
                 j->page->now, strsignal(WTERMSIG(word)));
    else
        snprintf(j->a->why, sizeof j->a->why, "the device's process ended while it compiled: %s",
                 strsignal(WTERMSIG(word)));
}

static const char *refusal(const struct job *j, const struct own_text *text, char room[400]) {
    const bool is_opencl = strncmp(j->device, "opencl", 6) == 0;
    if (j->q.is_endless) return "on the model it does not end (above)";
    if (is_opencl && j->q.leaves_arrays)
        return "on the model it leaves its arrays (above), and nothing would stop it there";
    if (is_opencl && text->number_line) {
        snprintf(room, 400, "%s:%u: a template of a number, which OpenCL C does not know",
                 j->kernel.file, text->number_line);
        return room;
    }
    if (!is_opencl || !*text->warp_word) return NULL;
    snprintf(room, 400, "%s:%u: %s() is for the lanes of a warp, which OpenCL C does not know",
             j->kernel.file, text->warp_line, text->warp_word);
    return room;
}

void own_device_answer(struct own_page *page, const char *device, const struct own_text *text,
                       const struct own_function *kernel, const char *file,
                       const struct own_options *options) {
    char room[400];
    struct job *j = calloc(1, sizeof *j);
    if (!page->asked || page->answered || !j) {
        free(j);
        return;
    }
    __sync_synchronize();
    j->page = page;
    j->q = page->question;
    j->a = &page->answer;
    j->device = device;
    memset(j->a, 0, sizeof *j->a);
    snprintf(j->a->device, sizeof j->a->device, "%s", device);
    snprintf(j->kernel.file, sizeof j->kernel.file, "%s", file);
    snprintf(j->kernel.name, sizeof j->kernel.name, "%s", kernel->name);
    j->kernel.is = j->q.is;
    j->kernel.is.name = kernel->name;
    j->kernel.is.input = "input";
    j->kernel.is.output = j->q.has_output ? "output" : NULL;
    j->kernel.is.length = j->q.has_length ? "n" : NULL;
    j->session = (struct own_session){
        .kernel = &j->kernel, .options = options, .op = j->q.op, .block = j->q.block};
    const char *why =
        is_good(&j->q) ? refusal(j, text, room) : "its process broke out of its checks";
    if (why) {
        snprintf(j->a->why, sizeof j->a->why, "%s", why);
    } else {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) be_device(j, text);
        if (child > 0)
            look_on(j, child);
        else
            snprintf(j->a->why, sizeof j->a->why, "no process for the device");
    }
    __sync_synchronize();
    page->answered = 1;
    free(j);
}
