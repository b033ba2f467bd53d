/*
 * duplicates.h - the two duplicates of a communicator over which requests exchange messages (request.c).
 */
#ifndef TALLY_MPI_DUPLICATES_H
#define TALLY_MPI_DUPLICATES_H

struct duplicates;
void duplicates_free(struct duplicates *duplicates); /* NULL is allowed */

#endif
