/*
 * machines.c - lists the machines of gpu/machines.h that are present, and finds one by its name.
 */
#include "ladder/machines.h"

#include "base/fpenv.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct gpu_api *const apis[] = {
#define API(machine) &machine##_api,
    GPU_MACHINES(API)};
enum { APIS = sizeof apis / sizeof *apis };

const char *tally_ladder_device(void) {
    const struct fp_env caller = fp_env_enter(); /* drivers compute when they start */
    size_t i = 0;
    while (i + 1 < APIS && apis[i]->count() == 0)
        i++;
    fp_env_leave(caller);
    return apis[i]->name; /* the last is the model, which is always here */
}

/* Sets *number to the number behind the colon, or to 0 if `colon` is NULL. */
static tally_status parse_number(const char *device, const char *colon, size_t *number) {
    char *end;
    *number = 0;
    if (!colon) return TALLY_OK;
    const unsigned long long value = strtoull(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end)
        return fail(TALLY_EDEVICE, "device '%.60s': after the colon comes a number, such as %.*s:0",
                    device, (int)(colon - device), device);
    *number = value < SIZE_MAX ? (size_t)value : SIZE_MAX;
    return TALLY_OK;
}

static tally_status check_here(const struct gpu_api *api, size_t number) {
    const size_t count = api->count();
    if (number < count) return TALLY_OK;
    if (count == 0 && strcmp(api->name, "opencl") == 0)
        return fail(TALLY_EDEVICE,
                    "no OpenCL platform with a device is here (the OpenCL loader, or "
                    "a platform such as PoCL, is not installed)");
    if (count == 0) return fail(TALLY_EDEVICE, "no CUDA driver with a device is here");
    return fail(TALLY_EDEVICE, "there is no %s:%zu; the last one here is %s:%zu", api->name, number,
                api->name, count - 1);
}

tally_status machine_parse(const char *device, const struct gpu_api **api, size_t *number) {
    const char *colon = strchr(device, ':');
    const size_t length = colon ? (size_t)(colon - device) : strlen(device);
    *api = NULL;
    for (size_t i = 0; i < APIS; i++)
        if (strlen(apis[i]->name) == length && memcmp(apis[i]->name, device, length) == 0) {
            *api = apis[i];
            tally_status status = parse_number(device, colon, number);
            return status == TALLY_OK ? check_here(*api, *number) : status;
        }
    return TALLY_OK;
}
