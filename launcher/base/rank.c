/* See rank.h. */
#include "launcher/base/rank.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/message.h"

#define SOURCE(rank, size)                                                                                             \
	{                                                                                                              \
		CSINK_##rank, CSINK_##size, #rank, #size                                                               \
	}

/* PMIX_RANK has no variable with the size beside it. */
static const struct source {
	uint8_t rank, size;
	const char *rank_name, *size_name;
} sources[] = {
	SOURCE(OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE),
	SOURCE(PMI_RANK, PMI_SIZE),
	/* srun sets the latter, and not sbatch, whose script has a SLURM_PROCID as well. */
	SOURCE(SLURM_PROCID, SLURM_STEP_NUM_TASKS),
};

/* Digits alone, up to INT32_MAX. */
static bool number_of(const char *text, int32_t *number)
{
	size_t len = strspn(text, "0123456789");
	long long value = len && len < 11 ? strtoll(text, NULL, 10) : -1;

	*number = (int32_t)value;
	return !text[len] && value >= 0 && value <= INT32_MAX;
}

int csink_rank_read(const char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES], struct csink_rank *rank,
		    char *why, size_t why_size)
{
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(sources); i++) {
		const struct source *source = &sources[i];
		const char *number = values[source->rank], *size = values[source->size];

		if (!*number || !*size)
			continue;
		rank->by = source->rank_name;
		if (!number_of(number, &rank->rank) || !number_of(size, &rank->size) || rank->rank >= rank->size)
			return csink_why(-EINVAL, why, why_size, "%s=%s and %s=%s are no rank of a parallel job",
					 source->rank_name, number, source->size_name, size);
		return rank->size > 1;
	}
	return 0;
}

/* The first line of a name counts, as it does for getenv(). */
static void take(const char *line, const char *name, char value[CSINK_RANK_VALUE_BYTES])
{
	size_t len = strlen(name);

	if (!*value && !strncmp(line, name, len) && line[len] == '=')
		snprintf(value, CSINK_RANK_VALUE_BYTES, "%s", line + len + 1);
}

void csink_rank_take_block(const char *block, size_t len, char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES])
{
	/* A line without end is one that was cut. */
	for (const char *line = block; line + strlen(line) < block + len; line += strlen(line) + 1) {
		for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(sources); i++) {
			take(line, sources[i].rank_name, values[sources[i].rank]);
			take(line, sources[i].size_name, values[sources[i].size]);
		}
	}
}

int csink_rank_own(struct csink_rank *rank)
{
	char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES] = {{0}};

	csink_rank_take(values);
	return csink_rank_read(values, rank, NULL, 0) > 0;
}

void csink_rank_job(char *buf, size_t size)
{
	static const struct {
		const char *system, *job, *step;
	} jobs[] = {{"Slurm", "SLURM_JOB_ID", "SLURM_STEP_ID"}, {"PBS", "PBS_JOBID", NULL}, {"LSF", "LSB_JOBID", NULL}};

	*buf = '\0';
	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(jobs); i++) {
		const char *job = getenv(jobs[i].job), *step = jobs[i].step ? getenv(jobs[i].step) : NULL;

		if (!job || !*job)
			continue;
		snprintf(buf, size, "%s %.64s%s%.32s", jobs[i].system, job, step && *step ? "." : "", step ? step : "");
		return;
	}
}
