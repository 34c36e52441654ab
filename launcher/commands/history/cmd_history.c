/* `countersink history FILE`: the lines that gates appended, as a table, with the commits at which something changed.
 */
#include <stdio.h>
#include <string.h>

#include "launcher/base/message.h"
#include "launcher/commands/history/history_options.h"
#include "launcher/commands/history/history_print.h"
#include "launcher/commands/registry.h"
#include "launcher/output/export.h"
#include "launcher/output/report.h"

/* Was a change point at which something got slower found at the last line? The next line does not raise it again. */
static bool is_news(const struct csink_history *h, const struct csink_history_changes *changes)
{
	for (uint32_t i = 0; i < changes->nr; i++) {
		if (changes->all[i].is_slower && changes->all[i].found == h->nr_lines - 1)
			return true;
	}
	return false;
}

struct output {
	const char *word; /* the format of an export, the title of a page */
	const struct csink_history_view *view;
};

static int write_export(FILE *out, void *arg)
{
	const struct output *export = arg;

	return csink_history_export(out, export->word, export->view);
}

static int write_html(FILE *out, void *arg)
{
	const struct output *page = arg;

	return csink_history_html(out, page->word, page->view);
}

/* The page, where one is wanted. Returns 0 or -errno, and a line on stderr has the reason. */
static int write_page(const struct csink_options *o, const char *title, const struct csink_history_view *view)
{
	const char *path = csink_options_text(o, CSINK_HISTORY_OPT_HTML);
	struct output page = {title, view};
	int err = *path ? csink_export_file(path, 0, write_html, &page) : 0;

	if (err)
		csink_say_unwritten(path, -err, NULL);
	return err;
}

/* Returns likewise. */
static int print(const struct csink_options *o, const struct csink_history_view *view)
{
	const char *path = csink_options_text(o, CSINK_HISTORY_OPT_OUTPUT);
	struct output export = {csink_options_text(o, CSINK_HISTORY_OPT_EXPORT), view};
	bool is_stdout = !strcmp(path, "-");
	int err;

	if (!*export.word) {
		csink_history_print_table(stdout, view);
		err = csink_report_flush(stdout);
	} else {
		err = is_stdout ? write_export(stdout, &export) : csink_export_file(path, 0, write_export, &export);
	}
	if (err)
		csink_say_unwritten(is_stdout ? "standard output" : path, -err, NULL);
	return err;
}

static int show(const struct csink_options *o, const char *path, struct csink_history *h)
{
	bool all = csink_options_bool(o, CSINK_HISTORY_OPT_ALL);
	struct csink_history_changes changes;
	struct csink_history_view view = {.history = h, .changes = &changes, .all = all};
	int status, page_err;

	if (csink_history_changes_find(h, all, &changes))
		return csink_fail(CSINK_EXIT_FAILED, "not enough memory to look for changes");
	if (csink_history_view_init(&view)) {
		csink_history_changes_free(&changes);
		return csink_fail(CSINK_EXIT_FAILED, "not enough memory to show a history");
	}
	page_err = write_page(o, strcmp(path, "-") ? path : "standard input", &view);
	if (print(o, &view) || page_err)
		status = CSINK_EXIT_FAILED;
	else
		status = is_news(h, &changes) ? CSINK_EXIT_REGRESSED : CSINK_EXIT_OK;
	csink_history_view_free(&view);
	csink_history_changes_free(&changes);
	return status;
}

static int main_history(const struct csink_options *o, int nr, char **operands)
{
	struct csink_history history;
	char why[CSINK_WHY_BYTES];
	int status;

	if (*csink_options_text(o, CSINK_HISTORY_OPT_OUTPUT) == '\0')
		return csink_fail(CSINK_EXIT_USAGE, "option --output: the value is empty");
	if (!*csink_options_text(o, CSINK_HISTORY_OPT_EXPORT) &&
	    strcmp(csink_options_text(o, CSINK_HISTORY_OPT_OUTPUT), "-"))
		return csink_fail(CSINK_EXIT_USAGE, "option --output: it is for --export, which is not given");
	if (nr != 1)
		return csink_fail(CSINK_EXIT_USAGE, "history takes one file, which countersink gate --history wrote "
						    "(see countersink help history)");
	if (csink_history_read(operands[0], &history, why, sizeof(why)))
		return csink_fail(CSINK_EXIT_FAILED, "%s", why);
	status = show(o, operands[0], &history);
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
