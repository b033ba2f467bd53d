/*
 * digest.c - reductions over ranks against the same in one process, and one digest of all that came back.
 *
 *   mpirun -n P mpi_digest [SEED [EVERY]]      with EVERY 10, one check in ten
 *
 * Every rank makes the whole of each array, reduces it by itself, and then its part of it with the others. The two
 * must be of the same status and the same bits, on every rank; a line says where they are not. Rank 0 prints a
 * digest of what the ranks came to together: it does not depend on P.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally_mpi.h"

/* ---- Digest and generator ------------------------------------------------------------------- */

static uint64_t digest = 0xcbf29ce484222325u, seed, cut_seed;
static int rank, ranks, wrong;

static void add_to_digest(uint64_t number) {
    for (int i = 0; i < 8; i++)
        digest = (digest ^ (number >> 8 * i & 0xff)) * 0x100000001b3u;
}

static uint64_t next_of(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- Arrays --------------------------------------------------------------------------------- */

enum { MOST = 20011, KINDS = 4, EDGES = KINDS };
static unsigned char x_room[8 * MOST + 8], y_room[8 * MOST + 8];

static int fraction_bits(tally_type type) {
    return type == TALLY_F16    ? 10
           : type == TALLY_BF16 ? 7
           : type == TALLY_F32  ? 23
           : type == TALLY_F64  ? 52
                                : 0;
}

/* The bits of one element. Kinds: near 1 (small integers), anything finite, few values and zeros of both signs,
 * anything at all with NaNs and infinities, powers of two about where the digits end that a frame takes. */
static unsigned edge, sides; /* sides: the low one, the high one, both */
static uint64_t element(tally_type type, int kind) {
    const uint64_t r = next_of(&seed), more = next_of(&seed);
    const int bits = 8 * (int)tally_type_size(type), f = fraction_bits(type);
    if (!f) {
        const uint64_t small[] = {r % 3 + (more % 200 == 0), r, r & 1, r & more};
        return small[kind];
    }
    const uint64_t sign = r >> 63 << (bits - 1), top = (UINT64_C(1) << (bits - 1 - f)) - 1;
    const uint64_t fraction = r & ((UINT64_C(1) << f) - 1);
    if (kind == 0) return (top / 2 - more % 2) << f | fraction;
    if (kind == 1) return sign | more % top << f | fraction;
    if (kind == 2) return sign | (more % 3 ? 0 : top / 2 << f);
    if (kind == EDGES) { /* of f64 */
        /* Of sums, products and variances, and of the type. The high ends differ with the number of ranks. */
        static const struct {
            unsigned low, high, highs;
        } ends[] = {{1023 - 674, 1023 + 620, 56},
                    {1023 - 338, 1023 + 308, 30},
                    {1023 - 194, 1023 + 156, 22},
                    {1, 2030, 12}};
        const int is_low = sides == 2 ? (r & 64) != 0 : sides == 0;
        return sign |
               (is_low ? ends[edge].low + more % 6 : ends[edge].high + more % ends[edge].highs)
                   << f;
    }
    if (more % 4000 == 0) return sign | top << f | (more & 4096 ? fraction : 0);
    return sign | (top / 2 + more % 3) << f | fraction;
}

static void fill(unsigned char *into, tally_type type, int kind, size_t n) {
    const size_t size = tally_type_size(type);
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = element(type, kind);
        const uint8_t b1 = (uint8_t)bits;
        const uint16_t b2 = (uint16_t)bits;
        const uint32_t b4 = (uint32_t)bits;
        memcpy(into + i * size,
               size == 1   ? (const void *)&b1
               : size == 2 ? (const void *)&b2
               : size == 4 ? (const void *)&b4
                           : (const void *)&bits,
               size);
    }
}

/* Where each rank's part begins: a way to cut n elements in as many as there are ranks. */
static void cut(size_t n, int way, size_t *begin) {
    for (int r = 0; r <= ranks; r++) {
        if (way == 0)
            begin[r] = n * (size_t)r / (size_t)ranks;
        else if (way == 1)
            begin[r] = r == ranks ? n : 0; /* all on the last */
        else
            begin[r] = next_of(&cut_seed) % (n + 1); /* sorted below; some are empty */
    }
    begin[0] = 0;
    begin[ranks] = n;
    for (int r = 1; r < ranks; r++)
        for (int k = r; k > 0 && begin[k] < begin[k - 1]; k--) {
            const size_t swap = begin[k];
            begin[k] = begin[k - 1];
            begin[k - 1] = swap;
        }
}
enum { WAYS = 3 };

