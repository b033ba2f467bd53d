/* device.c - see device.h. */
#include "device/device.h"

#include "base/status.h"

#include <string.h>

tally_status device_refuses(const tally_device *device, const char *what) {
    tally_device_info info;
    memset(&info, 0, sizeof info);
    if (device) device->kind->describe(device, &info);
    return fail(TALLY_EUNSUPPORTED, "%s %s", device ? info.spec : "the calling thread", what);
}

tally_status device_skips_nothing(const tally_device *device, const struct problem *p) {
    return p->skip_nan ? device_refuses(device, "skips no NaNs in such a call") : TALLY_OK;
}
