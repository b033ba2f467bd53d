/*
 * own_explain.c - `tally explain --kernel mine.cu`: is a student's kernel right, for which n, what does it do,
 * and which rung is it most like?
 */
#include "teach/own_explain.h"

#include "common/message.h"
#include "teach/ladder_counts.h"
#include "teach/own_report.h"
#include "teach/picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_MOST = 1 << 20, LADDER_BLOCK = 256 };

/* ---- Running ---- */

/* Counts how often the kernel's sum has each element, for the least n that is wrong: one run for each element, in which
 * it is 1 and the others are 0. After a fault, such as a value that is read before it is written, a sum says nothing of
 * that, and no counts are kept. */
static bool count_elements(struct own_report *r) {
    struct own_run run;
    uint64_t n = 0;
    if (r->session.op != TALLY_SUM) return true;
    for (size_t i = 0; i < r->j.tried_count && !n; i++)
        if (r->j.tried[i].complete && r->j.tried[i].value != r->j.tried[i].expected)
            n = r->j.tried[i].n;
    if (!n && !r->run.is_right) n = r->run.n;
    if (!n || n > MISCOUNTED_MAX) return true;
    for (uint64_t i = 0; i < n; i++) {
        if (!own_host_run(&r->session, &r->j.host, n, OWN_UNIT, i, NULL, NULL, &run)) return false;
        if (!run.result.is_complete || run.result.fault != TALLY_OWN_RIGHT ||
            fabs(run.value) > 1e6 || run.value != floor(run.value))
            return true;
        r->times[i] = (int)run.value;
    }
    r->miscounted_n = n;
    return true;
}

/* ---- The nearest rung ---- */

static double apart(uint64_t a, uint64_t b) {
    return fabs(log2((double)a + 1) - log2((double)b + 1));
}

static double distance(const tally_ladder_counts *a, const tally_ladder_counts *b) {
    return apart(a->steps, b->steps) + apart(a->barriers, b->barriers) + apart(a->slots, b->slots) +
           apart(a->divergent, b->divergent) + apart(a->transactions, b->transactions) +
           apart(a->bank_conflicts, b->bank_conflicts) + apart(a->bytes_read, b->bytes_read) +
           apart(a->bytes_written, b->bytes_written);
}

/* Finds the rung whose counts are nearest to the kernel's. The rungs run with the same n and block, and the CPU
 * finishes for them, as for the kernel. */
static bool find_nearest(struct own_report *r) {
    struct ladder_options o = r->e->options;
    double best = INFINITY;
    o.run.block = r->run.block & (r->run.block - 1) ? 0 : r->run.block;
    o.run.coarsen = r->j.host.form == OWN_SEGMENTS && r->main.segment > 2 * (uint64_t)r->main.block
                        ? (unsigned)(r->main.segment / (2 * (uint64_t)r->main.block))
                        : 4;
    o.run.finish = TALLY_FINISH_HOST;
    o.run.type = r->kernel->is.type;
    o.run.n = (size_t)r->run.n;
    void *x = own_elements_make(&r->session, r->run.n);
    if (!x) return failed("no memory for the elements"), false;
    o.run.x = x;
    const tally_rung *rung;
    for (size_t i = 0; (rung = tally_ladder_rung(i)); i++) {
        tally_ladder_row row;
        if (!rung->is_kernel ||
            tally_ladder_explain(rung->name, &o.run, NULL, NULL, &row) != TALLY_OK)
            continue;
        const double d = distance(&r->run.result.counts, &row.counts);
        if (d >= best) continue;
        best = d;
        r->nearest = row;
    }
    free(x);
    return true;
}

/* ---- On a device ---- */

static void note_length(struct own_question *q, size_t *count, uint64_t n, uint64_t most) {
    if (n < 1 || n > most || *count == OWN_DEVICE_LENGTHS) return;
    for (size_t i = 0; i < *count; i++)
        if (q->lengths[i] == n) return;
    q->lengths[(*count)++] = n;
}

