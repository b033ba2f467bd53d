/*
 * worker.c - runs the fuzzer's problems on one device.
 *
 *     fuzz_worker SPEC[;SPEC...]      device specs, or "null": the calling thread; calls take them in turn
 *
 * The worker reads batches from its standard input and answers each batch on its standard output. A batch is a length and
 * frames; problem.py writes them, and tells their layout. Every number is a 64-bit little-endian integer.
 *
 * Inputs lie in arenas between two pages without access, at the front or at the end; during a call they are read-only.
 * Outputs lie in arenas of the same kind, and bytes beside them must stay as they are. The allocator (-Wl,--wrap) puts a
 * canary at both ends of every block of the library's, and looks at all of them after each call.
 *
 * A crash ends the worker. Its last answer then carries the signal in place of a status.
 */
#define _GNU_SOURCE
#include "tally.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The allocator ------------------------------------------------------------------------ */

void *__real_malloc(size_t);
void __real_free(void *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
char *__wrap_strdup(const char *);
void __wrap_free(void *);

/* The header before a block. `magic` is the word right before the block; in a block of libc's own allocator that word
 * holds a small size, so __wrap_free() can tell the two apart. */
struct head {
    struct head *next, *previous;
    void *raw;
    size_t size;
    unsigned char canary[24];
    uint64_t magic;
};
enum { CANARY = 0xC9, TAIL = 2048 }; /* TAIL: bytes of the canary behind a block */
#define MAGIC UINT64_C(0xfe57a11fc0ffee42)

static struct head live = {.next = &live, .previous = &live};
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int damaged;  /* a canary was overwritten */
static volatile int fill;     /* the byte that fills new blocks; < 0: none */
enum { FILL_MOST = 1 << 20 }; /* bytes of a block that are filled, for speed */

static unsigned char intact[TAIL]; /* a canary, for comparison */

static int is_damaged(const struct head *h) {
    return h->magic != MAGIC || memcmp(h->canary, intact, sizeof h->canary) != 0 ||
           memcmp((const char *)(h + 1) + h->size, intact, TAIL) != 0;
}

static void *allocate(size_t align, size_t size) {
    if (align < 16) align = 16;
    if (size > SIZE_MAX / 2) return NULL;
    char *raw = __real_malloc(size + align + sizeof(struct head) + TAIL);
    if (!raw) return NULL;
    char *block = (char *)(((uintptr_t)raw + sizeof(struct head) + align - 1) / align * align);
    struct head *h = (struct head *)block - 1;
    h->raw = raw;
    h->size = size;
    h->magic = MAGIC;
    memset(h->canary, CANARY, sizeof h->canary);
    memset(block + size, CANARY, TAIL);
    if (fill >= 0) memset(block, fill, size < FILL_MOST ? size : FILL_MOST);
    pthread_mutex_lock(&live_lock);
    h->next = live.next;
    h->previous = &live;
    live.next->previous = h;
    live.next = h;
    pthread_mutex_unlock(&live_lock);
    return block;
}

void *__wrap_malloc(size_t size) {
    return allocate(16, size);
}

void *__wrap_calloc(size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
    void *block = allocate(16, bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *__wrap_aligned_alloc(size_t align, size_t size) {
    return allocate(align, size);
}

int __wrap_posix_memalign(void **out, size_t align, size_t size) {
    void *block = allocate(align, size);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}

void __wrap_free(void *block) {
    if (!block) return;
    struct head *h = (struct head *)block - 1;
    if (h->magic != MAGIC) { /* libc's own */
        __real_free(block);
        return;
    }
    if (is_damaged(h)) damaged = 1;
    pthread_mutex_lock(&live_lock);
    h->next->previous = h->previous;
    h->previous->next = h->next;
    pthread_mutex_unlock(&live_lock);
    h->magic = 0;
    if (fill >= 0) memset(block, fill, h->size < FILL_MOST ? h->size : FILL_MOST);
    __real_free(h->raw);
}

void *__wrap_realloc(void *block, size_t size) {
    if (!block) return allocate(16, size);
    struct head *h = (struct head *)block - 1;
    void *other = allocate(16, size);
    if (!other) return NULL;
    memcpy(other, block, h->size < size ? h->size : size);
    __wrap_free(block);
    return other;
}

char *__wrap_strdup(const char *text) {
    char *copy = allocate(16, strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static int take_damage(void) {
    int was;
    pthread_mutex_lock(&live_lock);
    for (struct head *h = live.next; h != &live; h = h->next)
        if (is_damaged(h)) {
            damaged = 1;
            memset(h->canary, CANARY, sizeof h->canary);
            memset((char *)(h + 1) + h->size, CANARY, TAIL);
        }
    was = damaged;
    damaged = 0;
    pthread_mutex_unlock(&live_lock);
    return was;
}

/* ---- Memory with edges -------------------------------------------------------------------- */

enum { SLOTS = 4, OUTPUTS = 32, PAGE = 65536, UNTOUCHED = 0xA5, BESIDE = 128 };
#define ARENA ((size_t)32 << 20)

static unsigned char *inputs[SLOTS], *outputs[OUTPUTS];

static void die(const char *why) {
    fprintf(stderr, "fuzz_worker: %s\n", why);
    exit(3);
}

static unsigned char *arena(void) {
    unsigned char *all = mmap(NULL, ARENA + 2 * (size_t)PAGE, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) die("no room for arenas");
    if (mprotect(all + PAGE, ARENA, PROT_READ | PROT_WRITE)) die("mprotect");
    return all + PAGE;
}

/* Returns the address of `size` bytes: `place` bytes after the front guard, or ~place bytes before the rear one. */
static unsigned char *placed(unsigned char *in, int64_t place, size_t size) {
    if (size + BESIDE * 2 > ARENA) die("an array is larger than the arena");
    return place >= 0 ? in + place : in + ARENA - size - (size_t)~place;
}

/* Fills an output and up to BESIDE bytes on either side of it. */
static void prepare(unsigned char *in, unsigned char *at, size_t size) {
    unsigned char *from = at - in < BESIDE ? in : at - BESIDE;
    unsigned char *to = in + ARENA - (at + size) < BESIDE ? in + ARENA : at + size + BESIDE;
    memset(from, UNTOUCHED, (size_t)(to - from));
}

static int is_written_beside(unsigned char *in, unsigned char *at, size_t size) {
    unsigned char *from = at - in < BESIDE ? in : at - BESIDE;
    unsigned char *to = in + ARENA - (at + size) < BESIDE ? in + ARENA : at + size + BESIDE;
    for (unsigned char *p = from; p < at; p++)
        if (*p != UNTOUCHED) return 1;
    for (unsigned char *p = at + size; p < to; p++)
        if (*p != UNTOUCHED) return 1;
    return 0;
}

/* ---- Answers ------------------------------------------------------------------------------ */

static unsigned char *answer;
static size_t answered, answer_room;

static void put(const void *bytes, size_t size) {
    if (answered + size > answer_room) {
        answer_room = 2 * (answered + size) + 65536;
        unsigned char *more = __real_malloc(answer_room);
        if (!more) die("no memory");
        if (answered) memcpy(more, answer, answered);
        __real_free(answer);
        answer = more;
    }
    memcpy(answer + answered, bytes, size);
    answered += size;
}

static void put_number(int64_t number) {
    put(&number, sizeof number);
}

static void send_all(const void *bytes, size_t size) {
    const char *p = bytes;
    while (size) {
        ssize_t sent = write(1, p, size);
        if (sent <= 0) _exit(4);
        p += sent;
        size -= (size_t)sent;
    }
}

static size_t call_begins; /* where in `answer` the current call's answer begins */

static void crashed(int signal_) {
    const int64_t last[4] = {-1000 - signal_, 0, -1, 0};
    send_all(answer, call_begins);
    send_all(last, sizeof last);
    _exit(5);
}

/* ---- Operators ---------------------------------------------------------------------------- */

#define OPERATOR(name, T, expression)                                                              \
    static void name(void *context, const void *left, const void *right, void *out,                \
                     size_t count) {                                                               \
        const T *l = left, *r = right;                                                             \
        T *o = out;                                                                                \
        (void)context;                                                                             \
        for (size_t i = 0; i < count; i++) {                                                       \
            const T a = l[i], b = r[i];                                                            \
            o[i] = (T)(expression);                                                                \
        }                                                                                          \
    }
#define BOTH(suffix, T)                                                                            \
    OPERATOR(chain_##suffix, T, a * 3u + b)                                                        \
    OPERATOR(mix_##suffix, T, (a ^ b) + (a & b) * 5u)
BOTH(8, uint8_t)
BOTH(16, uint16_t)
BOTH(32, uint32_t)
BOTH(64, uint64_t)
OPERATOR(halve_32, float, a * 0.5f + b)
OPERATOR(halve_64, double, a * 0.5 + b)
OPERATOR(plain_32, float, a + b)
OPERATOR(plain_64, double, a + b)

typedef void combine_function(void *, const void *, const void *, void *, size_t);

/* The operator of a type: 1 does not commute, 2 does. */
static void set_user(tally_operator *user, tally_type type, int64_t which) {
    static const uint64_t identity = 0;
    combine_function *const whole[2][4] = {{chain_8, chain_16, chain_32, chain_64},
                                           {mix_8, mix_16, mix_32, mix_64}};
    const size_t size = tally_type_size(type);
    const int commutes = which == 2;
    memset(user, 0, sizeof *user);
    user->identity = &identity;
    user->commutative = commutes;
    if (type == TALLY_F32 || type == TALLY_F64) {
        const int wide = type == TALLY_F64;
        user->combine = commutes ? (wide ? plain_64 : plain_32) : (wide ? halve_64 : halve_32);
        user->source = commutes ? "a + b" : wide ? "a * 0.5 + b" : "a * 0.5f + b";
        return;
    }
    user->combine = whole[commutes][size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
    user->source = commutes ? "(a ^ b) + (a & b) * 5u" : "a * 3u + b";
    if (type == TALLY_F16 || type == TALLY_BF16) user->source = NULL;
}

/* ---- Calls -------------------------------------------------------------------------------- */

enum { DEVICES = 8 };
static tally_device *devices[DEVICES];
static unsigned device_count;

static const int64_t *next; /* the number that is read next */

static int64_t take(void) {
    return *next++;
}

static struct loaded {
    unsigned char *at;
    size_t size;
} loaded[SLOTS];

static void load(void) {
    const int64_t slot = take(), place = take(), size = take();
    if (mprotect(inputs[slot], ARENA, PROT_READ | PROT_WRITE)) die("mprotect");
    loaded[slot].at = placed(inputs[slot], place, (size_t)size);
    loaded[slot].size = (size_t)size;
    memcpy(loaded[slot].at, next, (size_t)size);
    next += (size + 7) / 8;
    if (mprotect(inputs[slot], ARENA, PROT_READ)) die("mprotect");
}

/* The array in a slot, from an offset in bytes; NULL for an offset < 0. */
static const void *array(int slot, int64_t offset) {
    return offset < 0 ? NULL : loaded[slot].at + offset;
}

/* The address so many bytes behind; NULL of NULL. */
static const void *moved(const void *base, size_t bytes) {
    return base ? (const unsigned char *)base + bytes : NULL;
}

enum how { WHOLE, SHAPED, STATES, GROUPED };
enum { DAMAGED = 1, WRITTEN_BESIDE = 2, DIFFERENT = 4 };

static int64_t flags;
static int64_t wrong_result; /* the result that the call's error names; -1: none */

static struct out {
    unsigned char *at;
    size_t size;
} out[OUTPUTS];
static size_t out_count;

static void take_outputs(void) {
    out_count = (size_t)take();
    for (size_t i = 0; i < out_count; i++) {
        const int64_t size = take(), place = take();
        out[i].size = (size_t)size;
        out[i].at = placed(outputs[i], place, out[i].size);
        prepare(outputs[i], out[i].at, out[i].size);
    }
}

static void note(tally_status status) {
    size_t number;
    wrong_result = status != TALLY_OK && tally_error_result(&number) ? (int64_t)number : -1;
}

static void put_outputs(void) {
    for (size_t i = 0; i < out_count; i++) {
        if (is_written_beside(outputs[i], out[i].at, out[i].size)) flags |= WRITTEN_BESIDE;
        put(out[i].at, out[i].size);
    }
}

static void take_shape(tally_shape *shape) {
    static size_t length[TALLY_DIMS_MAX];
    static ptrdiff_t strides[4][TALLY_DIMS_MAX];
    const ptrdiff_t *given[4];
    memset(shape, 0, sizeof *shape);
    shape->cut = (tally_cut)take();
    shape->dims = (unsigned)take();
    for (unsigned d = 0; d < shape->dims; d++)
        length[d] = (size_t)take();
    for (int s = 0; s < 4; s++) { /* of x, y, the results, the mask */
        given[s] = take() ? strides[s] : NULL;
        for (unsigned d = 0; given[s] && d < shape->dims; d++)
            strides[s][d] = (ptrdiff_t)take();
    }
    shape->length = length;
    shape->x_stride = given[0];
    shape->y_stride = given[1];
    shape->out_stride = given[2];
    shape->mask_stride = given[3];
    shape->axes = (uint32_t)take();
    shape->n = (size_t)take();
    shape->count = (size_t)take();
    const void *numbers = array(3, take());
    const tally_type numbers_type = (tally_type)take();
    if (shape->cut == TALLY_SEGMENTS)
        shape->offsets = numbers, shape->offsets_type = numbers_type;
    else
        shape->ids = numbers, shape->ids_type = numbers_type;
    shape->skip_outside = (int)take();
    shape->sorted = (int)take();
    shape->mask = array(2, take());
}

static tally_status call_whole(tally_device *device, const tally_problem *problem) {
    const void *x = array(0, take()), *y = array(1, take());
    const size_t n = (size_t)take();
    tally_value values[TALLY_VALUES_MAX];
    memset(values, UNTOUCHED, sizeof values);
    const tally_status status = tally_reduce(device, problem, x, y, n, values);
    note(status);
    const size_t count = (size_t)take();
    for (size_t i = 0; i < count; i++) {
        int64_t type;
        if (status == TALLY_OK) {
            put_number(values[i].type);
            put_number((int64_t)tally_value_bits(&values[i]));
            continue;
        }
        memcpy(&type, &values[i], sizeof type);
        if (type != (int64_t)UINT64_C(0xA5A5A5A5A5A5A5A5)) flags |= WRITTEN_BESIDE;
    }
    return status;
}

static tally_status call_shaped(tally_device *device, const tally_problem *problem) {
    const void *x = array(0, take()), *y = array(1, take());
    tally_shape shape;
    void *pointers[OUTPUTS];
    take_shape(&shape);
    take_outputs();
    for (size_t i = 0; i < out_count; i++)
        pointers[i] = out[i].at + take(); /* the place of the result whose indices are all 0 */
    const tally_status status = tally_reduce_shaped(device, problem, &shape, x, y, pointers);
    note(status);
    put_outputs();
    return status;
}

/* ---- States ------------------------------------------------------------------------------- */

enum {
    END,
    CREATE,
    BEGIN_AT,
    FEED,
    MERGE,
    SAVE_LOAD,
    COPY,
    ADD_WORDS,
    ADD_PARTS,
    SUBTRACT,
    NEGATE,
    VALUE,
    DIVIDED,
    SAME,
    ADD_STATE,
    STEP_WORDS = 6
};
enum { STATES_MOST = 16 };

static tally_status save_and_load(tally_state **state, const tally_problem *problem) {
    const size_t size = tally_state_size(*state);
    unsigned char *bytes = __real_malloc(size ? size : 1);
    tally_state *loaded_state = NULL;
    tally_status status = tally_state_save(*state, bytes, size);
    if (status == TALLY_OK) status = tally_state_load(bytes, size, problem, &loaded_state);
    __real_free(bytes);
    if (status != TALLY_OK) return status;
    tally_state_destroy(*state);
    *state = loaded_state;
    return TALLY_OK;
}

static int are_same(const tally_state *a, const tally_state *b) {
    const size_t size = tally_state_size(a);
    unsigned char *bytes = __real_malloc(2 * size + 1);
    const int same = size == tally_state_size(b) && tally_state_save(a, bytes, size) == TALLY_OK &&
                     tally_state_save(b, bytes + size, size) == TALLY_OK &&
                     memcmp(bytes, bytes + size, size) == 0;
    __real_free(bytes);
    return same;
}

/* into += from, by the words that additions combine. */
static tally_status add_words(tally_state *into, const tally_state *from) {
    const size_t count = tally_state_words(into);
    int64_t *words = __real_malloc(16 * count + 16);
    tally_status status = tally_state_to_words(into, words);
    if (status == TALLY_OK) status = tally_state_to_words(from, words + count);
    for (size_t i = 0; i < count; i++)
        words[i] = (int64_t)((uint64_t)words[i] + (uint64_t)words[count + i]);
    if (status == TALLY_OK) status = tally_state_from_words(into, words);
    __real_free(words);
    return status;
}

static tally_status add_parts(const tally_problem *problem, tally_state *into,
                              const tally_state *from) {
    const size_t count = tally_state_merge_words(into);
    int64_t *words = __real_malloc(16 * count + 16);
    tally_status status = tally_state_to_merge_words(into, words);
    if (status == TALLY_OK) status = tally_state_to_merge_words(from, words + count);
    if (status == TALLY_OK) status = tally_merge_words(problem, words, words + count);
    if (status == TALLY_OK) status = tally_state_from_merge_words(into, words + count);
    __real_free(words);
    return status;
}

static void put_values(const tally_value *values, size_t count, tally_status status) {
    put_number(status);
    for (size_t i = 0; i < count; i++) {
        put_number(status == TALLY_OK ? values[i].type : 0);
        put_number(status == TALLY_OK ? (int64_t)tally_value_bits(&values[i]) : 0);
    }
}

/* Does the steps of a script; each is STEP_WORDS numbers. Values go to the answer as they come. */
static tally_status call_states(const tally_problem *asked) {
    const unsigned char *x = array(0, take()), *y = array(1, take());
    const size_t values = (size_t)take();
    tally_state *state[STATES_MOST] = {NULL};
    tally_problem problems[STATES_MOST]; /* each state's: its elements may be of another type */
    tally_value value[TALLY_VALUES_MAX];
    tally_status status = TALLY_OK, first = TALLY_OK;
    for (;;) {
        const int64_t *step = next;
        next += STEP_WORDS;
        const int64_t a = step[1], b = step[2];
        if (step[0] == END) break;
        switch (step[0]) {
        case CREATE:
            problems[a] = *asked;
            if (b) problems[a].type = (tally_type)b;
            status = tally_state_create(&problems[a], &state[a]);
            break;
        case BEGIN_AT:
            status = tally_state_begin_at(state[a], (uint64_t)b);
            break;
        case FEED: {
            const size_t from = (size_t)b * tally_type_size(problems[a].type);
            status = tally_state_feed(state[a], devices[(size_t)step[4] % device_count],
                                      moved(x, from), moved(y, from), (size_t)step[3]);
            break;
        }
        case MERGE:
            status = tally_state_merge(state[a], state[b]);
            break;
        case SAVE_LOAD:
            status = save_and_load(&state[a], b ? &problems[a] : NULL);
            break;
        case COPY:
            problems[b] = problems[a];
            status = tally_state_copy(state[a], &state[b]);
            break;
        case ADD_WORDS:
            status = add_words(state[a], state[b]);
            break;
        case ADD_PARTS:
            status = add_parts(&problems[a], state[a], state[b]);
            break;
        case SUBTRACT:
            status = tally_state_subtract(state[a], state[b]);
            break;
        case NEGATE:
            status = tally_state_negate(state[a]);
            break;
        case SAME:
            if (!are_same(state[a], state[b])) flags |= DIFFERENT;
            break;
        case VALUE:
            put_values(value, values, tally_state_value(state[a], value));
            put_number((int64_t)tally_state_count(state[a]));
            break;
        case DIVIDED:
            put_values(value, 1, tally_state_divided(state[a], b, (tally_type)step[3], value));
            break;
        default:
            die("no such step of states");
        }
        if (status != TALLY_OK && first == TALLY_OK) first = status;
        if (first != TALLY_OK) { /* the script's end */
            while (*next != END)
                next += STEP_WORDS;
            next += STEP_WORDS;
            break;
        }
    }
    for (size_t i = 0; i < STATES_MOST; i++)
        tally_state_destroy(state[i]);
    return first;
}

/* ---- Groups in pieces --------------------------------------------------------------------- */

static tally_status save_and_load_groups(tally_groups **groups, const tally_problem *problem) {
    const size_t size = tally_groups_size(*groups);
    unsigned char *bytes = __real_malloc(size ? size : 1);
    tally_groups *loaded_groups = NULL;
    tally_status status = tally_groups_save(*groups, bytes, size);
    if (status == TALLY_OK) status = tally_groups_load(bytes, size, problem, &loaded_groups);
    __real_free(bytes);
    if (status != TALLY_OK) return status;
    tally_groups_destroy(*groups);
    *groups = loaded_groups;
    return TALLY_OK;
}

static int are_same_groups(const tally_groups *a, const tally_groups *b) {
    const size_t size = tally_groups_size(a);
    unsigned char *bytes = __real_malloc(2 * size + 1);
    const int same = size == tally_groups_size(b) &&
                     tally_groups_save(a, bytes, size) == TALLY_OK &&
                     tally_groups_save(b, bytes + size, size) == TALLY_OK &&
                     memcmp(bytes, bytes + size, size) == 0;
    __real_free(bytes);
    return same;
}

static tally_status add_group_words(tally_groups *into, const tally_groups *from) {
    const size_t count = tally_groups_words(into);
    int64_t *words = __real_malloc(16 * count + 16);
    tally_status status = tally_groups_to_words(into, words);
    if (status == TALLY_OK) status = tally_groups_to_words(from, words + count);
    for (size_t i = 0; i < count; i++)
        words[i] = (int64_t)((uint64_t)words[i] + (uint64_t)words[count + i]);
    if (status == TALLY_OK) status = tally_groups_from_words(into, words);
    __real_free(words);
    return status;
}

/* Adds the state of elements [from, from + n) of x to a group. */
static tally_status add_state(const tally_problem *problem, tally_groups *groups, size_t group,
                              const unsigned char *x, const unsigned char *y, size_t from,
                              size_t n) {
    const size_t size = tally_type_size(problem->type);
    tally_state *state = NULL;
    tally_status status = tally_state_create(problem, &state);
    if (status == TALLY_OK)
        status = tally_state_feed(state, NULL, moved(x, from * size), moved(y, from * size), n);
    if (status == TALLY_OK) status = tally_groups_add_state(groups, group, state);
    tally_state_destroy(state);
    return status;
}

static tally_status call_grouped(const tally_problem *problem) {
    const unsigned char *x = array(0, take()), *y = array(1, take());
    tally_shape whole;
    take_shape(&whole);
    take_outputs();
    const size_t size = tally_type_size(problem->type);
    const size_t id_size = tally_type_size(whole.ids_type);
    tally_groups *groups[STATES_MOST] = {NULL};
    void *pointers[OUTPUTS];
    tally_status status = TALLY_OK, first = TALLY_OK;
    for (size_t i = 0; i < out_count; i++)
        pointers[i] = out[i].at;
    for (;;) {
        const int64_t *step = next;
        next += STEP_WORDS;
        const int64_t a = step[1], b = step[2];
        if (step[0] == END) break;
        switch (step[0]) {
        case CREATE:
            status = tally_groups_create(problem, whole.count, &groups[a]);
            break;
        case FEED: {
            tally_shape piece = whole;
            piece.n = (size_t)step[3];
            piece.ids = moved(whole.ids, (size_t)b * id_size);
            piece.mask = moved(whole.mask, (size_t)b);
            status = tally_groups_feed(groups[a], devices[(size_t)step[4] % device_count], &piece,
                                       moved(x, (size_t)b * size), moved(y, (size_t)b * size));
            break;
        }
        case MERGE:
            status = tally_groups_merge(groups[a], groups[b]);
            break;
        case SAVE_LOAD:
            status = save_and_load_groups(&groups[a], b ? problem : NULL);
            break;
        case ADD_WORDS:
            status = add_group_words(groups[a], groups[b]);
            break;
        case ADD_STATE:
            status =
                add_state(problem, groups[a], (size_t)b, x, y, (size_t)step[3], (size_t)step[4]);
            break;
        case SAME:
            if (!are_same_groups(groups[a], groups[b])) flags |= DIFFERENT;
            break;
        case VALUE:
            status = tally_groups_values(groups[a], pointers);
            note(status);
            break;
        default:
            die("no such step of groups");
        }
        if (status != TALLY_OK && first == TALLY_OK) first = status;
        if (first != TALLY_OK) {
            while (*next != END)
                next += STEP_WORDS;
            next += STEP_WORDS;
            break;
        }
    }
    put_outputs();
    for (size_t i = 0; i < STATES_MOST; i++)
        tally_groups_destroy(groups[i]);
    return first;
}

static void call(void) {
    const int64_t how = take();
    tally_operator user;
    tally_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.op = (tally_op)take();
    problem.type = (tally_type)take();
    problem.out = (tally_type)take();
    problem.fast = (int)take();
    memcpy(&problem.ddof, next++, sizeof problem.ddof);
    problem.about = (int)take();
    memcpy(&problem.mean[0], next++, sizeof problem.mean[0]);
    const int64_t which = take();
    if (which) {
        set_user(&user, problem.type, which);
        problem.user = &user;
    }
    for (int i = 0; i < 8; i++)
        problem.also[i] = (tally_op)take();
    tally_device *device = devices[(size_t)take() % device_count];
    fill = (int)take();
    flags = 0;
    wrong_result = -1;
    call_begins = answered;
    for (int i = 0; i < 4; i++)
        put_number(0); /* status, flags, result, size: below */
    alarm(120);
    tally_status status = how == WHOLE    ? call_whole(device, &problem)
                          : how == SHAPED ? call_shaped(device, &problem)
                          : how == STATES ? call_states(&problem)
                                          : call_grouped(&problem);
    alarm(0);
    fill = -1;
    if (take_damage()) flags |= DAMAGED;
    const int64_t head[4] = {status, flags, wrong_result,
                             (int64_t)(answered - call_begins) - (int64_t)sizeof head};
    memcpy(answer + call_begins, head, sizeof head);
}

/* ---- Batches ------------------------------------------------------------------------------ */

/* Reads `size` bytes; returns 0 at the end of the input. */
static int receive(void *bytes, size_t size) {
    char *p = bytes;
    while (size) {
        const ssize_t got = read(0, p, size);
        if (got <= 0) return 0;
        p += got;
        size -= (size_t)got;
    }
    return 1;
}

enum { FRAME_LOAD = 1, FRAME_CALL = 2 };

static void open_devices(char *specs) {
    for (char *spec = strtok(specs, ";"); spec; spec = strtok(NULL, ";")) {
        if (device_count == DEVICES) die("too many devices");
        if (strcmp(spec, "null") != 0 && tally_open(spec, &devices[device_count]) != TALLY_OK)
            die(tally_error());
        device_count++;
    }
    if (!device_count) die("no device");
}

int main(int argc, char **argv) {
    static char stack[65536];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM};
    fill = -1;
    memset(intact, CANARY, sizeof intact);
    if (argc != 2) die("which devices?");
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &(struct sigaction){.sa_handler = crashed, .sa_flags = SA_ONSTACK},
                  NULL);
    for (int i = 0; i < SLOTS; i++)
        inputs[i] = arena();
    for (int i = 0; i < OUTPUTS; i++)
        outputs[i] = arena();
    open_devices(argv[1]);
    const int64_t ready = 0x796c6c6174; /* "tally" */
    send_all(&ready, sizeof ready);
    int64_t size, room = 0;
    char *batch = NULL;
    while (receive(&size, sizeof size)) {
        if (size > room) {
            __real_free(batch);
            room = 2 * size;
            batch = __real_malloc((size_t)room);
            if (!batch) die("no memory");
        }
        if (!receive(batch, (size_t)size)) break;
        next = (const int64_t *)(void *)batch;
        answered = 0;
        while ((const char *)next < batch + size) {
            const int64_t kind = take(), words = take();
            const int64_t *end = next + words;
            if (kind == FRAME_LOAD)
                load();
            else
                call();
            if (next != end) die("a frame is not what it says");
        }
        send_all(answer, answered);
    }
    for (unsigned i = 0; i < device_count; i++)
        tally_close(devices[i]);
    return 0;
}
