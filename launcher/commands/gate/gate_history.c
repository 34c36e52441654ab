/*
 * Appending to a history: see gate_history.h. A line is made in memory and written by one write(2) to a descriptor with
 * O_APPEND. One that does not fit on the disk is taken back; what a killed process left without a newline is closed by
 * one, so that it damages no other line.
 */
#include "launcher/commands/gate/gate_history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/base/json.h"
#include "launcher/base/outfile.h"
#include "launcher/base/path.h"
#include "launcher/base/regular.h"
#include "launcher/gate/fingerprint.h"
#include "launcher/gate/gate_command.h"

#define MAX_FUNCTIONS 64 /* of a case, those with the largest shares */
#define MAX_NAME 2000    /* bytes of a case's name, the command in a line */

static void put_text(FILE *out, const char *before, const char *text)
{
	fputs(before, out);
	csink_json_quote(out, text && *text ? text : NULL, false);
}

static void put_real(FILE *out, const char *before, double value)
{
	fputs(before, out);
	csink_json_put_real(out, value, 5);
}

/* What jobs on different machines, and people, read alike: UTC. */
static void put_time(FILE *out, const char *before, time_t when)
{
	char text[32] = "";
	struct tm utc;

	if (when > 0 && gmtime_r(&when, &utc))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	put_text(out, before, text);
}

static void put_machine(FILE *out)
{
	CSINK_AUTO_FREE char *cpu = csink_gate_cpu_name("/proc/cpuinfo");
	struct utsname name;

	put_text(out, ",\"machine\":{\"cpu\":", cpu);
	fprintf(out, ",\"cpus\":%ld", sysconf(_SC_NPROCESSORS_ONLN));
	put_text(out, ",\"kernel\":", uname(&name) ? NULL : name.release);
	putc('}', out);
}

/* ---- a case ---- */

/* Of an interpreted function without its line, which moves when lines above it are added. */
static void function_name(const struct csink_gate_result *r, const struct csink_gate_row *row, char *out, size_t size)
{
	const struct csink_gate_function *function = &r->data->functions.all[row->function];

	csink_gate_row_name(r, row, out, size);
	if (function->is_interpreted && function->line > 0)
		*strrchr(out, ':') = '\0';
}

static bool has_ratio(const struct csink_gate_row *row)
{
	return isfinite(row->ratio) && row->ratio > 0;
}

static void put_row(FILE *out, const struct csink_gate_row *row, double last)
{
	put_real(out, ":[", row->ratio);
	put_real(out, ",", row->interval.low);
	put_real(out, ",", row->interval.high);
	put_real(out, ",", last);
}

static void put_figures(FILE *out, const struct csink_gate_result *r)
{
	const char *before = "{\"figures\":{";

	for (uint32_t i = 0; i < r->verdicts->nr_metric_rows; i++) {
		const struct csink_gate_row *row = &r->verdicts->rows[i];

		if (!has_ratio(row))
			continue;
		put_text(out, before, r->data->metrics[row->metric].name);
		put_row(out, row, row->means[CSINK_GATE_NEW]);
		put_text(out, ",", csink_gate_row_unit(r, row));
		fputs(r->data->metrics[row->metric].more_is_better ? ",\"more\"]" : "]", out);
		before = ",";
	}
}

/* Whether a function that was put before has this name: without their lines, methods of one name in a file are alike.
 */
static bool is_known(const struct csink_gate_result *r, uint32_t index, const char *name)
{
	char other[1024];

	for (uint32_t i = r->verdicts->nr_metric_rows; i < index; i++) {
		const struct csink_gate_row *row = &r->verdicts->rows[i];

		if (!has_ratio(row) || row->function < 0)
			continue;
		function_name(r, row, other, sizeof(other));
		if (!strcmp(name, other))
			return true;
	}
	return false;
}

static void put_functions(FILE *out, const struct csink_gate_result *r)
{
	const char *before = "},\"functions\":{";
	uint32_t nr = 0;
	char name[1024];

	for (uint32_t i = r->verdicts->nr_metric_rows; i < r->verdicts->nr_rows && nr < MAX_FUNCTIONS; i++) {
		const struct csink_gate_row *row = &r->verdicts->rows[i];

		if (!has_ratio(row) || row->function < 0)
			continue;
		function_name(r, row, name, sizeof(name));
		if (is_known(r, i, name))
			continue;
		put_text(out, before, name);
		put_row(out, row, row->shares[CSINK_GATE_NEW]);
		putc(']', out);
		before = ",";
		nr++;
	}
	fputs(nr ? "}" : "},\"functions\":{}", out);
}

