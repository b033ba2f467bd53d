/* errors.c - see errors.h. */
#include "cuda/errors.h"

#include "base/status.h"
#include "cuda/driver.h"

/* The status for each of the driver's errors, and a hint behind the driver's own words. Errors that
 * are not listed become TALLY_ELOST. */
static const struct {
    CUresult error;
    tally_status status;
    const char *hint;
} meanings[] = {
    {CUDA_ERROR_INVALID_VALUE, TALLY_EINVAL, ""},
    {CUDA_ERROR_INVALID_HANDLE, TALLY_EINVAL, ""},
    {CUDA_ERROR_NOT_FOUND, TALLY_EINVAL, ""},
    {CUDA_ERROR_OUT_OF_MEMORY, TALLY_ENOMEM, ""},
    {CUDA_ERROR_NO_DEVICE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_INVALID_DEVICE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_SYSTEM_NOT_READY, TALLY_EDEVICE, ""},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, TALLY_EDEVICE, ""},
    {CUDA_ERROR_INVALID_IMAGE, TALLY_ECOMPILE, ""},
    {CUDA_ERROR_INVALID_PTX, TALLY_ECOMPILE, ""},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, TALLY_ECOMPILE,
     "; the driver is older than the kernels, or the device is"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, TALLY_ECOMPILE,
     "; the driver is older than the kernels' PTX: a newer driver, or an older NVRTC, is needed"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, TALLY_ECOMPILE,
     "; the driver's own compiler, libnvidia-ptxjitcompiler, is not installed"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, TALLY_ECOMPILE, ""},
};

bool cuda_is_final(CUresult error) {
    switch (error) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default: /* what a kernel does wrong: stack, instruction, alignment, address space, counter */
        return error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED;
    }
}

tally_status cuda_outcome(size_t index, CUresult error, const char *what) {
    const char *hint = "";
    tally_status status = TALLY_ELOST;
    if (error == CUDA_SUCCESS) return TALLY_OK;
    if (error >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
        error <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        status = TALLY_EINVAL; /* the caller's stream was not ready for this; nothing is lost */
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].error == error) {
            status = meanings[i].status;
            hint = meanings[i].hint;
        }
    return fail(status, "cuda:%zu: %s: %s (%s)%s", index, what, driver_error_name(error),
                driver_error_text(error), hint);
}
