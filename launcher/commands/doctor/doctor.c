/* The doctor's round, and the verdict: see doctor.h. */
#include "launcher/commands/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "preload/api/explain/explain_probe.h"

void csink_doctor_add(struct csink_doctor *doctor, const char *check, enum csink_level level, const char *remedy,
		      const char *fmt, ...)
{
	/* There is room for all checks; one too many would take the last one's place. */
	uint32_t place = doctor->nr_findings < CSINK_MAX_FINDINGS ? doctor->nr_findings++ : CSINK_MAX_FINDINGS - 1;
	struct csink_finding *finding = &doctor->findings[place];
	va_list ap;

	*finding = (struct csink_finding){.check = check, .level = level};
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy);
	va_start(ap, fmt);
	vsnprintf(finding->text, sizeof(finding->text), fmt, ap);
	va_end(ap);
}

enum csink_level csink_doctor_level(const struct csink_doctor *doctor)
{
	enum csink_level worst = CSINK_LEVEL_OK;

	for (uint32_t i = 0; i < doctor->nr_findings; i++)
		if (doctor->findings[i].level > worst)
			worst = doctor->findings[i].level;
	return worst;
}

static void draw_verdict(struct csink_doctor *doctor)
{
	char *out = doctor->verdict;
	size_t size = sizeof(doctor->verdict);

	if (!doctor->system.has_proc)
		snprintf(out, size, "%s: the library cannot be found without /proc; %s",
			 doctor->refused ? "nothing is profiled or counted" : "commands are counted, and not profiled",
			 doctor->refused ? "perf_event_open is refused" : "mount it for more");
	else if (doctor->refused)
		snprintf(out, size,
			 "perf_event_open is refused: profiles are made of CPU time by the timer engine, a few hundred "
			 "samples a second; nothing else is counted");
	else
		snprintf(out, size, "profiles are made of %s by the %s engine, %s; hardware counters %s", doctor->event,
			 doctor->engine, doctor->user_only ? "of user space only" : "the kernel's side included",
			 doctor->pmu_counts ? "work"
			 : doctor->has_pmu  ? "open but do not count"
					    : "are not there");
}

void csink_doctor_run(struct csink_doctor *doctor)
{
	memset(doctor, 0, sizeof(*doctor));
	doctor->largest_group = -1;
	csink_perf_system_read(&doctor->system);
	doctor->refused = csink_explain_refusal(NULL, &doctor->system, &doctor->refusal);
	if (doctor->refused)
		csink_explain_refusal_remedy(&doctor->refusal);
	csink_doctor_check_rights(doctor);
	csink_doctor_check_pmu(doctor);
	csink_doctor_check_holders(doctor);
	csink_doctor_check_limits(doctor);
	csink_doctor_check_engine(doctor);
	csink_doctor_check_own_events(doctor);
	csink_doctor_check_outside(doctor);
	csink_doctor_check_group(doctor);
	draw_verdict(doctor);
}
