/* The baseline: see baseline.h. */
#include "launcher/gate/baseline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "include/internal/base.h"
#include "launcher/gate/command.h"
#include "launcher/gate/keep.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/facts.h"

#define FACT_VERSION "gate_version"
#define FACT_METRIC "gate_metric" /* "RUN VALUE UNIT NAME|TITLE"; several */
#define FACT_WEIGHT "gate_weight" /* "RUN WEIGHT NAME|MODULE|FILE:LINE": a function of a simulated run; several */
#define VERSION "1"
#define GOVERNOR_FILE "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

/* The parts of a fingerprint, and whether runs that differ there can be compared at all. */
static const struct part {
	const char *key, *title;
	size_t where;
	bool refused;
} parts[] = {
	{"gate_program", "program", offsetof(struct csink_gate_fingerprint, program), true},
	{"gate_mode", "kind of measurement", offsetof(struct csink_gate_fingerprint, mode), true},
	{"gate_events", "event", offsetof(struct csink_gate_fingerprint, events), true},
	{"gate_cpu", "CPU", offsetof(struct csink_gate_fingerprint, cpu), true},
	{"gate_command", "command line", offsetof(struct csink_gate_fingerprint, command), false},
	{"gate_frequency", "sampling frequency", offsetof(struct csink_gate_fingerprint, frequency), false},
	{"gate_kernel", "kernel", offsetof(struct csink_gate_fingerprint, kernel), false},
	{"gate_governor", "CPU frequency governor", offsetof(struct csink_gate_fingerprint, governor), false},
	{"gate_engine", "engine", offsetof(struct csink_gate_fingerprint, engine), false},
};

static char **part_of(const struct csink_gate_fingerprint *print, const struct part *part)
{
	return (char **)((char *)print + part->where);
}

/* ---- of this machine ---- */

/* The rest of the first line of a file that begins with key, after the colon; key "": the whole line. */
static char *line_of(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	char line[512], *value = strdup("");

	while (f && value && !*value && fgets(line, sizeof(line), f)) {
		char *at = *key ? strchr(line, ':') : line;

		if (strncmp(line, key, strlen(key)) || !at)
			continue;
		at += *key ? 1 + strspn(at + 1, " ") : 0;
		at[strcspn(at, "\n")] = '\0';
		free(value);
		value = strdup(at);
	}
	if (f)
		fclose(f);
	return value;
}

int csink_gate_fingerprint_take(struct csink_gate_fingerprint *print, char *const *argv,
				const struct csink_gate_runner *runner, bool simulate)
{
	const char *slash = strrchr(argv[0], '/');
	struct utsname name;
	char line[1900];

	memset(print, 0, sizeof(*print));
	print->program = strdup(slash && slash[1] ? slash + 1 : argv[0]);
	print->command = strdup(csink_gate_command_print(argv, line, sizeof(line)));
	print->events = strdup(simulate ? "instructions" : runner->events_text);
	print->frequency = strdup(simulate ? "" : runner->frequency_text);
	print->cpu = simulate ? strdup("") : line_of("/proc/cpuinfo", "model name");
	print->governor = simulate ? strdup("") : line_of(GOVERNOR_FILE, "");
	print->engine = strdup("");
	print->mode = strdup(simulate ? "simulated" : "measured");
	if (!uname(&name))
		snprintf(line, sizeof(line), "%s %s %s", name.sysname, name.release, name.machine);
	print->kernel = strdup(line);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		if (!*part_of(print, &parts[i]))
			return -ENOMEM;
	}
	return 0;
}

void csink_gate_fingerprint_release(struct csink_gate_fingerprint *print)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++)
		free(*part_of(print, &parts[i]));
	memset(print, 0, sizeof(*print));
}

/* ---- reading ---- */

/* The run with that number, which is made with those below it. */
static struct csink_gate_run *run_of(struct csink_gate_data *data, uint32_t number)
{
	while (data->nr_runs <= number) {
		if (!csink_gate_run_add(data, CSINK_GATE_OLD))
			return NULL;
	}
	return &data->runs[number];
}

