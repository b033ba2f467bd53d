/* own_advice.c - see own_advice.h. */
#include "teach/own_advice.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *kind;
    int detail; /* -1: any */
    const char *why, *mend, *lesson;
};

static const struct row rows[] = {
    {"race", 0,
     "The warps of a block run at their own pace: one may read before the other has written, and "
     "the result "
     "changes from run to run.",
     "Put __syncthreads() between the two, where all threads of the block come to it; where many "
     "threads change one element, change it by atomicAdd().",
     "lessons/02_barrier_missing.cu"},
    {"race", 1,
     "Since Volta the lanes of a warp need not run in step, and volatile does not order them.",
     "Put __syncwarp() between the two, or exchange the values by __shfl_down_sync(); where many "
     "lanes change one element, change it by atomicAdd().",
     "lessons/09_warp_without_sync.cu"},
    {"race", 2,
     "Blocks run in any order and at the same time, and no barrier of a block reaches another.",
     "Let each block write an element of its own, or add by atomicAdd(), or launch one block.",
     "lessons/21_blocks_add.cu"},
    {"race", 3,
     "volatile makes no access atomic: another thread may store between this one's read and its "
     "store, and one of the two values is lost.",
     "Change the element by atomicAdd() or its like, or let one thread of the block store it.",
     "lessons/21_blocks_add.cu"},
    {"race", 4,
     "volatile makes no access atomic: another block may store between this one's read and its "
     "store, and one of the two values is lost.",
     "Change the element by atomicAdd() or its like, or let each block write an element of its "
     "own.",
     "lessons/21_blocks_add.cu"},
    {"race", 5,
     "All these threads store to one element, and the value that is left is the one of whoever "
     "comes last. No barrier can stand between the stores, as they are one line.",
     "Let one thread of the block store it, as in `if (threadIdx.x == 0)`; where many threads "
     "change one element, change it by atomicAdd().",
     "lessons/21_blocks_add.cu"},
    {"barrier", 0,
     "A barrier counts the threads that come: those that wait wait for ever, or meet the others at "
     "a wrong "
     "barrier. Hardware may let it pass; the standard calls it undefined.",
     "Move the barrier out of the branch or the loop, so that every thread of the block comes to "
     "it.",
     "lessons/03_barrier_in_if.cu"},
    {"barrier", 1,
     "A shuffle or __syncwarp() waits for every lane that its mask names. Those that do not come "
     "are undefined "
     "behaviour, and since Volta a hang.",
     "Let all lanes of the mask come to it, or name only those that do, as __ballot_sync() finds "
     "them.",
     "lessons/12_shuffles.cu"},
    {"barrier", 2,
     "Some threads have returned before a barrier at which the others wait. Hardware may let the "
     "others pass; "
     "the standard calls it undefined.",
     "Do not return early: let threads without an element take the identity, and come to every "
     "barrier.",
     "lessons/03_barrier_in_if.cu"},
    {"bounds", -1,
     "It reads or changes memory that belongs to nobody or to something else: a wrong result, or a "
     "launch that "
     "the GPU ends.",
     "Test the index before each access, as in `i < n ? input[i] : identity`, and launch no more "
     "threads than "
     "a shared array has elements.",
     "lessons/05_odd_lengths.cu"},
    {"alignment", -1,
     "A GPU ends the launch at an address that is no multiple of the access's size.",
     "Use wide loads, such as float4, only from addresses that are a multiple of their size.",
     "lessons/18_wide_loads.cu"},
    {"unwritten", -1,
     "Shared memory holds at first what the block before left there: the result is right by luck "
     "only.",
     "Let every thread write its element before the barrier: the identity where it has none.",
     "lessons/08_unwritten.cu"},
    {"stack", -1, "A GPU keeps few variables in registers; the others make every access slow.",
     "Keep fewer elements in each thread.", "lessons/12_shuffles.cu"},
    {"endless", 1,
     "The condition of the loop never becomes false: its counter stands still, or comes back to "
     "where it was. Halving a 0 gives 0, and an unsigned is never below 0.",
     "Look at what the loop changes in each turn, and at the value with which it is to end.",
     "lessons/01_first_tree.cu"},
    {"endless", -1,
     "A thread that waits for another by asking again and again may wait for one that cannot run: "
     "the lanes of "
     "a warp may run in step, and blocks one after another. So a spin lock may hang. Hardware "
     "since Volta may "
     "let it pass; the standard promises it to no kernel.",
     "Use an atomic, such as atomicAdd(), in place of a lock; end every loop by a count.",
     "lessons/19_lock.cu"},
    {"order", 0,
     "A GPU may let the atomic be seen before the value: the last block then combines what has not "
     "arrived. It "
     "goes wrong rarely, and on another GPU.",
     "Put __threadfence() after the store and before the atomic.", "lessons/16_last_block.cu"},
    {"order", 1,
     "__threadfence_block() orders the store for the threads of its own block. Other blocks may "
     "see the atomic "
     "first, and combine what has not arrived.",
     "Write __threadfence() in its place: it orders the store for the whole grid.",
     "lessons/16_last_block.cu"},
    {"order", 2,
     "The reading block may use an old value, which it or its cache has read before the atomic.",
     "Put __threadfence() after the atomic, too, or read through a volatile pointer.",
     "lessons/16_last_block.cu"},
    {"shuffle", -1,
     "What a shuffle takes from a lane that takes no part in it is undefined, and here it comes "
     "into the result.",
     "Let all 32 lanes come to the shuffle, those without an element with the identity; combine "
     "with lanes "
     "that the mask names only.",
     "lessons/12_shuffles.cu"},
    {"promise", 0, "Where an assert() fails, a GPU ends the launch, and the host gets an error.",
     "Let the launch keep to what the kernel asserts, or drop the assert().",
     "lessons/05_odd_lengths.cu"},
    {"promise", 1,
     "__ldg() reads through a cache that nobody keeps up to date: the kernel may get the value "
     "from "
     "before the launch.",
     "Read the element itself, or through a volatile pointer where another block has written it.",
     "lessons/16_last_block.cu"},
    {"data", -1, "Elements of a program are not all small and positive.", "",
     "lessons/14_accumulator.cu"},
    {"block", -1, "Who launches it with another block gets a wrong result, and nothing says so.",
     "Combine what every warp of the block has, for blockDim.x threads, whatever that is.",
     "lessons/15_one_warp.cu"},
    {"second launch", -1,
     "Programs launch a kernel many times. A variable in global memory keeps its value from launch "
     "to launch.",
     "Set it back at the end of the kernel, as in `if (t == 0) counter = 0`, by the block that is "
     "last; or "
     "count by atomicInc(&counter, gridDim.x - 1), which comes back to 0.",
     "lessons/17_second_launch.cu"},
    {"order of blocks", -1,
     "Blocks run in any order: the one with the highest number need not be the last.",
     "Let an atomic counter say which block is last, with __threadfence() before it.",
     "lessons/16_last_block.cu"},
    {"grid", -1, "The number of blocks is the host's choice, and grows with n.",
     "Let the block that combines loop over all gridDim.x values, blockDim.x apart.",
     "lessons/16_last_block.cu"},
    {"overflow", -1,
     "An int holds numbers up to 2^31 - 1, and an unsigned up to 2^32 - 1. An index or a number of "
     "bytes beyond "
     "that comes out negative, or begins again at 0.",
     "Compute it in the type of n, or in size_t: (size_t)blockIdx.x * blockDim.x + threadIdx.x.",
     "lessons/20_index.cu"},
    {"lengths", -1, "The kernel takes n, and a program has any n.",
     "Look at the elements that are left out or counted twice, at the least n that is wrong.",
     "lessons/04_powers_of_two.cu"},
};

