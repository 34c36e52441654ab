/* A gate's result as one JSON object. */
#include "launcher/base/json.h"
#include "launcher/commands/gate/gate_result.h"

static void print_sides(struct csink_json *json, const char *key, const double *values)
{
	csink_json_open(json, key, '[');
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		csink_json_real(json, NULL, values[side]);
	csink_json_close(json, ']');
}

static void print_row(struct csink_json *json, const struct csink_gate_result *r, const struct csink_gate_row *row)
{
	int64_t line;
	const char *file = csink_gate_row_file(r, row, &line);

	csink_json_open(json, NULL, '{');
	if (row->metric >= 0) {
		csink_json_text(json, "metric", r->data->metrics[row->metric].name);
		csink_json_bool(json, "more_is_better", r->data->metrics[row->metric].more_is_better);
	} else {
		csink_json_text(json, "function", r->data->functions.all[row->function].name);
		csink_json_text(json, "module", r->verdicts->modules[row->function]);
		csink_json_text(json, "file", file);
		if (file && line)
			csink_json_number(json, "line", line);
		print_sides(json, "shares", row->shares);
		csink_json_bool(json, "by_cost", row->by_cost);
	}
	csink_json_text(json, "verdict", csink_gate_verdict_words[row->verdict]);
	csink_json_bool(json, "may_have_regressed", row->verdict == CSINK_GATE_REGRESSED || row->can_regress);
	csink_json_real(json, "ratio", row->ratio);
	csink_json_real(json, "low", row->interval.low);
	csink_json_real(json, "high", row->interval.high);
	csink_json_real(json, "measured_ratio", row->cost_ratio);
	csink_json_real(json, "p_greater", row->p_greater);
	csink_json_real(json, "p_less", row->p_less);
	csink_json_real(json, "q", row->q);
	print_sides(json, "means", row->means);
	csink_json_text(json, "unit", csink_gate_row_unit(r, row));
	csink_json_number(json, "runs_needed", row->runs_needed);
	csink_json_text(json, "note", row->note);
	csink_json_close(json, '}');
}

static void print_move(struct csink_json *json, const char *key, const struct csink_gate_result *r,
		       const struct csink_gate_move *move)
{
	csink_json_open(json, key, '{');
	csink_json_text(json, "function", r->data->functions.all[move->function].name);
	csink_json_text(json, "module", r->verdicts->modules[move->function]);
	csink_json_real(json, "delta", move->delta);
	csink_json_real(json, "low", move->interval.low);
	csink_json_real(json, "high", move->interval.high);
	csink_json_close(json, '}');
}

static void print_moves(struct csink_json *json, const struct csink_gate_result *r)
{
	const struct csink_gate_moves *moves = &r->verdicts->moves;

	csink_json_open(json, "where", '{');
	csink_json_real(json, "delta", moves->sum);
	csink_json_text(json, "unit", r->unit);
	csink_json_open(json, "functions", '[');
	for (uint32_t i = 0; i < moves->nr; i++)
		print_move(json, NULL, r, &moves->all[i]);
	csink_json_close(json, ']');
	if (moves->has_within)
		print_move(json, "with_callees", r, &moves->within);
	csink_json_close(json, '}');
}

void csink_gate_json_verdicts(struct csink_json *json, const struct csink_gate_result *r)
{
	const struct csink_gate_verdicts *v = r->verdicts;

	csink_json_open(json, "runs", '[');
	for (int side = 0; side < CSINK_GATE_NR_SIDES; side++)
		csink_json_number(json, NULL, v->runs[side]);
	csink_json_close(json, ']');
	print_sides(json, "samples", v->samples);
	csink_json_bool(json, "paired", r->data->paired);
	csink_json_bool(json, "exact", r->data->exact);
	csink_json_real(json, "level", v->alpha);
	csink_json_real(json, "speed", v->speed);
	csink_json_real(json, "speed_low", v->speed_interval.low);
	csink_json_real(json, "speed_high", v->speed_interval.high);
	csink_json_real(json, "floor_function", v->floor_function);
	csink_json_real(json, "floor_command", v->floor_command);
	csink_json_real(json, "smallest_q", v->smallest_q);
	csink_json_number(json, "least_runs", v->least_runs);
	csink_json_number(json, "steady_runs", v->steady_runs);
	csink_json_open(json, "counts", '{');
	for (int i = 0; i < CSINK_GATE_NR_VERDICTS; i++)
		csink_json_number(json, csink_gate_verdict_words[i], v->counts[i]);
	csink_json_close(json, '}');
	if (v->moves.nr)
		print_moves(json, r);
	csink_json_open(json, "rows", '[');
	for (uint32_t i = 0; i < v->nr_rows; i++)
		print_row(json, r, &v->rows[i]);
	csink_json_close(json, ']');
}