static int read_metric(struct csink_gate_data *data, const char *text)
{
	unsigned int number;
	double value;
	char unit[16], name[64], title[80];
	struct csink_gate_run *run;
	int index;

	if (sscanf(text, "%u %lf %15s %63[^|]|%79[^\n]", &number, &value, unit, name, title) != 5 || number > 100000)
		return -EBADMSG;
	run = run_of(data, number);
	index = csink_gate_metric_find(data, name, title, unit);
	if (!run || index < 0)
		return run ? index : -ENOMEM;
	run->metrics[index] = value;
	return 0;
}

static int read_weight(struct csink_gate_data *data, const char *text)
{
	unsigned int number;
	double value;
	char name[1024], module[256] = "", file[512] = "";
	long long line = 0;
	struct csink_gate_run *run;
	int64_t function;

	if (sscanf(text, "%u %lf %1023[^|]|%255[^|]|%511[^|]|%lld", &number, &value, name, module, file, &line) < 3 ||
	    number > 100000)
		return -EBADMSG;
	run = run_of(data, number);
	function = run ? csink_gate_function_find(&data->functions, name, strcmp(module, "?") ? module : "") : -ENOMEM;
	if (function < 0 || csink_gate_weights_grow(&run->weights, data->functions.nr))
		return -ENOMEM;
	if (strcmp(file, "?"))
		csink_gate_function_learn(&data->functions, (uint32_t)function, CSINK_GATE_OLD, file, line);
	run->weights.self[function] += value;
	run->weights.sum += value;
	return 0;
}

static int read_runs(const struct csink_profile *profile, struct csink_gate_data *data)
{
	const char *text;
	int err = 0;

	for (uint32_t i = 0; !err && (text = csink_profile_fact(profile, FACT_METRIC, i)); i++)
		err = read_metric(data, text);
	for (uint32_t i = 0; !err && (text = csink_profile_fact(profile, FACT_WEIGHT, i)); i++)
		err = read_weight(data, text);
	if (!err && !data->nr_runs)
		err = -EBADMSG;
	/* A simulator's weights are all there is of them. */
	for (uint32_t i = 0; !err && profile->nr_samples && i < data->nr_runs; i++)
		err = csink_gate_take(&data->functions, profile, i, CSINK_GATE_OLD, &data->runs[i].weights);
	return err;
}

static int read_fingerprint(const struct csink_profile *profile, struct csink_gate_fingerprint *print)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		const char *text = csink_profile_fact(profile, parts[i].key, 0);

		*part_of(print, &parts[i]) = strdup(text ? text : "");
		if (!*part_of(print, &parts[i]))
			return -ENOMEM;
	}
	return 0;
}

int csink_gate_baseline_read(const char *path, struct csink_gate_data *data, struct csink_gate_baseline *out, char *why,
			     size_t why_size)
{
	char reason[256];
	const char *version;
	time_t when;
	struct tm tm;
	int err;

	memset(out, 0, sizeof(*out));
	err = csink_pprof_read(path, &out->profile, reason, sizeof(reason));
	if (err) {
		snprintf(why, why_size, "%s: %s%s", path, reason,
			 err == -ENOENT ? " (--update-baseline makes it)" : "; make it anew with --update-baseline");
		return err;
	}
	version = csink_profile_fact(out->profile, FACT_VERSION, 0);
	if (!version || strcmp(version, VERSION)) {
		snprintf(why, why_size, "%s: it is a profile, but %s; make a baseline with --update-baseline", path,
			 version ? "its runs are kept as another version of countersink keeps them"
				 : "holds no single runs, as a baseline does");
		return -EBADMSG;
	}
	err = read_fingerprint(out->profile, &out->print);
	if (!err)
		err = read_runs(out->profile, data);
	if (err)
		snprintf(why, why_size, "%s: %s; make it anew with --update-baseline", path,
			 err == -ENOMEM ? "no memory for it" : "the figures of its runs are damaged");
	when = (time_t)(out->profile->time_ns / (int64_t)CSINK_NS_PER_S);
	if (gmtime_r(&when, &tm))
		strftime(out->when, sizeof(out->when), "%Y-%m-%d %H:%M UTC", &tm);
	return err;
}

void csink_gate_baseline_release(struct csink_gate_baseline *baseline)
{
	csink_profile_destroy(baseline->profile);
	csink_gate_fingerprint_release(&baseline->print);
}