static void advise(const char *kind, int detail, struct own_advice *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].kind, kind) != 0 || (rows[i].detail >= 0 && rows[i].detail != detail))
            continue;
        snprintf(out->why, sizeof out->why, "%s", rows[i].why);
        snprintf(out->mend, sizeof out->mend, "%s", rows[i].mend);
        snprintf(out->lesson, sizeof out->lesson, "%s", rows[i].lesson);
        return;
    }
}

/* Returns whether a kernel's text has a return before a line; anywhere in it, if the line is another function's. */
static bool returns_before(const struct own_kernel *k, unsigned line) {
    unsigned at = 1;
    int depth = 0;
    bool has_begun = false;
    for (const char *c = k->text; *c; c++) {
        if (c[0] == '/' && c[1] == '/') c += strcspn(c, "\n");
        if (c[0] == '/' && c[1] == '*') {
            const char *end = strstr(c, "*/");
            for (; c < end; c++)
                at += *c == '\n';
        }
        if (!*c) return false;
        at += *c == '\n';
        if (at < k->line) continue;
        if (line > k->line && at >= line) return false;
        has_begun |= *c == '{';
        depth += (*c == '{') - (*c == '}');
        if (has_begun && depth == 0) return false;
        if (has_begun && strncmp(c, "return", 6) == 0 && c[6] != '_' &&
            !isalnum((unsigned char)c[6]) && !isalnum((unsigned char)c[-1]) && c[-1] != '_')
            return true;
    }
    return false;
}

