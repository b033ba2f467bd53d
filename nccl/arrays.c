/*
 * arrays.c - arrays that are added up over ranks, element by element.
 *
 * The elements up to the last multiple of ranks * SHARD are added up by a reduce-scatter: each rank rounds a shard of
 * them, and the sums are gathered. An integer has twice a float's bytes, so this moves one and a half times what a plain
 * allreduce moves. What is left, and the spare rows, all ranks add up and round. Short arrays are all of that kind, for
 * fewer messages.
 *
 * With peers nothing is sent: each GPU adds up its share of the elements where they lie (tally_terms_shared()).
 */
#include "ranks.h"

#define SHARD         512       /* a multiple of the elements that share bounds */
#define SCATTER_LEAST (1 << 15) /* elements: all ranks add up shorter arrays whole */
#define SPARE_PART    16        /* one spare row for so many times SHARD elements, ... */
#define SPARE_LEAST   8         /* ... and so many more */

struct workspace_layout {
    struct ranks ranks;
    tally_terms terms;
    tally_terms_sizes sizes;
    size_t element, word; /* bytes */
    size_t shard;         /* elements that each rank rounds by itself */
    /* Places in the workspace, and its length; rest: the first element that is in no shard. */
    size_t words, failed, spare, work, rest, bytes;
    size_t added; /* words that all ranks add up: from `rest` on, of failures, and spare ones */
};

static tally_status shards_of(const tally_nccl_array *array, struct workspace_layout *p) {
    const size_t ranks = p->ranks.count;
    if (array->scatter && array->n % ranks != 0)
        return explain(TALLY_EINVAL, "%zu elements cannot be scattered to %zu ranks evenly",
                       array->n, ranks);
    if (array->scatter)
        p->shard = array->n / ranks;
    else if (array->n >= SCATTER_LEAST)
        p->shard = array->n / ranks / SHARD * SHARD;
    return TALLY_OK;
}

static tally_status lay_out(const tally_nccl_array *array, tally_nccl_comm comm,
                            struct workspace_layout *p) {
    *p = (struct workspace_layout){.words = 0};
    if (!array) return explain(TALLY_EINVAL, "the array's description is NULL");
    tally_status s = ranks_of(comm, &p->ranks);
    if (s == TALLY_OK) s = shards_of(array, p);
    if (s != TALLY_OK) return s;
    p->terms = (tally_terms){.type = array->type,
                             .n = array->n,
                             .ranks = (unsigned)p->ranks.count,
                             .spare = array->spare ? array->spare
                                                   : array->n / SHARD / SPARE_PART + SPARE_LEAST,
                             .shard = array->scatter ? p->shard : 0,
                             .divisor = array->divisor};
    s = explained(tally_terms_measure(&p->terms, &p->sizes));
    if (s != TALLY_OK) return s;
    if (p->terms.spare > p->sizes.rows) { /* no more are ever needed */
        p->terms.spare = p->sizes.rows;
        s = explained(tally_terms_measure(&p->terms, &p->sizes));
    }
    if (s != TALLY_OK) return s;
    p->element = tally_type_size(array->type);
    p->word = tally_type_size(p->sizes.word);
    layout_take(&p->bytes, 4 * p->sizes.bounds > AGREE_BYTES ? 4 * p->sizes.bounds : AGREE_BYTES);
    /* Behind the words of all elements stands one that counts the ranks which have failed; the spare ones follow at the
     * next multiple of 8 bytes. All from the rest on is one message. */
    p->words = layout_take(&p->bytes, 0);
    p->failed = p->words + p->word * p->sizes.words;
    const size_t own = (p->word * (p->sizes.words + 1) + 7) / 8 * 8;
    p->spare = p->words + own;
    p->rest = p->shard * p->ranks.count;
    p->added = own / p->word - p->rest + p->sizes.spare;
    layout_take(&p->bytes, own + p->word * p->sizes.spare);
    p->work = layout_take(&p->bytes, p->sizes.workspace_bytes);
    return s;
}

tally_status tally_nccl_measure_array(tally_device *device, const tally_nccl_array *array,
                                      tally_nccl_comm comm, size_t *bytes) {
    struct workspace_layout p;
    if (!bytes) return explain(TALLY_EINVAL, "tally_nccl_measure_array: bytes is NULL");
    tally_status s = lay_out(array, comm, &p);
    if (s == TALLY_OK) s = explained(tally_terms_prepare(device));
    if (s == TALLY_OK) *bytes = p.bytes;
    return s;
}

