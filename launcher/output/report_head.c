/* The report's head: the verdict, and the facts that limit it. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/output/report_impl.h"

#define LABEL_COLUMNS 12

static bool fact_number(const struct csink_profile *p, const char *key, int64_t *value)
{
	const char *text = csink_profile_fact(p, key, 0);
	char *end;

	if (!text)
		return false;
	errno = 0;
	*value = strtoll(text, &end, 10);
	return end != text && !errno && *value >= 0;
}

/* The type that is CPU time, or -ENOENT. */
static int cpu_type(const struct csink_profile *p)
{
	const char *name = csink_profile_fact(p, CSINK_FACT_CPU_TYPE, 0);

	return name ? csink_profile_type_find(p, name) : -ENOENT;
}

/* "  label       text", the text made fit for a terminal and never wrapped by us. */
__attribute__((format(printf, 3, 4))) static void line(const struct printer *r, const char *label, const char *fmt, ...)
{
	char text[MAX_TEXT];
	va_list ap;

	va_start(ap, fmt);
	csink_text_vformat(text, sizeof(text), fmt, ap);
	va_end(ap);
	fputs("  ", r->out);
	csink_report_style(r, STYLE_DIM);
	csink_text_print(r->out, "%-*s", LABEL_COLUMNS, label);
	csink_report_style(r, STYLE_NONE);
	if (!strcmp(label, "warning"))
		csink_report_style(r, STYLE_WARN);
	fputs(text, r->out);
	if (!strcmp(label, "warning"))
		csink_report_style(r, STYLE_NONE);
	fputc('\n', r->out);
}

/* All texts of a key, in one line. */
static void print_joined(const struct printer *r, const char *label, const char *key, const char *before,
			 const char *after)
{
	char text[MAX_TEXT] = "";
	const char *fact;
	uint32_t nr;

	for (nr = 0; (fact = csink_profile_fact(r->p, key, nr)); nr++)
		csink_append(text, sizeof(text), "%s%s", nr ? "; " : "", fact);
	if (nr)
		line(r, label, "%s%s%s", before, text, after);
}

static void print_each(const struct printer *r, const char *label, const char *key)
{
	const char *text;
	uint32_t nr;

	for (nr = 0; (text = csink_profile_fact(r->p, key, nr)); nr++)
		line(r, label, "%s", text);
}

/* ---- the head ---- */

/* ", 2 processes", where that is known. */
static void print_number(const struct printer *r, const char *fact, const char *one, const char *many)
{
	int64_t number;

	if (fact_number(r->p, fact, &number) && number)
		csink_text_print(r->out, ", %" PRId64 " %s", number, plural(number, one, many));
}

/* "1.234 s of CPU time in 0.412 s, 2 processes, 8 threads; 1,230 samples of task-clock" */
static void print_verdict(const struct printer *r)
{
	const struct csink_profile *p = r->p;
	const char *leader = csink_profile_fact(p, CSINK_FACT_LEADER, 0);
	int cpu = cpu_type(p), samples = csink_profile_type_find(p, "samples");
	const struct csink_profile_type *type = &p->types[cpu < 0 ? (int)p->default_type : cpu];
	char count[32];

	csink_report_style(r, STYLE_BOLD);
	csink_text_print(r->out, "%s of %s",
			 csink_amount(r->table.sums[type - p->types], csink_profile_text(p, type->unit)).text,
			 cpu < 0 ? csink_profile_text(p, type->name) : "CPU time");
	if (p->duration_ns > 0)
		csink_text_print(r->out, " in %s", csink_amount(p->duration_ns, "nanoseconds").text);
	print_number(r, CSINK_FACT_PROCESSES, "process", "processes");
	print_number(r, CSINK_FACT_THREADS, "thread", "threads");
	if (samples >= 0 && (leader || cpu < 0)) {
		csink_format_count(count, sizeof(count), r->table.sums[samples]);
		csink_text_print(r->out, "; %s %s", count, plural(r->table.sums[samples], "sample", "samples"));
		for (uint32_t nr = 0; leader; leader = csink_profile_fact(p, CSINK_FACT_LEADER, ++nr))
			csink_text_print(r->out, "%s%s", nr ? ", " : " by ", leader);
	} else if (cpu >= 0) {
		csink_text_print(r->out, "; nothing was sampled");
	}
	csink_text_print(r->out, "\n");
	csink_report_style(r, STYLE_NONE);
}

