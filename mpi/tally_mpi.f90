! tally_mpi.f90 - reductions over the ranks of an MPI communicator from Fortran: the same bits, whatever their number.
!
!     use tally_mpi
!     call tally_allreduce(energy, tally_sum, total, comm, status)        of an array of any rank
!     call tally_dot(p, q, alpha, comm, status)
!     call tally_locate(t, tally_argmax, hottest, comm, status)           from 1 on, in the whole array
!
! Each MPI rank has a part of the array, rank 0 the first. Arrays are real(real32), real(real64), integer(int32) or
! integer(int64); values are of the elements' kind, and those of integers integer(int64). `comm` is the integer
! handle (comm%MPI_VAL of mpi_f08). All calls are collective, and `status` is the same on every rank: TALLY_OK is 0,
! and for all else tally_error_text() is the line that says why. tally_mpi.h has the rest.
!
! Compile it with the compiler that compiles the program, and link with tally_mpi and tally.
module tally_mpi
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  private
  public :: tally_allreduce, tally_dot, tally_locate, tally_error_text

  ! The operators, as tally.h numbers them. Integers: sum, prod, min, max, norm1, norminf and sumsq.
  integer, parameter, public :: tally_sum = 1, tally_prod = 2, tally_min = 3, tally_max = 4, tally_mean = 8, &
    tally_var = 9, tally_std = 10, tally_norm1 = 11, tally_norm2 = 12, tally_norminf = 13, tally_sumsq = 14, &
    tally_argmin = 16, tally_argmax = 17
  integer, parameter, public :: tally_ok = 0

  integer, parameter :: dot = 15, i32 = 3, i64 = 4, u64 = 8, f32 = 11, f64 = 12

  ! call tally_allreduce(x, op, value, comm, status [, ddof]): ddof is for var and std.
  interface tally_allreduce
    procedure allreduce_r32, allreduce_r64, allreduce_i32, allreduce_i64
  end interface
  ! call tally_dot(x, y, value, comm, status): the exact sum of x y, rounded once.
  interface tally_dot
    procedure dot_r32, dot_r64
  end interface
  ! call tally_locate(x, op, index, comm, status): tally_argmin or tally_argmax; the index counts from 1.
  interface tally_locate
    procedure locate_r32, locate_r64
  end interface

  interface
    function allreduce(op, type, out_type, x, y, n, ddof, out, comm) bind(c, name="tally_mpi_f_allreduce")
      import :: c_int, c_ptr, c_int64_t, c_double
      integer(c_int), value :: op, type, out_type
      type(c_ptr), value :: x, y, out
      integer(c_int64_t), value :: n
      real(c_double), value :: ddof
      integer(c_int), value :: comm
      integer(c_int) :: allreduce
    end function
    subroutine error_text(text, size) bind(c, name="tally_mpi_f_error")
      import :: c_char, c_int64_t
      character(kind=c_char), intent(out) :: text(*)
      integer(c_int64_t), value :: size
    end subroutine
  end interface

contains

  ! The line that explains the last failed call.
  function tally_error_text() result(text)
    character(256) :: text
    call error_text(text, len(text, int64))
  end function

  function ddof_of(ddof) result(d)
    real(real64), intent(in), optional :: ddof
    real(real64) :: d
    d = 0
    if (present(ddof)) d = ddof
  end function

  subroutine allreduce_r32(x, op, value, comm, status, ddof)
    real(real32), intent(in), target, contiguous :: x(..)
    integer, intent(in) :: op, comm
    real(real32), intent(inout), target :: value
    integer, intent(out) :: status
    real(real64), intent(in), optional :: ddof
    status = allreduce(op, f32, f32, c_loc(x), c_null_ptr, size(x, kind=int64), ddof_of(ddof), c_loc(value), comm)
  end subroutine

  subroutine allreduce_r64(x, op, value, comm, status, ddof)
    real(real64), intent(in), target, contiguous :: x(..)
    integer, intent(in) :: op, comm
    real(real64), intent(inout), target :: value
    integer, intent(out) :: status
    real(real64), intent(in), optional :: ddof
    status = allreduce(op, f64, f64, c_loc(x), c_null_ptr, size(x, kind=int64), ddof_of(ddof), c_loc(value), comm)
  end subroutine

  subroutine allreduce_i32(x, op, value, comm, status)
    integer(int32), intent(in), target, contiguous :: x(..)
    integer, intent(in) :: op, comm
    integer(int64), intent(inout) :: value
    integer, intent(out) :: status
    integer(int32), target :: narrow
    integer(int64), target :: wide
    if (op == tally_min .or. op == tally_max) then ! of the elements' type
      status = allreduce(op, i32, i32, c_loc(x), c_null_ptr, size(x, kind=int64), 0d0, c_loc(narrow), comm)
      if (status == tally_ok) value = narrow
    else
      status = allreduce(op, i32, i64, c_loc(x), c_null_ptr, size(x, kind=int64), 0d0, c_loc(wide), comm)
      if (status == tally_ok) value = wide
    end if
  end subroutine

  subroutine allreduce_i64(x, op, value, comm, status)
    integer(int64), intent(in), target, contiguous :: x(..)
    integer, intent(in) :: op, comm
    integer(int64), intent(inout), target :: value
    integer, intent(out) :: status
    status = allreduce(op, i64, i64, c_loc(x), c_null_ptr, size(x, kind=int64), 0d0, c_loc(value), comm)
  end subroutine

  subroutine dot_r32(x, y, value, comm, status)
    real(real32), intent(in), target, contiguous :: x(..), y(..)
    real(real32), intent(inout), target :: value
    integer, intent(in) :: comm
    integer, intent(out) :: status
    ! Of different sizes: a size that no array has fails on every rank.
    status = allreduce(dot, f32, f32, c_loc(x), c_loc(y), merge(size(x, kind=int64), -1_int64, &
      size(x, kind=int64) == size(y, kind=int64)), 0d0, c_loc(value), comm)
  end subroutine

  subroutine dot_r64(x, y, value, comm, status)
    real(real64), intent(in), target, contiguous :: x(..), y(..)
    real(real64), intent(inout), target :: value
    integer, intent(in) :: comm
    integer, intent(out) :: status
    status = allreduce(dot, f64, f64, c_loc(x), c_loc(y), merge(size(x, kind=int64), -1_int64, &
      size(x, kind=int64) == size(y, kind=int64)), 0d0, c_loc(value), comm)
  end subroutine

  subroutine locate_r32(x, op, index, comm, status)
    real(real32), intent(in), target, contiguous :: x(..)
    integer, intent(in) :: op, comm
    integer(int64), intent(inout) :: index
    integer, intent(out) :: status
    integer(int64), target :: from_0
    status = allreduce(op, f32, u64, c_loc(x), c_null_ptr, size(x, kind=int64), 0d0, c_loc(from_0), comm)
    if (status == tally_ok) index = from_0 + 1
  end subroutine

  subroutine locate_r64(x, op, index, comm, status)
    real(real64), intent(in), target, contiguous :: x(..)
    integer, intent(in) :: op, comm
    integer(int64), intent(inout) :: index
    integer, intent(out) :: status
    integer(int64), target :: from_0
    status = allreduce(op, f64, u64, c_loc(x), c_null_ptr, size(x, kind=int64), 0d0, c_loc(from_0), comm)
    if (status == tally_ok) index = from_0 + 1
  end subroutine
end module
