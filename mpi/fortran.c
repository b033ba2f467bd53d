/*
 * fortran.c - what tally_mpi.f90 calls: the same functions with arguments as Fortran has them.
 */
#include "tally_mpi.h"

#include <string.h>

TALLY_API int tally_mpi_f_allreduce(int op, int type, int out_type, const void *x, const void *y,
                                    int64_t n, double ddof, void *out, MPI_Fint comm);
TALLY_API void tally_mpi_f_error(char *text, int64_t size);

/* *out gets one value of type `out_type`. Where the operator's value has another type, problem.out asks for that
 * one, and all ranks fail alike if the operator cannot have it, or has several values. */
int tally_mpi_f_allreduce(int op, int type, int out_type, const void *x, const void *y, int64_t n,
                          double ddof, void *out, MPI_Fint comm) {
    tally_problem problem = {.op = (tally_op)op, .type = (tally_type)type, .ddof = ddof};
    tally_value value[TALLY_VALUES_MAX];
    size_t values = 0;
    if (tally_problem_values(&problem, &values) == TALLY_OK) {
        if (tally_problem_value_type(&problem, 0) != (tally_type)out_type)
            problem.out = (tally_type)out_type;
        if (values != 1) problem.op = (tally_op)0; /* no operator */
    }
    const tally_status s = tally_mpi_allreduce(NULL, &problem, x, y, n < 0 ? SIZE_MAX : (size_t)n,
                                               value, MPI_Comm_f2c(comm));
    if (s == TALLY_OK) memcpy(out, &value[0].as, tally_type_size(value[0].type));
    return (int)s;
}

/* Copies the line of the last failure, with blanks behind it. */
void tally_mpi_f_error(char *text, int64_t size) {
    const char *line = tally_mpi_error();
    for (int64_t i = 0; i < size; i++)
        text[i] = *line ? *line++ : ' ';
}
