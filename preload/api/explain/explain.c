/*
 * Explanations in words: the one-line form, and permissions that are missing. The search for the culprit is in
 * explain_open.c. Context of everything here: any, but for signal.
 */
#include <stdio.h>

#include "include/internal/base.h"
#include "preload/api/explain/explain_probe.h"

CSINK_EXPORT char *csink_explain_print(const struct csink_explanation *explanation, char *buf, size_t size)
{
	const struct csink_explanation *e = explanation;

	snprintf(buf, size, "%s: %s%s%s%s%s%s", csink_errno_name(e->err), e->text, e->field[0] ? " (" : "", e->field,
		 e->field[0] ? ")" : "", e->remedy[0] ? "; " : "", e->remedy);
	return buf;
}

void csink_explain_permission(const struct csink_perf_system *system, int level, const char *what, const char *avoid,
			      struct csink_explanation *out)
{
	char sysctl[64] = "";

	if (level >= -1)
		snprintf(sysctl, sizeof(sysctl), "sysctl kernel.perf_event_paranoid=%d, or ", level);
	if (system->has_perfmon && system->in_user_ns) {
		out->cause = CSINK_CAUSE_USER_NS;
		snprintf(out->text, sizeof(out->text),
			 "%s needs CAP_PERFMON in the initial user namespace; what uid %u holds in this one does not "
			 "count",
			 what, (unsigned)system->euid);
		snprintf(out->remedy, sizeof(out->remedy), "%s%srun outside the namespace with CAP_PERFMON", avoid,
			 sysctl);
	} else if (csink_perf_system_allows(system, level)) {
		out->cause = CSINK_CAUSE_LSM;
		snprintf(out->text, sizeof(out->text),
			 "%s is refused by a security module, for perf_event_paranoid and capabilities would allow it",
			 what);
		snprintf(out->remedy, sizeof(out->remedy), "%slook in the audit log", avoid);
	} else {
		out->cause = CSINK_CAUSE_PARANOID;
		if (level >= -1 && !system->has_paranoid)
			snprintf(out->text, sizeof(out->text),
				 "%s is not allowed: kernel.perf_event_paranoid, which cannot be read here, "
				 "forbids it, and CAP_PERFMON is missing",
				 what);
		else if (level >= -1)
			snprintf(out->text, sizeof(out->text),
				 "%s is not allowed: kernel.perf_event_paranoid is %lld, and CAP_PERFMON is missing",
				 what, (long long)system->paranoid);
		else
			snprintf(out->text, sizeof(out->text), "%s needs CAP_PERFMON, which is missing", what);
		snprintf(out->remedy, sizeof(out->remedy), "%s%sgrant CAP_PERFMON", avoid, sysctl);
	}
}
