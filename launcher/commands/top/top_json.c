/* A picture as JSON (top_print.h); countersink-top(1) has the form. */
#include <errno.h>

#include "launcher/base/json.h"
#include "launcher/commands/top/top_print.h"
#include "launcher/output/report.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

enum { FORM = 1 }; /* grows when a key changes its meaning or goes; new keys may come at any time */

static const char *const words[] = {"last", "all"};

/* What is known of an interval only once it has ended. */
static bool is_known(const struct csink_top_picture *picture, int which)
{
	return which == CSINK_TOP_ALL || picture->has_last;
}

static void put_pair(struct csink_json *json, const char *key, const struct csink_top_picture *picture,
		     const int64_t values[2])
{
	csink_json_open(json, key, '{');
	for (int i = 0; i < 2; i++)
		csink_json_known(json, words[i], is_known(picture, i), values[i]);
	csink_json_close(json, '}');
}

static void put_row(struct csink_json *json, const struct csink_top_picture *picture, const struct csink_diff_row *row)
{
	csink_json_open(json, NULL, '{');
	csink_json_text(json, "name", row->name);
	csink_json_text(json, "module", row->module);
	for (int i = 0; i < 2; i++) {
		if (!is_known(picture, i)) {
			csink_json_null(json, words[i]);
			continue;
		}
		csink_json_open(json, words[i], '{');
		csink_json_number(json, "self", row->self[i]);
		csink_json_number(json, "total", row->total[i]);
		csink_json_real(json, "self_percent", csink_top_percent(picture, i, row->self[i]));
		csink_json_real(json, "total_percent", csink_top_percent(picture, i, row->total[i]));
		csink_json_close(json, '}');
	}
	csink_json_close(json, '}');
}

int csink_top_print_json(FILE *out, const struct csink_top_source *source, struct csink_top_picture *picture,
			 enum csink_top_sort by, bool has_ended)
{
	static const char *const views[] = {"functions", "threads", "phases"};
	const struct csink_profile *all = picture->profiles[CSINK_TOP_ALL];
	struct csink_json json;
	const char *loss;

	errno = 0;
	csink_json_init(&json, out, '{');
	csink_json_number(&json, "form", FORM);
	csink_json_text(&json, "target", source->name);
	csink_json_text(&json, "source", source->attach ? "attach" : "recordings");
	csink_json_text(&json, "directory", source->attach ? NULL : source->path);
	csink_json_known(&json, "pid", source->pid, source->pid);
	csink_json_text(&json, "command", csink_profile_fact(all, CSINK_FACT_COMMAND, 0));
	csink_json_text(&json, "state", has_ended ? "ended" : "running");
	csink_json_text(&json, "event", picture->event);
	csink_json_text(&json, "unit", picture->unit);
	csink_json_text(&json, "percent_of", picture->is_time ? "one CPU" : "sum");
	csink_json_number(&json, "processes", picture->nr_processes);
	csink_json_number(&json, "threads_seen", picture->nr_threads);
	csink_json_number(&json, "recordings_not_read", picture->nr_unread);
	csink_json_open(&json, "losses", '[');
	for (int i = 0; (loss = csink_profile_fact(all, CSINK_FACT_LOSS, i)); i++)
		csink_json_text(&json, NULL, loss);
	csink_json_close(&json, ']');
	put_pair(&json, "ns", picture, (const int64_t[]){(int64_t)picture->ns[0], (int64_t)picture->ns[1]});
	put_pair(&json, "samples", picture, picture->samples);
	put_pair(&json, "sum", picture, picture->sums);
	for (uint32_t v = 0; v < CSINK_NR_TOP_VIEWS; v++) {
		uint32_t nr = csink_top_picture_sort(picture, v, by);

		csink_json_open(&json, views[v], '[');
		for (uint32_t i = 0; i < nr; i++)
			put_row(&json, picture, &picture->tables[v].rows[i]);
		csink_json_close(&json, ']');
	}
	csink_json_close(&json, '}');
	return csink_report_flush(out);
}
