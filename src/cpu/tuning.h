/*
 * tuning.h - the numbers that were chosen by measuring on CPUs. Another choice changes how long a reduction takes, and
 * never its bits.
 */
#ifndef TALLY_CPU_TUNING_H
#define TALLY_CPU_TUNING_H

/* Columns are added in steps of this many; blocks of planes have room for a multiple of it. */
#define COLUMN_STEP 16

#endif