/* ---- Users' operators ----------------------------------------------------------------------- */

/* a + a b + b, which commutes; and 3 a + b, which does not. Neither is associative in floats. */
#define OPERATOR(name, type, formula)                                                              \
    static void name(void *context, const void *left, const void *right, void *out, size_t n) {    \
        (void)context;                                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            type a, b, c;                                                                          \
            memcpy(&a, (const char *)left + i * sizeof a, sizeof a);                               \
            memcpy(&b, (const char *)right + i * sizeof b, sizeof b);                              \
            c = (type)(formula);                                                                   \
            memcpy((char *)out + i * sizeof c, &c, sizeof c);                                      \
        }                                                                                          \
    }
OPERATOR(meet_f64, double, a *(1.0 / 1024) * b + a + b)
OPERATOR(line_f32, float, a * 0.75f + b)
OPERATOR(line_u16, uint16_t, 3u * a + b)

static const uint64_t zero;
static const tally_operator meet = {meet_f64, NULL, &zero, 1, NULL},
                            line_f = {line_f32, NULL, &zero, 0, NULL},
                            line_u = {line_u16, NULL, &zero, 0, NULL};

/* ---- Compared ------------------------------------------------------------------------------- */

static void differ(const tally_problem *p, size_t n, const char *what) {
    if (wrong++ > 5) return;
    fprintf(stderr, "rank %d of %d: %s of %s, n = %zu, %s: %s\n", rank, ranks, tally_op_name(p->op),
            tally_type_name(p->type), n, what, tally_mpi_error());
}

static void compare(const tally_problem *p, size_t n, const char *what, tally_status expected,
                    const tally_value *alone, tally_status found, const tally_value *together) {
    size_t values = 0;
    add_to_digest(found);
    if (found != expected) {
        differ(p, n, what);
        return;
    }
    if (found != TALLY_OK || tally_problem_values(p, &values) != TALLY_OK) return;
    for (size_t i = 0; i < values; i++) {
        const uint64_t bits = together[i].type ? tally_value_bits(&together[i]) : 0;
        add_to_digest(together[i].type);
        add_to_digest(bits);
        if (together[i].type != alone[i].type ||
            (alone[i].type && bits != tally_value_bits(&alone[i])))
            differ(p, n, what);
    }
}

/* One state a rank, which stands where its elements do, combined; and two of them that know the same. */
static tally_status by_states(const tally_problem *p, const unsigned char *x,
                              const unsigned char *y, const size_t *begin, tally_value *out) {
    tally_state *state[2] = {NULL, NULL};
    const size_t n = begin[rank + 1] - begin[rank];
    tally_value first[TALLY_VALUES_MAX];
    tally_status s = TALLY_OK;
    for (int i = 0; i < 2 && s == TALLY_OK; i++) {
        s = tally_state_create(p, &state[i]);
        if (s == TALLY_OK) s = tally_state_begin_at(state[i], begin[rank]);
        if (s == TALLY_OK) s = tally_state_feed(state[i], NULL, x, y, n);
    }
    if (s == TALLY_OK) s = tally_mpi_allreduce_states(p, state, 2, MPI_COMM_WORLD);
    if (s == TALLY_OK) s = tally_state_value(state[0], first);
    if (s == TALLY_OK) s = tally_state_value(state[1], out);
    if (s == TALLY_OK && memcmp(&first[0].as, &out[0].as, tally_type_size(out[0].type)) != 0)
        s = TALLY_ELOST;
    tally_state_destroy(state[0]);
    tally_state_destroy(state[1]);
    return s;
}

static unsigned every = 1;