/* How much of what the kernel accounted the samples show. */
static void print_coverage(const struct printer *r)
{
	const struct csink_profile *p = r->p;
	int64_t user, sys, rss, unwaited, whole, sampled;
	char more[96] = "", others[160] = "";
	int cpu = cpu_type(p);
	struct csink_scale scale;
	const char *rest;

	if (cpu < 0)
		return;
	sampled = r->table.sums[cpu] - r->table.pseudo_sums[cpu];
	rest = r->table.pseudo_sums[cpu] ? "; the rest is in [brackets]" : "";
	if (!fact_number(p, CSINK_FACT_USER, &user) || !fact_number(p, CSINK_FACT_SYS, &sys)) {
		whole = r->table.sums[cpu];
		if (whole > 0)
			line(r, "accounted", "samples cover %.1f %% of %s of CPU time%s", 100.0 * sampled / whole,
			     csink_amount(whole, "nanoseconds").text, rest);
		return;
	}
	if (!fact_number(p, CSINK_FACT_UNWAITED, &unwaited))
		unwaited = 0;
	whole = csink_add(user + sys, unwaited);
	scale = csink_scale_for(whole, "nanoseconds");
	if (unwaited)
		snprintf(others, sizeof(others), " + %s of processes that were not waited for",
			 csink_amount_at(unwaited, &scale).text);
	if (fact_number(p, CSINK_FACT_MAXRSS, &rss) && rss)
		snprintf(more, sizeof(more), "; max RSS %s", csink_amount(rss, "bytes").text);
	if (whole > 0)
		line(r, "accounted", "samples cover %.1f %% of %s (%s user + %s sys%s)%s%s", 100.0 * sampled / whole,
		     csink_amount_at(whole, &scale).text, csink_amount_at(user, &scale).text,
		     csink_amount_at(sys, &scale).text, others, rest, more);
	else
		line(r, "accounted", "the kernel accounted no CPU time%s", more);
}

/* " every 1.003 ms" of an event that is sampled at a fixed period, else "". */
static void format_period(const struct csink_profile *p, const char *event, char *buf, size_t size)
{
	char name[64], unit[32];
	const char *text;
	int64_t period;

	*buf = 0;
	for (uint32_t nr = 0; !*buf && (text = csink_profile_fact(p, CSINK_FACT_EVERY, nr)); nr++) {
		if (sscanf(text, "%63s %" SCNd64 " %31s", name, &period, unit) == 3 && !strcmp(name, event))
			snprintf(buf, size, " every %s", csink_amount(period, unit).text);
	}
}

/* Nothing was sampled: what each engine that was tried lacks, unless none was asked for. */
static void print_no_engine(const struct printer *r)
{
	static const char refused[] = "none: as asked; ";
	const char *engine;

	for (uint32_t nr = 0; (engine = csink_profile_fact(r->p, CSINK_FACT_ENGINE, nr)); nr++) {
		if (!strncmp(engine, refused, sizeof(refused) - 1))
			line(r, "engine", "none: %s; --engine=auto takes the best one that works here",
			     engine + sizeof(refused) - 1);
	}
}

static void print_sampling(const struct printer *r)
{
	const struct csink_profile *p = r->p;
	const char *leader = csink_profile_fact(p, CSINK_FACT_LEADER, 0);
	const char *reason = csink_profile_fact(p, CSINK_FACT_EVENT_REASON, 0);
	char every[80] = "";
	const char *more = leader;

	for (uint32_t nr = 0; more; more = csink_profile_fact(p, CSINK_FACT_LEADER, ++nr)) {
		format_period(p, more, every, sizeof(every));
		if (!nr && !*every && p->period > 0) /* written by an older version, or by others */
			snprintf(every, sizeof(every), " every %s",
				 csink_amount(p->period, csink_profile_text(p, p->period_type.unit)).text);
		line(r, "event", "%s%s%s%s", more, every, !nr && reason ? ": " : "", !nr && reason ? reason : "");
	}
	if (!leader)
		print_no_engine(r);
	if (leader) {
		print_joined(r, "engine", CSINK_FACT_ENGINE, "", "");
		print_joined(r, "stacks", CSINK_FACT_UNWIND, "", "");
	}
	print_joined(r, "warning", CSINK_FACT_REFUSED, "could not be counted: ", "");
	print_joined(r, "warning", CSINK_FACT_USER_ONLY, "the kernel's part is not counted by ",
		     " (perf_event_paranoid)");
	print_joined(r, "note", CSINK_FACT_SCALED, "shared a counter, so the counts are estimates: ", "");
}

