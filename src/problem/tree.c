/* tree.c - see tree.h. */
#include "problem/tree.h"

#include "base/invariant.h"
#include "base/types.h"
#include "exact/round.h"

#include <math.h>
#include <string.h>

size_t tree_value_size(const struct problem *p) {
    if (p->user) return type_size(p->type);
    return p->type == TALLY_F64 ? sizeof(double) : sizeof(float);
}

static void combine(const struct problem *p, const union tree_value *left,
                    const union tree_value *right, union tree_value *out) {
    if (p->user)
        p->user->combine(p->user->context, left, right, out, 1);
    else if (p->type == TALLY_F64)
        out->f64 = left->f64 * right->f64;
    else
        out->f32 = left->f32 * right->f32;
}

void tree_settle(const struct problem *p, union tree_value *value) {
    const tally_type type = p->type == TALLY_F64 ? TALLY_F64 : TALLY_F32;
    const size_t size = tree_value_size(p);
    tally_value v = {.type = type};
    if (p->user) return;
    memcpy(&v.as, value, size);
    const float_format f = format_of(type);
    if ((tally_value_bits(&v) & (float_sign(f) - 1)) <= float_infinity_bits(f, 0)) return;
    v = float_nan(type);
    memcpy(value, &v.as, size);
}

void tree_clear(struct tree *t, uint64_t first) {
    t->next = first;
    t->count = 0;
}

int tree_is_valid(const struct tree *t) {
    uint64_t begins = t->next;
    if (t->count < 0 || t->count > TREE_NODES) return 0;
    for (int i = t->count - 1; i >= 0; i--) {
        const unsigned level = t->node[i].level;
        if (level > 63) return 0;
        begins -= UINT64_C(1) << level;
        if (begins % (UINT64_C(1) << level) != 0) return 0;
        /* tree_append() makes one node of two that are a node's halves */
        if (i > 0 && t->node[i - 1].level == level && begins >> level & 1) return 0;
    }
    return 1;
}

void tree_append(const struct problem *p, struct tree *t, const void *value, unsigned level) {
    struct tree_node node = {.level = level};
    TALLY_ASSERT(level < 64 && t->next % (UINT64_C(1) << level) == 0);
    memcpy(&node.value, value, tree_value_size(p));
    tree_settle(p, &node.value);
    t->next += UINT64_C(1) << level;
    /* The node completes its parent where it ends at a multiple of the parent's leaves and the parent's left half is
     * here, not before the run's start. */
    while (t->count > 0 && t->node[t->count - 1].level == node.level &&
           t->next % (UINT64_C(2) << node.level) == 0) {
        union tree_value left = t->node[--t->count].value;
        combine(p, &left, &node.value,
                &left); /* a user's combine() may write to its left operand */
        tree_settle(p, &left);
        node.value = left;
        node.level++;
    }
    TALLY_ASSERT(t->count < TREE_NODES);
    t->node[t->count++] = node;
    TALLY_ASSERT(tree_is_valid(t));
}

/* Returns a user's result, or the identity, as a value of the element type with NaNs made
 * canonical. */
static tally_value element_value(tally_type type, const void *element) {
    tally_value v = {.type = type};
    memcpy(&v.as, element, type_size(type));
    if (type_is_float(type) && isnan(tally_value_double(&v))) return float_nan(type);
    return v;
}

tally_value tree_value(const struct problem *p, const struct tree *t) {
    TALLY_ASSERT(tree_is_valid(t));
    if (t->count == 0) {
        if (p->user) return element_value(p->type, p->user->identity);
        return round_scaled(p->type, 1, 0);
    }
    union tree_value all = t->node[t->count - 1].value;
    for (int i = t->count - 2; i >= 0; i--) {
        union tree_value left = t->node[i].value;
        combine(p, &left, &all, &left);
        all = left;
    }
    if (p->user) return element_value(p->type, all.element);

    double product = p->type == TALLY_F64 ? all.f64 : (double)all.f32;
    return round_double(p->type, product);
}

uint64_t tree_identity_bits(const struct problem *p) {
    const struct tree nothing = {.count = 0};
    const tally_value identity = tree_value(p, &nothing);
    return tally_value_bits(&identity);
}

/* Combines neighbouring lanes in pairs until one is left: lane[0]. */
static void meet_neighbours(const struct problem *p, char *lane, size_t lanes) {
    size_t size = type_size(p->type);
    union tree_value left[TREE_LANES / 2], right[TREE_LANES / 2];
    char *l = (char *)left, *t = (char *)right;
    for (; lanes > 1; lanes -= lanes / 2) {
        size_t pairs = lanes / 2;
        for (size_t i = 0; i < pairs; i++) {
            memcpy(l + i * size, lane + 2 * i * size, size);
            memcpy(t + i * size, lane + (2 * i + 1) * size, size);
        }
        p->user->combine(p->user->context, l, t, l, pairs);
        if (lanes % 2) memcpy(l + pairs * size, lane + (lanes - 1) * size, size);
        memcpy(lane, l, (lanes - pairs) * size);
    }
}

static void ordered_leaf(const struct problem *p, const char *x, size_t n, char *out) {
    size_t size = type_size(p->type);
    size_t full = n / TREE_RUN, rest = n % TREE_RUN, lanes = full + (rest != 0);
    union tree_value lane_store[TREE_LANES], right_store[TREE_LANES];
    char *lane = (char *)lane_store, *right = (char *)right_store;
    for (size_t j = 0; j < lanes; j++)
        memcpy(lane + j * size, x + j * TREE_RUN * size, size);
    for (size_t i = 1; i < TREE_RUN; i++) {
        size_t reach = full + (i < rest); /* lanes whose run is longer than i */
        if (reach == 0) break;
        for (size_t j = 0; j < reach; j++)
            memcpy(right + j * size, x + (j * TREE_RUN + i) * size, size);
        p->user->combine(p->user->context, lane, right, lane, reach);
    }
    meet_neighbours(p, lane, lanes);
    memcpy(out, lane, size);
}

static void commutative_leaf(const struct problem *p, const char *x, size_t n, char *out) {
    size_t size = type_size(p->type);
    size_t lanes = n < TREE_LANES ? n : TREE_LANES;
    union tree_value lane_store[TREE_LANES], row_store[TREE_LANES];
    char *lane = (char *)lane_store, *row = (char *)row_store;
    int aligned = (uintptr_t)x % size == 0;
    memcpy(lane, x, lanes * size);
    for (size_t i = TREE_LANES; i < n; i += TREE_LANES) {
        size_t m = n - i < TREE_LANES ? n - i : TREE_LANES;
        if (!aligned) memcpy(row, x + i * size, m * size);
        p->user->combine(p->user->context, lane, aligned ? x + i * size : row, lane, m);
    }
    for (size_t h = TREE_LANES / 2; h > 0; h /= 2) {
        if (lanes <= h) continue;
        p->user->combine(p->user->context, lane, lane + h * size, lane, lanes - h);
        lanes = h;
    }
    memcpy(out, lane, size);
}

void tree_user_leaves(const struct problem *p, const void *x, size_t n, void *out) {
    const size_t size = type_size(p->type);
    const char *leaf = x;
    char *to = out;
    for (size_t m; n > 0; n -= m, leaf += m * size, to += size) {
        m = n < TREE_LEAF ? n : TREE_LEAF;
        if (p->user->commutative) {
            TALLY_PATH("in any order");
            commutative_leaf(p, leaf, m, to);
        } else {
            TALLY_PATH("in order");
            ordered_leaf(p, leaf, m, to);
        }
    }
}
