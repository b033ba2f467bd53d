/*
 * quiz.c - `tally quiz`: questions about the ladder's kernels, whose answers the model gives.
 *
 * No answer is stored. A question says what to run and what to look at; the model runs it and the number is
 * read off, as `tally explain` would show it.
 */
#include "command.h"

#include "arguments.h"
#include "ladder_options.h"
#include "message.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char quiz_help[] =
    "Usage: tally quiz [NUMBER [--answer A]]\n"
    "Asks questions about the kernels of the ladder and checks the answers against the model, a\n"
    "simulated GPU that counts. Without a number: all of them, one after the other; an empty line\n"
    "skips one. A wrong answer is told why it is wrong, and which command shows it.\n"
    "\n"
    "  --answer A        the answer to that question: the exit status is 0 if it is right\n"
    "  --list            the questions, with their numbers\n"
    "  --help            this text\n";

/* What to read off. In a step: of all warps of block 0, in the step-th step of the first launch, from 1. */
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
    LANES_OF_WARP_0_IN_STEP,
    CONFLICTS_OF_WARP_0_IN_STEP
};

struct question {
    const char *text, *rung;
    unsigned n, block, coarsen;
    enum what what;
    unsigned step;
    const char *why;    /* the way to the answer */
    int64_t trap;       /* an answer that suggests itself; -1: none */
    const char *caught; /* why that one is wrong */
};

static const struct question questions[] = {
    {"1024 numbers are added up by a tree in one block of 512 threads. How many steps does it "
     "take?",
     "contiguous", 1024, 512, 1, STEPS, 0, "Each step halves what is left, and 2^10 is 1024", 1023,
     "1023 additions are done, but up to 512 of them at the same time"},
    {"And how many additions do all threads do together?", "contiguous", 1024, 512, 1, OPERATIONS,
     0, "Each addition makes one number of two, and one is left in the end", 1024,
     "The first number is added to nothing"},
    {"interleaved-modulo, the same array: in how many of the 16 warps does some thread add in step "
     "5?",
     "interleaved-modulo", 1024, 512, 1, WARPS_IN_STEP, 5,
     "In step 5 the stride is 16, so that every 16th thread adds: two in every warp", 2,
     "Two is the number of threads at work in each warp"},
    {"How many warps diverge in step 5 of interleaved-modulo?", "interleaved-modulo", 1024, 512, 1,
     DIVERGENT_IN_STEP, 5, "In every warp two threads take the branch and 30 do not", 0,
     "A warp diverges where some of its threads take the branch, and others do not"},
    {"And in step 1?", "interleaved-modulo", 1024, 512, 1, DIVERGENT_IN_STEP, 1,
     "The stride is 1, and t % 1 is 0 for every thread: all take the branch", 16,
     "No thread of a warp stays out of the branch in this step"},
    {"How many threads of warp 0 add in step 6 of interleaved-modulo?", "interleaved-modulo", 1024,
     512, 1, LANES_OF_WARP_0_IN_STEP, 6, "The stride is 32, and a warp has 32 threads", 0,
     "Thread 0 always adds"},
    {"A warp that has work is paid for with 32 slots a step. How many slots does "
     "interleaved-modulo take?",
     "interleaved-modulo", 1024, 512, 1, SLOTS, 0,
     "All 16 warps work for six steps, then 8, 4, 2 and 1 of them: 111 times 32", 3040,
     "That is a text's formula, by which all warps work for five steps; the sixth has stride 32, "
     "and "
     "still one thread in every warp"},
    {"And how many does contiguous take?", "contiguous", 1024, 512, 1, SLOTS, 0,
     "16, 8, 4, 2, 1 warps, and one more in each of the five last steps: 36 times 32", 1023,
     "That is the number of additions; a warp with one thread at work is paid for in full"},
    {"How many warps of contiguous are at work in step 6?", "contiguous", 1024, 512, 1,
     WARPS_IN_STEP, 6, "In step 6 the stride is 16, and threads 0 to 15 add: they are of one warp",
     16, "16 threads work, and they are neighbours"},
    {"How many 128-byte lines of global memory do the warps of contiguous touch in all?",
     "contiguous", 1024, 512, 1, TRANSACTIONS, 0,
     "A warp reads two lines and writes one: 3 times 36 warps at work, and 2 for the result", 96,
     "1024 floats are 32 lines, but later steps read and write some of them again"},
    {"And those of interleaved-modulo?", "interleaved-modulo", 1024, 512, 1, TRANSACTIONS, 0,
     "While a stride is less than 32, each warp touches two lines at each of its three accesses: "
     "twice as "
     "many as its elements need",
     110, "That is contiguous: here neighbours of a warp are far apart"},
    {"shared-modulo does the tree in shared memory. In its step with stride 16, how many extra "
     "passes do "
     "bank conflicts cost warp 0? (It reads two values and writes one.)",
     "shared-modulo", 1024, 512, 1, CONFLICTS_OF_WARP_0_IN_STEP, 6,
     "Two threads of the warp add, 32 words apart, so that both words are of one bank: one pass "
     "more, three "
     "times",
     0, "The two words that the threads want lie in the same bank"},
    {"How many bank conflicts has shared-contiguous in all?", "shared-contiguous", 1024, 512, 1,
     CONFLICTS, 0, "Neighbouring threads use neighbouring words: each has a bank of its own", -1,
     ""},
    {"coarsened by 4, one block of 128 threads: a thread adds 8 numbers by itself. How many steps "
     "follow "
     "in which threads meet, that one included?",
     "coarsened", 1024, 128, 4, STEPS, 0,
     "One step in which threads add by themselves, then log2(128) = 7", 10,
     "The tree has 128 leaves, not 1024"},
    {"2^16 numbers, blocks of 256 threads with 512 numbers each, the kernel started again over the "
     "results until one is left: how many launches?",
     "shared", 1 << 16, 256, 1, LAUNCHES, 0, "65536 become 128, and these one", 16,
     "That is log2(2^16): a launch does nine steps of the tree, not one"},
    {"An operator is associative, but a b is not b a: strings are joined, say. interleaved-index "
     "is "
     "safe, contiguous is not. With which element does contiguous combine element 0 first, of 16 "
     "in a block of 8?",
     "contiguous", 16, 8, 1, STRIDE_IN_STEP, 1,
     "Its strides shrink and begin with the block's 8 threads: elements 1 to 7 are passed over and "
     "come behind element 8",
     1,
     "That is interleaved-index, whose strides grow: it combines neighbours, the left one first, "
     "and "
     "so keeps their order"},
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
    printf("%zu. %s\n", i + 1, questions[i].text);
}