/* "500.002 MiB in 320,152 objects, counted; functions by a sample in 512.000 KiB" */
static void print_allocated(const struct printer *r)
{
	int bytes = csink_own_type(r->p, CSINK_OWN_ALLOCATED, false);
	int objects = csink_own_type(r->p, CSINK_OWN_ALLOCATED, true);
	char count[32];

	if (bytes < 0 || objects < 0)
		return;
	csink_format_count(count, sizeof(count), r->table.sums[objects]);
	line(r, "allocated", "%s in %s %s, counted; functions by a sample in %s, +- in 95 of 100 cases",
	     csink_amount(r->table.sums[bytes], "bytes").text, count,
	     plural(r->table.sums[objects], "object", "objects"),
	     csink_amount(csink_own_period(r->p, (uint32_t)bytes), "bytes").text);
}

/* " (scaled: it had a counter 41.0 % of the time)" where an event counted from outside has such a fact. */
static void format_share(const char *times, char *buf, size_t size)
{
	int64_t enabled, running;

	*buf = 0;
	if (!times || sscanf(times, "enabled %" SCNd64 " ns, running %" SCNd64, &enabled, &running) != 2)
		return;
	if (!enabled)
		snprintf(buf, size, " (never scheduled)");
	else if (running < enabled)
		snprintf(buf, size, " (scaled: it had a counter %.1f %% of the time)", 100.0 * running / enabled);
}

/*
 * "; samples have 390.248 M, 96.9 % of it": events without a sample, and events that the kernel did not count
 * while it had stopped a sampling event, are in the outside count and in no sample; attach has a row in brackets for
 * the former. For CPU time the line "accounted" has that.
 */
static void format_sampled(const struct printer *r, char *name, int64_t counted, const char *unit, char *buf,
			   size_t size)
{
	struct csink_scale scale = csink_scale_for(counted, unit);
	int type = csink_profile_type_find(r->p, name);
	size_t length = strlen(name);
	int64_t sampled;

	*buf = 0;
	if (type < 0 && length > 2 && !strcmp(name + length - 2, ":u")) { /* left out for the user's lack of rights */
		name[length - 2] = 0;
		type = csink_profile_type_find(r->p, name);
		name[length - 2] = ':';
	}
	if (type < 0 || !strcmp(unit, "nanoseconds"))
		return;
	sampled = r->table.sums[type] - r->table.pseudo_sums[type];
	if ((double)sampled >= 0.99 * (double)counted)
		return;
	snprintf(buf, size, "; samples have %s, %.1f %% of it", csink_amount_at(sampled, &scale).text,
		 100.0 * (double)sampled / (double)counted);
}

static void print_counters(const struct printer *r)
{
	const char *text;
	char name[64], unit[32], share[80], sampled[96];
	uint32_t nr;
	int64_t n;

	for (nr = 0; (text = csink_profile_fact(r->p, CSINK_FACT_COUNTER, nr)); nr++) {
		if (sscanf(text, "%63s %" SCNd64 " %31s", name, &n, unit) != 3)
			continue;
		format_share(strstr(text, "enabled "), share, sizeof(share));
		format_sampled(r, name, n, unit, sampled, sizeof(sampled));
		line(r, "counted", "%s %s in the whole tree%s%s", name, csink_amount(n, unit).text, share, sampled);
	}
	print_joined(r, "counted", CSINK_FACT_UNCOUNTED, "no events from outside: ", "");
}

/* "3 of 4, by PMI_RANK", or of a profile of several "4 ranks, ..."; and the batch job. */
static void print_ranks(const struct printer *r)
{
	const char *rank = csink_profile_fact(r->p, CSINK_FACT_RANK, 0);
	const char *ranks = csink_profile_fact(r->p, CSINK_FACT_RANKS, 0);
	const char *by = csink_profile_fact(r->p, CSINK_FACT_RANKED_BY, 0);

	if (ranks && rank)
		line(r, "rank", "%s of %s%s%s", rank, ranks, by ? ", by " : "", by ? by : "");
	else if (ranks)
		line(r, "ranks", "of a parallel job of %s%s%s", ranks, by ? ", by " : "", by ? by : "");
	print_joined(r, "job", CSINK_FACT_JOB, "", "");
}

