/*
 * lanes.h - a communicator's two duplicates, over which the requests go (request.c).
 */
#ifndef TALLY_MPI_LANES_H
#define TALLY_MPI_LANES_H

struct lanes;
void lanes_free(struct lanes *lanes); /* NULL is allowed */

#endif
