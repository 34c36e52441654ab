/* What `stat` found out, for programs, and which way is taken: see stat_result.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "include/internal/base.h"
#include "launcher/base/text.h"
#include "launcher/commands/stat/stat_result.h"
#include "launcher/output/report.h"

static const char *const state_names[] = {
	[CSINK_STAT_COUNTED] = "counted",
	[CSINK_STAT_NOT_SUPPORTED] = "not supported",
	[CSINK_STAT_NOT_COUNTED] = "not counted",
};

static void add_metric(const struct csink_stat_metric *metric, struct csink_stat_metric *to,
		       struct csink_moments *moments)
{
	if (!metric->unit)
		return;
	/* A rate whose unit changes from run to run (k/s, M/s) would not add up: the first one's counts. */
	if (to->unit && strcmp(to->unit, metric->unit))
		return;
	*to = *metric;
	csink_moments_add(moments, metric->value);
}

void csink_stat_result_add(struct csink_stat_result *result, const struct csink_stat_value *values, uint64_t wall_ns)
{
	struct csink_event_spec specs[CSINK_STAT_MAX_EVENTS];
	uint32_t nr = result->counters->nr;

	for (uint32_t i = 0; i < nr; i++)
		specs[i] = result->counters->counters[i].spec;
	for (uint32_t i = 0; i < nr; i++) {
		struct csink_stat_row *row = &result->rows[i];
		struct csink_stat_metric metric;

		if (values[i].state != CSINK_STAT_COUNTED) {
			/* Not supported says more than not counted. */
			if (row->state != CSINK_STAT_NOT_SUPPORTED)
				row->state = values[i].state;
			row->waited |= values[i].enabled_ns != 0;
			continue;
		}
		csink_moments_add(&row->value, (double)values[i].value);
		csink_moments_add(&row->share,
				  values[i].enabled_ns
					  ? CSINK_MIN((double)values[i].running_ns / (double)values[i].enabled_ns, 1.0)
					  : 1); /* of threads, the time enabled may lag behind */
		metric = csink_stat_metric_of(specs, values, nr, i, wall_ns);
		add_metric(&metric, &row->metric, &row->metric_value);
		metric = csink_stat_metric_misses(specs, values, nr, i);
		add_metric(&metric, &row->misses, &row->misses_value);
	}
	result->nr_runs++;
}

const char *csink_stat_reason(const struct csink_stat_result *result, uint32_t event)
{
	const struct csink_stat_counter *counter = &result->counters->counters[event];

	if (result->rows[event].state == CSINK_STAT_NOT_SUPPORTED)
		return counter->reason;
	if (counter->spec.cpus[0] && !result->rows[event].waited)
		return "it counts on one kind of CPU only, and nothing ran there";
	return "it never had a counter: other processes hold them, or its group needs more than there are (see "
	       "countersink doctor)";
}

/* ---- JSON ---- */

/* @metric  whose values these are: with its unit, and less of them; NULL: a count's or a time's. */
static void write_moments(struct csink_json *json, const char *key, const struct csink_stat_metric *metric,
			  const struct csink_moments *moments)
{
	double half = csink_moments_interval(moments);

	if (metric && !metric->unit)
		return;
	csink_json_open(json, key, '{');
	if (metric)
		csink_json_text(json, "unit", metric->unit);
	csink_json_real(json, "mean", moments->mean);
	if (moments->nr > 1) {
		if (!metric)
			csink_json_real(json, "deviation", csink_moments_deviation(moments));
		csink_json_real(json, "ci95_low", moments->mean - half);
		csink_json_real(json, "ci95_high", moments->mean + half);
	}
	if (moments->nr > 1 && !metric) {
		csink_json_real(json, "min", moments->min);
		csink_json_real(json, "max", moments->max);
	}
	csink_json_close(json, '}');
}

