/*
 * ladder_counts.c - see ladder_counts.h.
 */
#include "ladder_counts.h"

double ladder_efficiency(const tally_ladder_counts *c) {
    return c->slots ? (double)c->operations / (double)c->slots : 0;
}

struct json_object *json_ladder_counts(const tally_ladder_counts *c) {
    struct json_object *object = json_new_object();
    json_count(object, "steps", c->steps);
    json_count(object, "barriers", c->barriers);
    json_count(object, "operations", c->operations);
    json_count(object, "slots", c->slots);
    json_measure(object, "efficiency", ladder_efficiency(c));
    json_count(object, "divergent", c->divergent);
    json_count(object, "transactions", c->transactions);
    json_count(object, "fewest_transactions", c->fewest_transactions);
    json_count(object, "bank_conflicts", c->bank_conflicts);
    json_count(object, "bytes_read", c->bytes_read);
    json_count(object, "bytes_written", c->bytes_written);
    json_count(object, "blocks", c->blocks);
    json_count(object, "rounds", c->rounds);
    json_count(object, "atomics", c->atomics);
    return object;
}
