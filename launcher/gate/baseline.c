/* The baseline: see baseline.h. */
#include "launcher/gate/baseline.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"
#include "launcher/session/open_profile.h"

#define FACT_VERSION "gate_version"
#define FACT_METRIC "gate_metric" /* "RUN VALUE UNIT NAME|TITLE"; several */
#define FACT_WEIGHT "gate_weight" /* "RUN WEIGHT NAME|MODULE|FILE:LINE": a function of a simulated run; several */
#define VERSION "1"
#define REPORTED "|reported"
#define MORE "|more"
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

/* A title that ends with "|reported" or "|reported|more". */
static void read_reported(struct csink_gate_metric *metric)
{
	char *mark = strstr(metric->title, REPORTED);

	if (!mark)
		return;
	metric->is_reported = true;
	metric->more_is_better = !strcmp(mark, REPORTED MORE);
	*mark = '\0';
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
	read_reported(&data->metrics[index]);
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
	/* Counted weights are all there is of them. */
	for (uint32_t i = 0; !err && profile->nr_samples && i < data->nr_runs; i++)
		err = csink_gate_take(&data->functions, profile, NULL, i, CSINK_GATE_OLD, &data->runs[i].weights);
	return err;
}

int csink_gate_baseline_read(const char *path, struct csink_gate_data *data, struct csink_gate_baseline *out, char *why,
			     size_t why_size)
{
	const char *version;
	time_t when;
	struct tm tm;
	int err;

	memset(out, 0, sizeof(*out));
	if (access(path, F_OK) && errno == ENOENT)
		return csink_why(-ENOENT, why, why_size, "%s: there is no such file (--update-baseline makes it)",
				 path);
	err = csink_profile_open(path, &out->profile, why, why_size);
	if (err) {
		/* Whatever it is, it is not lost. */
		if (err == -EBADMSG)
			csink_append(why, why_size, "; --update-baseline makes a baseline, and keeps this as FILE.old");
		return err;
	}
	version = csink_profile_fact(out->profile, FACT_VERSION, 0);
	if (!version || strcmp(version, VERSION))
		return csink_why(-EBADMSG, why, why_size,
				 "%s: it is a profile, but %s; make a baseline with --update-baseline", path,
				 version ? "its runs have the format of another version of countersink"
					 : "has no single runs, which a baseline needs");
	err = read_runs(out->profile, data);
	if (err)
		snprintf(why, why_size, "%s: %s; make it again with --update-baseline", path,
			 err == -ENOMEM ? "no memory for it" : "the figures of its runs are damaged");
	when = (time_t)(out->profile->time_ns / (int64_t)CSINK_NS_PER_S);
	if (gmtime_r(&when, &tm))
		strftime(out->when, sizeof(out->when), "%Y-%m-%d %H:%M UTC", &tm);
	return err;
}

/* ---- writing ---- */

static void add_metrics(struct csink_profile *profile, const struct csink_gate_data *data,
			const struct csink_gate_run *run, uint32_t number)
{
	for (uint32_t m = 0; m < data->nr_metrics; m++) {
		if (isfinite(run->metrics[m]))
			csink_profile_fact_add(profile, FACT_METRIC, "%u %.17g %s %s|%s%s%s", number, run->metrics[m],
					       data->metrics[m].unit, data->metrics[m].name, data->metrics[m].title,
					       data->metrics[m].is_reported ? REPORTED : "",
					       data->metrics[m].more_is_better ? MORE : "");
	}
}

static void add_weights(struct csink_profile *profile, const struct csink_gate_data *data,
			const struct csink_gate_weights *weights, uint32_t number)
{
	for (uint32_t f = 0; f < weights->nr; f++) {
		const struct csink_gate_function *function = &data->functions.all[f];

		if (weights->self[f] > 0)
			csink_profile_fact_add(profile, FACT_WEIGHT, "%u %.17g %s|%s|%s|%lld", number, weights->self[f],
					       function->name, *function->module ? function->module : "?",
					       *function->file ? function->file : "?", (long long)function->line);
	}
}

int csink_gate_baseline_write(const char *path, struct csink_gate_series *series, const struct csink_profile *print,
			      unsigned int how)
{
	struct csink_profile *profile = series->kept[CSINK_GATE_NEW];
	const struct csink_gate_data *data = series->data;

	/* Nothing was sampled: the figures of the whole command are kept all the same. */
	if (!profile) {
		profile = series->kept[CSINK_GATE_NEW] = csink_profile_create();
		if (!profile || csink_profile_type_add(profile, "samples", "count") < 0)
			return -ENOMEM;
		profile->time_ns = (int64_t)time(NULL) * (int64_t)CSINK_NS_PER_S;
	}
	/* Once: it may be written to another place after the first was refused. */
	if (csink_profile_fact(profile, FACT_VERSION, 0))
		return csink_pprof_write_as(profile, path, how);
	csink_profile_fact_add(profile, FACT_VERSION, "%s", VERSION);
	csink_gate_fingerprint_write(print, profile);
	for (uint32_t i = 0, number = 0; i < data->nr_runs; i++) {
		if (data->runs[i].side != CSINK_GATE_NEW)
			continue;
		add_metrics(profile, data, &data->runs[i], number);
		if (data->exact)
			add_weights(profile, data, &data->runs[i].weights, number);
		number++;
	}
	return csink_pprof_write_as(profile, path, how);
}
