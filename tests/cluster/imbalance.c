/*
 * imbalance MILLIONS [RANK]: work in proportion to the rank and one, and a sum over all ranks, which rank 0 prints to
 * the last bit. With RANK, that rank is killed after its work, and the others wait for it.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static double compute(long rounds)
{
	double sum = 1;

	for (long i = 1; i <= rounds; i++)
		sum += 1.0 / (double)i / sum;
	return sum;
}

int main(int argc, char **argv)
{
	double mine, all;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	mine = compute(atol(argv[1]) * 1000000 * (rank + 1));
	if (argc > 2 && atoi(argv[2]) == rank)
		kill(getpid(), SIGKILL);
	MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%a of %d\n", all, size);
	MPI_Finalize();
	return 0;
}
