/*
 * From runs to verdicts: figures of the whole command here, functions in judge_functions.c, what moved between them in
 * rollup.c.
 *
 * A regression is one only if chance does not explain it (the p-value, adjusted for the number of questions, is at most
 * alpha) and if it matters (the whole interval is beyond the threshold).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "launcher/gate/judge_impl.h"

#define MAX_LEAST 60 /* runs; what these cannot show, more cannot either */
#define POWER 0.8    /* with which the detection floor is stated */

/* ---- one row ---- */

static bool is_flat(const struct judge *judge)
{
	EACH_RUN(judge, side, i)
	{
		if (judge->values[side][i] != judge->values[0][0])
			return false;
	}
	return true;
}

/* Exact counts need no test: all runs of one side against all of the other. */
static void compare_exactly(struct judge *judge, struct csink_gate_row *row)
{
	double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};

	EACH_RUN(judge, side, i)
	{
		low[side] = fmin(low[side], judge->values[side][i]);
		high[side] = fmax(high[side], judge->values[side][i]);
	}
	row->ratio = row->cost_ratio;
	row->interval = (struct csink_interval){low[1] / high[0], high[1] / low[0]};
	row->p_greater = low[1] > high[0] ? 0 : 1;
	row->p_less = high[1] < low[0] ? 0 : 1;
	if (isnan(row->interval.low) || isnan(row->interval.high)) /* nothing before, nothing now */
		row->interval = (struct csink_interval){row->ratio, row->ratio};
}

/* Returns true if there is nothing to test: the row is complete then. */
static bool is_plain(struct judge *judge, struct csink_gate_row *row)
{
	if (judge->data->exact) {
		compare_exactly(judge, row);
		return true;
	}
	if (!is_flat(judge))
		return false;
	row->ratio = 1;
	row->interval = (struct csink_interval){1, 1};
	row->p_greater = row->p_less = 1;
	return true;
}

static double p_value(struct judge *judge, bool by_ranks, enum csink_tail tail)
{
	double *a = judge->values[0], *b = judge->values[1], *d = judge->differences;
	uint32_t nr_a = judge->nr[0], nr_b = judge->nr[1];

	if (!judge->data->paired)
		return by_ranks ? csink_wilcoxon_two(a, nr_a, b, nr_b, tail)
				: csink_permute_two(a, nr_a, b, nr_b, tail, &judge->random);
	for (uint32_t i = 0; i < nr_a; i++)
		d[i] = b[i] - a[i];
	return by_ranks ? csink_wilcoxon_paired(d, nr_a, tail) : csink_permute_paired(d, nr_a, tail, &judge->random);
}

static void test(struct judge *judge, bool by_ranks, struct csink_gate_row *row)
{
	row->p_greater = p_value(judge, by_ranks, CSINK_TAIL_GREATER);
	row->p_less = p_value(judge, by_ranks, CSINK_TAIL_LESS);
}

void csink_judge_weights(struct judge *judge, struct csink_gate_row *row)
{
	double *a = judge->values[0], *b = judge->values[1];

	if (is_plain(judge, row))
		return;
	csink_judge_estimate(judge, row);
	row->ratio = csink_mean(b, judge->nr[1]) / csink_mean(a, judge->nr[0]);
	test(judge, false, row);
	if (csink_bootstrap(csink_statistic_ratio, judge->data->paired, a, judge->nr[0], b, judge->nr[1],
			    CSINK_GATE_LEVEL, &judge->random, &row->interval)) {
		/* What was not there before has no ratio to doubt; one run a side leaves all open. */
		if (isinf(row->ratio))
			row->interval = (struct csink_interval){row->ratio, row->ratio};
		else
			row->interval = (struct csink_interval){0, INFINITY};
	}
}

void csink_judge_differences(const double *differences, uint32_t nr, struct csink_gate_row *row)
{
	csink_judge_estimate_logs(differences, nr, row);
	row->p_greater = csink_wilcoxon_paired(differences, nr, CSINK_TAIL_GREATER);
	row->p_less = csink_wilcoxon_paired(differences, nr, CSINK_TAIL_LESS);
	row->ratio = exp(csink_hodges_lehmann(differences, nr));
	if (csink_wilcoxon_interval(differences, nr, CSINK_GATE_LEVEL, &row->interval))
		row->interval = (struct csink_interval){-INFINITY, INFINITY};
	row->interval.low = exp(row->interval.low);
	row->interval.high = exp(row->interval.high);
}

