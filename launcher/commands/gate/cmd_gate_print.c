/* Telling what a gate found, in every format that was asked for: see launcher/commands/gate/cmd_gate_print.h. */
#include "launcher/commands/gate/cmd_gate_print.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/outfile.h"
#include "launcher/commands/gate/gate_options.h"
#include "launcher/commands/registry.h"
#include "launcher/output/export.h"
#include "launcher/output/html.h"
#include "launcher/output/report.h"
#include "launcher/session/open_profile.h"

static const char *text_of(const struct csink_gate_settings *s, enum csink_gate_opt option)
{
	return csink_options_text(&s->options, option);
}

static bool flag_of(const struct csink_gate_settings *s, enum csink_gate_opt option)
{
	return csink_options_bool(&s->options, option);
}

struct printing {
	void (*print)(FILE *, const struct csink_gate_result *);
	const struct csink_gate_result *result;
};

static int print_result(FILE *out, void *arg)
{
	const struct printing *p = arg;

	p->print(out, p->result);
	return 0;
}

/* @how: bits of enum csink_outfile_how. */
static bool write_file(const char *path, unsigned int how, void (*print)(FILE *, const struct csink_gate_result *),
		       const struct csink_gate_result *result)
{
	struct printing p = {print, result};
	bool is_stdout = !strcmp(path, "-");
	int err;

	if (is_stdout) {
		print(stdout, result);
		err = csink_report_flush(stdout);
	} else {
		err = csink_export_file_as(path, how, print_result, &p);
	}
	if (err)
		csink_say_unwritten(is_stdout ? "standard output" : path, -err, NULL);
	return !err;
}

/* Both sides' runs as a differential flame graph. */
struct page {
	const struct csink_html_side *sides;
	struct csink_html_options options;
};

static int print_page(FILE *out, void *arg)
{
	const struct page *page = arg;

	return csink_html_write_diff(out, &page->sides[0], &page->sides[1], &page->options);
}

static bool write_html(const char *path, struct csink_gate_series *series, const struct csink_html_side *sides)
{
	struct page page = {sides, {.title = "countersink gate"}};
	int err;

	if (!sides[0].profile || !sides[1].profile) {
		csink_gate_note(series, "%s was not written: there are no samples of both sides", path);
		return true;
	}
	err = csink_export_file(path, print_page, &page);
	if (err)
		csink_say_unwritten(path, -err, NULL);
	return !err;
}

/* Returns 0, errno or a csink_outfile_errno. */
static int check_writable(const char *path)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int err;

	if (!*path || !strcmp(path, "-"))
		return 0;
	if (csink_is_directory(path))
		return EISDIR;
	err = csink_outfile_check(path, CSINK_OUTFILE_IN_PLACE);
	if (err < -CSINK_OUTFILE_ERRORS)
		return -err;
	if (!access(path, W_OK))
		return 0;
	if (errno != ENOENT)
		return errno;
	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	return access(directory, W_OK | X_OK) ? errno : 0;
}

/* The file that GitHub gives a step to write its summary to; NULL elsewhere. */
static const char *summary_file(void)
{
	const char *summary = getenv("GITHUB_STEP_SUMMARY"), *actions = getenv("GITHUB_ACTIONS");

	return summary && *summary && actions && !strcmp(actions, "true") ? summary : NULL;
}

bool csink_gate_can_tell(const struct csink_gate_settings *s)
{
	const struct {
		const char *path, *what;
	} files[] = {
		{text_of(s, CSINK_GATE_OPT_TAP), ""},
		{text_of(s, CSINK_GATE_OPT_JUNIT), ""},
		{text_of(s, CSINK_GATE_OPT_JSON), ""},
		{text_of(s, CSINK_GATE_OPT_MARKDOWN), ""},
		{text_of(s, CSINK_GATE_OPT_HTML), ""},
		{s->update ? text_of(s, CSINK_GATE_OPT_BASELINE) : "", "option --baseline: "},
		{summary_file() ? summary_file() : "", "GITHUB_STEP_SUMMARY in the environment: "},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(files); i++) {
		int err = check_writable(files[i].path);

		if (!err)
			continue;
		csink_say("%s%s cannot be written: %s", files[i].what, files[i].path, csink_outfile_error(err));
		return false;
	}
	return true;
}

int csink_gate_tell(const struct csink_gate_settings *s, struct csink_gate_series *series,
		    const struct csink_html_side *sides, struct csink_gate_result *r)
{
	static const struct {
		enum csink_gate_opt option;
		unsigned int how;
		void (*print)(FILE *out, const struct csink_gate_result *r);
	} formats[] = {
		{CSINK_GATE_OPT_TAP, 0, csink_gate_print_tap},
		{CSINK_GATE_OPT_JUNIT, 0, csink_gate_print_junit},
		{CSINK_GATE_OPT_JSON, 0, csink_gate_print_json},
		{CSINK_GATE_OPT_MARKDOWN, CSINK_OUTFILE_APPEND, csink_gate_print_markdown},
	};
	const char *actions = getenv("GITHUB_ACTIONS");
	char headline[1024];
	bool written = true;

	if (*text_of(s, CSINK_GATE_OPT_HTML) && !r->error)
		written = write_html(text_of(s, CSINK_GATE_OPT_HTML), series, sides);
	r->notes = series->notes;
	r->nr_notes = series->nr_notes;
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(formats); i++) {
		if (*text_of(s, formats[i].option))
			written &= write_file(text_of(s, formats[i].option), formats[i].how, formats[i].print, r);
	}
	if (summary_file())
		written &= write_file(summary_file(), CSINK_OUTFILE_APPEND, csink_gate_print_markdown, r);
	if (flag_of(s, CSINK_GATE_OPT_GITHUB) || (actions && !strcmp(actions, "true"))) {
		csink_gate_print_github(stderr, r);
		fflush(stderr);
	}
	if (written)
		return csink_gate_status(r);
	/* What the runs have shown is not lost with a file. */
	if (!r->error) {
		csink_gate_headline(r, headline, sizeof(headline));
		csink_say("the output is incomplete; the verdict: %s", headline);
	}
	return CSINK_EXIT_FAILED;
}
