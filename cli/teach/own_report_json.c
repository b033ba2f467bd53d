/* own_report_json.c - the report on a student's kernel as JSON: see own_report.h. */
#include "teach/own_report.h"

#include "common/json.h"
#include "teach/ladder_counts.h"

#include <string.h>

static const char *own_fault_name(tally_own_fault kind) {
    static const char *const names[] = {"none",      "barrier", "bounds", "alignment",
                                        "unwritten", "race",    "stack",  "endless",
                                        "order",     "shuffle", "promise"};
    return names[kind];
}

static struct json_object *json_device(const struct own_report *r) {
    const struct own_answer *a = &r->page->answer;
    struct json_object *o = json_new_object(), *right = json_new_list(), *wrong = json_new_list();
    struct json_object *times = json_new_list();
    json_text(o, "device", a->device);
    json_text(o, "name", a->name);
    json_text(o, "not_run", a->why);
    json_text(o, "fault", a->fault);
    for (size_t i = 0; i < OWN_DEVICE_LENGTHS && a->lengths[i].done; i++)
        json_item(a->lengths[i].right ? right : wrong,
                  json_object_new_int64((int64_t)r->page->question.lengths[i]));
    for (size_t i = 0; i < OWN_DEVICE_TIMES && a->times[i].done; i++) {
        const struct own_time *t = &a->times[i];
        struct json_object *time = json_new_object();
        json_count(time, "n", r->page->question.times[i]);
        json_flag(time, "correct", t->right);
        json_measure(time, "ms", t->seconds * 1e3);
        json_measure(time, "of_roof", t->roof / t->seconds);
        json_measure(time, "tally_ms", t->tally * 1e3);
        if (*r->page->question.nearest) json_measure(time, "nearest_ms", t->nearest * 1e3);
        json_item(times, time);
    }
    json_member(o, "right_for", right);
    json_member(o, "wrong_for", wrong);
    json_member(o, "times", times);
    return o;
}

static struct json_object *json_host(const struct own_report *r) {
    static const char *const forms[] = {"one block", "segments", "whole grid"};
    struct json_object *o = json_new_object();
    json_text(o, "form", forms[r->main.form]);
    json_count(o, "grid", r->run.grid);
    json_count(o, "block", r->run.block);
    json_count(o, "length", r->run.length);
    json_count(o, "shared_bytes", r->run.shared_bytes);
    if (r->main.segment)
        json_count(o, "segment", r->main.segment);
    else
        json_null(o, "segment");
    json_text(o, "words", r->host_words);
    return o;
}

static struct json_object *json_lengths(const struct own_report *r, bool right) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; i < r->j.tried_count; i++)
        if (r->j.tried[i].right == right)
            json_item(list, json_object_new_int64((int64_t)r->j.tried[i].n));
    return list;
}

static void json_advice(struct json_object *o, const struct own_advice *a) {
    json_text(o, "why", a->why);
    json_text(o, "mend", a->mend);
    json_text(o, "lesson", a->lesson);
}

static struct json_object *json_faults(const struct own_report *r) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; i < r->j.fault_count; i++) {
        const struct own_seen_fault *f = &r->j.faults[i];
        struct json_object *o = json_new_object();
        json_text(o, "kind", own_fault_name(f->kind));
        json_count(o, "n", f->n);
        json_count(o, "line", f->line);
        json_count(o, "other_line", f->other_line);
        json_text(o, "sentence", f->sentence);
        json_advice(o, &f->advice);
        json_item(list, o);
    }
    return list;
}

static struct json_object *json_findings(const struct own_report *r) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; i < r->j.finding_count; i++) {
        struct json_object *o = json_new_object();
        json_text(o, "kind", r->j.findings[i].kind);
        json_text(o, "sentence", r->j.findings[i].sentence);
        json_advice(o, &r->j.findings[i].advice);
        json_item(list, o);
    }
    return list;
}

/* Returns what the verdict rests on as JSON: lengths, blocks, data, orders, launches, seed. */
static struct json_object *json_tried(const struct own_report *r) {
    const struct own_judgement *j = &r->j;
    struct json_object *o = json_new_object(), *blocks = json_new_list(), *data = json_new_list();
    for (size_t i = 0; i < j->block_count; i++) {
        struct json_object *block = json_new_object();
        json_count(block, "threads", j->blocks[i].threads);
        if (j->blocks[i].runs)
            json_flag(block, "right", j->blocks[i].right);
        else
            json_null(block, "right");
        json_item(blocks, block);
    }
    for (enum own_data d = OWN_DATA; d < OWN_DATA_KINDS; d++)
        if (j->data[d]) json_item(data, json_object_new_string(own_data_words(d)));
    json_text(o, "words", j->tried_words);
    json_count(o, "lengths", j->tried_count);
    json_member(o, "blocks", blocks);
    json_member(o, "data", data);
    json_count(o, "launches", j->launches);
    json_count(o, "orders", j->orders);
    json_count(o, "seed", r->session.options->seed);
    return o;
}

static struct json_object *json_times(const struct own_report *r) {
    struct json_object *list = json_new_list();
    for (uint64_t i = 0; i < r->miscounted_n; i++)
        json_item(list, json_object_new_int(r->times[i]));
    return list;
}

int own_report_json(const struct own_report *r) {
    char what[200];
    struct json_object *o = json_new_object();
    json_text(o, "file", r->kernel->file);
    if (r->e->lesson) json_count(o, "lesson", r->e->lesson);
    json_text(o, "kernel", r->kernel->name);
    json_count(o, "line", r->kernel->line);
    json_text(o, "device", "model");
    json_count(o, "n", r->run.n);
    json_text(o, "op", tally_op_name(r->session.op));
    json_text(o, "what", own_report_what(r, what));
    json_text(o, "dtype", tally_type_name(r->kernel->is.type));
    json_count(o, "block", r->run.block);
    json_member(o, "host", json_host(r));
    json_flag(o, "correct", r->run.is_right && r->run.result.fault == TALLY_OWN_RIGHT);
    json_flag(o, "complete", r->run.result.is_complete);
    json_measure(o, "value", r->run.value);
    json_measure(o, "expected", r->run.expected);
    json_text(o, "status", r->j.status == OWN_RIGHT ? "right" : "wrong");
    json_text(o, "verdict", r->j.verdict);
    json_text(o, "note", r->j.note);
    json_member(o, "tried", json_tried(r));
    json_member(o, "right_for", json_lengths(r, true));
    json_member(o, "wrong_for", json_lengths(r, false));
    json_member(o, "faults", json_faults(r));
    json_member(o, "findings", json_findings(r));
    json_count(o, "miscounted_n", r->miscounted_n);
    json_member(o, "times_counted", json_times(r));
    json_count(o, "work", r->work);
    json_count(o, "launches", 1);
    json_member(o, "steps", explain_json_steps(r->e));
    json_member(o, "counts", json_ladder_counts(&r->e->row));
    if (r->nearest.name) {
        json_text(o, "nearest", r->nearest.name);
        json_member(o, "nearest_counts", json_ladder_counts(&r->nearest));
    } else {
        json_null(o, "nearest");
    }
    if (r->page) json_member(o, "on_device", json_device(r));
    return json_print(o);
}
