/*
 * Harnesses whose cases are run by a module of the gate, which is loaded into their interpreter (modules.S): where it
 * is, the file with the cases that a process runs, and what the process reports of them. harness.h has the contract.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "launcher/base/json.h"
#include "launcher/base/json_read.h"
#include "launcher/gate/suite/harness.h"

int csink_suite_write_module(struct csink_suite *suite, const char *name, const char *text)
{
	FILE *file;
	int err;

	if (*suite->module)
		return 0;
	if (!*suite->report)
		return CSINK_SUITE_WHY(suite, -ENOENT, "no directory could be made for what the harness is to load");
	snprintf(suite->module, sizeof(suite->module), "%s/%s", suite->directory.path, name);
	file = fopen(suite->module, "we");
	if (!file)
		return CSINK_SUITE_WHY(suite, -errno, "%s: %s", suite->module, strerror(errno));
	err = fputs(text, file) < 0 ? -EIO : 0;
	if (fclose(file))
		err = -errno;
	return err ? CSINK_SUITE_WHY(suite, err, "%s: %s", suite->module, strerror(-err)) : 0;
}

/* @n  iterations; 0: each case's own. */
static int write_cases(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
		       uint64_t n, const char *path)
{
	FILE *file = fopen(path, "we");
	struct csink_json json;
	int err = 0;

	if (!file)
		return CSINK_SUITE_WHY(suite, -errno, "%s: %s", path, strerror(errno));
	csink_json_init(&json, file, '[');
	for (uint32_t i = 0; i < nr; i++) {
		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "name", cases[i]->place[side] ?: cases[i]->name);
		csink_json_number(&json, "case", cases[i] - suite->cases);
		csink_json_text(&json, "function", cases[i]->frame);
		csink_json_number(&json, "number", (int64_t)(n ? n : cases[i]->n));
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	err = ferror(file) ? -EIO : 0;
	if (fclose(file))
		err = -errno;
	return err ? CSINK_SUITE_WHY(suite, err, "%s: %s", path, strerror(-err)) : 0;
}

int csink_suite_put_cases(struct csink_suite *suite, int side, struct csink_suite_case *const *cases, uint32_t nr,
			  uint64_t n, struct csink_suite_job *job)
{
	CSINK_AUTO_FREE char *path = NULL;
	int err;

	/* The file of all is made for each run, that of a case stays for its runs. */
	if ((n ? asprintf(&path, "%s/case-%td-%d", suite->directory.path, cases[0] - suite->cases, side)
	       : asprintf(&path, "%s/cases", suite->directory.path)) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	err = write_cases(suite, side, cases, nr, n, path);
	if (err)
		return err;
	csink_suite_put(&job->env, "COUNTERSINK_CASES=%s", path);
	csink_suite_put(&job->env, "COUNTERSINK_CASES_REPORT=%s", suite->report);
	return 0;
}

void csink_suite_put_files(struct csink_suite_case *const *cases, uint32_t nr, size_t (*file_of)(const char *name),
			   struct csink_suite_words *argv)
{
	for (uint32_t i = 0, k; i < nr; i++) {
		size_t len = file_of(cases[i]->name);

		for (k = 0; k < i; k++) {
			if (file_of(cases[k]->name) == len && !strncmp(cases[k]->name, cases[i]->name, len))
				break;
		}
		if (k == i)
			csink_suite_put_bytes(argv, cases[i]->name, len);
	}
}

bool csink_suite_next_reported(const char **report, struct csink_suite_reported *line)
{
	size_t len;
	const char *text = *report ? csink_suite_line(report, &len) : NULL, *error, *skipped;
	struct csink_json_value *json = text ? csink_json_read(text, len) : NULL;

	error = csink_json_get_text(json, "error");
	skipped = csink_json_get_text(json, "skipped");
	*line = (struct csink_suite_reported){.index = csink_json_get_number(json, "case"),
					      .begins = csink_json_get(json, "begins"),
					      .ends = csink_json_get(json, "ends"),
					      .is_async = csink_json_get_true(json, "async"),
					      .made = fmax(0, csink_json_get_number(json, "iterations")),
					      .seconds = fmax(0, csink_json_get_number(json, "seconds"))};
	if (error || skipped)
		snprintf(line->error, sizeof(line->error), "the benchmark %s: %.600s", error ? "fails" : "is skipped",
			 error ?: skipped);
	csink_json_free(json);
	return text;
}

double csink_suite_module_count(struct csink_suite_case *c, const char *out, const char *report, char *why, size_t size)
{
	struct csink_suite_reported line;
	double made = 0;

	(void)out;
	while (made >= 0 && csink_suite_next_reported(&report, &line)) {
		made = *line.error ? csink_why(-1, why, size, "%s", line.error) : made + line.made;
		c->is_async |= line.is_async;
	}
	return made;
}

double csink_suite_module_seconds(const struct csink_suite_case *c, const char *out, const char *report)
{
	struct csink_suite_reported line;
	double seconds = 0;

	(void)c;
	(void)out;
	while (csink_suite_next_reported(&report, &line))
		seconds += line.seconds;
	return seconds;
}
