/*
 * ladder_counts.c - see ladder_counts.h.
 */
#include "teach/ladder_counts.h"

#include <string.h>

bool ladder_applies(const tally_ladder_row *row) {
    if (row->counts.operations > 0) return true;
    for (size_t i = 0; tally_ladder_rung(i); i++)
        if (strcmp(tally_ladder_rung(i)->name, row->name) == 0)
            return tally_ladder_rung(i)->is_kernel;
    return false;
}

double ladder_efficiency(const tally_ladder_counts *c) {
    return c->issued ? (double)c->useful / (double)c->issued : 0;
}

struct json_object *json_ladder_counts(const tally_ladder_row *row) {
    const tally_ladder_counts *c = &row->counts;
    const bool applies = ladder_applies(row);
    const struct {
        const char *key;
        uint64_t count;
        bool of_operator;
    } counts[] = {{"blocks", c->blocks, false},
                  {"steps", c->steps, true},
                  {"rounds", c->rounds, true},
                  {"barriers", c->barriers, false},
                  {"all_rounds", c->all_rounds, true},
                  {"all_barriers", c->all_barriers, false},
                  {"useful", c->useful, true},
                  {"operations", c->operations, true},
                  {"slots", c->slots, true},
                  {"issued", c->issued, true},
                  {"divergent", c->divergent, false},
                  {"transactions", c->transactions, false},
                  {"fewest_transactions", c->fewest_transactions, false},
                  {"bank_conflicts", c->bank_conflicts, false},
                  {"bytes_read", c->bytes_read, false},
                  {"bytes_written", c->bytes_written, false},
                  {"atomics", c->atomics, false}};
    struct json_object *object = json_new_object();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].of_operator && !applies)
            json_null(object, counts[i].key);
        else
            json_count(object, counts[i].key, counts[i].count);
    if (applies)
        json_measure(object, "efficiency", ladder_efficiency(c));
    else
        json_null(object, "efficiency");
    return object;
}
