/* `countersink history FILE`: what gates appended, as a table, with the commits at which something changed. */
#include <errno.h>
#include <stdio.h>

#include "launcher/base/message.h"
#include "launcher/commands/history/history_options.h"
#include "launcher/commands/history/history_print.h"
#include "launcher/commands/registry.h"

/* Whether something got slower, which the last line has shown first. Later lines do not alarm again. */
static bool is_news(const struct csink_history *h, const struct csink_history_changes *changes)
{
	for (uint32_t i = 0; i < changes->nr; i++) {
		if (changes->all[i].is_slower && changes->all[i].found == h->nr_lines - 1)
			return true;
	}
	return false;
}

static int show(const struct csink_options *o, const struct csink_history *h)
{
	bool all = csink_options_bool(o, CSINK_HISTORY_OPT_ALL);
	struct csink_history_changes changes;
	int status;

	if (csink_history_changes_find(h, all, &changes))
		return csink_fail(CSINK_EXIT_FAILED, "not enough memory to look for changes");
	csink_history_print_table(stdout, &(struct csink_history_view){h, &changes, all});
	status = csink_end_output("history", is_news(h, &changes) ? CSINK_EXIT_REGRESSED : CSINK_EXIT_OK);
	csink_history_changes_free(&changes);
	return status;
}

static int main_history(const struct csink_options *o, int nr, char **operands)
{
	struct csink_history history;
	char why[CSINK_WHY_BYTES];
	int status;

	if (nr != 1)
		return csink_fail(CSINK_EXIT_USAGE, "history takes one file, which countersink gate --history wrote "
						    "(see countersink help history)");
	if (csink_history_read(operands[0], &history, why, sizeof(why)))
		return csink_fail(CSINK_EXIT_FAILED, "%s", why);
	status = show(o, &history);
	csink_history_free(&history);
	return status;
}

const struct csink_command csink_command_history = {
	.name = "history",
	.synopsis = "history [OPTION]... FILE",
	.help = "print the history of a gate, and where something changed (3: got slower with the last line)",
	.main = main_history,
	CSINK_COMMAND_OPTIONS(CSINK_HISTORY_OPTIONS),
};