void own_advise_fault(const struct own_session *s, const struct own_run *run,
                      struct own_advice *out) {
    static const char *const kinds[] = {"none",      "barrier", "bounds", "alignment",
                                        "unwritten", "race",    "stack",  "endless",
                                        "order",     "shuffle", "promise"};
    int detail = run->result.detail;
    /* Without a return the lanes that are gone have passed by the barrier's branch. */
    if (run->result.fault == TALLY_OWN_BARRIER && detail == 2 &&
        !returns_before(s->kernel, run->result.line))
        detail = 0;
    advise(kinds[run->result.fault], detail, out);
}

const char *own_identity_words(tally_op op, tally_type type) {
    const bool real = type == TALLY_F32 || type == TALLY_F64;
    static const char *const least[] = {
        [TALLY_I8] = "-128",       [TALLY_I16] = "SHRT_MIN", [TALLY_I32] = "INT_MIN",
        [TALLY_I64] = "LLONG_MIN", [TALLY_U8] = "0",         [TALLY_U16] = "0",
        [TALLY_U32] = "0",         [TALLY_U64] = "0"};
    static const char *const most[] = {
        [TALLY_I8] = "127",        [TALLY_I16] = "SHRT_MAX",  [TALLY_I32] = "INT_MAX",
        [TALLY_I64] = "LLONG_MAX", [TALLY_U8] = "255",        [TALLY_U16] = "USHRT_MAX",
        [TALLY_U32] = "UINT_MAX",  [TALLY_U64] = "ULLONG_MAX"};
    switch (op) {
    case TALLY_PROD:
        return "1";
    case TALLY_MIN:
        return real ? "INFINITY" : most[type];
    case TALLY_MAX:
        return real ? "-INFINITY" : least[type];
    case TALLY_AND:
        return "a number of ones only, ~0";
    default:
        return "0";
    }
}

void own_advise_finding(const struct own_session *s, const char *kind, struct own_advice *out) {
    const tally_type type = s->kernel->is.type;
    advise(kind, -1, out);
    if (strcmp(kind, "lengths") == 0 && s->op != TALLY_SUM)
        snprintf(
            out->mend, sizeof out->mend,
            "Look whether every element is combined once, and whether what starts and pads is the "
            "identity of %s, which is %s.",
            tally_op_name(s->op), own_identity_words(s->op, type));
    if (strcmp(kind, "lengths") == 0 && strstr(s->kernel->text, "atomicCAS"))
        snprintf(out->mend, sizeof out->mend,
                 "An atomicCAS() that finds another value changes nothing: try again, in a loop, "
                 "until it returns the value that was expected. Else look at the elements that are "
                 "left out or counted twice.");
    if (strcmp(kind, "data") != 0) return;
    if (s->op == TALLY_MIN || s->op == TALLY_MAX || s->op == TALLY_PROD)
        snprintf(out->mend, sizeof out->mend,
                 "Start, and pad, with the identity of %s, which is %s; keep every value in the "
                 "elements' own "
                 "type.",
                 tally_op_name(s->op), own_identity_words(s->op, type));
    else
        snprintf(out->mend, sizeof out->mend,
                 "Keep every value in the elements' own type or a wider one, from the first load "
                 "to the last "
                 "store, and change no element.");
}
