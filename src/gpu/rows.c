/* rows.c - see rows.h. */
#include "gpu/rows.h"

#include "base/types.h"
#include "gpu/capability.h"
#include "gpu/filled.h"
#include "gpu/programs.h"
#include "gpu/tuning.h"
#include "kernels/tuning.h"

#define WARP        32
#define BLOCK_LEAST WARP
#define PIECE_MOST  (1u << 30)
#define FEW_AT_ONCE 4  /* rows that a lane of `few_rows` takes at once: LOADS of rows.cu */
#define EDGE_WORDS  11 /* the most words that a piece leaves for `join_rows` */

static uint64_t elements_of(const struct shaped *s) {
    return s->cut == TALLY_AXES ? (uint64_t)s->results * s->each : s->n;
}

/* Returns whether the elements of each row lie side by side, and rows have gaps between them and are
 * long enough: shorter rows are as fast from a filled copy (filled.h). */
static bool lie_apart(const struct shaped *s) {
    const size_t size = type_size(s->p->type);
    const size_t least =
        size == 8 && problem_has(s->p, MONOID_SQUARES) ? 4 * APART_BYTES : APART_BYTES;
    if (s->cut != TALLY_AXES || parts_are_contiguous(s) || s->reduces != 1 || s->reduced[0].x != 1)
        return false;
    for (unsigned d = 0; d < s->keeps; d++)
        if (s->kept[d].x < 0) return false;
    return s->each * size >= least;
}

static bool takes(const struct queue *queue, const struct shaped *s) {
    if (!queue->facts->has_uniform_branches || queue->block < BLOCK_LEAST ||
        queue->block % BLOCK_LEAST != 0)
        return false;
    if (s->mask || elements_of(s) == 0) return false;
    if (!parts_are_contiguous(s) && !(lie_apart(s) && parts_are_many(queue, elements_of(s))))
        return false;
    if (s->cut == TALLY_GROUPS && (!s->sorted || s->skip_outside)) return false;
    return capability_for(BY_ROWS, s->p) != NULL;
}

/* Returns whether the rows are for `short_rows`, where a warp takes many at a time and checks their
 * offsets itself. */
static bool are_short(const struct shaped *s) {
    const uint64_t bytes = elements_of(s) / s->results * type_size(s->p->type);
    if (!parts_are_contiguous(s)) return false;
    return bytes <= (s->cut == TALLY_AXES && bytes % 16 != 0 ? ASKEW_BYTES : SHORT_BYTES);
}

/* Returns whether the rows are for `few_rows`: of one length, at most FEW_ROWS_ELEMENTS, and without
 * squares. Means of rows of one pack are faster by `short_rows`. */
static bool are_few(const struct shaped *s) {
    const size_t size = type_size(s->p->type);
    if (s->p->value[0].op == TALLY_MEAN && s->each * size == 16) return false;
    if (!parts_are_contiguous(s)) return false;
    return s->cut == TALLY_AXES && s->each <= FEW_ROWS_ELEMENTS(size) &&
           !problem_has(s->p, MONOID_SQUARES);
}

/* Returns the threads of a block. */
static unsigned block_of(const struct queue *queue) {
    return block_or(queue, GPU_ROWS_BLOCK);
}

/* Returns whether sums of elements and of their squares are wanted, and nothing else. */
static bool has_both(const struct shaped *s) {
    return s->p->monoids == (MONOID_BIT(MONOID_SUM) | MONOID_BIT(MONOID_SQUARES));
}

/* Return the blocks that the device runs at once; the warps of a block; and the warps of all these blocks. */
static uint64_t blocks_at_once(const struct queue *queue, const struct shaped *s) {
    const bool has_squares = has_both(s) || s->p->monoids == MONOID_BIT(MONOID_SQUARES);
    const uint64_t blocks = has_both(s) || (has_squares && !are_short(s))
                                ? GPU_ROWS_PRODUCT_BLOCKS_A_UNIT
                                : GPU_ROWS_BLOCKS_A_UNIT;
    return queue_units(queue) * blocks;
}
static unsigned warps_of_block(const struct queue *queue) {
    return block_of(queue) / WARP;
}
static uint64_t warps_of(const struct queue *queue, const struct shaped *s) {
    return blocks_at_once(queue, s) * warps_of_block(queue);
}

