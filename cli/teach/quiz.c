/*
 * quiz.c - `tally quiz`: questions about the ladder's kernels, whose answers the model gives.
 *
 * A question that asks how many stores no answer: it says what to run and what to look at; the model runs it and
 * the number is read off, as `tally explain` would show it. A question that asks why has three choices.
 */
#include "common/command.h"

#include "common/arguments.h"
#include "common/message.h"
#include "teach/ladder_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char quiz_help[] =
    "Usage: tally quiz [NUMBER [--answer A | --explain]]\n"
    "Asks questions about the kernels of the ladder: how many, and why. The model, a simulated "
    "GPU,\n"
    "counts what the answer is. Without a number: all questions, one after the other; an empty "
    "line\n"
    "skips one. The first wrong answer gets a hint; the second one is told the answer, the "
    "reason,\n"
    "and a command that shows it.\n"
    "\n"
    "  --answer A        the answer to that question, or the number of the choice: the exit "
    "status\n"
    "                    is 0 if it is right; a wrong answer gets a hint\n"
    "  --explain         the answer to that question, the reason, and a command that shows it\n"
    "  --list            the questions, with their numbers\n"
    "  --help            this text\n";

/* The count that answers a question. _IN_STEP: of all warps of block 0, in the step-th step of the first launch, from
 * 1. */
enum what {
    STEPS,
    BARRIERS,
    OPERATIONS,
    SLOTS,
    TRANSACTIONS,
    CONFLICTS,
    LAUNCHES,
    BYTES_WRITTEN,
    STRIDE_IN_STEP,
    WARPS_IN_STEP,
    DIVERGENT_IN_STEP,
    ROUNDS_IN_STEP,
    LANES_OF_WARP_0_IN_STEP,
    CONFLICTS_OF_WARP_0_IN_STEP,
    CHOICE /* not counted: one of three sentences */
};

enum { CHOICES = 3 };

struct question {
    const char *text, *rung;
    unsigned n, block, coarsen;
    enum what what;
    unsigned step;
    const char *hint;   /* after the first wrong answer */
    const char *why;    /* the way to the answer */
    int64_t trap;       /* a wrong answer that suggests itself, where `caught` is not NULL */
    const char *caught; /* why that one is wrong */
    const char *choices[CHOICES];
    unsigned right;  /* of CHOICE: the right one, from 1 */
    const char *see; /* a command that shows it, where it is not `tally explain RUNG` */
};