static void print_command(const struct question *q) {
    printf("   tally explain %s -n %u --block %u", q->rung, q->n, q->block);
    if (strcmp(q->rung, "coarsened") == 0) printf(" --coarsen %u", q->coarsen);
    putchar('\n');
}

/* Says whether the answer is right; returns 1 if so, 0 if not, -1 where the model failed. */
static int mark(const struct question *q, int64_t given) {
    uint64_t answer;
    if (!find_answer(q, &answer)) return -1;
    if (given >= 0 && (uint64_t)given == answer) {
        printf("   Right: %" PRIu64 ". %s.\n", answer, q->why);
        return 1;
    }
    printf("   No: it is %" PRIu64 ".", answer);
    if (q->trap >= 0 && given == q->trap) printf(" %s.", q->caught);
    printf(" %s. See for yourself:\n", q->why);
    print_command(q);
    return 0;
}

/* A whole number of at least 0, with nothing around it but blanks; false for anything else. */
static bool read_number(const char *text, int64_t *out) {
    char *end;
    text += strspn(text, " \t");
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || errno || value < 0 || end[strspn(end, " \t\r\n")]) return false;
    *out = value;
    return true;
}

/* Asks question i of who sits there. Returns as mark(), and -2 at the end of the input; an empty line is no
 * answer: -3. */
static int ask(size_t i) {
    char line[256];
    int64_t given;
    print_question(i);
    for (;;) {
        fputs("   > ", stdout);
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) return putchar('\n'), -2;
        if (line[strspn(line, " \t\r\n")] == '\0') return -3;
        if (read_number(line, &given)) return mark(&questions[i], given);
        puts("   A number, please; an empty line goes on.");
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

/* The exit status that a mark comes to. */
static int status_of(int got) {
    const int written = finish_output();
    return written != STATUS_OK ? written : got == 1 ? STATUS_OK : STATUS_FAILED;
}

int quiz_command(int argc, char **argv) {
    static const struct option options[] = {{"answer", required_argument, NULL, 'a'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *answer = NULL;
    bool as_list = false;
    int64_t number = 0, given = 0;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == 'h') return fputs(quiz_help, stdout), finish_output();
        if (c == 'a')
            answer = optarg;
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
    if (answer && !read_number(answer, &given))
        return misused("--answer takes a whole number; '%s' is none", answer);
    if (as_list) return list();
    if (!number) return ask_all();
    if (answer) return status_of(mark(&questions[number - 1], given));
    const int got = ask((size_t)number - 1);
    return got <= -2 ? finish_output() : status_of(got);
}
