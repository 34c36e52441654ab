/* The files that a gate writes: see gate_output.h. */
#include "launcher/commands/gate/gate_output.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/output/export.h"
#include "launcher/output/report.h"
#include "launcher/session/open_profile.h"

bool csink_gate_write(const char *path, unsigned int how, int (*write)(FILE *out, void *arg), void *arg)
{
	bool is_stdout = !strcmp(path, "-");
	int err;

	if (!*path)
		return true;
	if (is_stdout)
		err = write(stdout, arg) ?: csink_report_flush(stdout);
	else
		err = csink_export_file(path, how, write, arg);
	if (err)
		csink_say_unwritten(is_stdout ? "standard output" : path, -err, NULL);
	return !err;
}

bool csink_gate_write_page(const char *path, struct csink_gate_series *series, const struct csink_html_side *sides)
{
	struct csink_html_page page = {{sides[0], sides[1]}, 2, "countersink gate", NULL};
	int err;

	if (!sides[0].profile || !sides[1].profile) {
		csink_gate_note(series, "%s was not written: there are no samples of both sides", path);
		return true;
	}
	err = csink_export_page(path, &page);
	if (err)
		csink_say_unwritten(path, -err, NULL);
	return !err;
}

bool csink_gate_write_history(const struct csink_gate_history *history, char *const *argv,
			      const struct csink_gate_case *cases, uint32_t nr_cases, const char *headline)
{
	int err = csink_gate_history_append(history, argv, cases, nr_cases);
	char kept[1100];

	if (err == -ENODATA) {
		csink_say("%s: no line was appended, since no runs were made", history->path);
		return true;
	}
	snprintf(kept, sizeof(kept), "no line was appended; the verdict: %.1000s", headline);
	if (err)
		csink_say_unwritten(history->path, -err, kept);
	return !err;
}

bool csink_gate_is_in_actions(void)
{
	const char *actions = getenv("GITHUB_ACTIONS");

	return actions && !strcmp(actions, "true");
}

const char *csink_gate_summary_file(void)
{
	const char *summary = getenv("GITHUB_STEP_SUMMARY");

	return summary && csink_gate_is_in_actions() ? summary : "";
}

int csink_gate_check_writable(const char *path)
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

bool csink_gate_can_report(const struct csink_gate_settings *set)
{
	const struct {
		const char *path, *what;
	} files[] = {
		{csink_gate_option_text(set, CSINK_GATE_OPT_TAP), ""},
		{csink_gate_option_text(set, CSINK_GATE_OPT_JUNIT), ""},
		{csink_gate_option_text(set, CSINK_GATE_OPT_JSON), ""},
		{csink_gate_option_text(set, CSINK_GATE_OPT_MARKDOWN), ""},
		{csink_gate_option_text(set, CSINK_GATE_OPT_HTML), ""},
		{csink_gate_option_text(set, CSINK_GATE_OPT_VERDICT), ""},
		{csink_gate_option_text(set, CSINK_GATE_OPT_BADGE), ""},
		{csink_gate_option_text(set, CSINK_GATE_OPT_HISTORY), ""},
		{set->update ? csink_gate_option_text(set, CSINK_GATE_OPT_BASELINE) : "", "option --baseline: "},
		{csink_gate_summary_file(), "GITHUB_STEP_SUMMARY in the environment: "},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(files); i++) {
		int err = csink_gate_check_writable(files[i].path);

		if (!err)
			continue;
		csink_say("%s%s cannot be written: %s", files[i].what, files[i].path, csink_outfile_error(err));
		return false;
	}
	return true;
}
