/* Ranks of parallel jobs, by the variables of their launchers: which count, and what is no rank. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/rank.h"
#include "tests/unit/tap.h"

static struct csink_rank rank;
static char why[128];

/* Of an environment as /proc has it: n bytes with NULs. */
static int of_block(const char *block, size_t len)
{
	char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES] = {{0}};

	rank = (struct csink_rank){-1, -1, "none"};
	why[0] = '\0';
	csink_rank_take_block(block, len, values);
	return csink_rank_read(values, &rank, why, sizeof(why));
}
#define OF(block) of_block(block "\0", sizeof(block))

static void is_rank(int got, int number, int size, const char *by, const char *what)
{
	ok(got == 1 && rank.rank == number && rank.size == size && !strcmp(rank.by, by), "%s", what);
}

static void test_launchers(void)
{
	is_rank(OF("A=b\0OMPI_COMM_WORLD_RANK=3\0OMPI_COMM_WORLD_SIZE=4"), 3, 4, "OMPI_COMM_WORLD_RANK",
		"OpenMPI's rank");
	is_rank(OF("PMI_SIZE=2\0PMI_RANK=0"), 0, 2, "PMI_RANK", "Hydra's rank, the first of two");
	is_rank(OF("SLURM_PROCID=7\0SLURM_NTASKS=9\0SLURM_STEP_NUM_TASKS=8"), 7, 8, "SLURM_PROCID", "srun's rank");
	is_num(OF("SLURM_PROCID=0\0SLURM_NTASKS=8\0SLURM_JOB_ID=5"), 0, "the script of sbatch has no rank");
	is_num(OF("PMIX_RANK=1"), 0, "a rank without the number of ranks is none");
	is_num(OF("OMPI_COMM_WORLD_SIZE=4"), 0, "a number of ranks without a rank is none");
	is_num(OF("PMI_RANK=0\0PMI_SIZE=1"), 0, "a job of one process has no ranks");
	is_num(OF("XPMI_RANK=0\0XPMI_SIZE=4"), 0, "variables whose names end like these are others");
	is_num(OF("PMI_RANK_=0\0PMI_SIZE_=4"), 0, "variables whose names begin like these are others");
	is_num(of_block("", 0), 0, "an empty environment has no rank");
}

static void test_conflicts(void)
{
	is_rank(OF("SLURM_PROCID=0\0SLURM_STEP_NUM_TASKS=2\0OMPI_COMM_WORLD_RANK=5\0OMPI_COMM_WORLD_SIZE=8"), 5, 8,
		"OMPI_COMM_WORLD_RANK", "mpirun in a step of Slurm: the rank is mpirun's");
	is_rank(OF("SLURM_PROCID=0\0SLURM_STEP_NUM_TASKS=2\0PMI_RANK=1\0PMI_SIZE=8"), 1, 8, "PMI_RANK",
		"Hydra in a step of Slurm: the rank is Hydra's");
	is_num(OF("SLURM_PROCID=1\0SLURM_STEP_NUM_TASKS=2\0PMI_RANK=0\0PMI_SIZE=1"), 0,
	       "a single process of Hydra in a step of Slurm has no rank");
	is_rank(OF("PMI_RANK=\0PMI_SIZE=\0SLURM_PROCID=1\0SLURM_STEP_NUM_TASKS=2"), 1, 2, "SLURM_PROCID",
		"empty variables are none");
	is_rank(OF("PMI_RANK=1\0PMI_SIZE=4\0PMI_RANK=3\0PMI_SIZE=8"), 1, 4, "PMI_RANK",
		"of variables of one name the first counts");
	is_num(of_block("PMI_SIZE=200\0PMI_RANK=12", sizeof("PMI_SIZE=200\0PMI_RANK=12") - 1), 0,
	       "a variable that is cut is none");
}

static void test_nonsense(void)
{
	static const char *const wrong[][2] = {{"abc", "4"},
					       {"4", "4"},
					       {"-1", "4"},
					       {"+1", "4"},
					       {" 1", "4"},
					       {"1x", "4"},
					       {"0", "-4"},
					       {"0", "2147483648"},
					       {"0", "0"},
					       {"1", "1"},
					       {"99999999999999999", "4"}};
	char block[128];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		size_t len = (size_t)snprintf(block, sizeof(block), "PMI_RANK=%s%cPMI_SIZE=%s", wrong[i][0], 0,
					      wrong[i][1]) +
			     1;

		ok(of_block(block, len) == -EINVAL && strstr(why, "PMI_RANK=") && strstr(why, "PMI_SIZE="),
		   "rank %s of %s is refused, and both are named", wrong[i][0], wrong[i][1]);
	}
	is_rank(OF("PMI_RANK=2147483646\0PMI_SIZE=2147483647"), 2147483646, 2147483647, "PMI_RANK",
		"the largest rank is one");
	is_num(OF("PMI_RANK=x\0PMI_SIZE=4\0SLURM_PROCID=1\0SLURM_STEP_NUM_TASKS=2"), -EINVAL,
	       "nonsense is not passed over for another launcher's rank");
}

static const char *job(void)
{
	static char text[128];

	csink_rank_job(text, sizeof(text));
	return text;
}

static void test_job(void)
{
	unsetenv("SLURM_JOB_ID");
	unsetenv("SLURM_STEP_ID");
	unsetenv("PBS_JOBID");
	unsetenv("LSB_JOBID");
	is_str(job(), "", "no batch job");
	setenv("LSB_JOBID", "77", 1);
	is_str(job(), "LSF 77", "a job of LSF");
	setenv("PBS_JOBID", "17.server", 1);
	is_str(job(), "PBS 17.server", "a job of PBS");
	setenv("SLURM_JOB_ID", "1234", 1);
	is_str(job(), "Slurm 1234", "the script of sbatch: a job of Slurm");
	setenv("SLURM_STEP_ID", "0", 1);
	is_str(job(), "Slurm 1234.0", "srun: a job of Slurm, and its step");
}

int main(void)
{
	test_launchers();
	test_conflicts();
	test_nonsense();
	test_job();
	return done();
}
