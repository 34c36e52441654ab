/*
 * `countersink salvage`: make the profiles of runs without launcher that were killed. The library starts it, detached,
 * in a process that finds a killed run's recordings at its start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/commands/registry.h"
#include "launcher/commands/salvage/salvage_options.h"
#include "launcher/session/detach.h"
#include "launcher/session/salvage.h"
#include "launcher/session/send_profile.h"
#include "preload/core/record/run_dir.h"

/* No later start can do more about them; or a full disk may have room again. */
enum { FOREVER_S = 24 * 3600, RETRY_S = 10 };

struct salvaged {
	bool quiet;
	uint32_t nr_made, nr_failed, nr_to_send, cap_to_send;
	char **to_send; /* paths of profiles */
};

static void note_to_send(struct salvaged *all, const char *path)
{
	char *copy = strdup(path);

	if (copy && CSINK_APPEND(all->to_send, all->nr_to_send, all->cap_to_send, copy))
		return;
	free(copy);
	csink_say("%s is not sent: not enough memory", path);
}

/* Once all are made: an unreachable server delays no profile. */
static void send_made(struct salvaged *all)
{
	for (uint32_t i = 0; i < all->nr_to_send; i++) {
		csink_send_by_environment(all->to_send[i], all->quiet);
		free(all->to_send[i]);
	}
	free(all->to_send);
}

static void salvage(const char *directory, void *context)
{
	struct salvaged *all = context;
	char to[PATH_MAX], why[CSINK_WHY_BYTES];
	int result = csink_salvage(directory, to, why, sizeof(why));

	/* Programs that start leave these alone for so long. */
	if (result == CSINK_SALVAGED_UNNAMED || result == -EPROTO)
		csink_salvage_announce(directory, FOREVER_S);
	else if (result < 0)
		csink_salvage_announce(directory, RETRY_S);
	if (result < 0) {
		all->nr_failed++;
		csink_say("%s; the recordings in %s are kept", why, directory);
	}
	if (result == CSINK_SALVAGED_UNNAMED && !all->quiet)
		csink_say("the recordings in %s name no output: `countersink report -o FILE %s` makes the profile",
			  directory, directory);
	if (result != CSINK_SALVAGED_PROFILE)
		return;
	all->nr_made++;
	note_to_send(all, to);
	if (!all->quiet)
		csink_say("%s: made of the recordings in %s", to, directory);
}

static void announce(const char *directory, void *context)
{
	(void)context;
	csink_salvage_announce(directory, 0);
}

static int main_salvage(const struct csink_options *o, int nr, char **operands)
{
	struct salvaged all = {.quiet = csink_options_bool(o, CSINK_SALVAGE_OPT_QUIET)};
	const char *places[CSINK_RUN_DIR_PLACES];
	uint64_t max_bytes = csink_options_bytes(o, CSINK_SALVAGE_OPT_MAX_PLACE);
	const char *const *from = nr ? (const char *const *)operands : places;

	if (csink_options_bool(o, CSINK_SALVAGE_OPT_DETACH))
		csink_detach(0);
	csink_run_dir_places(places);
	if (!nr)
		nr = CSINK_RUN_DIR_PLACES;
	for (int i = 0; i < nr; i++)
		if (from[i])
			csink_salvage_each(from[i], announce, NULL);
	for (int i = 0; i < nr; i++)
		if (from[i])
			csink_salvage_each(from[i], salvage, &all);
	for (int i = 0; i < nr; i++) {
		uint32_t nr_lost = from[i] ? csink_salvage_bound(from[i], max_bytes) : 0;

		if (nr_lost)
			csink_say("%s: %u killed run%s removed without a profile: their recordings took more than "
				  "--max-place",
				  from[i], nr_lost, nr_lost == 1 ? " was" : "s were");
	}
	if (!all.quiet && !all.nr_made && !all.nr_failed)
		csink_say("found no recordings of killed runs");
	send_made(&all);
	return all.nr_failed ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

const struct csink_command csink_command_salvage = {
	.name = "salvage",
	.synopsis = "salvage [OPTION]... [DIRECTORY]...",
	.help = "make the profiles of killed runs",
	.main = main_salvage,
	CSINK_COMMAND_OPTIONS(CSINK_SALVAGE_OPTIONS),
};