static tally_status too_small(size_t given, size_t needs) {
    if (given >= needs) return TALLY_OK;
    return explain(TALLY_EINVAL, "a workspace of %zu bytes, where %zu are needed", given, needs);
}

static uint64_t question(const tally_nccl_array *a, int by_peers) {
    const uint64_t asked[] = {(uint64_t)a->type, a->n,     a->divisor,
                              a->scatter != 0,   a->spare, by_peers != 0};
    return question_add(QUESTION_START, asked, sizeof asked);
}

static tally_status check(const struct workspace_layout *p, const tally_nccl_array_call *call) {
    if (p->terms.n > 0 && (!call->x || !call->out))
        return explain(TALLY_EINVAL, "x or out is NULL");
    const size_t element = p->element ? p->element : 1;
    if ((uintptr_t)call->x % element != 0 || (uintptr_t)call->out % element != 0)
        return explain(TALLY_EINVAL, "x or out is not aligned to its elements");
    return TALLY_OK;
}

tally_status tally_nccl_agree_array(tally_device *device, const tally_nccl_array *array,
                                    tally_nccl_comm comm, const tally_nccl_array_call *call) {
    struct workspace_layout p;
    if (!call || !call->workspace || call->workspace_bytes < AGREE_BYTES)
        return explain(TALLY_EINVAL, "no workspace");
    tally_status s = library_ready();
    if (s != TALLY_OK) return s;
    s = lay_out(array, comm, &p);
    if (s == TALLY_OK) s = explained(tally_terms_prepare(device));
    if (s == TALLY_OK) s = too_small(call->workspace_bytes, p.bytes);
    if (s == TALLY_OK && call->peers) s = explained(tally_terms_shared_prepare(device));
    if (s == TALLY_OK && call->peers) s = check(&p, call);
    s = ranks_agree(comm, array ? question(array, call->peers != NULL) : 0, s, call->workspace,
                    call->stream);
    if (s != TALLY_OK || !call->peers) return s;
    return peers_agree_arrays(call->peers, comm, call->stream, call->x, call->out, s);
}

static tally_status fill(void *at, unsigned char byte, size_t bytes, tally_nccl_stream stream) {
    if (bytes == 0) return TALLY_OK;
    return driver_status(nccl.cuMemsetD8Async((uint64_t)(uintptr_t)at, byte, bytes, stream),
                         "cuMemsetD8Async");
}

/* Sends this rank's bounds. If it has failed, they are bytes of 0xf0, which are below all others. */
static tally_status send_bounds(tally_device *device, tally_nccl_comm comm,
                                const struct workspace_layout *p, const tally_terms_call *c,
                                tally_status *mine) {
    tally_status s = TALLY_OK;
    if (p->sizes.bounds == 0) return s;
    if (*mine == TALLY_OK) *mine = explained(tally_terms_bounds(device, &p->terms, c));
    if (*mine != TALLY_OK) s = fill(c->bounds, 0xf0, 4 * p->sizes.bounds, c->queue);
    return s != TALLY_OK ? s
                         : nccl_status(nccl.ncclAllReduce(c->bounds, c->bounds, p->sizes.bounds,
                                                          NCCL_INT32, NCCL_MAX, comm, c->queue),
                                       "ncclAllReduce");
}

static tally_status send_words(tally_nccl_comm comm, const struct workspace_layout *p, char *base,
                               tally_nccl_stream stream) {
    const int type = p->word == 4 ? NCCL_INT32 : NCCL_INT64;
    char *words = base + p->words, *rest = words + p->word * p->rest;
    tally_status s = nccl_status(nccl.ncclGroupStart(), "ncclGroupStart");
    if (s != TALLY_OK) return s;
    if (p->shard > 0)
        s = nccl_status(nccl.ncclReduceScatter(words, words + p->word * p->shard * p->ranks.mine,
                                               p->shard, type, NCCL_SUM, comm, stream),
                        "ncclReduceScatter");
    if (s == TALLY_OK && p->added > 0)
        s = nccl_status(nccl.ncclAllReduce(rest, rest, p->added, type, NCCL_SUM, comm, stream),
                        "ncclAllReduce");
    const nccl_result end = nccl.ncclGroupEnd();
    return s == TALLY_OK ? nccl_status(end, "ncclGroupEnd") : s;
}

/* Makes this rank's words. If it has failed, they are 0, but for the one that counts failures. */
static tally_status make_words(tally_device *device, const struct workspace_layout *p, char *base,
                               const tally_terms_call *c, tally_status *mine) {
    tally_status s = fill(base + p->failed, 0, p->spare - p->failed, c->queue);
    if (s == TALLY_OK && *mine == TALLY_OK)
        *mine = explained(tally_terms_words(device, &p->terms, c));
    if (s != TALLY_OK || *mine == TALLY_OK) return s;
    s = fill(c->words, 0, p->spare - p->words + p->word * p->sizes.spare, c->queue);
    return s == TALLY_OK ? fill(base + p->failed, 1, 1, c->queue) : s;
}