/* Returns whether rows of one length are for `block_rows`, where teams of a block's warps take them (kernels/rows.cu):
 * rows that are long, or not many, or no more than there are warps. A few very long rows are cut instead. Many rows
 * whose squares are summed must be longer: the kernel `rows` hides the cost of squares better. */
static bool are_for_blocks(const struct queue *queue, const struct shaped *s) {
    const uint64_t warps = warps_of(queue, s);
    const uint64_t bytes = (uint64_t)s->each * type_size(s->p->type);
    if (s->cut != TALLY_AXES || s->each > PIECE_MOST) return false;
    if (bytes < BLOCK_ROWS_LEAST)
        return s->results <= warps && bytes >= BLOCK_ROWS_FEWEST && !are_few(s);
    if (bytes > BLOCK_ROWS_MOST && s->results * warps_of_block(queue) < 2 * warps) return false;
    return s->results <= BLOCK_ROWS_ROUNDS * warps ||
           bytes >= (problem_has(s->p, MONOID_SQUARES) ? BLOCK_ROWS_SQUARES : BLOCK_ROWS_MANY);
}

/* Returns whether states take little time to merge, and to make values of. */
static bool is_light(const struct shaped *s) {
    return problem_has(s->p, MONOID_EXTREMES);
}

/* Returns how many warps should take a row together, as a team, so that all rows end soonest. A row costs a warp the
 * packs that it reads, and the cost of a state. In a round each warp takes part in one row; 0.35 rounds are added for
 * the last one, which is not full. */
static unsigned team_for(const struct queue *queue, const struct shaped *s) {
    const uint64_t warps = warps_of(queue, s), lane = WARP * 16 / type_size(s->p->type);
    const uint64_t state = is_light(s) ? 3 : 8; /* in packs of a lane */
    uint64_t least = UINT64_MAX;
    unsigned best = 1;
    for (unsigned team = 1; team <= warps_of_block(queue); team *= 2) {
        const uint64_t packs = (s->each + team * lane - 1) / (team * lane) + state;
        const uint64_t rounds = 100 * s->results * team / warps + 35; /* in hundredths */
        const uint64_t cost = (rounds > 100 ? rounds : 100) * packs;
        if (cost < least) best = team;
        if (cost < least) least = cost;
    }
    return best;
}

static uint64_t rounded_up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

/* Returns how many equal pieces a fully busy device would do in the time that `pieces` pieces take. More than `warps`
 * pieces take full rounds of all warps. Fewer take as long as on the busiest multiprocessor; but half of all warps
 * keep the memory fully busy, unless arithmetic takes longer: that of both sums of short floats. */
static uint64_t as_busy(const struct queue *queue, const struct shaped *s, uint64_t pieces,
                        uint64_t warps) {
    const uint64_t units = queue_units(queue);
    if (pieces > warps || (has_both(s) && type_size(s->p->type) < 8))
        return rounded_up(pieces, warps);
    const uint64_t busy = rounded_up(pieces, units * warps_of_block(queue));
    return busy > warps / 2 ? busy : warps / 2;
}

/* Returns the weight of a piece in the unit of rows.cu: elements and ends of rows. Each warp that runs at once gets a piece,
 * as to begin one takes long where offsets have to be found; or ROWS_ROUNDS pieces, where rows are of one length. These
 * stay whole if, for some number of rounds, that takes little longer than to cut them and to join them again. */
