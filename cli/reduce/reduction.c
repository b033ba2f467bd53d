/*
 * reduction.c - feeds all inputs to one state, or to a state for each group.
 *
 * Files are opened and checked before any of them is reduced. So a wrong type in the last one is
 * reported at once, and the sizes of the files give the progress line its percentage.
 */
#include "reduce/reduction.h"

#include "common/message.h"
#include "common/names.h"
#include "common/progress.h"
#include "input/arrow.h"
#include "input/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { OPS_MAX = 1 + sizeof((tally_problem *)0)->also / sizeof(tally_op) };

/* ---- What is asked for ---- */

static int add_op(struct reduction *r, const char *name) {
    tally_op op;
    if (tally_op_parse(name, &op) != TALLY_OK) {
        char near[32];
        if (names_nearest(name, names_of_ops(), ' ', near, sizeof near))
            return misused("'%s' is no operator; did you mean %s?", name, near);
        return misused("'%s' is no operator; the operators are %s", name, names_of_ops());
    }
    if (r->op_count == OPS_MAX)
        return misused("%s: at most %d operators go into one pass", r->asked, (int)OPS_MAX);
    *(r->op_count ? &r->problem.also[r->op_count - 1] : &r->problem.op) = op;
    r->op_count++;
    return STATUS_OK;
}

int reduction_ops(struct reduction *r, const char *text) {
    char name[32];
    r->asked = text;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (!length)
            return misused("%s: an operator is missing beside a comma; write it as in "
                           "count,sum,mean",
                           text);
        snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), at);
        int status = add_op(r, name);
        if (status != STATUS_OK) return status;
        at += length;
        if (!*at) return STATUS_OK;
    }
}

bool reduction_asks(const struct reduction *r, tally_op op) {
    tally_problem problem = r->problem;
    size_t count;
    if (!problem.type) problem.type = TALLY_F64;
    problem.out = 0;
    if (tally_problem_values(&problem, &count) != TALLY_OK) return false;
    for (size_t i = 0; i < count; i++)
        if (tally_problem_value_op(&problem, i) == op) return true;
    return false;
}

/* ---- The inputs ---- */

/* Returns the name of a source for messages; for a column of an Arrow file with the column's name. */
static const char *label(const struct source *s, char text[LABEL_BYTES]) {
    if (s->found.count && s->how.arrow.column)
        snprintf(text, LABEL_BYTES, "column %s of %s", s->how.arrow.column, s->name);
    else
        snprintf(text, LABEL_BYTES, "%s", s->name);
    return text;
}

static bool check_type(struct reduction *r, const struct source *s) {
    tally_type type = r->problem.type;
    char text[LABEL_BYTES];
    if (s->found.count && columns_apart(&r->columns) && type) return true; /* each column has one */
    if (type && type != s->type)
        return failed("%s holds %s but %s holds %s; one reduction has one type, so convert one of "
                      "them",
                      r->type_owner, tally_type_name(type), label(s, text),
                      tally_type_name(s->type)),
               false;
    if (!type) label(s, r->type_owner);
    r->problem.type = s->type;
    return true;
}

/* Returns false, with a message, if a column of an Arrow file holds decimals and the operator is
 * not sum: decimals have an exact sum, and nothing else. */
static bool check_decimals(const struct reduction *r, const struct source *s) {
    bool is_decimal = s->found.count && s->is_decimal;
    for (size_t i = 0; i < s->found.count && s->is_rows; i++)
        is_decimal |= !s->found.type[i];
    if (!is_decimal || (r->op_count == 1 && r->problem.op == TALLY_SUM && !r->problem.out))
        return true;
    return failed(
               "%s: the column holds decimals, whose exact sum there is; for %s, --dtype f64 reads "
               "each as the nearest such number",
               s->name, r->asked),
           false;
}

/* Checks the type of a regular file and adds its size to r->total. The total becomes unknown with
 * other inputs: a pipe can be opened only once, and an Arrow file must be read by Python. */
static bool look_at(struct reduction *r, const char *name) {
    struct stat status;
    struct source s;
    if (source_is_stdin(name) || (stat(name, &status) == 0 && !S_ISREG(status.st_mode)) ||
        arrow_is_file(name))
        return r->total = SOURCE_UNKNOWN, true;
    if (!source_open(&s, name, &r->how)) return false;
    bool fits = check_type(r, &s);
    source_close(&s);
    if (s.bytes == SOURCE_UNKNOWN) r->total = SOURCE_UNKNOWN;
    if (r->total != SOURCE_UNKNOWN) r->total += s.bytes;
    return fits;
}

static bool look_at_all(struct reduction *r, char **names, int count) {
    int stdins = 0;
    for (int i = 0; i < count; i++) {
        stdins += source_is_stdin(names[i]);
        if (!look_at(r, names[i])) return false;
    }
    if (stdins > 1)
        return failed("standard input is named twice, and can be read once only"), false;
    if (r->total == SOURCE_UNKNOWN) r->total = 0;
    return true;
}

