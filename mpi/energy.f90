! energy.f90 - a small climate-like model: waves on a ring of cells, whose energy is kept constant by what all ranks
! measure together. The measure goes into every step, so one other bit in it is another run.
!
!     mpirun -n P energy        prints P, and the bits of the energy after 200 steps, measured
!                               by tally_allreduce() and by MPI_SUM
program energy
  use mpi_f08
  use tally_mpi
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer, parameter :: cells = 10007, steps = 200
  integer :: rank, ranks
  real(real64) :: ours, plain

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  ours = run(.true.)
  plain = run(.false.)
  if (rank == 0) print '(i5, "  tally ", z16.16, "  MPI_SUM ", z16.16)', ranks, transfer(ours, 0_int64), &
    transfer(plain, 0_int64)
  call MPI_Finalize()

contains

  ! The energy of all cells, from this rank's.
  function measure(part, exactly) result(total)
    real(real64), intent(in) :: part(:)
    logical, intent(in) :: exactly
    real(real64) :: total
    integer :: status
    if (exactly) then
      call tally_allreduce(part, tally_sum, total, MPI_COMM_WORLD%MPI_VAL, status)
      if (status /= tally_ok) then
        print '(a)', trim(tally_error_text())
        call MPI_Abort(MPI_COMM_WORLD, 1)
      end if
    else
      total = sum(part)
      call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    end if
  end function

  ! The energy after all steps.
  function run(exactly) result(last)
    logical, intent(in) :: exactly
    real(real64) :: last, first, scale
    real(real64), allocatable :: u(:), v(:), part(:)
    integer :: low, n, i, step, left, right
    low = int(int(cells, int64) * rank / ranks)
    n = int(int(cells, int64) * (rank + 1) / ranks) - low
    left = modulo(rank - 1, ranks)
    right = modulo(rank + 1, ranks)
    allocate (u(0:n + 1), v(n), part(n))
    do i = 1, n
      u(i) = 1 / (1d0 + modulo(int(low + i, int64) * 7919_int64, 1009_int64))
      v(i) = 0.25d0 - 0.5d0 * modulo(low + i, 2)
    end do
    first = 0
    do step = 1, steps
      call MPI_Sendrecv(u(n), 1, MPI_DOUBLE_PRECISION, right, 0, u(0), 1, MPI_DOUBLE_PRECISION, left, 0, &
        MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, &
        MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      v = v + 0.3d0 * (u(0:n - 1) - 2 * u(1:n) + u(2:n + 1))
      u(1:n) = u(1:n) + 0.3d0 * v
      part = v**2 + u(1:n)**2
      last = measure(part, exactly)
      if (step == 1) first = last
      scale = sqrt(first / last)
      u(1:n) = u(1:n) * scale
      v = v * scale
    end do
  end function
end program
