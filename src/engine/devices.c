/*
 * devices.c - the kinds of device there are, and the public calls that open and describe them.
 */
#include "device/device.h"

#include "base/fpenv.h"
#include "base/status.h"
#include "gpu/machines.h"

#include <string.h>

static const struct device_kind *const kinds[] = {&cpu_device_kind,
#ifdef TALLY_GPU
#define KIND(machine) &machine##_device_kind,
                                                  GPU_MACHINES(KIND)
#endif
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* Returns the bytes of the option's name, before '='; 0 for a bare word, such as a device's
 * number. */
static size_t name_length(const char *option) {
    const size_t length = strcspn(option, "=,");
    return option[length] == '=' ? length : 0;
}

/* Returns TALLY_EDEVICE if two of the comma-separated options have one name, or two are bare words. */
static tally_status check_twice(const char *options) {
    for (const char *a = options; *a; a += strcspn(a, ","), a += *a == ',')
        for (const char *b = options; b < a; b += strcspn(b, ",") + 1) {
            const size_t name = name_length(a);
            if (name != name_length(b) || memcmp(a, b, name) != 0) continue;
            return name > 0 ? fail(TALLY_EDEVICE, "'%.60s' gives %.*s twice", options,
                                   (int)(name < 20 ? name : 20), a)
                            : fail(TALLY_EDEVICE, "'%.60s' names two devices", options);
        }
    return TALLY_OK;
}

static tally_status open_spec(const char *spec, void *context, tally_device **out) {
    const char *colon = strchr(spec, ':');
    size_t length = colon ? (size_t)(colon - spec) : strlen(spec);
    if (length == 4 && memcmp(spec, "auto", 4) == 0) {
        if (colon)
            return fail(TALLY_EDEVICE, "device 'auto' takes no options, but '%.60s' gives some",
                        spec);
        /* The data lies in host memory. Even where a GPU is near, bringing an array to it costs more
         * than the CPU takes to reduce it once: a CPU reads its memory faster than a bus carries it. */
        return cpu_device_kind.open("", context, out);
    }
    for (size_t i = 0; i < KINDS; i++)
        if (strlen(kinds[i]->name) == length && memcmp(spec, kinds[i]->name, length) == 0) {
            const char *options = colon ? colon + 1 : "";
            const tally_status s = check_twice(options);
            return s == TALLY_OK ? kinds[i]->open(options, context, out) : s;
        }
    char names[64] = "auto";
    for (size_t i = 0; i < KINDS; i++) {
        strcat(names, " ");
        strcat(names, kinds[i]->name);
    }
    return fail(TALLY_EDEVICE, "'%.60s' names no device; a device is one of %s", spec, names);
}

/* A driver computes, too, and may change the floating environment: so every call that reaches one keeps the
 * caller's. */

tally_status tally_open(const char *spec, tally_device **out) {
    return tally_open_in(spec, NULL, out);
}

tally_status tally_open_in(const char *spec, void *context, tally_device **out) {
    if (!spec || !out) return fail(TALLY_EINVAL, "tally_open: an argument is NULL");
    struct fp_env caller = fp_env_enter();
    tally_status s = open_spec(spec, context, out);
    fp_env_leave(caller);
    return s;
}

void tally_close(tally_device *device) {
    if (!device) return;
    struct fp_env caller = fp_env_enter();
    device->kind->close(device);
    fp_env_leave(caller);
}

tally_status tally_device_describe(const tally_device *device, tally_device_info *out) {
    if (!device || !out) return fail(TALLY_EINVAL, "tally_device_describe: an argument is NULL");
    memset(out, 0, sizeof *out);
    struct fp_env caller = fp_env_enter();
    device->kind->describe(device, out);
    fp_env_leave(caller);
    return TALLY_OK;
}

tally_status tally_device_list(tally_device_info *infos, size_t capacity, size_t *count) {
    if (!count || (capacity > 0 && !infos))
        return fail(TALLY_EINVAL, "tally_device_list: an argument is NULL");
    struct fp_env caller = fp_env_enter();
    size_t found = 0;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < kinds[k]->count(); i++, found++)
            if (found < capacity) {
                memset(&infos[found], 0, sizeof infos[found]);
                kinds[k]->list(i, &infos[found]);
            }
    fp_env_leave(caller);
    *count = found;
    return TALLY_OK;
}

tally_status tally_device_read(tally_device *device, const void *bytes, size_t size,
                               double *seconds) {
    if (!device || !seconds || (!bytes && size > 0))
        return fail(TALLY_EINVAL, "tally_device_read: an argument is NULL");
    struct fp_env caller = fp_env_enter();
    tally_status s = device->kind->read(device, bytes, size, seconds);
    fp_env_leave(caller);
    return s;
}

tally_status tally_resident_copy(tally_device *device, void *to, const void *from, size_t bytes) {
    if (bytes == 0) return TALLY_OK;
    if (!to || !from) return fail(TALLY_EINVAL, "tally_resident_copy: an argument is NULL");
    if (device && device->kind->copy_out) {
        const struct fp_env caller = fp_env_enter();
        const tally_status s = device->kind->copy_out(device, to, from, bytes);
        fp_env_leave(caller);
        return s;
    }
    if (device && device->kind->fold_resident)
        return device_refuses(device, "has no one memory to copy from");
    memcpy(to, from, bytes);
    return TALLY_OK;
}
