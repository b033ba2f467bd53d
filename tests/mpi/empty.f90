! empty.f90 - arguments that are expressions, of which one rank has no elements: its call is right, and so are all.
!
!     mpirun -n P mpi_empty        prints "right", or what was wrong
program empty
  use mpi_f08
  use tally_mpi
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  implicit none
  integer :: rank, ranks, status, wrong, bad, n
  integer(int64) :: whole, place
  real(real64) :: t(4), u(4, 3), total, want
  real(real32) :: short, pair(2)
  logical :: wet(4)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  wrong = 0
  do bad = 0, ranks - 1
    n = merge(0, 4, rank == bad)
    t = 1
    u = 1
    wet = rank /= bad
    want = 4 * (ranks - 1)
    call tally_allreduce(pack(t, wet), tally_sum, total, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("pack(t, wet)", total, want)
    call tally_allreduce(2*t(1:n), tally_sum, total, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("2*t(1:n)", total, 2 * want)
    call tally_allreduce(u(5 - n:4, :), tally_sum, total, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("u(5 - n:4, :)", total, 3 * want)
    call tally_allreduce(2*u(:, 1:n/2), tally_sum, total, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("2*u(:, 1:n/2)", total, 4 * want)
    call tally_allreduce(real(t(1:n), real32), tally_sum, short, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("real(t(1:n), real32)", real(short, real64), want)
    call tally_allreduce(int(t(1:n), int32), tally_sum, whole, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("int(t(1:n), int32)", real(whole, real64), want)
    call tally_allreduce(int(t(1:n), int64), tally_max, whole, MPI_COMM_WORLD%MPI_VAL, status)
    if (ranks > 1) call expect("int(t(1:n), int64)", real(whole, real64), 1d0)
    call tally_dot(pack(t, wet), 3*t(1:n), total, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("dot of pack(t, wet)", total, 3 * want)
    if (rank == merge(1, 0, bad == 0)) t(2) = 7
    call tally_locate(pack(t, wet), tally_argmax, place, MPI_COMM_WORLD%MPI_VAL, status)
    if (ranks > 1) call expect("argmax of pack(t, wet)", real(place, real64), 2d0)
    call tally_allreduce(2d0, tally_sum, total, MPI_COMM_WORLD%MPI_VAL, status)
    call expect("a scalar", total, 2d0 * ranks)
  end do
  do bad = 0, ranks - 1 ! operators of several values: TALLY_MINMAX and TALLY_DESCRIBE of tally.h
    total = 5
    call tally_allreduce(t, merge(24, tally_sum, rank == bad), total, MPI_COMM_WORLD%MPI_VAL, status)
    if (status == tally_ok .or. total /= 5) wrong = 1
    pair = 5
    call tally_allreduce(real(t, real32), merge(24, 18, rank == bad), pair(1), MPI_COMM_WORLD%MPI_VAL, status)
    if (status == tally_ok .or. any(pair /= 5)) wrong = 1
    call tally_allreduce(int(t), 18, whole, MPI_COMM_WORLD%MPI_VAL, status)
    if (status == tally_ok) wrong = 1
  end do
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD)
  if (rank == 0) print '(a)', merge("wrong", "right", wrong == 1)
  call MPI_Finalize()

contains

  subroutine expect(what, value, right)
    character(*), intent(in) :: what
    real(real64), intent(in) :: value, right
    if (status == tally_ok .and. value == right) return
    wrong = 1
    print '(a, i0, 3a, g0, a, g0, 2a)', "rank ", rank, ": ", what, ": ", value, " for ", right, "; ", trim(tally_error_text())
  end subroutine
end program
