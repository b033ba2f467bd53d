/*
 * user_operator.c - an operator of one's own: the product of all elements modulo a prime.
 */
#include <stdio.h>
#include <tally.h>

static void multiply_modulo(void *context, const void *left, const void *right, void *out,
                            size_t count) {
    const uint64_t prime = *(const uint64_t *)context, *a = left, *b = right;
    uint64_t *c = out;
    for (size_t i = 0; i < count; i++)
        c[i] = (uint64_t)((unsigned __int128)a[i] * b[i] % prime);
}

int main(void) {
    enum { N = 1000000 };
    static uint64_t x[N];
    for (size_t i = 0; i < N; i++)
        x[i] = i + 1;

    uint64_t prime = 1000003, one = 1;
    tally_operator op = {multiply_modulo, &prime, &one, 1, NULL};
    const tally_problem problem = {.op = TALLY_USER, .type = TALLY_U64, .user = &op};
    tally_device *device;
    tally_value result;
    if (tally_open("cpu", &device) != TALLY_OK ||
        tally_reduce(device, &problem, x, NULL, N, &result) != TALLY_OK) {
        fprintf(stderr, "%s\n", tally_error());
        return 1;
    }
    printf("1000000! mod 1000003 = %llu\n", (unsigned long long)result.as.u64);
    tally_close(device);
    return 0;
}