/* values: logarithms. */
static void judge_logs(struct judge *judge, struct csink_gate_row *row)
{
	csink_statistic_fn shift = judge->data->paired ? csink_statistic_shift_paired : csink_hodges_lehmann_two;
	double *a = judge->values[0], *b = judge->values[1];
	uint32_t nr_a = judge->nr[0], nr_b = judge->nr[1];

	test(judge, true, row);
	row->ratio = exp(shift(a, nr_a, b, nr_b));
	if (csink_bootstrap(shift, judge->data->paired, a, nr_a, b, nr_b, CSINK_GATE_LEVEL, &judge->random,
			    &row->interval))
		row->interval = (struct csink_interval){-INFINITY, INFINITY};
	row->interval.low = exp(row->interval.low);
	row->interval.high = exp(row->interval.high);
}

void csink_judge_ranks(struct judge *judge, struct csink_gate_row *row)
{
	if (is_plain(judge, row))
		return;
	EACH_RUN(judge, side, i)
	{
		if (!(judge->values[side][i] > 0)) {
			csink_judge_weights(judge, row);
			return;
		}
	}
	csink_judge_estimate(judge, row);
	EACH_RUN(judge, side, i)
	judge->values[side][i] = log(judge->values[side][i]);
	/* So few pairs have no interval by signed ranks. */
	if (!judge->data->paired || judge->nr[0] < CSINK_JUDGE_LEAST_PAIRS) {
		judge_logs(judge, row);
		return;
	}
	for (uint32_t i = 0; i < judge->nr[0]; i++)
		judge->differences[i] = judge->values[1][i] - judge->values[0][i];
	csink_judge_differences(judge->differences, judge->nr[0], row);
}

/* ---- verdicts ---- */

uint32_t csink_judge_least_runs(const struct judge *judge, uint32_t nr_tests, bool steady)
{
	double target = judge->out->alpha * (1 - CSINK_COST_ALPHA) / CSINK_MAX(nr_tests, 1U);
	bool paired = judge->data->paired;
	uint32_t runs = 2;

	while (runs < MAX_LEAST &&
	       csink_smallest_p(paired, paired ? runs : judge->nr[0], runs) * (steady ? runs + 1 : 1) > target)
		runs++;
	return runs;
}

void csink_judge_conclude(const struct judge *judge, struct csink_gate_row *row, double q_greater, double q_less,
			  uint32_t nr_tests)
{
	double most = 1 + judge->rules->threshold, least = 1 / most;
	double alpha = row->metric >= 0 ? judge->out->alpha : judge->out->alpha * (1 - CSINK_COST_ALPHA);
	/* Too few runs to show a change cannot show that there is none, either. */
	bool too_few = !judge->data->exact && judge->nr[1] < csink_judge_least_runs(judge, 1, false);

	row->q = row->ratio >= 1 ? q_greater : q_less;
	row->runs_needed = 0;
	row->can_regress = false;
	if (q_greater <= alpha && row->interval.low > most) {
		row->verdict = CSINK_GATE_REGRESSED;
	} else if (q_less <= alpha && row->interval.high < least) {
		row->verdict = CSINK_GATE_IMPROVED;
	} else if (!too_few && row->interval.low >= least && row->interval.high <= most) {
		row->verdict = CSINK_GATE_UNCHANGED;
	} else {
		row->verdict = CSINK_GATE_INCONCLUSIVE;
		row->can_regress = too_few || row->interval.high > most;
		row->runs_needed = judge->data->exact ? 0 : csink_judge_more_runs(judge, row, nr_tests);
	}
}

/* Of functions, many may have changed: to find them makes it no more likely that another one is blamed (Holm). */
static int conclude_all(struct judge *judge, csink_adjust_fn adjust, struct csink_gate_row *rows, uint32_t nr)
{
	CSINK_AUTO_FREE double *p = calloc((size_t)nr * 4 + 1, sizeof(*p));
	double *p_less = p + nr, *q_greater = p + 2 * (size_t)nr, *q_less = p + 3 * (size_t)nr;
	int err = p ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < nr; i++) {
		p[i] = rows[i].p_greater;
		p_less[i] = rows[i].p_less;
	}
	err = err ?: adjust(p, nr, q_greater) ?: adjust(p_less, nr, q_less);
	for (uint32_t i = 0; !err && i < nr; i++)
		csink_judge_conclude(judge, &rows[i], q_greater[i], q_less[i], nr);
	return err;
}