static void fill_question(struct own_question *q, const struct own_session *s,
                          const struct own_host *host, const struct own_host *timed) {
    q->host = *host;
    q->timed = *timed;
    q->is = s->kernel->is;
    q->has_output = s->kernel->is.output != NULL;
    q->has_length = s->kernel->is.length != NULL;
    q->op = s->op;
    q->block = s->block;
}

/* Asks the device about fewer lengths than the model, and about longer ones. */
static void ask(struct own_report *r) {
    struct own_question *q = &r->page->question;
    const uint64_t most = own_host_most(&r->j.host), s = r->j.host.segment;
    const uint64_t lengths[] = {
        1,     2, 3,     5,         32,        33,      100,           255,           1000, 1024,
        s - 1, s, s + 1, 2 * s + 1, 5 * s + 3, 1 << 16, (1 << 16) + 1, (1 << 20) + 1, 2048};
    const uint64_t times[] = {1 << 16, 1 << 20, 1 << 24, 1 << 28};
    const bool is_cuda = strncmp(r->e->device, "cuda", 4) == 0;
    size_t count = 0;
    bool whole = false; /* with whole segments it stays in its arrays, and else it does not */
    for (size_t i = 0; i < r->j.fault_count; i++)
        q->leaves_arrays |=
            r->j.faults[i].kind == TALLY_OWN_BOUNDS || r->j.faults[i].kind == TALLY_OWN_ALIGNMENT;
    if (q->leaves_arrays && !is_cuda && s && r->j.host.form == OWN_SEGMENTS) {
        whole = !own_leaves(&r->run) || r->run.n % s;
        for (size_t i = 0; i < r->j.tried_count; i++)
            whole &= !r->j.tried[i].leaves || r->j.tried[i].n % s;
        q->leaves_arrays = !whole;
    }
    fill_question(q, &r->session, &r->j.host, &r->main);
    q->whole = whole;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        note_length(q, &count, whole ? (lengths[i] + s - 1) / s * s : lengths[i], most);
    count = 0;
    if (r->e->options.has_n || r->session.options->grid) q->times[count++] = r->run.n;
    for (size_t i = 0; count == 0 && i < sizeof times / sizeof *times; i++)
        if (times[i] <= own_host_most(&r->main) && (is_cuda || times[i] <= 1 << 24) &&
            (!whole || times[i] % r->main.segment == 0))
            q->times[i] = times[i];
    if (q->times[0] == 0) q->times[0] = own_host_most(&r->main);
    q->is_endless = r->j.endless || r->run.result.fault == TALLY_OWN_ENDLESS;
    if (r->nearest.name) snprintf(q->nearest, sizeof q->nearest, "%s", r->nearest.name);
    own_device_ask(r->page);
}

/* ---- The command ---- */

/* Chooses the n and the block that are shown, as `tally explain` does for a rung. */
static bool choose_main(struct own_report *r) {
    struct explanation *e = r->e;
    const struct own_host *h = &r->j.host;
    const bool drawn = e->draws || e->svg, asked = e->options.has_n;
    unsigned block = drawn ? 8 : 512;
    if (!asked && drawn)
        e->options.n = 16;
    else if (!asked)
        e->options.n = h->form == OWN_WHOLE_GRID ? 1 << 16 : 1024;
    if (e->options.n < 1 || e->options.n > N_MOST)
        return misused("-n takes 1 to %d elements for a kernel of your own", N_MOST), false;
    if (e->options.n > own_host_most(h) ||
        (r->session.block && h->form == OWN_ONE_BLOCK && h->per_thread &&
         e->options.n > (uint64_t)h->per_thread * r->session.block))
        return failed("%s: kernel %s is of one block, which has threads for %" PRIu64
                      " elements; choose a smaller -n",
                      r->kernel->file, r->kernel->name,
                      (uint64_t)h->per_thread * (r->session.block ? r->session.block : 1024)),
               false;
    if (block == 512 && (h->form == OWN_WHOLE_GRID || h->segment > 2 * (uint64_t)h->block))
        block = 128;
    r->main = *h;
    struct own_host other;
    struct own_run trial;
    if (r->session.block || r->kernel->block_count > 0) {
        /* A block whose size the text fixes may want all of its segment. */
        if (drawn && !asked && h->form == OWN_SEGMENTS &&
            own_host_run(&r->session, h, 16, OWN_DATA, 0, NULL, NULL, &trial) && !trial.is_right)
            e->options.n = h->segment;
        return true;
    }
    if (!own_host_at(&r->session, block, h, &other)) return true;
    if (own_host_run(&r->session, &other, e->options.n, OWN_DATA, 0, NULL, NULL, &trial) &&
        trial.is_right)
        r->main = other;
    return true;
}

