/* The result of a suite as one JSON object: what a gate of one command writes, for each case. */
#include <math.h>

#include "launcher/base/json.h"
#include "launcher/commands/gate/suite_result.h"
#include "launcher/gate/counting.h"

static void print_screening(struct csink_json *json, const struct csink_gate_result *gate,
			    const struct csink_suite_screening *screening)
{
	struct csink_gate_result one = *gate;

	one.data = &screening->data;
	one.verdicts = &screening->verdicts;
	one.error = screening->is_judged ? NULL : "too few runs";
	csink_json_open(json, "screening", '{');
	if (screening->is_judged)
		csink_gate_json_verdicts(json, &one);
	csink_gate_json_runs(json, &one);
	csink_json_close(json, '}');
}

static void print_case(struct csink_json *json, const struct csink_suite_result *r, const struct csink_suite_case *c)
{
	struct csink_gate_result one = csink_suite_case_result(r, c);
	bool is_judged = c->state == CSINK_SUITE_JUDGED;

	one.error = is_judged ? NULL : "not judged";
	csink_json_open(json, NULL, '{');
	csink_json_text(json, "case", c->name);
	csink_json_text(json, "verdict", csink_suite_word(r, c));
	csink_json_text(json, "error", c->state == CSINK_SUITE_FAILED ? c->error : NULL);
	csink_json_text(json, "process", c->is_shared ? "suite" : "case");
	csink_json_known(json, "iterations", !c->is_by_time, (int64_t)c->n);
	csink_gate_json_pin(json, c->is_shared ? &r->suite->shared.pin : &c->pin);
	csink_json_number(json, "screened_pairs", c->pairs[0]);
	csink_json_number(json, "confirmed_pairs", c->pairs[1]);
	csink_json_real(json, "screen_p", c->screen_p);
	csink_json_real(json, "p", c->p);
	if (r->suite->is_counted) {
		csink_json_text(json, "counted_by", c->counting ? csink_gate_counting_word(c->counting) : NULL);
		csink_json_text(json, "counted", c->is_whole ? "process" : "iterations");
		csink_json_real(json, "spread", is_judged ? c->spread : NAN);
	}
	if (is_judged) {
		csink_gate_json_verdicts(json, &one);
	} else {
		csink_json_open(json, "rows", '[');
		csink_json_close(json, ']');
	}
	csink_gate_json_runs(json, &one);
	if (c->screening.data.nr_runs)
		print_screening(json, r->gate, &c->screening);
	csink_json_close(json, '}');
}

void csink_suite_print_json(FILE *out, const struct csink_suite_result *r)
{
	struct csink_json json;
	char headline[2048];

	csink_suite_headline(r, headline, sizeof(headline));
	csink_json_init(&json, out, 0);
	csink_json_open(&json, NULL, '{');
	csink_json_number(&json, "status", csink_suite_status(r));
	csink_json_text(&json, "headline", headline);
	csink_json_text(&json, "error", r->error);
	csink_json_text(&json, "suite", r->kind);
	csink_json_text(&json, "old", r->gate->commands[CSINK_GATE_OLD]);
	csink_json_text(&json, "new", r->gate->commands[CSINK_GATE_NEW]);
	csink_json_text(&json, "event", r->gate->event);
	csink_json_text(&json, "engine", r->gate->engine);
	csink_json_real(&json, "seconds", r->seconds);
	csink_json_number(&json, "seed", (int64_t)r->gate->rules->seed);
	csink_json_real(&json, "threshold", r->gate->rules->threshold);
	csink_json_real(&json, "min_share", r->gate->rules->min_share);
	csink_json_real(&json, "alpha", r->gate->rules->alpha);
	csink_json_bool(&json, "fold_native", r->gate->rules->folds_native);
	csink_json_texts(&json, "notes", r->gate->notes, r->gate->nr_notes);
	csink_json_open(&json, "cases", '[');
	for (uint32_t i = 0; !r->error && i < r->suite->nr; i++)
		print_case(&json, r, &r->suite->cases[i]);
	csink_json_close(&json, ']');
	csink_json_close(&json, '}');
	fputc('\n', out);
}
