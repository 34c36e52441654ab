/* A gate's result in words: see gate_result.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/format.h"
#include "launcher/commands/gate/gate_result.h"
#include "launcher/commands/registry.h"

#define MAX_NAMED 3 /* functions in the headline */

bool csink_gate_is_failure(const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	return row->verdict == CSINK_GATE_REGRESSED ||
	       (r->rules->strict && row->verdict == CSINK_GATE_INCONCLUSIVE && row->can_regress);
}

int csink_gate_status(const struct csink_gate_result *r)
{
	if (r->error)
		return CSINK_EXIT_FAILED;
	for (uint32_t i = 0; i < r->verdicts->nr_rows; i++) {
		if (csink_gate_is_failure(r, &r->verdicts->rows[i]))
			return CSINK_EXIT_REGRESSED;
	}
	return CSINK_EXIT_OK;
}

int csink_gate_row_name(const struct csink_gate_result *r, const struct csink_gate_row *row, char *out, size_t size)
{
	const struct csink_gate_function *function;
	char name[512], module[128];

	if (row->metric >= 0)
		return snprintf(out, size, "%s", r->data->metrics[row->metric].title);
	function = &r->data->functions.all[row->function];
	csink_format_text(name, sizeof(name), function->name, 300);
	csink_format_text(module, sizeof(module), r->verdicts->modules[row->function], 60);
	if (function->is_interpreted && function->line > 0)
		return snprintf(out, size, "%s at %s:%" PRId64, name, module, function->line);
	return snprintf(out, size, "%s%s%s", name, *module ? " in " : "", module);
}

int csink_gate_change(double ratio, char *out, size_t size)
{
	if (isnan(ratio))
		return snprintf(out, size, "unknown");
	if (isinf(ratio))
		return snprintf(out, size, ratio > 0 ? "new" : "gone");
	if (ratio >= 10)
		return snprintf(out, size, "x %.1f", ratio);
	/* -0.0 is no change. */
	return snprintf(out, size, "%+.1f %%", fabs(ratio - 1) < 0.0005 ? 0 : (ratio - 1) * 100);
}

const char *csink_gate_unit_word(const struct csink_gate_result *r)
{
	return strcmp(r->unit, "bytes") ? "time" : "bytes";
}

const char *csink_gate_row_unit(const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	return row->metric >= 0 ? r->data->metrics[row->metric].unit : r->unit;
}

int csink_gate_mean(const struct csink_gate_result *r, const struct csink_gate_row *row, int side, char *out,
		    size_t size)
{
	struct csink_scale scale;

	if (row->metric >= 0 && r->data->metrics[row->metric].is_reported)
		return snprintf(out, size, "%.6g %s", row->means[side], csink_gate_row_unit(r, row));
	scale = csink_scale_for((int64_t)fmax(row->means[0], row->means[1]), csink_gate_row_unit(r, row));
	return csink_format_value(out, size, (int64_t)row->means[side], &scale);
}

static int print_end(double ratio, char *out, size_t size)
{
	if (!isfinite(ratio))
		return snprintf(out, size, "any");
	if (ratio >= 10)
		return snprintf(out, size, "x %.0f", ratio);
	return snprintf(out, size, "%+.1f", (ratio - 1) * 100);
}

int csink_gate_row_line(const struct csink_gate_result *r, const struct csink_gate_row *row, char *out, size_t size)
{
	char change[32], low[32], high[32], means[2][64], needed[64] = "", how[128] = "";

	csink_gate_change(row->ratio, change, sizeof(change));
	print_end(row->interval.low, low, sizeof(low));
	print_end(row->interval.high, high, sizeof(high));
	for (int side = 0; side < 2; side++)
		csink_gate_mean(r, row, side, means[side], sizeof(means[side]));
	if (row->verdict == CSINK_GATE_INCONCLUSIVE && row->runs_needed)
		snprintf(needed, sizeof(needed), "; about %u more run%s would decide it", row->runs_needed,
			 row->runs_needed > 1 ? "s" : "");
	else if (row->verdict == CSINK_GATE_INCONCLUSIVE && !r->data->exact)
		snprintf(needed, sizeof(needed), "; no reasonable number of runs would decide it");
	if (r->data->exact && isinf(row->ratio))
		snprintf(how, sizeof(how), "(in all runs)");
	else if (r->data->exact)
		snprintf(how, sizeof(how), "(%s to %s in all runs)", low, high);
	else if (row->interval.low == 1 && row->interval.high == 1)
		snprintf(how, sizeof(how), "(the same in all runs)");
	else if (!isfinite(row->interval.low))
		snprintf(how, sizeof(how), "(q = %.2g)", row->q);
	else
		snprintf(how, sizeof(how), "(95 %% CI %s to %s, q = %.2g)", low, high, row->q);
	return snprintf(out, size, "%s: %s %s, %s instead of %s%s", csink_gate_verdict_words[row->verdict], change, how,
			means[1], means[0], needed);
}

