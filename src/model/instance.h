/*
 * instance.h - the ladder for one type and operator, as a translation unit.
 *
 * The build makes a file of three lines for each type and operator, which defines TYPE_x, OP_y and
 * INSTANCE(x_y's prefix) and includes this. All of it is compiled with the model's instrumentation.
 */
#include "kernels/ladder/ladder.cu"
#include "model/ladder.h"

#include "model/lane.h"

MODEL_KERNEL3(load_elements, const element *, u64, accumulator *);

#define INPUT_COPY                    accumulator *
#define INPUT_ELEMENTS                const element *
#define KERNEL_NOTHING(kernel, input) MODEL_KERNEL4(kernel, input, u64, accumulator *, word *)
#define KERNEL_FACTOR(kernel, input)  MODEL_KERNEL5(kernel, input, u64, accumulator *, word *, u32)
#define KERNEL_BOARD(kernel, input)   MODEL_KERNEL5(kernel, input, u64, accumulator *, word *, word *)
#define RUNG_KERNEL(ID, name, kernel, file, INPUT, EXTRA, ...)                                     \
    KERNEL_##EXTRA(kernel, INPUT_##INPUT);
LADDER_RUNGS(RUNG_KERNEL)

/* ---- The arithmetic on the host ------------------------------------------------------------- */

MODEL_UNSEEN static void host_neutral(void *a) {
    *(accumulator *)a = neutral();
}

MODEL_UNSEEN static void host_fetch(void *a, const void *e) {
    *(accumulator *)a = load(*(const element *)e);
}

MODEL_UNSEEN static void host_combine(void *a, const void *b) {
    *(accumulator *)a = combine(*(accumulator *)a, *(const accumulator *)b);
}

MODEL_UNSEEN static void host_to_word(void *w, const void *a) {
    *(word *)w = to_word(*(const accumulator *)a);
}

MODEL_UNSEEN static void host_from_word(void *a, const void *w) {
    *(accumulator *)a = from_word(*(const word *)w);
}

/* ---- The table ------------------------------------------------------------------------------ */

#if ARITHMETIC && defined(FLOATING) && !defined(TYPE_F64)
#define ACCUMULATOR_TYPE TALLY_F32
#elif ARITHMETIC && defined(SIGNED_TYPE)
#define ACCUMULATOR_TYPE TALLY_I64
#elif ARITHMETIC && defined(UNSIGNED_TYPE)
#define ACCUMULATOR_TYPE TALLY_U64
#else
#define ACCUMULATOR_TYPE INSTANCE_TYPE
#endif

#define RUNG_ADDRESS(ID, name, kernel, ...) &kernel##_kernel,
extern const ladder_instance INSTANCE;
const ladder_instance INSTANCE = {
    .type = INSTANCE_TYPE,
    .op = INSTANCE_OP,
    .accumulator_type = ACCUMULATOR_TYPE,
    .element_size = sizeof(element),
    .accumulator_size = sizeof(accumulator),
    .word_size = sizeof(word),
    .rungs = {LADDER_RUNGS(RUNG_ADDRESS)},
    .load = &load_elements_kernel,
    .neutral = host_neutral,
    .fetch = host_fetch,
    .combine = host_combine,
    .to_word = host_to_word,
    .from_word = host_from_word,
};
