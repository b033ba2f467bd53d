/*
 * shaped.c - the public calls that reduce in parts.
 */
#include "base/fpenv.h"
#include "base/status.h"
#include "device/shown.h"

#include <stdlib.h>

static tally_status plan_problem(const tally_problem *problem, const tally_shape *shape,
                                 struct problem *p) {
    const tally_status status = problem_plan(problem, p);
    if (status == TALLY_OK && shape && shape->means) problem_about(p);
    return status;
}

static tally_status plan_call(const char *call, const tally_problem *problem,
                              const tally_shape *shape, const void *x, const void *y,
                              void *const out[], struct problem *p, struct shaped *s) {
    if (!out) return fail(TALLY_EINVAL, "%s: out is NULL", call);
    const tally_status status = plan_problem(problem, shape, p);
    return status == TALLY_OK ? shape_plan(p, shape, x, y, out, s) : status;
}

tally_status tally_reduce_shaped(tally_device *device, const tally_problem *problem,
                                 const tally_shape *shape, const void *x, const void *y,
                                 void *const out[]) {
    struct problem p;
    struct shaped s;
    tally_status status = plan_call("tally_reduce_shaped", problem, shape, x, y, out, &p, &s);
    if (status != TALLY_OK) return status;
    status = shape_check_last_offset(shape);
    if (status != TALLY_OK) return status;
    if (!device) device = cpu_calling_thread();
    unsigned char *mask;
    struct fp_env caller = fp_env_enter();
    status = shown_mask(&s, &mask);
    p.skip_nan = 0;
    if (status == TALLY_OK) status = device->kind->shaped(device, &s);
    free(mask);
    fp_env_leave(caller);
    return status;
}

tally_status tally_reduce_shaped_resident(tally_device *device, const tally_problem *problem,
                                          const tally_shape *shape, void *x, void *y,
                                          void *const out[]) {
    struct problem p;
    struct shaped s;
    if (!device || !device->kind->shaped_resident)
        return tally_reduce_shaped(device, problem, shape, x, y, out);
    tally_status status =
        plan_call("tally_reduce_shaped_resident", problem, shape, x, y, out, &p, &s);
    if (status != TALLY_OK) return status;
    struct fp_env caller = fp_env_enter();
    status = device->kind->shaped_resident(device, &s);
    fp_env_leave(caller);
    return status;
}

/* ---- On queues of the caller's -------------------------------------------------------------- */

static tally_status check_queues(const tally_device *device) {
    if (device && device->kind->shaped_enqueue) return TALLY_OK;
    return device_refuses(device, "has no queues to put a reduction on");
}

int tally_queue_is_captured(tally_device *device, void *queue) {
    if (!device || !device->kind->is_captured) return 0;
    const struct fp_env caller = fp_env_enter();
    const int is_captured = device->kind->is_captured(device, queue);
    fp_env_leave(caller);
    return is_captured;
}

/* Stands for arrays that are not NULL and not looked at. */
static char somewhere[TALLY_VALUES_MAX];

tally_status tally_workspace_shaped(tally_device *device, const tally_problem *problem,
                                    const tally_shape *shape, size_t *bytes) {
    struct problem p;
    struct shaped s;
    void *out[TALLY_VALUES_MAX];
    if (!bytes || !shape) return fail(TALLY_EINVAL, "tally_workspace_shaped: an argument is NULL");
    for (int v = 0; v < TALLY_VALUES_MAX; v++)
        out[v] = somewhere;
    tally_shape sized = *shape;
    if (!sized.ids && sized.cut == TALLY_GROUPS) sized.ids = somewhere;
    tally_status status = plan_problem(problem, &sized, &p);
    if (status == TALLY_OK)
        status = shape_plan(&p, &sized, somewhere,
                            problem_has(&p, MONOID_PRODUCTS) ? somewhere : NULL, out, &s);
    if (status == TALLY_OK) status = check_queues(device);
    if (status != TALLY_OK) return status;
    struct fp_env caller = fp_env_enter();
    status = device->kind->shaped_workspace(device, &s, bytes);
    fp_env_leave(caller);
    return status;
}

tally_status tally_enqueue_shaped(tally_device *device, const tally_problem *problem,
                                  const tally_shaped_call *call) {
    struct problem p;
    struct shaped s;
    if (!call) return fail(TALLY_EINVAL, "tally_enqueue_shaped: the call is NULL");
    tally_status status = plan_call("tally_enqueue_shaped", problem, call->shape, call->x, call->y,
                                    call->out, &p, &s);
    if (status == TALLY_OK) status = check_queues(device);
    if (status == TALLY_OK && !call->workspace)
        status = fail(TALLY_EINVAL, "tally_enqueue_shaped: the workspace is NULL");
    if (status != TALLY_OK) return status;
    struct fp_env caller = fp_env_enter();
    status = device->kind->shaped_enqueue(device, &s, call);
    fp_env_leave(caller);
    return status;
}