/* Chooses the length that is shown for a kernel that takes no n: one that it is right for. */
static void choose_length(struct own_report *r) {
    struct explanation *e = r->e;
    const struct own_host *h = &r->main;
    const uint64_t lengths[] = {e->options.n, h->segment, 2 * h->segment, 2 * (uint64_t)h->block,
                                h->block};
    struct own_run trial;
    if (e->options.has_n || r->kernel->is.length) return;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (lengths[i] < 1 || lengths[i] > own_host_most(h) ||
            !own_host_run(&r->session, h, lengths[i], OWN_DATA, 0, NULL, NULL, &trial) ||
            !trial.is_right)
            continue;
        e->options.n = lengths[i];
        return;
    }
}

static bool watch(struct own_report *r) {
    struct explanation *e = r->e;
    r->session.accesses = e->with_steps || e->draws || e->svg;
    if (r->session.accesses && e->options.n > EXPLAIN_STEPS_MAX) return explain_too_many(e), false;
    e->options.run.accesses = r->session.accesses;
    if (!own_host_run(&r->session, &r->main, e->options.n, OWN_DATA, 0, explain_note_step, e,
                      &r->run))
        return false;
    own_judge_note(&r->j, &r->run);
    if (e->out_of_memory) return failed("no memory for the steps of %s", r->kernel->name), false;
    explain_settle(e);
    e->row.name = r->kernel->name;
    e->row.counts = r->run.result.counts;
    e->row.launches = 1;
    e->options.run.block = r->run.block;
    own_host_words(&r->session, &r->main, &r->run, r->host_words, sizeof r->host_words);
    return true;
}

/* Draws the launch, and writes below the picture what is wrong with it. */
static int draw(struct own_report *r) {
    struct explanation *e = r->e;
    char idea[700];
    int status = STATUS_OK;
    void *x = own_elements_make(&r->session, r->run.n);
    if (!x) return failed("no memory for the elements");
    snprintf(idea, sizeof idea, "%s", r->host_words);
    e->title = r->kernel->file;
    e->idea = idea;
    e->input = r->kernel->is.input;
    e->text = r->kernel->text;
    e->svg_to = r->kernel->svg;
    e->options.run.type = r->kernel->is.type;
    e->options.run.n = (size_t)r->run.n;
    e->options.run.x = x;
    own_elements_value(&r->session, r->run.value, &e->row.value);
    if (e->svg) status = picture_write_svg(e, e->svg);
    if (e->draws && status == STATUS_OK) status = picture_print(e);
    e->options.run.x = NULL;
    free(x);
    if (!e->draws || status != STATUS_OK) return status;
    if (*r->run.result.sentence) printf("\nWrong: %s.\n", r->run.result.sentence);
    if (!r->run.is_right) printf("\nThe result would be %.9g.\n", r->run.expected);
    return finish_output();
}

/* Returns whether the device has found it wrong. */
static bool is_wrong_there(const struct own_answer *a) {
    bool wrong = *a->fault != '\0';
    for (size_t i = 0; i < OWN_DEVICE_LENGTHS && a->lengths[i].done; i++)
        wrong |= !a->lengths[i].right;
    return wrong;
}

