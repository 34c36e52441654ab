/* An attach for programs: see attach_json.h. */
#include "launcher/commands/attach/attach_json.h"

#include <stdio.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"

void csink_attach_print_json(const struct csink_attach_target *target, const struct csink_attach_follow *follow,
			     const struct csink_outside *outside, const char *profile)
{
	struct csink_json json;

	csink_json_init(&json, stdout, '{');
	csink_json_text(&json, "countersink", CSINK_VERSION);
	csink_json_text(&json, "target", outside->command);
	csink_json_bool(&json, "stopped", !target->stop.err && target->stop.stopped_ns);
	csink_json_real(&json, "stop_ms", (double)target->stop.stopped_ns / 1e6);
	csink_json_number(&json, "attached_threads", target->nr_threads);
	csink_json_number(&json, "attached_processes", target->nr_processes);
	csink_json_number(&json, "from_monotonic_ns", (int64_t)target->from_ns);
	csink_json_number(&json, "wall_ns", (int64_t)outside->wall_ns);
	csink_json_number(&json, "samples", (int64_t)follow->nr_samples);
	csink_json_number(&json, "lost", (int64_t)follow->counters.rings.nr_lost);
	csink_json_open(&json, "counters", '[');
	for (uint32_t i = 0; i < outside->nr_counts; i++) {
		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "name", outside->counts[i].name);
		csink_json_number(&json, "value", (int64_t)outside->counts[i].value);
		csink_json_text(&json, "unit", outside->counts[i].unit);
		csink_json_number(&json, "enabled_ns", (int64_t)outside->counts[i].time_enabled_ns);
		csink_json_number(&json, "running_ns", (int64_t)outside->counts[i].time_running_ns);
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_texts(&json, "notes", outside->notes, outside->nr_notes);
	csink_json_text(&json, "profile", *profile ? profile : NULL);
	csink_json_close(&json, '}');
	putchar('\n');
}
