/*
 * values.c - values of arrays that are spread over ranks.
 *
 * The workspace holds the message, then what tally.h's calls work in:
 *     failed    the two int64 of tally_values_call; they are added up with ...
 *     added     ... the words of all states that additions combine
 *     gathered  of each rank, the other words of all states; this rank's are written to their place
 * A rank that fails in its own part makes its words 0, but for the first two, and sends them.
 */
#include "ranks.h"

#define FAILED_WORDS 2

struct workspace_layout {
    struct ranks ranks;
    tally_words words;
    size_t count, gathered, work, bytes;
};

static tally_status lay_out(tally_device *device, const tally_problem *problem, size_t n,
                            size_t count, tally_nccl_comm comm, struct workspace_layout *p) {
    *p = (struct workspace_layout){.count = count};
    tally_status s = ranks_of(comm, &p->ranks);
    if (s == TALLY_OK) s = explained(tally_words_measure(device, problem, n, count, &p->words));
    if (s != TALLY_OK) return s;
    layout_take(&p->bytes, 8 * (FAILED_WORDS + p->words.added * count));
    p->gathered = layout_take(&p->bytes, 8 * p->words.gathered * count * p->ranks.count);
    p->work = layout_take(&p->bytes, p->words.workspace_bytes);
    return s;
}

tally_status tally_nccl_measure(tally_device *device, const tally_problem *problem, size_t n,
                                size_t count, tally_nccl_comm comm, size_t *bytes) {
    struct workspace_layout p;
    if (!bytes) return explain(TALLY_EINVAL, "tally_nccl_measure: bytes is NULL");
    tally_status s = lay_out(device, problem, n, count, comm, &p);
    if (s == TALLY_OK) *bytes = p.bytes;
    return s;
}

static tally_status too_small(size_t given, size_t needs) {
    if (given >= needs) return TALLY_OK;
    return explain(TALLY_EINVAL, "a workspace of %zu bytes, where %zu are needed", given, needs);
}

/* A hash of a problem, the number of results, and whether there are peers. */
static uint64_t question(const tally_problem *p, size_t count, int by_peers) {
    const int asked[] = {p->op, p->type, p->out, p->about != 0, p->is_complex != 0, by_peers};
    uint64_t hash = question_add(QUESTION_START, asked, sizeof asked);
    hash = question_add(hash, p->also, sizeof p->also);
    hash = question_add(hash, &p->ddof, sizeof p->ddof);
    if (p->about) hash = question_add(hash, p->mean, sizeof p->mean);
    return question_add(hash, &count, sizeof count);
}

tally_status tally_nccl_agree(tally_device *device, const tally_problem *problem, size_t n,
                              tally_nccl_comm comm, const tally_nccl_call *call) {
    struct workspace_layout p = {.count = 0};
    if (!call || !call->workspace || call->workspace_bytes < AGREE_BYTES)
        return explain(TALLY_EINVAL, "no workspace");
    tally_status s = library_ready();
    if (s != TALLY_OK) return s;
    s = problem ? lay_out(device, problem, n, call->count, comm, &p)
                : explain(TALLY_EINVAL, "the problem is NULL");
    if (s == TALLY_OK) s = too_small(call->workspace_bytes, p.bytes);
    return ranks_agree(comm, problem ? question(problem, call->count, call->peers != NULL) : 0, s,
                       call->workspace, call->stream);
}

/* Puts this rank's words under way. */
static tally_status enqueue_words(tally_device *device, const tally_problem *problem,
                                  const tally_nccl_call *call, const struct workspace_layout *p) {
    char *base = call->workspace;
    int64_t *added = (int64_t *)base + FAILED_WORDS;
    uint64_t *gathered =
        (uint64_t *)(base + p->gathered) + p->ranks.mine * p->count * p->words.gathered;
    tally_status s = TALLY_OK;
    if (!call->parts && p->count > 0) return explain(TALLY_EINVAL, "the parts are NULL");
    if (!call->results && p->count > 0) return explain(TALLY_EINVAL, "results is NULL");
    for (size_t i = 0; i < p->count && s == TALLY_OK; i++) {
        const tally_words_call one = {.x = call->parts[i].x,
                                      .y = call->parts[i].y,
                                      .n = call->parts[i].n,
                                      .workspace = base + p->work,
                                      .workspace_bytes = p->words.workspace_bytes,
                                      .queue = call->stream,
                                      .added = added + i * p->words.added,
                                      .gathered = gathered + i * p->words.gathered,
                                      .failed = i == 0 ? base : NULL};
        s = explained(tally_enqueue_words(device, problem, &one));
    }
    return s;
}

static tally_status fill(void *at, unsigned char byte, size_t bytes, tally_nccl_stream stream) {
    if (bytes == 0) return TALLY_OK;
    return driver_status(nccl.cuMemsetD8Async((uint64_t)(uintptr_t)at, byte, bytes, stream),
                         "cuMemsetD8Async");
}