static uint64_t piece_of(const struct queue *queue, const struct shaped *s) {
    const uint64_t row = (uint64_t)s->each + PARTS_ROW_END, warps = warps_of(queue, s);
    const uint64_t weight = elements_of(s) + (uint64_t)s->results * PARTS_ROW_END;
    const uint64_t all = s->cut == TALLY_AXES ? warps * ROWS_ROUNDS : warps;
    uint64_t piece = (weight + all - 1) / all, best = UINT64_MAX, rows = 0;
    if (piece < ROWS_PIECE_LEAST) piece = ROWS_PIECE_LEAST;
    if (piece > PIECE_MOST) piece = PIECE_MOST;
    if (s->cut != TALLY_AXES || row > PIECE_MOST) return piece;
    for (uint64_t rounds = ROWS_ROUNDS - 1; rounds <= ROWS_ROUNDS + 2; rounds++) {
        uint64_t each = (s->results + warps * rounds - 1) / (warps * rounds);
        if (each * row < ROWS_PIECE_LEAST) each = ROWS_PIECE_LEAST / row + 1;
        if (each > 8 * WARP) each = rounded_up(each, WARP);
        const uint64_t took = as_busy(queue, s, (s->results + each - 1) / each, warps) * each;
        if (took < best && each * row <= PIECE_MOST) {
            best = took;
            rows = each;
        }
    }
    const uint64_t cut = rounded_up((weight + piece - 1) / piece, warps) * piece;
    if (rows == 0) return piece;
    const uint64_t joining = ROWS_JOIN_BYTES / type_size(s->p->type);
    return best * row < cut + cut / WHOLE_ROWS + joining ? rows * row : piece;
}

enum { WHOLE, BLOCKS, SHORT, JOIN, FEW, KERNELS };
static const char *const names[KERNELS] = {[WHOLE] = "rows",
                                           [BLOCKS] = "block_rows",
                                           [SHORT] = "short_rows",
                                           [JOIN] = "join_rows",
                                           [FEW] = "few_rows"};

/* The launches for a shape. */
struct rows_layout {
    unsigned kernel;        /* the kernel that reduces the rows */
    uint64_t piece, pieces; /* the weight of a piece, and how many there are */
    bool is_joined;         /* JOIN follows: a row may begin in one piece and end in another */
};

/* Returns which kernel reduces the rows. */
static unsigned kernel_for(const struct queue *queue, const struct shaped *s) {
    return are_for_blocks(queue, s) ? BLOCKS : are_few(s) ? FEW : are_short(s) ? SHORT : WHOLE;
}

static struct rows_layout lay_out(const struct queue *queue, const struct shaped *s) {
    const uint64_t weight = elements_of(s) + (uint64_t)s->results * PARTS_ROW_END;
    struct rows_layout l = {.kernel = kernel_for(queue, s), .piece = piece_of(queue, s)};
    l.pieces = (weight + l.piece - 1) / l.piece;
    const bool are_whole =
        s->cut == TALLY_AXES && l.piece % ((uint64_t)s->each + PARTS_ROW_END) == 0;
    l.is_joined = (l.kernel == SHORT || l.kernel == WHOLE) && l.pieces > 1 && !are_whole;
    return l;
}

static uint64_t words(const struct queue *queue, const struct shaped *s) {
    return lay_out(queue, s).pieces * EDGE_WORDS;
}

/* Finds the kernels of a layout. */
static tally_status find(struct queue *queue, const struct shaped *s, const struct rows_layout *l,
                         struct gpu_kernel *const **out) {
    const bool loose = filled_matters(s) || !parts_are_contiguous(s);
    const char *wanted[KERNELS] = {0};
    wanted[l->kernel] = names[l->kernel];
    if (l->is_joined) wanted[JOIN] = names[JOIN];
    return program_kernels(queue, BY_ROWS, capability_for(BY_ROWS, s->p), s->p, loose, wanted,
                           KERNELS, out);
}

static tally_status prepare(struct queue *queue, const struct shaped *s) {
    const struct rows_layout l = lay_out(queue, s);
    struct gpu_kernel *const *found;
    return find(queue, s, &l, &found);
}

/* Returns how many blocks hold `threads` threads. */
static unsigned blocks_for(const struct queue *queue, uint64_t threads) {
    return (unsigned)((threads + block_of(queue) - 1) / block_of(queue));
}

