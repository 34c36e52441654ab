/*
 * Which rank of a parallel job a process is, by the variables that launchers of such jobs set: OpenMPI's mpirun,
 * Hydra's (MPICH, Intel MPI) and other users of PMI, Slurm's srun. Context of everything here: thread.
 */
#ifndef CSINK_RANK_H
#define CSINK_RANK_H

#include <stddef.h>
#include <stdint.h>

#include "preload/core/record/output_path.h"

struct csink_rank {
	int32_t rank;   /* below size */
	int32_t size;   /* at least 2 */
	const char *by; /* the variable that has the rank */
};

/**
 * Find the rank that values of csink_rank_take() have. The first launcher of whose variables both are set decides: what
 * runs below another one (mpirun in a job of Slurm) has set them later. A job of one process has no ranks, and neither
 * has the batch script of a job.
 * @values  each ended by NUL.
 * @why     receives what is wrong with them.
 * Returns 1, 0 (no rank), or -EINVAL (no numbers, or a rank that is not below the size).
 */
int csink_rank_read(const char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES], struct csink_rank *rank,
		    char *why, size_t why_size);

/**
 * The same as csink_rank_take() of another process's environment, as /proc/PID/environ has it: len bytes, with a NUL
 * behind them.
 */
void csink_rank_take_block(const char *block, size_t len, char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES]);

/** The rank of this process: 1, 0 (none, or values that are wrong). */
int csink_rank_own(struct csink_rank *rank);

/** The batch job that this process belongs to: "Slurm 1234.0" (of a step), "PBS 17.server"; "": none is known. */
void csink_rank_job(char *buf, size_t size);

#endif
