/*
 * errors.h - the driver's errors as statuses.
 */
#ifndef TALLY_CUDA_ERRORS_H
#define TALLY_CUDA_ERRORS_H

#include "cuda/driver.h"

/* Returns whether a context does nothing any more after this error. */
bool cuda_is_final(CUresult error);
/* Returns TALLY_OK for CUDA_SUCCESS, and otherwise the error's status; tally_error() then says that
 * `what` failed on device `index`, and why. */
tally_status cuda_outcome(size_t index, CUresult error, const char *what);

#endif