static const struct question questions[] = {
    {.text = "1024 numbers are added up by a tree in one block of 512 threads. How many steps does "
             "it take?",
     .rung = "contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = STEPS,
     .hint = "How often can 1024 be halved until 1 is left?",
     .why = "Each step halves what is left, and 2^10 is 1024",
     .trap = 1023,
     .caught = "1023 additions are done, but up to 512 of them at the same time"},
    {.text = "And how many additions do all threads do together?",
     .rung = "contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = OPERATIONS,
     .hint = "Each addition makes one number of two; count how many numbers disappear",
     .why = "Each addition makes one number of two, and one is left in the end",
     .trap = 1024,
     .caught = "The first number is added to nothing"},
    {.text = "Why does each step of contiguous end with a barrier?",
     .rung = "contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "Which thread wrote the element that a thread reads in step 2?",
     .why = "The element at left + stride was written by another thread, mostly of another warp, "
            "and warps run at their own pace",
     .choices = {"All blocks must begin the next step together",
                 "The next step reads what other warps have written in this step",
                 "Without it the lanes of a warp would diverge"},
     .right = 2},
    {.text = "interleaved-modulo, the same array: in how many of the 16 warps does some thread add "
             "in step 5?",
     .rung = "interleaved-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = WARPS_IN_STEP,
     .step = 5,
     .hint = "Every stride-th thread adds. Is there a warp without one?",
     .why = "In step 5 the stride is 16, so that every 16th thread adds: two in every warp",
     .trap = 2,
     .caught = "Two is the number of threads at work in each warp"},
    {.text = "How many warps diverge in step 5 of interleaved-modulo?",
     .rung = "interleaved-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = DIVERGENT_IN_STEP,
     .step = 5,
     .hint = "A warp diverges where some of its threads take the branch, and others do not",
     .why = "In every warp two threads take the branch and 30 do not"},
    {.text = "And in step 1?",
     .rung = "interleaved-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = DIVERGENT_IN_STEP,
     .step = 1,
     .hint = "Which threads have t % 1 == 0?",
     .why = "The stride is 1, and t % 1 is 0 for every thread: all take the branch",
     .trap = 16,
     .caught = "No thread of a warp stays out of the branch in this step"},
    {.text = "How many threads of warp 0 add in step 6 of interleaved-modulo?",
     .rung = "interleaved-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = LANES_OF_WARP_0_IN_STEP,
     .step = 6,
     .hint = "The stride is 32. How many multiples of 32 are there from 0 to 31?",
     .why = "The stride is 32, and a warp has 32 threads",
     .trap = 0,
     .caught = "Thread 0 always adds"},
    {.text = "A warp that has work is paid for with 32 slots a step. How many slots does "
             "interleaved-modulo take?",
     .rung = "interleaved-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = SLOTS,
     .hint = "Count the warps with a thread at work, step by step, and multiply by 32",
     .why = "All 16 warps work for six steps, then 8, 4, 2 and 1 of them: 111 times 32",
     .trap = 3040,
     .caught = "That is a text's formula, by which all warps work for five steps; in the sixth the "
               "stride is 32, and still one thread in every warp works"},
    {.text = "The efficiency of interleaved-modulo, additions divided by slots, is 0.29. Why is it "
             "so low?",
     .rung = "interleaved-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "Look at the row of warps in steps 2 to 6 of the picture",
     .why = "A warp with one thread at work is paid for as a whole, and in six of ten steps every "
            "warp has one",
     .choices =
         {"Most additions are done twice", "The warps wait for memory most of the time",
          "The threads at work are spread over all warps, so that each warp has many idle lanes"},
     .right = 3},
    {.text = "interleaved-mask writes t & (stride - 1) for t % stride, and all its counts stay the "
             "same. Why is it faster on a GPU?",
     .rung = "interleaved-mask",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "The model counts additions, branches and lines. What else does a thread execute?",
     .why = "A compiler does not know that the stride is a power of two, so that % becomes a "
            "division: many instructions, in idle threads, too",
     .choices = {"A remainder takes many instructions, a mask one", "Fewer threads are at work",
                 "Its elements lie closer together"},
     .right = 1},
    {.text = "How many slots does contiguous take?",
     .rung = "contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = SLOTS,
     .hint = "Threads 0 to stride - 1 are at work. How many warps are they, step by step?",
     .why = "16, 8, 4, 2, 1 warps, and one more in each of the five last steps: 36 times 32",
     .trap = 1023,
     .caught =
         "That is the number of additions; a warp with one thread at work is paid for in full"},
    {.text = "How many warps of contiguous are at work in step 6?",
     .rung = "contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = WARPS_IN_STEP,
     .step = 6,
     .hint = "The stride is 16. Which threads add, and to which warps do they belong?",
     .why = "In step 6 the stride is 16, and threads 0 to 15 add: they are of one warp",
     .trap = 16,
     .caught = "That many threads work, and they are neighbours"},
    {.text = "How many 128-byte lines of global memory do the warps of contiguous touch in all?",
     .rung = "contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = TRANSACTIONS,
     .hint = "An addition reads two elements and writes one. How many warps are at work in all "
             "steps together?",
     .why = "A warp reads two lines and writes one: 3 times 36 warps at work, and 2 for the result",
     .trap = 96,
     .caught = "1024 floats are 32 lines, but later steps read and write some of them again"},
    {.text = "And those of interleaved-modulo?",
     .rung = "interleaved-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = TRANSACTIONS,
     .hint = "The 32 threads of a warp span 64 elements. How many lines are these, and up to which "
             "stride does a warp touch all of them?",
     .why = "While a stride is less than 32, each warp touches two lines at each of its three "
            "accesses: twice as many as its elements need",
     .trap = 110,
     .caught = "That is contiguous: here neighbours of a warp are far apart"},
    {.text = "interleaved-index and contiguous do as many additions in as many slots. Why does "
             "contiguous touch fewer lines?",
     .rung = "contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "Where do the elements of threads 0 and 1 lie in step 5 of the one and of the other?",
     .why = "32 neighbours are one line; 32 elements that lie 32 and more apart are 32 lines",
     .choices = {"It reads fewer elements", "The lanes of a warp read elements that are neighbours",
                 "Its threads keep elements in registers"},
     .right = 2},
    {.text = "shared-modulo does the tree in shared memory. In its step with stride 16, how many "
             "extra passes do bank conflicts cost warp 0? (It reads two values and writes one.)",
     .rung = "shared-modulo",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = CONFLICTS_OF_WARP_0_IN_STEP,
     .step = 6,
     .hint = "Two threads of the warp add. How many words lie between their elements, and which "
             "banks are these?",
     .why = "Two threads of the warp add, 32 words apart, so that both words are of one bank: one "
            "pass more, three times",
     .trap = 0,
     .caught = "The two words that the threads want lie in the same bank"},
    {.text = "How many bank conflicts has shared-contiguous in all?",
     .rung = "shared-contiguous",
     .n = 1024,
     .block = 512,
     .coarsen = 1,
     .what = CONFLICTS,
     .hint = "Which banks do 32 neighbouring words lie in?",
     .why = "Neighbouring threads use neighbouring words: each has a bank of its own"},
    {.text = "coarsened by 4, one block of 128 threads: a thread adds 8 numbers by itself. How "
             "many steps follow in which threads meet, that one included?",
     .rung = "coarsened",
     .n = 1024,
     .block = 128,
     .coarsen = 4,
     .what = STEPS,
     .hint = "How many values are there when the tree begins, and how often can they be halved?",
     .why = "One step in which threads add by themselves, then log2(128) = 7",
     .trap = 10,
     .caught = "The tree begins with 128 values, not 1024"},
    {.text = "Why is it a gain that each thread of coarsened adds several numbers before the tree "
             "begins?",
     .rung = "coarsened",
     .n = 1024,
     .block = 128,
     .coarsen = 4,
     .what = CHOICE,
     .hint = "Compare the first step of the picture with the others: who is idle, and who waits?",
     .why = "There is one tree, with its idle lanes and its barriers, for 2C numbers of a thread "
            "in place of 2",
     .choices = {"Meanwhile all lanes are at work and no thread waits at a barrier",
                 "Fewer additions are needed", "Each thread reads a line of its own"},
     .right = 1},
    {.text = "2^16 numbers, blocks of 256 threads with 512 numbers each, the kernel started again "
             "over the results until one is left: how many launches?",
     .rung = "shared",
     .n = 1 << 16,
     .block = 256,
     .coarsen = 1,
     .what = LAUNCHES,
     .hint =
         "How many blocks has the first launch, and how many of their results can one block take?",
     .why = "65536 become 128, and these one",
     .trap = 16,
     .caught = "That is log2(2^16): a launch does nine steps of the tree, not one"},
    {.text = "An operator is associative, but a b is not b a: strings are joined, say. "
             "interleaved-index is safe, contiguous is not. With which element does contiguous "
             "combine element 0 first, of 16 in one block?",
     .rung = "contiguous",
     .n = 16,
     .block = 8,
     .coarsen = 1,
     .what = STRIDE_IN_STEP,
     .step = 1,
     .hint = "Its strides shrink. What is the first one?",
     .why = "Its strides shrink and begin with the block's 8 threads: elements 1 to 7 are passed "
            "over and come behind element 8",
     .trap = 1,
     .caught = "That is interleaved-index, whose strides grow: it combines neighbours, the left "
               "one first, and so keeps their order"},
    {.text = "grid-stride: 32 blocks of 128 threads walk 2^16 numbers. How many does thread 0 of "
             "block 0 add?",
     .rung = "grid-stride",
     .n = 1 << 16,
     .block = 128,
     .coarsen = 1,
     .what = ROUNDS_IN_STEP,
     .step = 1,
     .hint = "How many threads share the numbers?",
     .why = "32 blocks of 128 are 4096 threads, and 65536 / 4096 is 16",
     .trap = 2,
     .caught = "That is a thread's share in shared: there are only 4096 threads here"},
    {.text = "The blocks of coarsened with --finish atomic add their sums of floats to one number "
             "in memory. Why may two runs on a GPU differ?",
     .rung = "coarsened",
     .n = 1 << 16,
     .block = 256,
     .coarsen = 4,
     .what = CHOICE,
     .hint = "Which block comes first, and is (a + b) + c always a + (b + c)?",
     .why =
         "Blocks end in any order, and floating addition is not associative: each addition rounds",
     .choices = {"Some additions are lost where two blocks come at the same time",
                 "The blocks come in another order, and each addition rounds",
                 "The blocks read different elements"},
     .right = 2,
     .see = "tally explain coarsened -n 65536 --finish atomic"},
    {.text =
         "vectorized has the counts of grid-stride, and was three times as fast on an H200. Why?",
     .rung = "vectorized",
     .n = 1 << 16,
     .block = 128,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "The memory answers late. How much does each thread ask for before it waits?",
     .why = "A thread asks for 64 bytes before it waits, in place of 4, and memory is at its speed "
            "only when enough is asked for",
     .choices = {"Fewer bytes are read", "More bytes are on their way at the same time",
                 "The tree has fewer steps"},
     .right = 2},
    {.text = "How many barriers does a block of 256 threads execute in shuffle, for 512 numbers?",
     .rung = "shuffle",
     .n = 512,
     .block = 256,
     .coarsen = 1,
     .what = BARRIERS,
     .hint = "The warps meet once, in shared memory. What does a warp need before that?",
     .why = "Each warp leaves its sum in shared memory, and the first warp reads them all: one "
            "barrier between",
     .trap = 9,
     .caught = "That is vectorized, whose tree has a barrier a step"},
    {.text = "32 numbers, one warp of shuffle. Each lane adds its number to 0, and then all lanes "
             "add in each of five rounds. How many additions are that?",
     .rung = "shuffle",
     .n = 32,
     .block = 32,
     .coarsen = 1,
     .what = OPERATIONS,
     .hint = "No lane can be left out of a shuffle",
     .why = "32 for loading, and five rounds of 32: all lanes add, though what the upper ones get "
            "is never used",
     .trap = 31,
     .caught = "That many are needed; but all 32 lanes execute each instruction"},
    {.text = "Why does the tree of shuffle need no barrier within a warp?",
     .rung = "shuffle",
     .n = 512,
     .block = 256,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "What does __shfl_down_sync do with its mask of lanes?",
     .why = "The shuffle is one instruction for all lanes of the mask: it waits for them and hands "
            "each another lane's register",
     .choices = {"One instruction of all lanes exchanges the registers, and it waits for them",
                 "The lanes of a warp always execute the same line",
                 "A warp has a shared memory of its own"},
     .right = 1},
    {.text = "2^16 numbers, single-pass: how many launches?",
     .rung = "single-pass",
     .n = 1 << 16,
     .block = 128,
     .coarsen = 1,
     .what = LAUNCHES,
     .hint = "Who combines the blocks' sums?",
     .why = "The last block to finish combines the sums of all",
     .trap = 2,
     .caught = "Another launch would combine the partial sums: that is what single-pass saves"},
    {.text = "single-pass: why does a thread call __threadfence() between writing its block's sum "
             "and drawing a number?",
     .rung = "single-pass",
     .n = 1 << 16,
     .block = 128,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "What does the last block take for granted when it has drawn the last number?",
     .why = "Without a fence the number may be seen before the sum is: the last block would add "
            "what stood there before",
     .choices = {"All threads of the block must have come that far",
                 "So that no two blocks draw the same number",
                 "The sum must be in memory, for all blocks to see, before the number tells of it"},
     .right = 3},
    {.text = "The sum of tally has the same bits for every block size and every GPU. Why?",
     .rung = "single-pass",
     .n = 1 << 16,
     .block = 128,
     .coarsen = 1,
     .what = CHOICE,
     .hint = "What kind of numbers does it add, and do their additions round?",
     .why = "It cuts floats into integers, whose addition is exact, and rounds once, at the end: "
            "no order can be told from another",
     .choices = {"It adds in the order of the array",
                 "It adds integers, exactly, and rounds once at the end",
                 "It adds floats of twice the digits"},
     .right = 2,
     .see = "tally ladder --device model -n 65536 --only single-pass tally"},
};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* ---- The model's answer ---- */

