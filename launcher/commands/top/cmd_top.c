/* `countersink top`: what a run that goes on does, by function, thread and phase. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/commands/registry.h"
#include "launcher/commands/top/top_live.h"
#include "launcher/commands/top/top_options.h"
#include "launcher/commands/top/top_picture.h"
#include "launcher/commands/top/top_print.h"
#include "launcher/commands/top/top_source.h"
#include "launcher/session/leftovers.h"
#include "launcher/symbols/symbols_kept.h"

enum { MAX_RUNS = 16 }; /* that are listed */

static uint32_t index_of(const char *word, const char *const *words)
{
	uint32_t i = 0;

	while (strcmp(words[i], word))
		i++;
	return i;
}

/* ---- one picture ---- */

static void print_table(const struct csink_options *o, const struct csink_top_source *source,
			struct csink_top_picture *picture, bool has_ended)
{
	enum csink_top_view view = index_of(csink_options_text(o, CSINK_TOP_OPT_BY), csink_top_view_words);
	enum csink_top_sort by = index_of(csink_options_text(o, CSINK_TOP_OPT_SORT), csink_top_sort_words);
	uint64_t limit = csink_options_number(o, CSINK_TOP_OPT_LIMIT);
	uint32_t nr = csink_top_picture_sort(picture, view, by);

	for (uint32_t i = 0; i < CSINK_TOP_HEAD_LINES; i++) {
		csink_top_print_head(stdout, source, picture, i, has_ended ? "the run has ended" : "", 0);
		putchar('\n');
	}
	if (!picture->samples[CSINK_TOP_ALL]) {
		puts("no sample yet");
		return;
	}
	csink_top_print_titles(stdout, picture, view, 0);
	putchar('\n');
	for (uint32_t i = 0; i < CSINK_MIN(nr, limit); i++) {
		csink_top_print_row(stdout, picture, view, i, 0);
		putchar('\n');
	}
}

/* Less than the interval if what is sampled from outside ends. */
static void wait_interval(struct csink_top_source *source, uint64_t interval_ns)
{
	uint64_t end_ns = csink_monotonic_ns() + interval_ns, now_ns;
	struct pollfd fd = {.fd = csink_top_source_fd(source), .events = POLLIN};

	while ((now_ns = csink_monotonic_ns()) < end_ns) {
		uint64_t ms = (end_ns - now_ns) / 1000000 + 1;

		poll(&fd, 1, (int)CSINK_MIN(ms, fd.fd < 0 ? (uint64_t)INT_MAX : (uint64_t)CSINK_TOP_DRAIN_MS));
		if (!csink_top_source_drain(source))
			return;
	}
}

/* Two looks, with the interval between them. If the run ends meanwhile, the first one is all that there is. */
static int once(const struct csink_options *o, struct csink_top_source *source)
{
	enum csink_top_sort by = index_of(csink_options_text(o, CSINK_TOP_OPT_SORT), csink_top_sort_words);
	struct csink_top_picture picture;
	struct csink_top_sight first, second;
	int err = csink_top_source_take(source, &first);
	bool has_ended = false;

	if (err)
		return csink_fail(CSINK_EXIT_FAILED, "%s: %s", source->name,
				  err == -ESTALE ? "the run has ended" : strerror(-err));
	wait_interval(source, csink_options_seconds(o, CSINK_TOP_OPT_INTERVAL));
	err = csink_top_source_take(source, &second);
	has_ended = err == -ESTALE || err == -ENOENT;
	if (has_ended) {
		second = first;
		err = 0;
	} else {
		csink_top_sight_free(&first);
		has_ended = !err && second.is_over;
	}
	err = err ?: csink_top_picture_make(&picture, &second);
	if (err)
		return csink_fail(CSINK_EXIT_FAILED, "%s: %s", source->name, strerror(-err));
	if (csink_options_bool(o, CSINK_TOP_OPT_JSON))
		csink_top_print_json(stdout, source, &picture, by, has_ended);
	else
		print_table(o, source, &picture, has_ended);
	csink_top_picture_free(&picture);
	return csink_end_output("top", CSINK_EXIT_OK);
}

static int live(const struct csink_options *o, struct csink_top_source *source)
{
	struct csink_top_screen screen = {
		.source = source,
		.view = index_of(csink_options_text(o, CSINK_TOP_OPT_BY), csink_top_view_words),
		.sort = index_of(csink_options_text(o, CSINK_TOP_OPT_SORT), csink_top_sort_words),
		.interval_ns = csink_options_seconds(o, CSINK_TOP_OPT_INTERVAL),
		.selected = -1,
	};

	return csink_top_live(&screen);
}

/* The one run of the caller's that goes on. NULL: there is none, or there are several; that has been reported. */
static const char *find_run(struct csink_leftover *run)
{
	struct csink_leftover all[MAX_RUNS];
	uint32_t nr = csink_live_runs_find(all, MAX_RUNS);

	*run = all[0];
	if (nr == 1)
		return run->path;
	if (!nr) {
		csink_say("no run of this user goes on: start one with `countersink -- COMMAND`, or give -p PID or "
			  "--cgroup PATH to sample from outside");
		return NULL;
	}
	csink_say("%u runs go on; choose one by `countersink top DIRECTORY`:", nr);
	for (uint32_t i = 0; i < CSINK_MIN(nr, (uint32_t)MAX_RUNS); i++)
		csink_say("  %s  %s, %u process%s", all[i].path, all[i].comm, all[i].nr_processes,
			  all[i].nr_processes == 1 ? "" : "es");
	return NULL;
}

static int main_top(const struct csink_options *o, int nr, char **operands)
{
	uint64_t pid = csink_options_number(o, CSINK_TOP_OPT_PID);
	bool is_once = csink_options_bool(o, CSINK_TOP_OPT_ONCE);
	static struct csink_top_source source;
	const char *cgroup = csink_options_text(o, CSINK_TOP_OPT_CGROUP);
	const char *directory = nr ? *operands : NULL;
	struct csink_leftover run;
	char why[CSINK_WHY_BYTES];
	int status;

	if (nr + !!pid + !!*cgroup > 1)
		return csink_fail(CSINK_EXIT_USAGE, "give one target: -p PID, --cgroup PATH, or a run directory (see "
						    "countersink help top)");
	if (!nr && !pid && !*cgroup) {
		directory = find_run(&run);
		if (!directory)
			return CSINK_EXIT_FAILED;
	}
	if (pid > INT32_MAX)
		return csink_fail(CSINK_EXIT_FAILED, "there is no process %s",
				  csink_options_text(o, CSINK_TOP_OPT_PID));
	if (!is_once && csink_options_bool(o, CSINK_TOP_OPT_JSON))
		return csink_fail(CSINK_EXIT_USAGE, "option --json needs --once");
	if (csink_top_source_open(&source, directory, (int32_t)pid, *cgroup ? cgroup : NULL, why, sizeof(why)))
		return csink_fail(CSINK_EXIT_FAILED, "%s", why);
	csink_symbols_keep_begin();
	status = is_once ? once(o, &source) : live(o, &source);
	csink_top_source_close(&source);
	return status;
}

const struct csink_command csink_command_top = {
	.name = "top",
	.synopsis = "top [OPTION]... [-p PID | --cgroup PATH | DIRECTORY]",
	.help = "show what programs do while they run",
	.main = main_top,
	CSINK_COMMAND_OPTIONS(CSINK_TOP_OPTIONS),
};