int csink_gate_headline(const struct csink_gate_result *r, char *out, size_t size)
{
	const struct csink_gate_verdicts *v = r->verdicts;
	uint32_t nr = 0, failures = 0;
	char name[256], change[32];

	if (r->error)
		return snprintf(out, size, "no verdict: %.200s", r->error);
	for (uint32_t i = 0; i < v->nr_rows; i++)
		failures += csink_gate_is_failure(r, &v->rows[i]);
	if (!failures)
		return snprintf(out, size, "no regression%s: %u unchanged, %u improved, %u inconclusive",
				v->nr_open ? " was shown" : "", v->counts[CSINK_GATE_UNCHANGED],
				v->counts[CSINK_GATE_IMPROVED], v->counts[CSINK_GATE_INCONCLUSIVE]);
	snprintf(out, size, "%u of %u %s: ", failures, v->nr_rows,
		 v->counts[CSINK_GATE_REGRESSED] ? "regressed" : "may have regressed");
	/* Functions say more than figures of the whole: they come first. */
	for (int functions = 1; functions >= 0; functions--) {
		for (uint32_t i = 0; i < v->nr_rows; i++) {
			if (!csink_gate_is_failure(r, &v->rows[i]) || (v->rows[i].function >= 0) != functions)
				continue;
			csink_gate_row_name(r, &v->rows[i], name, sizeof(name));
			csink_gate_change(v->rows[i].ratio, change, sizeof(change));
			if (nr++ < MAX_NAMED)
				csink_append(out, size, "%s%s %s", nr > 1 ? ", " : "", name, change);
		}
	}
	return (int)csink_append(out, size, "%s", nr > MAX_NAMED ? ", ..." : "");
}

static void print_delta(double delta, const struct csink_scale *scale, char *out, size_t size)
{
	out[0] = delta < 0 ? '-' : '+';
	csink_format_value(out + 1, size - 1, (int64_t)fabs(delta), scale);
}

/* Append "deflate in gzip +4.4 ms (95 % CI +3.1 ms to +5.7 ms)". Returns the text's length. */
static size_t add_move(const struct csink_gate_result *r, const struct csink_gate_move *move, char *out, size_t size)
{
	struct csink_gate_row function = {.metric = -1, .function = (int32_t)move->function};
	bool has_interval = isfinite(move->interval.low) && isfinite(move->interval.high);
	double largest = fabs(move->delta);
	struct csink_scale scale;
	char name[512], delta[48], low[48], high[48], interval[128] = "";

	if (has_interval)
		largest = fmax(largest, fmax(fabs(move->interval.low), fabs(move->interval.high)));
	scale = csink_scale_for((int64_t)largest, r->unit);
	csink_gate_row_name(r, &function, name, sizeof(name));
	print_delta(move->delta, &scale, delta, sizeof(delta));
	if (has_interval && !r->data->exact) {
		print_delta(move->interval.low, &scale, low, sizeof(low));
		print_delta(move->interval.high, &scale, high, sizeof(high));
		snprintf(interval, sizeof(interval), " (95 %% CI %s to %s)", low, high);
	}
	return csink_append(out, size, "%s %s%s", name, delta, interval);
}

int csink_gate_where(const struct csink_gate_result *r, const struct csink_gate_row *row, char *out, size_t size)
{
	const struct csink_gate_moves *moves = &r->verdicts->moves;
	struct csink_scale scale = csink_scale_for((int64_t)fabs(moves->sum), r->unit);
	size_t n = 0;
	char sum[48];

	if (r->error || !moves->nr || (row && row != &r->verdicts->rows[moves->row]))
		return -ENOENT;
	print_delta(moves->sum, &scale, sum, sizeof(sum));
	snprintf(out, size, "%s in all functions: ", sum);
	for (uint32_t i = 0; i < moves->nr; i++) {
		csink_append(out, size, "%s", i ? ", " : "");
		n = add_move(r, &moves->all[i], out, size);
	}
	if (!moves->has_within)
		return (int)n;
	csink_append(out, size, "; most of it, with what it calls, in ");
	return (int)add_move(r, &moves->within, out, size);
}