struct watch {
    const struct question *q;
    uint64_t found;
};

static void on_step(void *context, const tally_ladder_step *s) {
    struct watch *w = context;
    if (s->launch || s->block || s->step + 1 != w->q->step) return;
    if (w->q->what == STRIDE_IN_STEP) w->found = s->stride;
    for (unsigned i = 0; i < s->warps; i++)
        switch (w->q->what) {
        case WARPS_IN_STEP:
            w->found += s->warp[i].lanes != 0;
            break;
        case DIVERGENT_IN_STEP:
            w->found += s->warp[i].divergent != 0;
            break;
        case ROUNDS_IN_STEP:
            if (s->warp[i].issued / 32 > w->found) w->found = s->warp[i].issued / 32;
            break;
        case LANES_OF_WARP_0_IN_STEP:
            if (i == 0) w->found = (uint64_t)__builtin_popcount(s->warp[i].lanes);
            break;
        case CONFLICTS_OF_WARP_0_IN_STEP:
            if (i == 0) w->found = s->warp[i].bank_conflicts;
            break;
        default:
            break;
        }
}

static uint64_t read_off(const struct question *q, const tally_ladder_row *row, uint64_t in_step) {
    const tally_ladder_counts *c = &row->counts;
    switch (q->what) {
    case STEPS:
        return c->steps;
    case BARRIERS:
        return c->barriers;
    case OPERATIONS:
        return c->operations;
    case SLOTS:
        return c->slots;
    case TRANSACTIONS:
        return c->transactions;
    case CONFLICTS:
        return c->bank_conflicts;
    case LAUNCHES:
        return row->launches;
    case BYTES_WRITTEN:
        return c->bytes_written;
    default:
        return in_step;
    }
}

