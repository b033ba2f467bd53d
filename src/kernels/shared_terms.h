/*
 * shared_terms.h - the addresses of all ranks' arrays, which ranks add up in each other's memory: an argument of the
 * kernels in shared_terms.cu. Kernels and the host read it alike.
 *
 * Before including this header, include words.h.
 */
#ifndef TALLY_SHARED_TERMS_H
#define TALLY_SHARED_TERMS_H

typedef struct shared_terms_plan {
    u64 x[MAILBOX_RANKS];   /* addresses, as this device knows them: of each rank's array, */
    u64 out[MAILBOX_RANKS]; /* and of the arrays that get this rank's sums, */
    u64 to;                 /* from this element on */
    u32 outs;               /* the number of addresses in `out` */
    u32 ranks, mine;        /* how many ranks there are, and which this is */
    u32 arrays;   /* the number of the arrays that this rank means: all ranks must say the same */
    u32 failure;  /* the status that this rank has failed with, or 0 */
    u32 in_packs; /* all arrays, and the first element, are aligned to 16 bytes */
} shared_terms_plan;

#endif