/* One problem in every way. */
static void check(const tally_problem *p, size_t n) {
    static unsigned checks;
    if (++checks % every) return;
    const int two = p->op == TALLY_DOT;
    const size_t size = tally_type_size(p->type);
    tally_value alone[TALLY_VALUES_MAX], together[TALLY_VALUES_MAX] = {{0}};
    size_t begin[64];
    const tally_status expected = tally_reduce(NULL, p, x_room, two ? y_room : NULL, n, alone);
    for (int way = 0; way < WAYS; way++) {
        cut(n, way, begin);
        const unsigned char *x = x_room + begin[rank] * size,
                            *y = two ? y_room + begin[rank] * size : NULL;
        const size_t mine = begin[rank + 1] - begin[rank];
        tally_status s = tally_mpi_allreduce(NULL, p, x, y, mine, together, MPI_COMM_WORLD);
        compare(p, n, "allreduce", expected, alone, s, together);
        if (way != 2) continue;
        const int root = (int)(n % (size_t)ranks);
        s = tally_mpi_reduce(NULL, p, x, y, mine, rank == root ? together : NULL, root,
                             MPI_COMM_WORLD);
        compare(p, n, "reduce", expected, alone, s, rank == root ? together : alone);
        s = by_states(p, x, y, begin, together);
        compare(p, n, "states", expected, alone, s, together);
    }
}

static void check_all(tally_type type, int kind, size_t n) {
    fill(x_room, type, kind, n);
    fill(y_room, type, kind, n);
    for (int op = TALLY_SUM; op < TALLY_USER; op++)
        check(&(tally_problem){.op = (tally_op)op, .type = type, .ddof = op == TALLY_STD ? 1 : 0},
              n);
    check(&(tally_problem){.op = TALLY_MEAN, .type = type, .out = TALLY_F32, .also = {TALLY_VAR}},
          n);
    check(&(tally_problem){.op = TALLY_PROD,
                           .type = type,
                           .also = {TALLY_ARGMAX, TALLY_NORM1, TALLY_NONZERO}},
          n);
    check(&(tally_problem){.op = TALLY_VAR, .type = type, .also = {TALLY_NORM1, TALLY_NORM2}}, n);
    if (type == TALLY_F64)
        check(&(tally_problem){.op = TALLY_USER, .type = type, .user = &meet}, n);
    if (type == TALLY_F32)
        check(&(tally_problem){.op = TALLY_USER, .type = type, .user = &line_f}, n);
    if (type == TALLY_U16)
        check(&(tally_problem){.op = TALLY_USER, .type = type, .user = &line_u}, n);
}

/* Products of what one rank alone could not say: of 2^63, which -1 brings into the type, and of what is too long, but for a
 * zero elsewhere. */
static void check_products(void) {
    static const int64_t factors[][4] = {
        {INT64_MIN, -1, -1, 1},       {INT64_C(1) << 62, 2, 1, -1},
        {INT64_C(1) << 62, 4, -1, 1}, {INT64_MAX, INT64_MAX, INT64_MIN, 0},
        {0, -1, INT64_MAX, 3},        {-1, INT64_C(1) << 62, 1, 2}};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        for (size_t n = 0; n <= 4; n++) {
            memcpy(x_room, factors[i], sizeof factors[i]);
            check(&(tally_problem){.op = TALLY_PROD, .type = TALLY_I64}, n);
            check(&(tally_problem){.op = TALLY_PROD, .type = TALLY_U64}, n);
            check(&(tally_problem){.op = TALLY_PROD, .type = TALLY_I8}, 8 * n);
        }
}

int main(int argc, char **argv) {
    static const size_t lengths[] = {0, 1, 40, 5000, MOST};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    seed = cut_seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    if (argc > 2) every = (unsigned)atoi(argv[2]);
    for (int type = TALLY_I8; type <= TALLY_F64; type++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
            check_all((tally_type)type, (int)(type + i) % KINDS, lengths[i]);
    for (edge = 0; edge < 4; edge++)
        for (sides = 0; sides < 3; sides++)
            check_all(TALLY_F64, EDGES, 40);
    check_products();
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    uint64_t least, greatest;
    MPI_Allreduce(&digest, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&digest, &greatest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && least != greatest) puts("the ranks have different digests"), all = 1;
    if (rank == 0) printf("digest %016" PRIx64 "\n", digest);
    MPI_Finalize();
    return all != 0;
}