static bool find_answer(const struct question *q, uint64_t *answer) {
    if (q->what == CHOICE) return *answer = q->right, true;
    struct ladder_options o = {
        .run = {.op = TALLY_SUM, .type = TALLY_F32, .block = q->block, .coarsen = q->coarsen},
        .n = q->n};
    struct watch w = {q, 0};
    tally_ladder_row row;
    if (!ladder_fill(&o)) return false;
    const tally_status status = tally_ladder_explain(q->rung, &o.run, on_step, &w, &row);
    ladder_release(&o);
    if (status != TALLY_OK) return failed("%s", tally_error()), false;
    *answer = read_off(q, &row, w.found);
    return true;
}

/* ---- Asking ---- */

static void print_question(size_t i) {
    const struct question *q = &questions[i];
    printf("%zu. %s\n", i + 1, q->text);
    for (unsigned k = 0; q->what == CHOICE && k < CHOICES; k++)
        printf("   %u) %s\n", k + 1, q->choices[k]);
}

/* Prints the answer with its reason, after "Right: " or the like. */
static void print_answer(const struct question *q, uint64_t answer) {
    printf("%" PRIu64, answer);
    if (q->what == CHOICE) printf(", %s", q->choices[answer - 1]);
    printf(". %s.\n", q->why);
}