/* Returns the exit status: the verdict, or OWN_NOT_JUDGED if the report could not be written. */
static int verdict_of(const struct own_report *r, int written) {
    return written == STATUS_OK ? r->j.status : OWN_NOT_JUDGED;
}

/* ---- Neighbours ---- */

/* The first value found whose elements do not follow each other. Bit i of `elements` is element i. */
struct apart {
    uint64_t elements;
    unsigned line;
};

static bool follow_each_other(uint64_t elements) {
    const uint64_t run = elements ? elements >> __builtin_ctzll(elements) : 0;
    return (run & (run + 1)) == 0;
}

/* Looks at each value that a thread stores or gives away, with the elements of OWN_POWERS. */
static void find_apart(void *context, const tally_ladder_step *step) {
    struct apart *out = context;
    for (size_t i = 0; i < step->accesses && !out->elements; i++) {
        const tally_ladder_access *a = &step->access[i];
        const bool gives = a->act == TALLY_LADDER_EXCHANGE;
        if (!gives && a->act != TALLY_LADDER_WRITE && a->act != TALLY_LADDER_ATOMIC) continue;
        for (uint32_t lanes = a->lanes; lanes && !out->elements; lanes &= lanes - 1) {
            const unsigned lane = (unsigned)__builtin_ctz(lanes);
            const tally_value *v = gives ? &a->given[lane] : &a->value[lane];
            tally_value real;
            if (tally_value_convert(v, TALLY_F64, &real) != TALLY_OK || !(real.as.f64 >= 0) ||
                real.as.f64 >= 0x1p24)
                continue;
            if (follow_each_other((uint64_t)real.as.f64)) continue;
            *out = (struct apart){(uint64_t)real.as.f64, a->line};
        }
    }
}

/* Makes the verdict wrong if the kernel combines elements that are no neighbours, for a lesson about their order. */
static void hold_against_order(struct own_report *r) {
    static const uint64_t lengths[] = {16, 13};
    struct own_session with = r->session;
    with.accesses = true;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct apart a = {0};
        struct own_run run;
        char list[100] = "";
        if (!own_host_run(&with, &r->j.host, lengths[i], OWN_POWERS, 0, find_apart, &a, &run))
            return;
        if (!a.elements) continue;
        for (uint64_t left = a.elements; left; left &= left - 1)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d",
                     left == a.elements    ? ""
                     : (left & (left - 1)) ? ", "
                                           : " and ",
                     __builtin_ctzll(left));
        r->j.status = OWN_WRONG;
        snprintf(r->j.verdict, sizeof r->j.verdict,
                 "no repair yet: its result is right, but with n = %" PRIu64
                 " line %u has a value of the elements %s, and the lesson asks for values of "
                 "neighbours only",
                 run.n, a.line, list);
        return;
    }
}

/* Makes the verdict wrong if the kernel does more of something than the lesson's goal allows. */
static void hold_against_goal(struct own_report *r) {
    const struct explain_goal *g = r->e->goal;
    uint64_t count;
    if (!g->what) {
        hold_against_order(r);
        return;
    }
    memcpy(&count, (const char *)&r->run.result.counts + g->place, sizeof count);
    const uint64_t each = (count + r->run.grid - 1) / r->run.grid;
    if (each <= g->most) return;
    r->j.status = OWN_WRONG;
    snprintf(r->j.verdict, sizeof r->j.verdict,
             "no repair yet: its result is right, but with n = %" PRIu64
             " a block of %u threads has %" PRIu64 " %s, and the lesson asks for %" PRIu64
             " at most",
             r->run.n, r->run.block, each, g->what, g->most);
}

/* Chooses a block of two dimensions for a kernel that uses threadIdx.y, unless the options give a block: the shape of a
 * shared array, or the square of a number that the text defines. */