/* ---- figures of the whole command ---- */

static int judge_metrics(struct judge *judge)
{
	struct csink_gate_verdicts *out = judge->out;
	int err;

	for (uint32_t m = 0; m < judge->data->nr_metrics; m++) {
		struct csink_gate_row *row = &out->rows[out->nr_rows];
		bool measured = true;

		*row = (struct csink_gate_row){.metric = (int32_t)m, .function = -1};
		for (int side = 0; side < 2; side++) {
			for (uint32_t i = 0; i < judge->nr[side]; i++) {
				judge->values[side][i] = judge->runs[side][i]->metrics[m];
				measured &= isfinite(judge->values[side][i]);
			}
			row->means[side] = csink_mean(judge->values[side], judge->nr[side]);
		}
		/* A figure that is missing in some run is not judged. */
		if (!measured)
			continue;
		row->cost_ratio = row->means[1] / row->means[0];
		if (!row->means[0] && !row->means[1])
			row->cost_ratio = 1;
		if (judge->data->metrics[m].more_is_better && !csink_judge_invert(judge))
			continue;
		csink_judge_ranks(judge, row);
		out->nr_rows++;
	}
	out->nr_metric_rows = out->nr_rows;
	err = conclude_all(judge, csink_adjust_bh, out->rows, out->nr_metric_rows);
	for (uint32_t i = 0; i < out->nr_rows; i++) {
		if (judge->data->metrics[out->rows[i].metric].more_is_better)
			csink_judge_turn_back(&out->rows[i]);
	}
	return err;
}

/* The smallest change of CPU time that so many runs of their spread show, by the normal distribution. */
static void find_floor(struct judge *judge)
{
	struct csink_gate_verdicts *out = judge->out;

	out->floor_command = NAN;
	for (uint32_t i = 0; i < out->nr_metric_rows; i++) {
		const struct csink_gate_row *row = &out->rows[i];
		double half = (log(row->interval.high) - log(row->interval.low)) / 2;

		if (strcmp(judge->data->metrics[row->metric].name, "cpu"))
			continue;
		out->floor_command = expm1(
			half / csink_normal_quantile((1 + CSINK_GATE_LEVEL) / 2) *
			(csink_normal_quantile(1 - out->alpha / out->nr_metric_rows) + csink_normal_quantile(POWER)));
		judge->command = row->verdict;
		judge->by_cost = row->verdict == CSINK_GATE_REGRESSED || row->verdict == CSINK_GATE_IMPROVED;
	}
	if (judge->data->exact)
		out->floor_command = out->floor_function = 0;
}

/* What so many runs can show at all, of as many questions. */
static void find_limits(struct judge *judge)
{
	struct csink_gate_verdicts *out = judge->out;
	uint32_t nr = CSINK_MAX(out->nr_metric_rows, out->nr_rows - out->nr_metric_rows);

	if (judge->data->exact || !nr)
		return;
	out->smallest_q = fmin(1, csink_smallest_p(judge->data->paired, judge->nr[0], judge->nr[1]) * nr);
	out->least_runs = csink_judge_least_runs(judge, nr, false);
	out->steady_runs = judge->data->paired ? csink_judge_least_runs(judge, nr, true) : 0;
}

/* ---- all ---- */

