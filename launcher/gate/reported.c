/* Figures that a command reports of itself: see reported.h. In the launcher's one thread. */
#include "launcher/gate/reported.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"

#define MAX_FIGURES 16  /* lines of a run */
#define MAX_BYTES 16384 /* of them */
#define MAX_SHOWN 60    /* bytes of a line in a note */

int csink_gate_reported_begin(void)
{
	int fd = memfd_create("figures", MFD_CLOEXEC);
	char path[64];

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	setenv(CSINK_GATE_FIGURES, path, 1);
	return fd;
}

void csink_gate_reported_end(int fd)
{
	unsetenv(CSINK_GATE_FIGURES);
	if (fd >= 0)
		close(fd);
}

static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len && len < 40 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == len;
}

/* Is a member of a run's object in --json called so? */
static bool is_member(const char *name)
{
	static const char *const members[] = {"side", "pair", "pin", "samples", "functions"};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(members); i++)
		if (!strcmp(name, members[i]))
			return true;
	return false;
}

const char *csink_gate_reported_refuse(const char *name)
{
	if (!is_name(name))
		return "its name is not of 1 to 39 letters, digits, _, - or .";
	return is_member(name) ? "something else of each run has this name in JSON" : NULL;
}

/* Returns NULL, or why the line cannot be used. */
static const char *take_line(struct csink_gate_series *series, struct csink_gate_run *run, char *line)
{
	char *rest = NULL, *name = strtok_r(line, " \t", &rest), *value = strtok_r(NULL, " \t", &rest);
	const char *unit = strtok_r(NULL, " \t", &rest), *better = unit ? strtok_r(NULL, " \t", &rest) : NULL;
	uint32_t had = series->data->nr_metrics;
	struct csink_gate_metric *metric;
	char *end = NULL;
	double number = value ? strtod(value, &end) : NAN;
	int index;

	if (csink_gate_reported_refuse(name ?: ""))
		return csink_gate_reported_refuse(name ?: "");
	if (!value || end == value || *end || !isfinite(number) || number < 0)
		return "its value is no number from 0 up";
	if (unit && strlen(unit) >= sizeof(metric->unit))
		return "its unit is longer than 15 bytes";
	if (better && strcmp(better, "more") && strcmp(better, "less"))
		return "its fourth word is neither more nor less";
	if (better && !strcmp(better, "more") && number == 0)
		return "0 of what is better when it is more has no ratio";
	index = csink_gate_metric_find(series->data, name, name, unit ?: "count");
	if (index < 0)
		return "there are too many figures";
	metric = &series->data->metrics[index];
	if ((uint32_t)index == had) {
		metric->is_reported = true;
		metric->more_is_better = better && !strcmp(better, "more");
	} else if (!metric->is_reported) {
		return CSINK_GATE_REPORTED_TAKEN;
	}
	run->metrics[index] = number;
	return NULL;
}

int csink_gate_reported_take(struct csink_gate_series *series, struct csink_gate_run *run, int fd)
{
	CSINK_AUTO_FREE char *text = calloc(1, MAX_BYTES + 1);
	char *rest = NULL;
	uint32_t nr = 0;

	if (!text)
		return -ENOMEM;
	if (fd < 0 || pread(fd, text, MAX_BYTES, 0) <= 0)
		return 0;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char shown[MAX_SHOWN + 1];
		const char *why;

		snprintf(shown, sizeof(shown), "%s", line);
		why = nr++ < MAX_FIGURES ? take_line(series, run, line) : "there are too many figures";
		if (why)
			csink_gate_note(series, "a figure that the command reported is not judged: %s: '%s'", why,
					shown);
	}
	return 0;
}