static bool create_state(struct reduction *r) {
    if (r->state || tally_state_create(&r->problem, &r->state) == TALLY_OK) return true;
    return failed("%s", tally_error()), false;
}

static bool feed(struct reduction *r, const char *name, const void *x, const void *y, size_t n) {
    if (tally_state_feed(r->state, r->device, x, y, n) != TALLY_OK)
        return failed("%s: %s", name, tally_error()), false;
    r->bytes += (uint64_t)n * tally_type_size(r->problem.type) * (y ? 2 : 1);
    return true;
}

static bool feed_both(struct reduction *r, const char *name, struct group *own, const void *x,
                      const void *y, size_t n) {
    if (!r->columns.value.whole && !feed(r, name, x, y, n)) return false;
    return !own || group_feed(&r->groups, own, x, y, n);
}

/* Feeds an array's elements, except missing ones, to the state of all elements (a table has none)
 * and to the group `own`, which may be NULL. */
static bool feed_array(struct reduction *r, const char *name, struct group *own, const void *x,
                       const void *y, size_t n) {
    const tally_problem *problem = own ? own->problem : &r->problem; /* columns differ in type */
    const size_t size = tally_type_size(problem->type);
    const unsigned char *at = x, *partner = y;
    if (!missing_can_be(r->how.spelling, problem->type)) return feed_both(r, name, own, x, y, n);
    while (n) {
        const size_t run = n < KEPT_MOST ? n : (size_t)KEPT_MOST;
        const void *a = at, *b = partner;
        if (!kept_choose(&r->kept, r->how.spelling, problem->type, &a, &b, run) ||
            !feed_both(r, name, own, a, b, r->kept.n))
            return false;
        if (!r->columns.value.whole)
            index_map_note(&r->index_map, problem, r->state, &r->kept, run);
        if (own) index_map_note(&own->index_map, problem, own->state, &r->kept, run);
        r->left_out += run - r->kept.n;
        at += run * size;
        if (partner) partner += run * size;
        n -= run;
    }
    return true;
}

static void prepare_groups(struct reduction *r) {
    r->groups.problem = &r->problem;
    r->groups.device = r->device;
    r->groups.is_decimal = r->is_decimal;
}

/* Sets *out to the group that all elements of a source belong to: that of its file or of its
 * column. NULL: there are no groups. Returns false if the group cannot be made. */
static bool find_own(struct reduction *r, const struct source *s, const char *key,
                     struct group **out) {
    const bool is_table = r->columns.value.whole;
    *out = NULL;
    if (!r->by_file && !is_table) return true;
    if (s->found.is_value_whole) {
        list_take_whole(&r->columns.value);
        key = "";
    }
    *out = r->by_file ? groups_append(&r->groups, s->name, s->type)
                      : groups_find(&r->groups, key, strlen(key), s->is_decimal ? 0 : s->type);
    return *out;
}

/* key: the group of an Arrow file's column; "" for other sources, and for a column alone. */
static bool feed_source(struct reduction *r, struct source *s, const char *key) {
    const void *x;
    size_t n;
    struct group *own;
    if (!check_type(r, s) || !check_decimals(r, s) || !create_state(r)) return false;
    prepare_groups(r);
    if (s->is_rows || (r->columns.value.whole && s->is_text && !s->found.count))
        return columns_feed(&r->columns, s, &r->groups);
    if (!find_own(r, s, key, &own)) return false;
    if (s->is_decimal || r->is_decimal) s->money = own ? own->money : &r->money;
    do {
        if (!source_next(s, &x, &n)) return false;
        if (n && !(s->is_text ? feed_both : feed_array)(r, s->name, own, x, NULL, n)) return false;
    } while (n);
    return true;
}

static bool feed_file(struct reduction *r, const char *name, const struct reading *how,
                      const char *key) {
    struct source s;
    if (!source_open(&s, name, how)) return false;
    const bool fed = feed_source(r, &s, key);
    r->numbers += s.elements;
    if (r->columns.value.whole || r->is_decimal) r->bytes += s.elements * tally_type_size(s.type);
    source_close(&s);
    return fed;
}

/* ---- Two inputs in step ---- */

struct side {
    struct source source;
    const unsigned char *x; /* elements that the other side has no partners for yet */
    size_t n;
    bool ended;
};

static bool side_fill(struct side *s) {
    const void *x;
    if (s->n || s->ended) return true;
    if (!source_next(&s->source, &x, &s->n)) return false;
    s->x = x;
    s->ended = !s->n;
    return true;
}

static int differ(const struct side *a, uint64_t m, const struct side *b, uint64_t n) {
    return failed("%s has %" PRIu64 " numbers but %s has %" PRIu64 "; dot takes two inputs of one "
                  "length",
                  a->source.name, m, b->source.name, n);
}

/* Reads the longer input to its end, so that the message can give both lengths. Returns false. */
static bool tell_lengths(struct side *a, struct side *b) {
    struct side *longer = a->ended ? b : a;
    const void *x;
    do {
        if (!source_next(&longer->source, &x, &longer->n)) return false;
    } while (longer->n);
    differ(a, a->source.elements, b, b->source.elements);
    return false;
}

