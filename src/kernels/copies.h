/*
 * copies.h - asynchronous copies from global to shared memory: their thread does something else meanwhile.
 *
 *     begin_copy(to, from, bytes)   bytes: 1, 2, 4, 8 or 16, known to the compiler; `to` and `from` are multiples of it
 *     end_copies()                  makes the copies begun since the last end_copies() a group, even if there are none
 *     wait_for_copies(n)            waits until all but the last n groups of this thread have arrived; n is a constant
 *     COPIES_AHEAD                  1 if copies are on their way while a thread does something else
 *     sync_warp()                   a barrier of the warp: its lanes see what each had copied and waited for; not in OpenCL
 *
 * A thread may read what it has copied after the wait; other threads after a barrier, too. A load into
 * registers is waited for wherever the compiler first moves the registers; a copy into shared memory only
 * by wait_for_copies(). On machines without such copies begin_copy() copies at once, and STAGES, the
 * number of tiles in a ring, is 1.
 */
#ifndef TALLY_COPIES_H
#define TALLY_COPIES_H

#include "kernel.h"

#if ABILITY >= 800
#define COPIES_AHEAD 1
#define STAGES       3
INLINED void begin_copy(SHARED u8 *to, const GLOBAL void *from, u32 bytes) {
    const u32 place = (u32)__cvta_generic_to_shared(to);
    switch (bytes) {
    case 16:
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from)
                     : "memory");
        break;
    case 8:
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(place), "l"(from) : "memory");
        break;
    case 4:
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from) : "memory");
        break;
    case 2:
        *(SHARED u16 *)to = *(const GLOBAL u16 *)from;
        break;
    default:
        *to = *(const GLOBAL u8 *)from;
    }
}
INLINED void end_copies(void) {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
#define wait_for_copies(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define sync_warp()        __syncwarp(FULL_WARP)
#else
#if defined(__OPENCL_VERSION__) || IN_CUDA
#define COPIES_AHEAD 0
#else
#define COPIES_AHEAD 1 /* the model: it runs what CUDA runs */
#endif
#define STAGES             1
INLINED void begin_copy(SHARED u8 *to, const GLOBAL void *from, u32 bytes) {
    switch (bytes) {
    case 16:
        *(SHARED uint4 *)to = *(const GLOBAL uint4 *)from;
        break;
    case 8:
        *(SHARED u64 *)to = *(const GLOBAL u64 *)from;
        break;
    case 4:
        *(SHARED u32 *)to = *(const GLOBAL u32 *)from;
        break;
    case 2:
        *(SHARED u16 *)to = *(const GLOBAL u16 *)from;
        break;
    default:
        *to = *(const GLOBAL u8 *)from;
    }
}
INLINED void end_copies(void) {}
#define wait_for_copies(n) ((void)0)
#if IN_CUDA
#define sync_warp() __syncwarp(FULL_WARP)
#elif !defined(__OPENCL_VERSION__)
void model_meet(unsigned mask); /* the machine's */
#define sync_warp() model_meet(FULL_WARP)
#endif
#endif

#endif