static int floor_fact(const struct csink_gate_result *r, char *out, size_t size)
{
	const struct csink_gate_verdicts *v = r->verdicts;
	char command[96] = "";

	if (r->data->exact)
		return snprintf(out, size, "detection floor: none, instructions are counted one by one");
	if (isfinite(v->floor_command))
		snprintf(command, sizeof(command), "; of the command's CPU time, %.1f %%", v->floor_command * 100);
	if (!(fmin(v->samples[0], v->samples[1]) > 0))
		return snprintf(out, size, "detection floor: no functions were sampled%s", command);
	return snprintf(out, size,
			"detection floor: of a function with 10 %% of the time, a change of %.1f %% (%.0f samples of "
			"each side)%s; smaller regressions will probably be missed",
			v->floor_function * 100, fmin(v->samples[0], v->samples[1]), command);
}

/* Counted instructions do not depend on the machine's speed. */
static int event_fact(const struct csink_gate_result *r, char *out, size_t size)
{
	const struct csink_gate_verdicts *v = r->verdicts;
	const char *before = *r->engine ? ", engine " : "";
	char speed[32], low[32], high[32];

	if (r->data->exact || r->data->has_no_speed)
		return snprintf(out, size, "event: %s%s%s", r->event, before, r->engine);
	if (isnan(v->speed))
		return snprintf(out, size,
				"event: %s%s%s; machine drift: unknown (no functions are known to be unchanged)",
				r->event, before, r->engine);
	csink_gate_change(v->speed, speed, sizeof(speed));
	print_end(v->speed_interval.low, low, sizeof(low));
	print_end(v->speed_interval.high, high, sizeof(high));
	return snprintf(out, size, "event: %s%s%s; machine drift (from unchanged functions): %s (95 %% CI %s to %s)",
			r->event, before, r->engine, speed, low, high);
}

static int runs_fact(const struct csink_gate_result *r, char *out, size_t size)
{
	char where[48] = "";

	if (r->pin.how == CSINK_GATE_PIN_CPU)
		snprintf(where, sizeof(where), ", all on CPU %d", r->pin.cpu);
	else if (r->pin.has_drawn)
		snprintf(where, sizeof(where), ", each pair on one CPU");
	return snprintf(out, size, "runs: %u and %u%s in %.1f s%s, %u to warm up; seed %" PRIu64, r->verdicts->runs[0],
			r->verdicts->runs[1], r->data->paired ? ", in pairs" : "", r->seconds, where, r->warmup,
			r->rules->seed);
}

int csink_gate_fact(const struct csink_gate_result *r, uint32_t nr, char *out, size_t size)
{
	switch (nr) {
	case 0:
		return snprintf(out, size, "%s: %s", r->how, r->commands[CSINK_GATE_OLD]);
	case 1:
		return snprintf(out, size, "command: %s", r->commands[CSINK_GATE_NEW]);
	}
	if (r->error)
		return nr - 2 < r->nr_notes ? snprintf(out, size, "note: %s", r->notes[nr - 2]) : -ENOENT;
	switch (nr) {
	case 2:
		return runs_fact(r, out, size);
	case 3:
		return event_fact(r, out, size);
	case 4:
		return snprintf(out, size,
				"rules: threshold %.3g %%, functions from %.3g %% of the time, false positives at most "
				"%.3g %%%s%s",
				r->rules->threshold * 100, r->rules->min_share * 100, r->rules->alpha * 100,
				r->rules->strict ? ", strict" : "", r->rules->folds_native ? CSINK_GATE_FOLDED : "");
	case 5:
		return floor_fact(r, out, size);
	}
	return nr - 6 < r->nr_notes ? snprintf(out, size, "note: %s", r->notes[nr - 6]) : -ENOENT;
}

const char *csink_gate_row_file(const struct csink_gate_result *r, const struct csink_gate_row *row, int64_t *line)
{
	const struct csink_gate_function *function;
	char directory[4096];
	size_t len;

	if (row->function < 0)
		return NULL;
	function = &r->data->functions.all[row->function];
	*line = function->line;
	if (!*function->file)
		return NULL;
	if (!getcwd(directory, sizeof(directory)))
		return function->file;
	len = strlen(directory);
	if (!strncmp(function->file, directory, len) && function->file[len] == '/')
		return function->file + len + 1;
	return !strncmp(function->file, "./", 2) ? function->file + 2 : function->file;
}
