/* `countersink doctor`: what works here, what does not, and what to do about it. */
#include <stdio.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/base/text.h"
#include "launcher/commands/doctor/doctor.h"
#include "launcher/commands/doctor/doctor_options.h"
#include "launcher/commands/registry.h"

static const char *const level_words[] = {"ok", "note", "warn", "FAIL"};
static const char *const level_keys[] = {"ok", "note", "warn", "fail"};

static int exit_status(const struct csink_doctor *doctor)
{
	enum csink_level level = csink_doctor_level(doctor);

	if (level == CSINK_LEVEL_FAIL)
		return CSINK_EXIT_REFUSED;
	/* First what only this user lacks, then what the machine lacks. */
	if (doctor->user_only)
		return CSINK_EXIT_USER_ONLY;
	return level == CSINK_LEVEL_WARN ? CSINK_EXIT_FAILED : CSINK_EXIT_OK;
}

static void print_text(const struct csink_doctor *doctor)
{
	for (uint32_t i = 0; i < doctor->nr_findings; i++) {
		const struct csink_finding *finding = &doctor->findings[i];

		csink_text_print(stdout, "%-4s  %-14s %s\n", level_words[finding->level], finding->check,
				 finding->text);
		if (finding->remedy[0])
			csink_text_print(stdout, "%-4s  %-14s -> %s\n", "", "", finding->remedy);
	}
	csink_text_print(stdout, "\nHere %s.\n", doctor->verdict);
}

static void print_json(const struct csink_doctor *doctor)
{
	struct csink_json json;

	csink_json_init(&json, stdout, '{');
	csink_json_text(&json, "version", CSINK_VERSION);
	csink_json_text(&json, "verdict", doctor->verdict);
	csink_json_number(&json, "status", exit_status(doctor));
	csink_json_text(&json, "event", doctor->refused ? "cpu-time" : doctor->event);
	csink_json_text(&json, "engine", doctor->engine);
	csink_json_bool(&json, "perf_event_open", !doctor->refused);
	csink_json_bool(&json, "hardware_counters", doctor->pmu_counts);
	csink_json_bool(&json, "kernel_side", !doctor->user_only && !doctor->refused);
	csink_json_known(&json, "perf_event_paranoid", doctor->system.has_paranoid, doctor->system.paranoid);
	csink_json_known(&json, "largest_group", doctor->largest_group >= 0, doctor->largest_group);
	csink_json_open(&json, "findings", '[');
	for (uint32_t i = 0; i < doctor->nr_findings; i++) {
		const struct csink_finding *finding = &doctor->findings[i];

		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "check", finding->check);
		csink_json_text(&json, "level", level_keys[finding->level]);
		csink_json_text(&json, "text", finding->text);
		csink_json_text(&json, "remedy", finding->remedy[0] ? finding->remedy : NULL);
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_close(&json, '}');
}

static int main_doctor(const struct csink_options *o, int nr, char **operands)
{
	static struct csink_doctor doctor;

	if (nr)
		return csink_fail(CSINK_EXIT_USAGE,
				  "doctor takes no operand, but got '%.64s' (see countersink help doctor)", *operands);
	csink_doctor_run(&doctor);
	if (csink_options_bool(o, CSINK_DOCTOR_OPT_JSON))
		print_json(&doctor);
	else
		print_text(&doctor);
	return csink_end_output("doctor", exit_status(&doctor));
}

const struct csink_command csink_command_doctor = {
	.name = "doctor",
	.synopsis = "doctor [OPTION]...",
	.help = "report what works here and what does not (0 all, 1 something is missing, 3 refused, 4 user space "
		"only)",
	.main = main_doctor,
	CSINK_COMMAND_OPTIONS(CSINK_DOCTOR_OPTIONS),
	.failed_status = CSINK_EXIT_RUN_FAILED,
};