/* ---- comparing ---- */

bool csink_gate_baseline_fits(const struct csink_gate_baseline *baseline, const struct csink_gate_fingerprint *now,
			      struct csink_gate_series *series, char *why, size_t why_size)
{
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++) {
		const char *old = *part_of(&baseline->print, &parts[i]), *new = *part_of(now, &parts[i]);

		if (!strcmp(old, new) || (!parts[i].refused && (!*old || !*new)))
			continue;
		if (!parts[i].refused) {
			csink_gate_note(series, "the baseline was made with another %s: '%s', not '%s'", parts[i].title,
					old, new);
			continue;
		}
		snprintf(why, why_size,
			 "the baseline was made with another %s: '%s', not '%s'; make it anew with --update-baseline, "
			 "or compare all the same with --any-environment",
			 parts[i].title, old, new);
		return false;
	}
	return true;
}

void csink_gate_baseline_compare_modules(const struct csink_gate_baseline *baseline,
					 const struct csink_profile *profile, struct csink_gate_series *series)
{
	const struct csink_profile *old = baseline->profile;

	for (uint32_t i = 1; i < profile->nr_mappings; i++) {
		const char *file = csink_profile_text(profile, profile->mappings[i].file);
		const char *id = csink_profile_text(profile, profile->mappings[i].build_id);

		/* The program itself is meant to be another. */
		if (!strstr(file, ".so") || !*id)
			continue;
		for (uint32_t k = 1; k < old->nr_mappings; k++) {
			const char *old_id = csink_profile_text(old, old->mappings[k].build_id);

			if (!strcmp(csink_profile_text(old, old->mappings[k].file), file) && *old_id &&
			    strcmp(old_id, id))
				csink_gate_note(series, "%s is another build than when the baseline was made", file);
		}
	}
}

/* ---- writing ---- */

static void add_metrics(struct csink_profile *profile, const struct csink_gate_data *data)
{
	for (uint32_t i = 0, number = 0; i < data->nr_runs; i++) {
		const struct csink_gate_run *run = &data->runs[i];

		if (run->side != CSINK_GATE_NEW)
			continue;
		for (uint32_t m = 0; m < data->nr_metrics; m++) {
			if (isfinite(run->metrics[m]))
				csink_profile_fact_add(profile, FACT_METRIC, "%u %.17g %s %s|%s", number,
						       run->metrics[m], data->metrics[m].unit, data->metrics[m].name,
						       data->metrics[m].title);
		}
		number++;
	}
}

static void add_weights(struct csink_profile *profile, const struct csink_gate_data *data)
{
	for (uint32_t i = 0, number = 0; i < data->nr_runs; i++) {
		const struct csink_gate_weights *weights = &data->runs[i].weights;

		if (data->runs[i].side != CSINK_GATE_NEW)
			continue;
		for (uint32_t f = 0; f < weights->nr; f++) {
			const struct csink_gate_function *function = &data->functions.all[f];

			if (weights->self[f] > 0)
				csink_profile_fact_add(
					profile, FACT_WEIGHT, "%u %.17g %s|%s|%s|%lld", number, weights->self[f],
					function->name, *function->module ? function->module : "?",
					*function->file ? function->file : "?", (long long)function->line);
		}
		number++;
	}
}

int csink_gate_baseline_write(const char *path, struct csink_gate_series *series,
			      const struct csink_gate_fingerprint *print)
{
	struct csink_profile *profile = series->kept[CSINK_GATE_NEW];

	/* Nothing was sampled: the figures of the whole command are kept all the same. */
	if (!profile) {
		profile = series->kept[CSINK_GATE_NEW] = csink_profile_create();
		if (!profile || csink_profile_type_add(profile, "samples", "count") < 0)
			return -ENOMEM;
		profile->time_ns = (int64_t)time(NULL) * (int64_t)CSINK_NS_PER_S;
	}
	csink_profile_fact_add(profile, FACT_VERSION, "%s", VERSION);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(parts); i++)
		csink_profile_fact_add(profile, parts[i].key, "%s", *part_of(print, &parts[i]));
	add_metrics(profile, series->data);
	if (series->data->exact)
		add_weights(profile, series->data);
	return csink_pprof_write(profile, path);
}