static void print_command(const struct question *q) {
    if (q->see) {
        printf("   %s\n", q->see);
        return;
    }
    printf("   tally explain %s -n %u --block %u", q->rung, q->n, q->block);
    if (strcmp(q->rung, "coarsened") == 0) printf(" --coarsen %u", q->coarsen);
    putchar('\n');
}

/* Tells the answer, and a command that shows it. Returns false where the model failed. */
static bool tell(const struct question *q, const char *before) {
    uint64_t answer;
    if (!find_answer(q, &answer)) return false;
    fputs(before, stdout);
    print_answer(q, answer);
    puts("   See for yourself:");
    print_command(q);
    return true;
}

/* Says whether the answer is right, and gives a hint where it is not. Returns 1 if it is, 0 if not, -1 where the model
 * failed. */
static int mark(const struct question *q, int64_t given) {
    uint64_t answer;
    if (!find_answer(q, &answer)) return -1;
    if (given >= 0 && (uint64_t)given == answer) {
        fputs("   Right: ", stdout);
        print_answer(q, answer);
        return 1;
    }
    fputs("   No.", stdout);
    if (q->caught && given == q->trap) printf(" %s.", q->caught);
    printf(" A hint: %s%s\n", q->hint, q->hint[strlen(q->hint) - 1] == '?' ? "" : ".");
    return 0;
}