/* A function's weight in a run: the sum of the entries that were judged as that function. */
static double weight_of(const struct csink_gate_result *r, const struct csink_gate_run *run, uint32_t function)
{
	const uint32_t *joined = r->verdicts->joined;
	double sum = 0;

	if (!joined)
		return function < run->weights.nr ? run->weights.self[function] : 0;
	for (uint32_t f = 0; f < run->weights.nr; f++)
		sum += joined[f] == function ? run->weights.self[f] : 0;
	return sum;
}

/* The functions that were judged, in the order of their rows. */
static void print_weights(struct csink_json *json, const struct csink_gate_result *r, const struct csink_gate_run *run)
{
	csink_json_open(json, "functions", '[');
	for (uint32_t i = 0; i < r->verdicts->nr_rows; i++) {
		int32_t f = r->verdicts->rows[i].function;

		if (f >= 0)
			csink_json_real(json, NULL, weight_of(r, run, (uint32_t)f));
	}
	csink_json_close(json, ']');
}

void csink_gate_json_runs(struct csink_json *json, const struct csink_gate_result *r)
{
	csink_json_open(json, "measured", '[');
	for (uint32_t i = 0; i < r->data->nr_runs; i++) {
		const struct csink_gate_run *run = &r->data->runs[i];

		csink_json_open(json, NULL, '{');
		csink_json_text(json, "side", run->side == CSINK_GATE_OLD ? "old" : "new");
		csink_json_known(json, "pair", r->data->paired && run->number >= 0, (int64_t)run->number + 1);
		csink_json_known(json, "pin", run->cpu >= 0, run->cpu);
		csink_json_number(json, "samples", (int64_t)run->weights.nr_samples);
		for (uint32_t m = 0; m < r->data->nr_metrics; m++)
			csink_json_real(json, r->data->metrics[m].name, run->metrics[m]);
		if (!r->error && run->weights.nr)
			print_weights(json, r, run);
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
}

void csink_gate_json_pin(struct csink_json *json, const struct csink_gate_pin *pin)
{
	if (pin->how == CSINK_GATE_PIN_CPU)
		csink_json_number(json, "pin", pin->cpu);
	else
		csink_json_text(json, "pin", pin->has_drawn ? "pairs" : "no");
}

void csink_gate_print_json(FILE *out, const struct csink_gate_result *r)
{
	struct csink_json json;

	csink_json_init(&json, out, '{');
	csink_json_text(&json, "how", r->how);
	csink_json_text(&json, "old", r->commands[CSINK_GATE_OLD]);
	csink_json_text(&json, "new", r->commands[CSINK_GATE_NEW]);
	csink_json_number(&json, "status", csink_gate_status(r));
	csink_json_text(&json, "error", r->error);
	csink_json_text(&json, "event", r->event);
	csink_json_text(&json, "engine", r->engine);
	csink_json_real(&json, "seconds", r->seconds);
	csink_json_number(&json, "seed", (int64_t)r->rules->seed);
	csink_gate_json_pin(&json, &r->pin);
	csink_json_real(&json, "threshold", r->rules->threshold);
	csink_json_real(&json, "min_share", r->rules->min_share);
	csink_json_real(&json, "alpha", r->rules->alpha);
	csink_json_bool(&json, "fold_native", r->rules->folds_native);
	csink_json_texts(&json, "notes", r->notes, r->nr_notes);
	if (!r->error)
		csink_gate_json_verdicts(&json, r);
	csink_gate_json_runs(&json, r);
	csink_json_close(&json, '}');
	fputc('\n', out);
}