/* Rounds the sums of elements [first, first + count), and makes the outcome. */
static tally_status make_values(tally_device *device, const struct workspace_layout *p,
                                tally_terms_call c, size_t first, size_t count, void *out) {
    c.words = (char *)c.words + p->word * first;
    c.first = first;
    c.count = count;
    c.out = out;
    return explained(tally_terms_values(device, &p->terms, &c));
}

/* Rounds this rank's shard, and the rest. */
static tally_status round_all(tally_device *device, const struct workspace_layout *p,
                              const tally_terms_call *c, char *out, int scatter) {
    const size_t first = p->shard * p->ranks.mine;
    tally_status s = TALLY_OK;
    if (p->shard > 0)
        s = make_values(device, p, *c, first, p->shard, scatter ? out : out + p->element * first);
    if (s != TALLY_OK || (p->shard > 0 && p->rest == p->terms.n)) return s;
    return make_values(device, p, *c, p->rest, p->terms.n - p->rest, out + p->element * p->rest);
}

/* Adds up by the peers. A rank whose own part fails calls once more, and so tells the others. */
static tally_status by_peers(tally_device *device, const struct workspace_layout *p,
                             const tally_nccl_array_call *call, int scatter) {
    const struct agreed_arrays *a = peers_find_arrays(call->peers, call->x, call->out);
    tally_terms_shared_call one = {.mine = p->ranks.mine,
                                   .mailbox = peers_mailbox(call->peers),
                                   .outcome = call->outcome ? call->outcome : call->workspace,
                                   .queue = call->stream};
    tally_terms terms = p->terms;
    tally_status s = check(p, call);
    if (s == TALLY_OK && !a)
        s = explain(TALLY_EINVAL, "x and out have not been agreed on: tally_nccl_agree_array()");
    if (!scatter) terms.shard = 0;
    if (s == TALLY_OK && a) {
        one.arrays = a->number;
        for (size_t rank = 0; rank < p->ranks.count; rank++) {
            one.x[rank] = (const void *)(uintptr_t)a->at[0][rank];
            one.out[rank] = (void *)(uintptr_t)a->at[1][rank];
        }
        s = explained(tally_terms_shared(device, &terms, &one));
    }
    if (s == TALLY_OK) return s;
    one.failure = s;
    tally_terms_shared(device, &terms, &one);
    return s;
}

tally_status tally_nccl_allreduce_array(tally_device *device, const tally_nccl_array *array,
                                        tally_nccl_comm comm, const tally_nccl_array_call *call) {
    struct workspace_layout p;
    if (!call || !call->workspace) return explain(TALLY_EINVAL, "no workspace");
    tally_status s = lay_out(array, comm, &p);
    if (s == TALLY_OK) s = explained(tally_terms_prepare(device));
    if (s == TALLY_OK) s = too_small(call->workspace_bytes, p.bytes);
    if (s != TALLY_OK) return s;
    if (call->peers) return by_peers(device, &p, call, array->scatter);
    char *base = call->workspace, *out = call->out;
    const tally_terms_call c = {.x = call->x,
                                .bounds = base,
                                .words = base + p.words,
                                .spare = base + p.spare,
                                .failed = base + p.failed,
                                .workspace = base + p.work,
                                .outcome = call->outcome,
                                .queue = call->stream};
    tally_status mine = check(&p, call);
    s = send_bounds(device, comm, &p, &c, &mine);
    if (s == TALLY_OK) s = make_words(device, &p, base, &c, &mine);
    if (s == TALLY_OK) s = send_words(comm, &p, base, call->stream);
    if (s != TALLY_OK) return s;
    if (mine != TALLY_OK) { /* makes its outcome; the sums go to its words, as `out` may be bad */
        make_values(device, &p, c, 0, 0, NULL);
        out = base + p.words;
    } else {
        s = round_all(device, &p, &c, out, array->scatter);
    }
    const size_t bytes = p.element * p.shard;
    if (bytes > 0 && !array->scatter) {
        const tally_status sent =
            nccl_status(nccl.ncclAllGather(out + bytes * p.ranks.mine, out, bytes, NCCL_INT8, comm,
                                           call->stream),
                        "ncclAllGather");
        if (s == TALLY_OK) s = sent;
    }
    return mine != TALLY_OK ? mine : s;
}