/* Reads a whole number of at least 0, with nothing around it but blanks. Returns false for anything else. */
static bool read_number(const char *text, int64_t *out) {
    char *end;
    text += strspn(text, " \t");
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || errno || value < 0 || end[strspn(end, " \t\r\n")]) return false;
    *out = value;
    return true;
}

/* Asks question i at the terminal, and a second time after a hint. Returns what mark() does; -2 at the end of the
 * input, and -3 for an empty line, if no answer came before. */
static int ask(size_t i) {
    const struct question *q = &questions[i];
    char line[256];
    int64_t given;
    bool missed = false;
    print_question(i);
    for (;;) {
        fputs("   > ", stdout);
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) return putchar('\n'), missed ? 0 : -2;
        if (line[strspn(line, " \t\r\n")] == '\0') return missed ? 0 : -3;
        if (!read_number(line, &given)) {
            puts("   A number, please; an empty line goes on.");
            continue;
        }
        uint64_t answer;
        if (!missed || (find_answer(q, &answer) && (uint64_t)given == answer)) {
            const int got = mark(q, given);
            if (got) return got;
            missed = true;
        } else {
            return tell(q, "   No. It is ") ? 0 : -1;
        }
    }
}

static int ask_all(void) {
    unsigned right = 0, asked = 0;
    for (size_t i = 0; i < QUESTIONS; i++) {
        const int got = ask(i);
        if (got == -1) return STATUS_FAILED;
        if (got == -2) break;
        asked += got >= 0;
        right += got == 1;
    }
    printf("%u of %u right.\n", right, asked);
    return finish_output();
}

static int list(void) {
    for (size_t i = 0; i < QUESTIONS; i++)
        print_question(i);
    return finish_output();
}

/* Returns the exit status for a result of mark() or ask(). */
static int status_of(int got) {
    const int written = finish_output();
    return written != STATUS_OK ? written : got == 1 ? STATUS_OK : STATUS_FAILED;
}

int quiz_command(int argc, char **argv) {
    static const struct option options[] = {{"answer", required_argument, NULL, 'a'},
                                            {"explain", no_argument, NULL, 'e'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *answer = NULL;
    bool as_list = false, explain = false;
    int64_t number = 0, given = 0;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == 'h') return fputs(quiz_help, stdout), finish_output();
        if (c == 'a')
            answer = optarg;
        else if (c == 'e')
            explain = true;
        else if (c == 'l')
            as_list = true;
        else
            return argument_unknown(c, argv, options);
    }
    if (argc - optind > 1)
        return misused("quiz takes one number; '%s' is one too many", argv[optind + 1]);
    if (optind < argc && (!read_number(argv[optind], &number) || number < 1 || number > QUESTIONS))
        return misused("quiz has questions 1 to %d; '%s' is none of them", QUESTIONS, argv[optind]);
    if (answer && !number) return misused("--answer goes with the number of a question");
    if (explain && !number) return misused("--explain goes with the number of a question");
    if (explain && answer) return misused("--explain tells the answer; --answer gives one");
    if (answer && !read_number(answer, &given))
        return misused("--answer takes a whole number; '%s' is none", answer);
    if (as_list) return list();
    if (!number) return ask_all();
    if (explain) return status_of(tell(&questions[number - 1], "   It is ") ? 1 : -1);
    if (answer) return status_of(mark(&questions[number - 1], given));
    const int got = ask((size_t)number - 1);
    return got <= -2 ? finish_output() : status_of(got);
}