static void choose_shape(struct own_report *r) {
    const struct own_kernel *k = r->kernel;
    unsigned side = 16;
    if (k->is_flat || r->session.block) return;
    for (size_t i = 0; i < k->block_count; i++)
        if (k->blocks[i] <= 32) side = k->blocks[i];
    r->shaped = *r->session.options;
    r->shaped.width = k->width ? k->width : side;
    r->shaped.height = k->width ? k->height : side;
    r->shaped.block = r->shaped.width * r->shaped.height;
    r->session.block = r->shaped.block;
    r->session.options = &r->shaped;
}

static int judge_and_print(struct own_report *r, struct own_kernel *kernel) {
    const struct ladder_options *o = &r->e->options;
    r->kernel = kernel;
    r->session.kernel = kernel;
    r->j.session = &r->session;
    r->session.work = &r->work;
    if (kernel->template_block)
        r->session.block = kernel->template_block;
    else
        choose_shape(r);
    if (r->e->has_dtype && kernel->is.type != o->run.type)
        return failed("%s: kernel %s takes %s, and --dtype says %s", kernel->file, kernel->name,
                      tally_type_name(kernel->is.type), tally_type_name(o->run.type)),
               OWN_NOT_JUDGED;
    if (!own_host_find(&r->session, &r->j.host) || !choose_main(r)) return OWN_NOT_JUDGED;
    choose_length(r);
    if (!watch(r)) return OWN_NOT_JUDGED;
    if (r->e->draws || r->e->svg) return draw(r) == STATUS_OK ? OWN_RIGHT : OWN_NOT_JUDGED;
    const bool good = own_judge(&r->j, r->run.n) && count_elements(r) &&
                      (!r->run.result.is_complete || find_nearest(r));
    if (!good) return OWN_NOT_JUDGED;
    if (r->j.status == OWN_RIGHT && (!r->run.is_right || r->run.result.fault != TALLY_OWN_RIGHT)) {
        r->j.status = OWN_WRONG;
        if (r->run.is_right)
            snprintf(r->j.verdict, sizeof r->j.verdict,
                     "wrong: its result is right for n = %" PRIu64
                     ", launched as below, but it has a fault",
                     r->run.n);
        else
            snprintf(r->j.verdict, sizeof r->j.verdict,
                     "wrong for n = %" PRIu64
                     ", launched as below: the result is %.9g, and %.9g would be right",
                     r->run.n, r->run.value, r->run.expected);
    }
    if (r->e->goal && r->j.status == OWN_RIGHT) hold_against_goal(r);
    if (r->page) ask(r);
    if (r->page && is_wrong_there(&r->page->answer)) r->j.status = OWN_WRONG;
    return verdict_of(r, o->as_json ? own_report_json(r) : own_report_print(r));
}

static int report(void *context, struct own_kernel *kernel) {
    struct own_report *r = context;
    const int status = judge_and_print(r, kernel);
    if (status == OWN_NOT_JUDGED && r->work > OWN_WORK_MOST)
        failed(
            "%s:%u: kernel %s takes more steps on the model than a verdict may: it is not judged",
            kernel->file, kernel->line, kernel->name);
    return status;
}