/* Returns the blocks of the first launch; plan->team is then how many warps take a row together. */
static unsigned grid_for(const struct queue *queue, const struct shaped *s,
                         const struct rows_layout *l, parts_plan *plan) {
    const uint64_t rows = s->results;
    if (l->kernel == BLOCKS) {
        plan->team = team_for(queue, s);
        const uint64_t teams = warps_of_block(queue) / plan->team;
        const uint64_t rounds = is_light(s) ? BLOCK_ROWS_ROUNDS : BLOCK_ROWS_ROUNDS - 1;
        const uint64_t most = rounds * blocks_at_once(queue, s);
        const uint64_t blocks = (rows + teams - 1) / teams;
        return (unsigned)(blocks < most ? blocks : most);
    }
    if (l->kernel == FEW) {
        const uint64_t most = warps_of(queue, s) * WARP;
        const uint64_t lanes = (rows + FEW_AT_ONCE - 1) / FEW_AT_ONCE;
        return blocks_for(queue, lanes < most ? lanes : most);
    }
    return blocks_for(queue, plan->pieces * WARP);
}

#if defined(TALLY_DEBUG)
static const struct path_axis kernel_axis = PATH_AXIS(names);
static const char *never_rows(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    if (type_size(p.type) == 1) return "elements of a byte are left to other kernels";
    if (!capability_for(BY_ROWS, &p)) return "rows have no program for it";
    return at[0] == FEW && problem_has(&p, MONOID_SQUARES) ? "few_rows is not for squares" : NULL;
}
PATH_TABLE(rows_paths, "rows on a GPU", never_rows, &kernel_axis, &path_ops, &path_types);
#endif

static tally_status enqueue(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *c = run->call;
    struct gpu_kernel *const *kernel;
    struct parts_plan *plan = &run->plan;
    const struct rows_layout l = lay_out(queue, c->s);
    plan->piece = l.piece;
    plan->pieces = l.pieces;
    plan->edges = run->own;
    plan->apart = !parts_are_contiguous(c->s);
    if (plan->apart) { /* up to the end of the last row */
        TALLY_PATH("rows that lie apart");
        plan->n = c->s->each;
        for (unsigned d = 0; d < c->s->keeps; d++)
            plan->n += (uint64_t)c->s->kept[d].x * (c->s->kept[d].length - 1);
    }
    const struct gpu_argument arguments[] = {BUFFER(c->x), BUFFER(run->offsets), BUFFER(c->work),
                                             BUFFER(c->out), VALUE(*plan)};
    tally_status s = find(queue, c->s, &l, &kernel);
    if (s != TALLY_OK) return s;
    TALLY_PATH_OF_VALUE(rows_paths, c->s->p, l.kernel);
    if (l.is_joined) TALLY_PATH_OF_VALUE(rows_paths, c->s->p, JOIN);
    if (c->s->filled) TALLY_PATH("rows of a filled copy");
    s = queue->api->launch(queue->gpu, kernel[l.kernel], grid_for(queue, c->s, &l, plan),
                           block_of(queue), arguments, 5);
    if (s == TALLY_OK && l.is_joined)
        s = queue->api->launch(queue->gpu, kernel[JOIN], blocks_for(queue, plan->pieces),
                               block_of(queue), arguments + 1, 4);
    return s;
}

/* (Rows that are cut go through `join_rows`, which cannot add again.) */
static bool is_certain(const struct queue *queue, const struct shaped *s) {
    const struct capability *c = capability_for(BY_ROWS, s->p);
    return c->certain ||
           (capability_adds_again(c, queue, s, SUMS_AGAIN_MOST) && !lay_out(queue, s).is_joined);
}

const struct strategy rows_strategy = {.takes = takes,
                                       .words = words,
                                       .prepare = prepare,
                                       .enqueue = enqueue,
                                       .checks = are_short,
                                       .is_certain = is_certain};
