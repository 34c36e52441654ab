/* See run_ranks.h. Runs in the launcher's one thread. */
#include "launcher/commands/run/run_ranks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/message.h"
#include "launcher/base/rank.h"
#include "launcher/commands/run/run_options.h"

/* A number at the text, which goes on behind it; -1: there is none, or it is too large. */
static int64_t take_number(const char **text)
{
	size_t len = strspn(*text, "0123456789");
	int64_t number = len && len < 11 ? strtoll(*text, NULL, 10) : -1;

	*text += len;
	return number <= INT32_MAX ? number : -1;
}

int csink_ranks_have(const char *list, int32_t rank, int32_t *lowest, int32_t *highest)
{
	int64_t first, last, least = INT32_MAX, most = 0;
	bool has = false;

	do {
		first = last = take_number(&list);
		if (*list == '-') {
			list++;
			last = take_number(&list);
		}
		if (first < 0 || last < first || (*list && *list != ','))
			return -EINVAL;
		has |= first <= rank && rank <= last;
		least = CSINK_MIN(least, first);
		most = CSINK_MAX(most, last);
	} while (*list++);
	*lowest = (int32_t)least;
	*highest = (int32_t)most;
	return has;
}

/* The variable of the environment alone asks for a report from each rank. */
static bool wants_all_reports(const struct csink_options *o)
{
	return o->values[CSINK_OPT_REPORT].source == CSINK_FROM_ENVIRONMENT && csink_options_bool(o, CSINK_OPT_REPORT);
}

/* Are there variables with a rank, which are none? */
static bool is_wrong(char *why, size_t why_size)
{
	char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES] = {{0}};
	struct csink_rank rank;

	csink_rank_take(values);
	return csink_rank_read(values, &rank, why, why_size) < 0;
}

static int choose(const struct csink_options *o, const struct csink_rank *rank, struct csink_run_ranks *ranks)
{
	const char *list = csink_options_text(o, CSINK_OPT_RANKS);
	int32_t lowest = 0, highest = 0;
	char where[64], why[CSINK_WHY_BYTES];
	int has;

	csink_options_where(o, CSINK_OPT_RANKS, where, sizeof(where));
	has = csink_ranks_have(list, rank->rank, &lowest, &highest);
	if (has < 0)
		return csink_fail(-EINVAL,
				  "%s: '%s' is no list of ranks: numbers, and ranges from low to high, as in "
				  "0,7,100-110",
				  where, list);
	if (!rank->size && is_wrong(why, sizeof(why)))
		return csink_fail(-EINVAL, "%s: %s", where, why);
	if (!rank->size)
		return csink_fail(-EINVAL,
				  "%s: this process is no rank of a parallel job: start countersink in each "
				  "rank (mpirun countersink --ranks=... COMMAND)",
				  where);
	if (lowest >= rank->size)
		return csink_fail(-EINVAL, "%s: the job has %d rank%s: there is no rank %d", where, rank->size,
				  rank->size == 1 ? "" : "s", lowest);
	ranks->is_profiled = has > 0;
	ranks->has_others = lowest < CSINK_MIN(highest, rank->size - 1);
	ranks->prints = rank->rank == lowest || wants_all_reports(o);
	return 0;
}

int csink_run_ranks_find(const struct csink_options *o, struct csink_run_ranks *ranks)
{
	struct csink_rank rank = {0};

	ranks->is_rank = csink_rank_own(&rank) > 0;
	/* A job of one process has rank 0, for --ranks. */
	if (!ranks->is_rank && (rank.size != 1 || rank.rank))
		rank = (struct csink_rank){0};
	ranks->is_profiled = true;
	ranks->has_others = ranks->is_rank;
	ranks->prints = !ranks->is_rank || !rank.rank || wants_all_reports(o);
	return *csink_options_text(o, CSINK_OPT_RANKS) ? choose(o, &rank, ranks) : 0;
}