static int sort_runs(struct judge *judge)
{
	const struct csink_gate_data *data = judge->data;

	for (int side = 0; side < 2; side++) {
		judge->runs[side] = calloc(data->nr_runs + 1, sizeof(*judge->runs[side]));
		judge->values[side] = calloc(data->nr_runs + 1, sizeof(double));
		judge->sums[side] = calloc(data->functions.nr + 1, sizeof(double));
		judge->comparable[side] = calloc(data->nr_runs + 1, sizeof(*judge->comparable[side]));
		if (!judge->runs[side] || !judge->values[side] || !judge->sums[side] || !judge->comparable[side])
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < data->nr_runs; i++) {
		const struct csink_gate_run *run = &data->runs[i];

		judge->comparable[run->side][judge->nr[run->side]] = calloc(run->weights.nr + 1, sizeof(double));
		if (!judge->comparable[run->side][judge->nr[run->side]])
			return -ENOMEM;
		judge->runs[run->side][judge->nr[run->side]++] = run;
		judge->out->samples[run->side] += (double)run->weights.nr_samples;
		for (uint32_t f = 0; f < run->weights.nr; f++) {
			judge->sums[run->side][f] += run->weights.self[f];
			if (!data->functions.all[f].is_pseudo)
				judge->all[run->side] += run->weights.self[f];
		}
	}
	/* Half a pair is left out. */
	if (data->paired)
		judge->nr[0] = judge->nr[1] = CSINK_MIN(judge->nr[0], judge->nr[1]);
	for (int side = 0; side < 2; side++)
		judge->out->runs[side] = judge->nr[side];
	return judge->nr[0] && judge->nr[1] ? 0 : -ENODATA;
}

static void count(struct csink_gate_verdicts *out)
{
	memset(out->counts, 0, sizeof(out->counts));
	out->nr_open = 0;
	for (uint32_t i = 0; i < out->nr_rows; i++) {
		out->counts[out->rows[i].verdict]++;
		out->nr_open += out->rows[i].verdict == CSINK_GATE_INCONCLUSIVE && out->rows[i].can_regress;
	}
}

static int judge_all(struct judge *judge)
{
	struct csink_gate_verdicts *out = judge->out;
	uint32_t first;
	int err = sort_runs(judge);

	if (err)
		return err;
	out->rows = calloc(judge->data->nr_metrics + judge->data->functions.nr + 1, sizeof(*out->rows));
	judge->is_reference = calloc(judge->data->functions.nr + 1, sizeof(*judge->is_reference));
	judge->is_below = calloc(judge->data->functions.nr + 1, sizeof(*judge->is_below));
	judge->differences = calloc(judge->data->nr_runs + 1, sizeof(*judge->differences));
	if (!out->rows || !judge->is_reference || !judge->is_below || !judge->differences)
		return -ENOMEM;
	err = judge_metrics(judge);
	out->floor_function = csink_detection_floor(0.1, fmin(out->samples[0], out->samples[1]));
	find_floor(judge);
	first = out->nr_rows;
	err = err ?: csink_judge_functions(judge);
	err = err ?: conclude_all(judge, csink_adjust_holm, out->rows + first, out->nr_rows - first);
	err = err ?: csink_judge_rollup(judge);
	if (err)
		return err;
	count(out);
	find_limits(judge);
	csink_judge_moves(judge);
	return csink_judge_modules(judge);
}

int csink_gate_judge(const struct csink_gate_data *data, const struct csink_gate_rules *rules, double level,
		     struct csink_gate_verdicts *out)
{
	bool has_interpreted = data->functions.interpreted.nr;
	struct csink_gate_data view = {0};
	struct judge judge = {.data = has_interpreted ? &view : data, .rules = rules, .out = out};
	int err;

	memset(out, 0, sizeof(*out));
	err = has_interpreted ? csink_gate_versions_join(data, &view, &out->joined) : 0;
	out->speed = out->speed_interval.low = out->speed_interval.high = NAN;
	if (err)
		return err;
	out->alpha = level > 0 ? level : rules->alpha;
	csink_random_init(&judge.random, rules->seed);
	csink_stats_lacked_memory(); /* reset: earlier failures do not concern this verdict */
	err = judge_all(&judge);
	/* If memory was lacking for a p-value or an interval, there is no verdict. */
	if (csink_stats_lacked_memory())
		err = -ENOMEM;
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; judge.comparable[side] && i < data->nr_runs; i++)
			free(judge.comparable[side][i]);
		free(judge.comparable[side]);
		free(judge.runs[side]);
		free(judge.values[side]);
		free(judge.sums[side]);
	}
	free(judge.is_reference);
	free(judge.is_below);
	free(judge.differences);
	csink_gate_versions_free(&view);
	if (err)
		csink_gate_verdicts_free(out);
	return err;
}

void csink_gate_verdicts_free(struct csink_gate_verdicts *verdicts)
{
	for (uint32_t i = 0; i < verdicts->nr_rows; i++)
		free(verdicts->rows[i].note);
	free(verdicts->rows);
	free(verdicts->modules);
	free(verdicts->joined);
	memset(verdicts, 0, sizeof(*verdicts));
}