/* Feeds n pairs of elements. Those of two columns go to a group, because other files may add more
 * of them. */
static bool feed_pairs(struct reduction *r, const char *name, const void *x, const void *y,
                       size_t n) {
    if (!r->columns.value.whole) return feed_array(r, name, NULL, x, y, n);
    r->bytes += 2 * (uint64_t)n * tally_type_size(r->problem.type);
    struct group *group = groups_find(&r->groups, "", 0, r->problem.type);
    return group && group_add(&r->groups, group, x, y, n);
}

/* Rejects --skip-na for dot of a text: each input would leave out its own missing words, and
 * numbers behind them would get wrong partners. */
static bool check_pairs(const struct reduction *r, const struct side *a, const struct side *b) {
    if (!r->how.spelling->skip_na || (!a->source.is_text && !b->source.is_text)) return true;
    return failed(
               "%s is text, and dot with --skip-na leaves out pairs: of a table's two columns, as "
               "in -c 1,2, or of arrays",
               a->source.is_text ? a->source.name : b->source.name),
           false;
}

static bool feed_in_step(struct reduction *r, struct side *a, struct side *b) {
    const size_t size = tally_type_size(a->source.type);
    const uint64_t m = source_count(&a->source), n = source_count(&b->source);
    if (m != SOURCE_UNKNOWN && n != SOURCE_UNKNOWN && m != n) return differ(a, m, b, n), false;
    for (;;) {
        if (!side_fill(a) || !side_fill(b)) return false;
        if (a->ended && b->ended) return true;
        if (a->ended || b->ended) return tell_lengths(a, b);
        const size_t both = a->n < b->n ? a->n : b->n;
        if (!feed_pairs(r, a->source.name, a->x, b->x, both)) return false;
        a->x += both * size, a->n -= both;
        b->x += both * size, b->n -= both;
    }
}

static bool feed_two(struct reduction *r, char *const name[2], const struct reading how[2]) {
    struct side a = {.n = 0}, b = {.n = 0};
    if (!source_open(&a.source, name[0], &how[0])) return false;
    bool fed = false;
    if (source_open(&b.source, name[1], &how[1])) {
        fed = check_type(r, &a.source) && check_type(r, &b.source) && check_pairs(r, &a, &b) &&
              source_lies_like(&b.source, &a.source) && create_state(r) && feed_in_step(r, &a, &b);
        r->numbers += a.source.elements;
        source_close(&b.source);
    }
    source_close(&a.source);
    return fed;
}

/* ---- Columns of Arrow files, which are read one by one ---- */

/* Returns what to ask of an Arrow file: whole rows if they have keys, pairs if a missing value
 * removes its partner, else one column. */
static struct arrow_asked ask_arrow(const struct reduction *r) {
    const struct columns *c = &r->columns;
    return (struct arrow_asked){.kind = c->by.whole                               ? ARROW_ROWS
                                        : c->in_pairs && r->how.spelling->skip_na ? ARROW_PAIRS
                                        : r->is_decimal                           ? ARROW_TEXT
                                                                                  : ARROW_ARRAY,
                                .values = &c->value,
                                .keys = &c->by};
}

static bool feed_arrow(struct reduction *r, char *name) {
    struct reading how[2] = {r->how, r->how};
    const struct list *value = &r->columns.value;
    how[0].arrow = how[1].arrow = ask_arrow(r);
    if (how[0].arrow.kind >= ARROW_ROWS) return feed_file(r, name, &how[0], "");
    for (size_t i = 0; i < value->count; i++) {
        how[i % 2].arrow.column = value->item[i];
        if (r->columns.in_pairs)
            how[i % 2].arrow.values = NULL;
        else if (!feed_file(r, name, &how[i % 2], columns_apart(&r->columns) ? value->item[i] : ""))
            return false;
    }
    if (!r->columns.in_pairs) return true;
    prepare_groups(r);
    return feed_two(r, (char *const[]){name, name}, how);
}

static bool feed_all(struct reduction *r, char **names, int count) {
    for (int i = 0; i < count; i++) {
        const bool is_arrow = r->columns.value.whole && arrow_is_file(names[i]);
        if (!(is_arrow ? feed_arrow(r, names[i]) : feed_file(r, names[i], &r->how, "")))
            return false;
    }
    return groups_flush(&r->groups);
}

/* ---- All of it ---- */

int reduction_run(struct reduction *r, char **names, int count) {
    const bool two = reduction_asks(r, TALLY_DOT) && !r->columns.value.whole;
    if (two && count != 2)
        return misused("dot takes two inputs, x and y, not %d; see 'tally help dot'", count);
    if (!columns_differ(&r->columns) || !look_at_all(r, names, count)) return STATUS_FAILED;
    const struct reading how[2] = {r->how, r->how};
    const double start = clock_seconds();
    progress_begin(r->total);
    if (!(two ? feed_two(r, names, how) : feed_all(r, names, count))) return STATUS_FAILED;
    r->numbers -= r->left_out;
    progress_end();
    r->seconds = clock_seconds() - start;
    return answer_print(r);
}