/* Makes the message of a rank that has failed: says so, and has words of 0. */
static tally_status enqueue_failure(const tally_nccl_call *call, const struct workspace_layout *p,
                                    tally_status failure) {
    char *base = call->workspace;
    const size_t gathered = 8 * p->count * p->words.gathered;
    tally_status s = fill(base, 0, 8 * (FAILED_WORDS + p->count * p->words.added), call->stream);
    if (s == TALLY_OK) s = fill(base, 1, 1, call->stream);
    if (s == TALLY_OK) s = fill(base + 8, (unsigned char)failure, 1, call->stream);
    if (s == TALLY_OK) s = fill(base + 12, (unsigned char)(failure * failure), 1, call->stream);
    if (s == TALLY_OK)
        s = fill(base + p->gathered + p->ranks.mine * gathered, 0, gathered, call->stream);
    return s;
}

static tally_status send(tally_nccl_comm comm, const tally_nccl_call *call,
                         const struct workspace_layout *p) {
    char *base = call->workspace, *all = base + p->gathered;
    const size_t gathered = p->count * p->words.gathered;
    tally_status s = nccl_status(nccl.ncclGroupStart(), "ncclGroupStart");
    if (s != TALLY_OK) return s;
    s = nccl_status(nccl.ncclAllReduce(base, base, FAILED_WORDS + p->count * p->words.added,
                                       NCCL_INT64, NCCL_SUM, comm, call->stream),
                    "ncclAllReduce");
    if (s == TALLY_OK && gathered > 0)
        s = nccl_status(nccl.ncclAllGather(all + 8 * p->ranks.mine * gathered, all, gathered,
                                           NCCL_UINT64, comm, call->stream),
                        "ncclAllGather");
    const nccl_result end = nccl.ncclGroupEnd();
    return s == TALLY_OK ? nccl_status(end, "ncclGroupEnd") : s;
}

/* Reduces to one result by the peers. The words of all ranks lie where the message would. A rank whose own
 * part fails calls once more, and so tells the others. */
static tally_status by_peers(tally_device *device, const tally_problem *problem,
                             const tally_nccl_call *call, const struct workspace_layout *p) {
    char *base = call->workspace;
    tally_shared_call one = {.n = 0,
                             .workspace = base + p->work,
                             .workspace_bytes = p->words.workspace_bytes,
                             .queue = call->stream,
                             .words = base,
                             .mailbox = peers_mailbox(call->peers),
                             .ranks = p->ranks.count,
                             .mine = p->ranks.mine,
                             .results = call->results ? call->results : base + p->work};
    tally_status s = TALLY_OK;
    if (!call->parts) s = explain(TALLY_EINVAL, "the parts are NULL");
    if (!call->results) s = explain(TALLY_EINVAL, "results is NULL");
    if (s == TALLY_OK && call->parts) {
        one.x = call->parts->x;
        one.y = call->parts->y;
        one.n = call->parts->n;
        s = explained(tally_enqueue_shared(device, problem, &one));
    }
    if (s == TALLY_OK) return s;
    one.x = one.y = NULL;
    one.failure = s;
    tally_enqueue_shared(device, problem, &one);
    return s;
}

tally_status tally_nccl_allreduce(tally_device *device, const tally_problem *problem,
                                  tally_nccl_comm comm, const tally_nccl_call *call) {
    struct workspace_layout p;
    size_t n = 0;
    if (!call || !call->workspace) return explain(TALLY_EINVAL, "no workspace");
    for (size_t i = 0; i < call->count && call->parts; i++)
        if (call->parts[i].n > n) n = call->parts[i].n;
    tally_status s = lay_out(device, problem, n, call->count, comm, &p);
    if (s == TALLY_OK) s = too_small(call->workspace_bytes, p.bytes);
    if (s != TALLY_OK || call->count == 0) return s;
    if (call->peers && call->count == 1) return by_peers(device, problem, call, &p);
    char *base = call->workspace;
    const tally_status mine = enqueue_words(device, problem, call, &p);
    if (mine != TALLY_OK) s = enqueue_failure(call, &p, mine);
    if (s == TALLY_OK) s = send(comm, call, &p);
    if (s != TALLY_OK) return s;
    const tally_values_call values = {.added = (int64_t *)base + FAILED_WORDS,
                                      .gathered = base + p.gathered,
                                      .ranks = p.ranks.count,
                                      .count = p.count,
                                      .failed = base,
                                      .queue = call->stream,
                                      .results = call->results};
    s = call->results ? tally_enqueue_values(device, problem, &values) : TALLY_OK;
    return mine != TALLY_OK ? mine : explained(s);
}