/* "7, from 2026-11-22T08:15:00.000Z; the run began at 2026-11-22T07:21:13.512Z and goes on" */
static void print_slice(const struct printer *r)
{
	const char *number = csink_profile_fact(r->p, CSINK_FACT_SLICE, 0);
	const char *start = csink_profile_fact(r->p, CSINK_FACT_SLICE_START, 0);
	const char *run = csink_profile_fact(r->p, CSINK_FACT_RUN_START, 0);
	const char *state = csink_profile_fact(r->p, CSINK_FACT_RUN_STATE, 0);

	if (number && start && run && state)
		line(r, "slice", "%s, from %s; the run began at %s and %s%s", number, start, run,
		     strcmp(state, "ended") ? "" : "has ", state);
}

/* Of the time in which a run ran, the part that its critical path has: less where the path is that of a thread that
 * mostly waited. */
#define CRITICAL_LEAST 0.75

/*
 * "weights add up to 1.035 s of 1.036 s that the run ran, on 1.71 of 2 CPUs on average; ..." The two times differ where
 * samples are damaged or threads run for less than a period at a time.
 */
static void print_wall(const struct printer *r)
{
	const struct csink_wall *wall = r->o->wall;
	struct csink_scale scale = csink_scale_for((int64_t)wall->ran_ns, "nanoseconds");
	char cpus[32] = "", untimed[64] = "";

	if (wall->nr_cpus)
		snprintf(cpus, sizeof(cpus), " of %u", wall->nr_cpus);
	if (wall->timed < 0.995)
		snprintf(untimed, sizeof(untimed), "; %.1f %% of the cost has no time", 100 * (1 - wall->timed));
	line(r, "wall", "weights add up to %s of %s in which the run ran, on %.2f%s CPUs on average%s",
	     csink_amount_at((int64_t)wall->weights_ns, &scale).text,
	     csink_amount_at((int64_t)wall->ran_ns, &scale).text, wall->ran_ns > 0 ? wall->cpu_ns / wall->ran_ns : 0,
	     cpus, untimed);
	line(r, "critical", "%u %s between threads, %u of them ambiguous; load by other programs hides parallelism",
	     wall->nr_steps, plural(wall->nr_steps, "step", "steps"), wall->nr_doubtful);
	if (wall->critical_ns < CRITICAL_LEAST * wall->ran_ns)
		line(r, "warning",
		     "critical %% is not reliable: the path has samples of %.0f %% of the time in which the run ran. "
		     "Threads wait for each other for less than 12 ms or 2.5 periods, or for a CPU; of locks, run -e "
		     "task-clock,lock measures the waits",
		     100 * wall->critical_ns / wall->ran_ns);
}

void csink_report_head(const struct printer *r)
{
	const char *command = csink_profile_fact(r->p, CSINK_FACT_COMMAND, 0);
	const char *status = csink_profile_fact(r->p, CSINK_FACT_EXIT, 0);

	print_verdict(r);
	if (command && status && strcmp(status, "status 0"))
		line(r, "command", "%.512s (exit: %s)", command, status);
	else if (command)
		line(r, "command", "%.512s", command);
	print_slice(r);
	print_ranks(r);
	print_sampling(r);
	if (csink_profile_fact(r->p, CSINK_FACT_FILTER, 0))
		print_each(r, "filter", CSINK_FACT_FILTER);
	else
		print_coverage(r);
	print_counters(r);
	if (!csink_profile_fact(r->p, CSINK_FACT_FILTER, 0))
		print_allocated(r);
	if (r->o->wall)
		print_wall(r);
	print_joined(r, "lost", CSINK_FACT_LOSS, "", "");
	print_joined(r, "outside", CSINK_FACT_OUTSIDE, "cannot be injected, so the kernel sampled them: ", "");
	print_joined(r, "unprofiled", CSINK_FACT_UNPROFILED, "", "");
	print_each(r, "warning", CSINK_FACT_WARNING);
	print_each(r, "note", CSINK_FACT_NOTE);
}