static bool has_figures(const struct csink_gate_result *r)
{
	for (uint32_t i = 0; i < r->verdicts->nr_metric_rows; i++) {
		if (has_ratio(&r->verdicts->rows[i]))
			return true;
	}
	return false;
}

/* Behind `env -C DIRECTORY`. */
static char *const *command_of(char *const *argv)
{
	bool elsewhere = argv[0] && argv[1] && argv[2] && argv[3] && !strcmp(csink_base_name(argv[0]), "env") &&
			 !strcmp(argv[1], "-C");

	return elsewhere ? argv + 3 : argv;
}

static void put_case(FILE *out, char *const *argv, const struct csink_gate_case *one)
{
	const struct csink_gate_result *r = one->result;
	char *const *command = command_of(argv);
	char name[MAX_NAME];

	csink_json_quote(out, one->name ?: csink_gate_command_print(command, name, sizeof(name)), false);
	putc(':', out);
	put_figures(out, r);
	put_functions(out, r);
	fprintf(out, ",\"pairs\":%u", r->verdicts->runs[CSINK_GATE_NEW]);
	put_text(out, ",\"event\":", r->event);
	if (one->suite)
		put_text(out, ",\"suite\":", one->suite);
	if (one->list)
		put_text(out, ",\"list\":", one->list);
	if (one->printed)
		fputs(",\"printed\":true", out);
	if (r->rules->folds_native)
		fputs(",\"fold_native\":true", out);
	for (char *const *word = command; *word; word++) {
		fputs(word == command ? ",\"command\":[" : ",", out);
		csink_json_quote(out, *word, false); /* an empty word, too */
	}
	fputs("]}", out);
}

/* ---- the line ---- */

static void put_line(FILE *out, const struct csink_gate_history *history, char *const *argv,
		     const struct csink_gate_case *cases, uint32_t nr_cases)
{
	const char *before = ",\"cases\":{";

	put_text(out, "{\"v\":1,\"commit\":", history->commit.id);
	put_text(out, ",\"parent\":", history->commit.parent);
	put_time(out, ",\"committed\":", (time_t)history->commit.committed_s);
	put_time(out, ",\"time\":", time(NULL));
	put_text(out, ",\"anchor\":", history->anchor);
	put_machine(out);
	for (uint32_t i = 0; i < nr_cases; i++) {
		if (!has_figures(cases[i].result))
			continue;
		fputs(before, out);
		put_case(out, argv, &cases[i]);
		before = ",";
	}
	fputs("}}\n", out);
}

/* Whether the last line of a file has no end. Of a pipe or a device it is not known. */
static bool is_open_ended(const char *path)
{
	CSINK_AUTO_CLOSE int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);
	struct stat st;
	char last = '\n';

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

/* All of it, or nothing of it. */
static int write_whole(int fd, const char *line, size_t bytes)
{
	struct stat before, after;
	bool can_undo = !fstat(fd, &before) && S_ISREG(before.st_mode);
	ssize_t wrote = write(fd, line, bytes);
	int err = wrote < 0 ? -errno : (size_t)wrote < bytes ? -ENOSPC : 0;

	/* If another job has appended since, or it cannot be cut off, the torn line stays, and is skipped by readers.
	 */
	if (err && wrote > 0 && can_undo && !fstat(fd, &after) && after.st_size == before.st_size + wrote)
		(void)!ftruncate(fd, before.st_size);
	return err;
}

int csink_gate_history_append(const struct csink_gate_history *history, char *const *argv,
			      const struct csink_gate_case *cases, uint32_t nr_cases)
{
	CSINK_AUTO_FREE char *line = NULL;
	struct csink_outfile file;
	size_t bytes = 0, skip;
	uint32_t nr = 0;
	FILE *out;
	int err;

	for (uint32_t i = 0; i < nr_cases; i++)
		nr += has_figures(cases[i].result);
	if (!nr)
		return -ENODATA;
	out = open_memstream(&line, &bytes);
	if (!out)
		return -ENOMEM;
	putc('\n', out); /* if the last line has no end */
	put_line(out, history, argv, cases, nr_cases);
	if (fclose(out))
		return -ENOMEM;
	err = csink_outfile_open(&file, history->path, CSINK_OUTFILE_APPEND);
	if (err == -EEXIST) /* another job has made it meanwhile */
		err = csink_outfile_open(&file, history->path, CSINK_OUTFILE_APPEND);
	if (err)
		return err;
	/* A line that another job is writing has no end yet. */
	(void)!flock(file.fd, LOCK_EX);
	skip = !is_open_ended(history->path);
	err = write_whole(file.fd, line + skip, bytes - skip);
	(void)!flock(file.fd, LOCK_UN); /* the descriptor may be a copy of one that stays open */
	return csink_outfile_close(&file, err);
}
