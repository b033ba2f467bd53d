/* options.c - see options.h. */
#include "gpu/options.h"

#include "base/status.h"

#include <stdbool.h>
#include <string.h>

#define MEMORY_LEAST ((uint64_t)1 << 20) /* the least memory of a device, a megabyte */

/* Parses a number with an optional K, M or G behind it. */
static bool parse_size(const char *text, size_t length, uint64_t *out) {
    uint64_t value = 0;
    size_t i = 0;
    for (; i < length && text[i] >= '0' && text[i] <= '9' && i < 18; i++)
        value = 10 * value + (uint64_t)(text[i] - '0');
    unsigned shift = 0;
    if (i > 0 && i + 1 == length)
        shift = text[i] == 'K' ? 10 : text[i] == 'M' ? 20 : text[i] == 'G' ? 30 : 0;
    if (i == 0 || i + (shift > 0) != length || value > UINT64_MAX >> shift) return false;
    *out = value << shift;
    return true;
}

tally_status gpu_parse_options(const char *options, const char *machine, struct gpu_options *out) {
    *out = (struct gpu_options){0};
    for (size_t length; *options; options += length + (options[length] == ',')) {
        length = strcspn(options, ",");
        uint64_t number = 0;
        if (strncmp(options, "memory=", 7) == 0 && parse_size(options + 7, length - 7, &number) &&
            number >= MEMORY_LEAST) {
            out->memory = number;
        } else if (strncmp(options, "block=", 6) == 0 &&
                   parse_size(options + 6, length - 6, &number) && number >= 1 && number <= 1024 &&
                   (number & (number - 1)) == 0) {
            out->block = (unsigned)number;
        } else if (length == 12 && strncmp(options, "doubles=slow", 12) == 0) {
            out->doubles = DOUBLES_SLOW;
        } else if (length == 12 && strncmp(options, "doubles=fast", 12) == 0) {
            out->doubles = DOUBLES_FAST;
        } else if (parse_size(options, length, &number) && number < 1000) {
            out->index = (size_t)number;
        } else {
            return fail(
                TALLY_EDEVICE,
                "'%.*s' is no option of the %s device; there are its number, all, memory=BYTES "
                "(1M or more), block=THREADS (a power of two up to 1024) and doubles=slow or "
                "doubles=fast",
                (int)(length < 40 ? length : 40), options, machine);
        }
    }
    return TALLY_OK;
}