bool own_ladder_row(struct own_kernel *kernel, const struct own_options *own,
                    const struct ladder_options *o, tally_ladder_row *row, char name[340],
                    char launch[OWN_LAUNCH_WORDS]) {
    const struct own_session session = {.kernel = kernel,
                                        .options = own,
                                        .op = o->run.op,
                                        .block = kernel->template_block ? kernel->template_block
                                                                        : o->run.block};
    struct own_host host;
    struct own_run run;
    snprintf(name, 340, "%s:%s", kernel->file, kernel->name);
    if (kernel->is.type != o->run.type)
        return failed("%s: kernel %s takes %s, and the ladder is of %s: choose it with --dtype",
                      kernel->file, kernel->name, tally_type_name(kernel->is.type),
                      tally_type_name(o->run.type)),
               false;
    if (!own_host_find(&session, &host)) return false;
    const uint64_t most = own_host_most(&host) < N_MOST ? own_host_most(&host) : N_MOST;
    if (o->n < 1 || o->n > most)
        return failed("%s: kernel %s runs for 1 to %" PRIu64 " elements here; choose such an -n",
                      kernel->file, kernel->name, most),
               false;
    if (!own_host_run(&session, &host, o->n, OWN_DATA, 0, NULL, NULL, &run)) return false;
    /* Take the rungs' block if the kernel is as good with it. */
    struct own_host same;
    struct own_run other;
    if (!session.block && !kernel->block_count &&
        own_host_at(&session, LADDER_BLOCK, &host, &same) &&
        own_host_run(&session, &same, o->n, OWN_DATA, 0, NULL, NULL, &other) &&
        other.is_right >= run.is_right) {
        run = other;
        host = same;
    }
    own_host_words(&session, &host, &run, launch, OWN_LAUNCH_WORDS);
    *row = (tally_ladder_row){.name = name,
                              .correct = run.is_right && run.result.fault == TALLY_OWN_RIGHT,
                              .launches = 1,
                              .seconds = (double)NAN,
                              .counts = run.result.counts};
    row->ulp_error = row->correct ? 0 : (double)NAN;
    row->value.type = kernel->is.type;
    return true;
}

int own_device_row(struct own_kernel *kernel, const struct own_options *own,
                   const struct ladder_options *o) {
    const struct own_session session = {.kernel = kernel,
                                        .options = own,
                                        .op = o->run.op,
                                        .block = kernel->template_block ? kernel->template_block
                                                                        : o->run.block};
    struct own_question *q = &own->page->question;
    struct own_host host, same;
    struct own_run run;
    if (kernel->is.type != o->run.type)
        return failed("%s: kernel %s takes %s, and the ladder is of %s: choose it with --dtype",
                      kernel->file, kernel->name, tally_type_name(kernel->is.type),
                      tally_type_name(o->run.type));
    if (!own_host_find(&session, &host)) return STATUS_FAILED;
    const bool whole = host.form == OWN_SEGMENTS && o->n % host.segment == 0;
    const uint64_t n = whole ? 2 * host.segment : o->n < 5000 ? o->n : 5000 + o->n % 2;
    if (o->n < 1 || o->n > own_host_most(&host))
        return failed("%s: kernel %s runs for 1 to %" PRIu64 " elements here; choose such an -n",
                      kernel->file, kernel->name, own_host_most(&host));
    if (!session.block && !kernel->block_count &&
        own_host_at(&session, LADDER_BLOCK, &host, &same) &&
        own_host_run(&session, &same, whole ? 2 * same.segment : n, OWN_DATA, 0, NULL, NULL,
                     &run) &&
        run.is_right)
        host = same;
    if (!own_host_run(&session, &host, n, OWN_DATA, 0, NULL, NULL, &run)) return STATUS_FAILED;
    fill_question(q, &session, &host, &host);
    q->leaves_arrays = own_leaves(&run);
    q->is_endless = run.result.fault == TALLY_OWN_ENDLESS;
    q->times[0] = o->n;
    own_device_ask(own->page);
    return STATUS_OK;
}

int own_explain(struct explanation *e, const struct own_options *own) {
    struct own_report *r = calloc(1, sizeof *r);
    if (!r) return failed("no memory for a report"), OWN_NOT_JUDGED;
    struct own_options with = *own;
    with.svg = e->svg;
    with.device = e->device;
    with.block = e->options.run.block;
    with.width = e->options.width;
    with.height = e->options.height;
    if (!with.seed) with.seed = 1;
    if (e->device && !(with.page = r->page = own_page_make()))
        return free(r), failed("no memory for a device"), OWN_NOT_JUDGED;
    own = &with;
    r->e = e;
    r->session = (struct own_session){
        .options = own, .op = e->options.run.op, .block = e->options.run.block};
    const int status = own_in_process(own, e->options.run.op, e->options.run.type, report, r);
    free(r);
    return status;
}
