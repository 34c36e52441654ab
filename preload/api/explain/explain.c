/*
 * Explanations in words: the one-line form, what a refusal means, and permissions that are missing. The search for the
 * culprit is in explain_open.c. Context of everything here: any, but for signal.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

#include "include/internal/base.h"
#include "preload/api/explain/explain_probe.h"

CSINK_EXPORT char *csink_explain_print(const struct csink_explanation *explanation, char *buf, size_t size)
{
	const struct csink_explanation *e = explanation;

	snprintf(buf, size, "%s: %s%s%s%s%s%s", csink_errno_name(e->err), e->text, e->field[0] ? " (" : "", e->field,
		 e->field[0] ? ")" : "", e->remedy[0] ? "; " : "", e->remedy);
	return buf;
}

static void describe(struct csink_explanation *out, enum csink_cause cause, const char *field, const char *remedy,
		     const char *fmt, va_list ap)
{
	out->cause = cause;
	if (field)
		snprintf(out->field, sizeof(out->field), "%s", field);
	snprintf(out->remedy, sizeof(out->remedy), "%s", remedy);
	vsnprintf(out->text, sizeof(out->text), fmt, ap);
}

void csink_explain_as(struct csink_explanation *out, enum csink_cause cause, const char *field, const char *remedy,
		      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	describe(out, cause, field, remedy, fmt, ap);
	va_end(ap);
}

void csink_probe_blame(struct csink_probe *probe, int err, enum csink_cause cause, const char *field,
		       const char *remedy, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	describe(csink_probe_fault(probe, err, cause, field), cause, NULL, remedy, fmt, ap);
	va_end(ap);
}

void csink_explain_remedy(struct csink_explanation *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->remedy, sizeof(out->remedy), fmt, ap);
	va_end(ap);
}

const struct csink_verdict *csink_verdict_find(const struct csink_verdict *verdicts, size_t nr, const char *field,
					       int err)
{
	for (size_t i = 0; i < nr; i++)
		if ((!verdicts[i].err || verdicts[i].err == err) && !fnmatch(verdicts[i].field, field, 0))
			return &verdicts[i];
	return NULL;
}

void csink_probe_judge(struct csink_probe *probe, int err, const char *field, const struct csink_verdict *verdict)
{
	struct csink_explanation *fault = csink_probe_fault(probe, err, verdict->cause, field);

	if (verdict->detail)
		verdict->detail(probe, fault);
	else if (verdict->cause == CSINK_CAUSE_PARANOID)
		csink_explain_permission(&probe->system, verdict->level, verdict->text, verdict->remedy, fault);
	else
		csink_explain_as(fault, verdict->cause, NULL, verdict->remedy, "%s", verdict->text);
}

void csink_explain_permission(const struct csink_perf_system *system, int level, const char *what, const char *avoid,
			      struct csink_explanation *out)
{
	char sysctl[64] = "";

	if (level >= -1)
		snprintf(sysctl, sizeof(sysctl), "sysctl kernel.perf_event_paranoid=%d, or ", level);
	if (system->has_perfmon && system->in_user_ns) {
		csink_explain_as(out, CSINK_CAUSE_USER_NS, NULL, "",
				 "%s needs CAP_PERFMON in the initial user namespace; what uid %u holds in this one "
				 "does not count",
				 what, (unsigned)system->euid);
		csink_explain_remedy(out, "%s%srun outside the namespace with CAP_PERFMON", avoid, sysctl);
		return;
	}
	if (csink_perf_system_allows(system, level)) {
		csink_explain_as(out, CSINK_CAUSE_LSM, NULL, "",
				 "%s is refused by a security module, for perf_event_paranoid and capabilities would "
				 "allow it",
				 what);
		csink_explain_remedy(out, "%slook in the audit log", avoid);
		return;
	}
	if (level >= -1 && !system->has_paranoid)
		csink_explain_as(out, CSINK_CAUSE_PARANOID, NULL, "",
				 "%s is not allowed: kernel.perf_event_paranoid, which cannot be read here, forbids "
				 "it, and CAP_PERFMON is missing",
				 what);
	else if (level >= -1)
		csink_explain_as(out, CSINK_CAUSE_PARANOID, NULL, "",
				 "%s is not allowed: kernel.perf_event_paranoid is %lld, and CAP_PERFMON is missing",
				 what, (long long)system->paranoid);
	else
		csink_explain_as(out, CSINK_CAUSE_PARANOID, NULL, "", "%s needs CAP_PERFMON, which is missing", what);
	csink_explain_remedy(out, "%s%sgrant CAP_PERFMON", avoid, sysctl);
}

static void remedy_of_limit(struct csink_explanation *refusal)
{
	struct rlimit limit = {0, 0};

	getrlimit(RLIMIT_NOFILE, &limit);
	if (refusal->err == ENFILE)
		csink_explain_remedy(refusal, "sysctl fs.file-max=HIGHER");
	else if (limit.rlim_cur < limit.rlim_max)
		csink_explain_remedy(refusal,
				     "raise the soft limit to the hard one (ulimit -n %llu), or use fewer events",
				     (unsigned long long)limit.rlim_max);
	else
		csink_explain_remedy(refusal, "the hard limit is reached as well: have it raised (limits.conf, "
					      "LimitNOFILE=), or use fewer events");
}

void csink_explain_refusal_remedy(struct csink_explanation *refusal)
{
	if (refusal->cause == CSINK_CAUSE_NO_PERF)
		csink_explain_remedy(refusal, "a kernel with CONFIG_PERF_EVENTS is needed");
	else if (refusal->cause == CSINK_CAUSE_SECCOMP)
		csink_explain_remedy(refusal, "let the container's seccomp profile allow perf_event_open (docker: "
					      "--cap-add PERFMON, or --security-opt seccomp=PROFILE)");
	else if (refusal->cause == CSINK_CAUSE_PARANOID)
		csink_explain_remedy(refusal, "sysctl kernel.perf_event_paranoid=2 (or lower), or grant CAP_SYS_ADMIN");
	else if (refusal->cause == CSINK_CAUSE_LIMIT)
		remedy_of_limit(refusal);
	else
		csink_explain_remedy(refusal, "look in the audit log; /sys/kernel/security/lsm names the modules");
}