static void write_events(struct csink_json *json, const struct csink_stat_result *result)
{
	csink_json_open(json, "events", '[');
	for (uint32_t i = 0; i < result->counters->nr; i++) {
		const struct csink_stat_row *row = &result->rows[i];
		const struct csink_event_spec *spec = &result->counters->counters[i].spec;

		csink_json_open(json, NULL, '{');
		csink_json_text(json, "name", spec->rec.name);
		csink_json_text(json, "unit", spec->rec.unit);
		csink_json_text(json, "state", state_names[row->state]);
		csink_json_bool(json, "user_only", spec->rec.flags & CSINK_EVENT_USER_ONLY);
		if (row->state == CSINK_STAT_COUNTED) {
			write_moments(json, "value", NULL, &row->value);
			csink_json_real(json, "counted_share", row->share.mean);
			csink_json_bool(json, "scaled", row->share.min < 1);
			csink_json_open(json, "metrics", '[');
			write_moments(json, NULL, &row->metric, &row->metric_value);
			write_moments(json, NULL, &row->misses, &row->misses_value);
			csink_json_close(json, ']');
		} else {
			csink_json_null(json, "value");
			csink_json_text(json, "reason", csink_stat_reason(result, i));
		}
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
}

static void write_threads(struct csink_json *json, const struct csink_stat_result *result)
{
	csink_json_open(json, "threads", '[');
	for (uint32_t k = 0; k < result->threads->nr; k++) {
		const struct csink_stat_thread *thread = &result->threads->threads[k];

		csink_json_open(json, NULL, '{');
		csink_json_number(json, "pid", thread->pid);
		csink_json_number(json, "tid", thread->tid);
		csink_json_text(json, "name", thread->comm);
		csink_json_bool(json, "ended", thread->ended);
		csink_json_open(json, "counts", '{');
		for (uint32_t i = 0; i < result->counters->nr && thread->has_counts; i++) {
			csink_json_known(json, result->counters->counters[i].spec.rec.name,
					 thread->values[i].state == CSINK_STAT_COUNTED,
					 (int64_t)thread->values[i].value);
		}
		csink_json_close(json, '}');
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
}

static void open_json(struct csink_stat_writer *writer, const struct csink_stat_result *result)
{
	csink_json_init(&writer->json, writer->out, '{');
	csink_json_open(&writer->json, "command", '[');
	for (char **word = result->argv; *word; word++)
		csink_json_text(&writer->json, NULL, *word);
	csink_json_close(&writer->json, ']');
	if (writer->intervals)
		csink_json_open(&writer->json, "intervals", '[');
	writer->opened = true;
}

static void write_json(struct csink_stat_writer *writer, const struct csink_stat_result *result)
{
	struct csink_json *json = &writer->json;

	if (!writer->opened)
		open_json(writer, result);
	if (writer->intervals)
		csink_json_close(json, ']');
	csink_json_number(json, "runs", result->nr_runs);
	csink_json_number(json, "failed_runs", result->nr_failed);
	csink_json_number(json, WIFSIGNALED(result->status) ? "signal" : "status",
			  WIFSIGNALED(result->status) ? WTERMSIG(result->status) : WEXITSTATUS(result->status));
	write_moments(json, "elapsed_ns", NULL, &result->wall_ns);
	write_moments(json, "user_ns", NULL, &result->user_ns);
	write_moments(json, "system_ns", NULL, &result->sys_ns);
	csink_json_number(json, "max_resident_bytes", (int64_t)result->max_rss_bytes);
	write_events(json, result);
	if (result->threads)
		write_threads(json, result);
	csink_json_texts(json, "notes", result->notes, result->nr_notes);
	csink_json_close(json, '}');
}

/* ---- CSV ---- */

static void open_csv(struct csink_stat_writer *writer)
{
	if (!writer->opened)
		fprintf(writer->out,
			"%sevent,unit,state,mean,deviation,ci95_low,ci95_high,runs,counted_share,"
			"metric,metric_unit,per_1000_instructions,reason\n",
			writer->intervals ? "time_s," : "");
	writer->opened = true;
}

static void write_csv_row(FILE *out, const char *name, const char *unit, const struct csink_moments *value)
{
	double half = csink_moments_interval(value);

	csink_text_put_csv(out, name);
	fprintf(out, ",%s,counted,%.10g,", unit, value->mean);
	if (value->nr > 1)
		fprintf(out, "%.10g,%.10g,%.10g,%u,", csink_moments_deviation(value), value->mean - half,
			value->mean + half, value->nr);
	else
		fprintf(out, ",,,%u,", value->nr);
}

static void write_csv_events(struct csink_stat_writer *writer, const struct csink_stat_result *result,
			     const char *before)
{
	FILE *out = writer->out;

	open_csv(writer);
	for (uint32_t i = 0; i < result->counters->nr; i++) {
		const struct csink_stat_row *row = &result->rows[i];
		const struct csink_event_spec *spec = &result->counters->counters[i].spec;

		fputs(before, out);
		if (row->state != CSINK_STAT_COUNTED) {
			csink_text_put_csv(out, spec->rec.name);
			fprintf(out, ",%s,%s,,,,,%u,,,,,", spec->rec.unit, state_names[row->state], result->nr_runs);
			csink_text_put_csv(out, csink_stat_reason(result, i));
			fputc('\n', out);
			continue;
		}
		write_csv_row(out, spec->rec.name, spec->rec.unit, &row->value);
		fprintf(out, "%.4f,", row->share.mean);
		if (row->metric.unit)
			fprintf(out, "%.6g,%s,", row->metric_value.mean, row->metric.unit);
		else
			fputs(",,", out);
		if (row->misses.unit)
			fprintf(out, "%.6g", row->misses_value.mean);
		fputs(",\n", out);
	}
}

static void write_csv_thread(FILE *out, const struct csink_stat_result *result, const struct csink_stat_thread *thread)
{
	for (uint32_t i = 0; i < result->counters->nr; i++) {
		const struct csink_event_spec *spec = &result->counters->counters[i].spec;

		fprintf(out, "%d,%d,", thread->pid, thread->tid);
		csink_text_put_csv(out, thread->comm);
		fputc(',', out);
		csink_text_put_csv(out, spec->rec.name);
		fprintf(out, ",%s,", spec->rec.unit);
		if (thread->has_counts && thread->values[i].state == CSINK_STAT_COUNTED)
			fprintf(out, "%" PRIu64, thread->values[i].value);
		fputc('\n', out);
	}
}

static void write_csv(struct csink_stat_writer *writer, const struct csink_stat_result *result)
{
	const char *before = writer->intervals ? "total," : "";
	FILE *out = writer->out;
	const struct {
		const char *name;
		const struct csink_moments *moments;
	} times[] = {{"elapsed", &result->wall_ns}, {"user", &result->user_ns}, {"system", &result->sys_ns}};

	write_csv_events(writer, result, before);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(times); i++) {
		fputs(before, out);
		write_csv_row(out, times[i].name, "nanoseconds", times[i].moments);
		fputs("1.0000,,,,\n", out);
	}
	if (!result->threads)
		return;
	fputs("\npid,tid,thread,event,unit,value\n", out);
	for (uint32_t k = 0; k < result->threads->nr; k++)
		write_csv_thread(out, result, &result->threads->threads[k]);
}

/* ---- which ---- */

/* Does it have to be written again, since the file did not take it? Then to stderr, with a head of its own. */
static bool falls_back(struct csink_stat_writer *writer)
{
	int err = csink_report_flush(writer->out);

	if (!err || !writer->path)
		return false;
	csink_stat_writer_fall_back(writer, -err);
	return true;
}

static void write_interval(struct csink_stat_writer *writer, const struct csink_stat_result *result, uint64_t at_ns)
{
	char before[40];

	switch (writer->format) {
	case CSINK_STAT_JSON:
		if (!writer->opened)
			open_json(writer, result);
		csink_json_open(&writer->json, NULL, '{');
		csink_json_real(&writer->json, "time_s", (double)at_ns / 1e9);
		write_events(&writer->json, result);
		csink_json_close(&writer->json, '}');
		break;
	case CSINK_STAT_CSV:
		snprintf(before, sizeof(before), "%.6f,", (double)at_ns / 1e9);
		write_csv_events(writer, result, before);
		break;
	default:
		snprintf(before, sizeof(before), "%12.6f", (double)at_ns / 1e9);
		csink_stat_print_rows(writer->out, result, before);
		break;
	}
}

void csink_stat_write_interval(struct csink_stat_writer *writer, const struct csink_stat_result *result, uint64_t at_ns)
{
	do
		write_interval(writer, result, at_ns);
	while (falls_back(writer));
}

static void write_result(struct csink_stat_writer *writer, const struct csink_stat_result *result)
{
	if (writer->format == CSINK_STAT_JSON)
		write_json(writer, result);
	else if (writer->format == CSINK_STAT_CSV)
		write_csv(writer, result);
	else
		csink_stat_print(writer->out, result);
}

void csink_stat_write(struct csink_stat_writer *writer, const struct csink_stat_result *result)
{
	do
		write_result(writer, result);
	while (falls_back(writer));
}
