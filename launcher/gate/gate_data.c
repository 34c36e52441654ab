/* The runs of a gate and their figures: see gate.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/grow.h"
#include "launcher/gate/gate.h"

const char *const csink_gate_verdict_words[CSINK_GATE_NR_VERDICTS] = {
	[CSINK_GATE_UNCHANGED] = "unchanged",
	[CSINK_GATE_IMPROVED] = "improved",
	[CSINK_GATE_REGRESSED] = "regressed",
	[CSINK_GATE_INCONCLUSIVE] = "inconclusive",
};

struct csink_gate_run *csink_gate_run_add(struct csink_gate_data *data, enum csink_gate_side side)
{
	struct csink_gate_run *run;

	if (CSINK_GROW(data->runs, data->nr_runs, data->cap_runs))
		return NULL;
	run = &data->runs[data->nr_runs++];
	memset(run, 0, sizeof(*run));
	run->side = side;
	run->number = -1;
	run->cpu = -1;
	for (uint32_t i = 0; i < CSINK_GATE_MAX_METRICS; i++)
		run->metrics[i] = NAN;
	return run;
}

void csink_gate_run_drop(struct csink_gate_data *data)
{
	csink_gate_weights_free(&data->runs[--data->nr_runs].weights);
}

int csink_gate_metric_lookup(const struct csink_gate_data *data, const char *name)
{
	for (uint32_t i = 0; i < data->nr_metrics; i++) {
		if (!strcmp(data->metrics[i].name, name))
			return (int)i;
	}
	return -ENOENT;
}

int csink_gate_metric_find(struct csink_gate_data *data, const char *name, const char *title, const char *unit)
{
	int index = csink_gate_metric_lookup(data, name);
	struct csink_gate_metric *metric;

	if (index >= 0)
		return index;
	if (data->nr_metrics == CSINK_GATE_MAX_METRICS)
		return -ENOSPC;
	metric = &data->metrics[data->nr_metrics];
	snprintf(metric->name, sizeof(metric->name), "%s", name);
	snprintf(metric->title, sizeof(metric->title), "%s", title);
	snprintf(metric->unit, sizeof(metric->unit), "%s", unit);
	return (int)data->nr_metrics++;
}

void csink_gate_data_free(struct csink_gate_data *data)
{
	for (uint32_t i = 0; i < data->nr_runs; i++)
		csink_gate_weights_free(&data->runs[i].weights);
	free(data->runs);
	csink_gate_functions_free(&data->functions);
	memset(data, 0, sizeof(*data));
}
