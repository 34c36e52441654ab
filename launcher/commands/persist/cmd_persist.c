/* `countersink persist`: events that outlive their openers, by <countersink/persist.h>. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/countersink/persist.h"
#include "include/internal/base.h"
#include "include/internal/event.h"
#include "launcher/base/json.h"
#include "launcher/base/text.h"
#include "launcher/commands/persist/keeper.h"
#include "launcher/commands/persist/persist_options.h"
#include "launcher/commands/persist/persist_samples.h"
#include "launcher/commands/persist/persist_target.h"
#include "launcher/commands/registry.h"
#include "preload/core/perf_system.h"

struct persist {
	const struct csink_options *options;
	const char *base; /* NULL: the usual one */
	bool json;
	struct csink_json out;
	char **ids;
	int nr_ids;
};

static const char *why(int err)
{
	switch (err) {
	case -ENOENT:
		return "there is no such persistent event";
	case -EACCES:
		return "it belongs to another user";
	case -EPERM:
		return "the run directory cannot be trusted: only its owner may be able to write it (see "
		       "--persist-dir)";
	case -ENOBUFS:
		return CSINK_NO_LOCKED_MEMORY " (or leave out --pages: a count needs no locked memory)";
	case -EEXIST:
		return "it is persistent already";
	case -EMFILE:
		return "the keeper has no file descriptors left (ulimit -n)";
	case -ENOMSG:
		return "it keeps no ring of samples (detach it with --pages)";
	case -ENODATA:
		return "it has lost its counter (a pinned event that another one displaced)";
	case -ENOEXEC:
		return "the keeper did not start";
	case -ETIMEDOUT:
		return "the keeper does not answer";
	default:
		return strerror(-err);
	}
}

/* ---- detach ---- */

static int parse_cpu(const char *text)
{
	char *end;
	long cpu = strtol(text, &end, 10);

	if (!*text)
		return -1;
	return *text < '0' || *text > '9' || *end || cpu > INT32_MAX ? -EINVAL : (int)cpu;
}

/* What can be counted, and how it is asked for. Returns 0 or what to exit with. */
static int resolve_event(struct persist *persist, struct csink_event_spec *spec,
			 const struct csink_persist_event *event)
{
	static const struct csink_event_roots roots; /* the system's own */
	const char *text = csink_options_text(persist->options, CSINK_PERSIST_OPT_EVENT), *why;
	struct csink_event_spec specs[2];
	struct csink_event_error err;
	int nr = csink_events_parse(text, specs, 1, &err);

	if (nr == 1)
		nr = csink_events_bind(&roots, specs, 1, 2, &err);
	*spec = specs[0];
	if (nr < 0)
		csink_say("option --event: %s", err.line);
	else if (nr > 1)
		csink_say("option --event: '%s' is an event of several kinds of CPUs: name one PMU's (%s)", text,
			  specs[0].rec.name);
	else if (event->pages ? csink_event_check(spec, &why) : csink_event_check_count(spec, &why))
		csink_say("option --event: '%s': %s", spec->rec.name, why);
	else if (spec->cpu_wide && (event->pid >= 0 || event->cpu < 0))
		csink_say("option --event: %s counts whole CPUs: give --cpu without --pid",
			  spec->pmu[0] ? spec->pmu : spec->rec.name);
	else if (event->cpu >= 0 && !csink_event_is_on(spec, (uint32_t)event->cpu))
		csink_say("option --cpu: CPU %d does not have %s; its CPUs are %s", event->cpu, spec->rec.name,
			  spec->cpus);
	else
		return 0;
	return CSINK_EXIT_USAGE;
}

/* What is to be opened. Returns 0 or what to exit with. */
static int resolve(struct persist *persist, struct csink_event_spec *spec, struct csink_persist_event *event)
{
	const char *mode = csink_options_text(persist->options, CSINK_PERSIST_OPT_MODE);
	uint64_t pid = csink_options_number(persist->options, CSINK_PERSIST_OPT_PID);
	uint64_t pages = csink_options_number(persist->options, CSINK_PERSIST_OPT_PAGES);
	char *end;

	event->cpu = parse_cpu(csink_options_text(persist->options, CSINK_PERSIST_OPT_CPU));
	if (event->cpu < -1)
		return csink_fail(CSINK_EXIT_USAGE, "option --cpu: '%s' is no number of a CPU",
				  csink_options_text(persist->options, CSINK_PERSIST_OPT_CPU));
	if (!pid && event->cpu < 0)
		return csink_fail(CSINK_EXIT_USAGE, "no target given: use --pid=PID, --cpu=CPU or both");
	event->pid = pid ? (int32_t)CSINK_MIN(pid, (uint64_t)INT32_MAX) : -1;
	event->mode = (uint32_t)strtoul(mode, &end, 8);
	if (!*mode || *end || event->mode & ~0666U)
		return csink_fail(CSINK_EXIT_USAGE, "option --mode: '%s' is not an octal mode of at most 0666", mode);
	if (pages & (pages - 1) || pages > 1 << 20)
		return csink_fail(CSINK_EXIT_USAGE, "option --pages: %" PRIu64 " is no power of two up to 1048576",
				  pages);
	event->pages = (uint32_t)pages;
	return resolve_event(persist, spec, event);
}

/* With what a reader of the ring needs, if one is kept. */
static void complete_attr(struct csink_event_spec *spec, const struct csink_persist_event *event)
{
	spec->attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (!event->pages)
		return;
	spec->attr.write_backward = 1;
	spec->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
	if (!spec->attr.sample_period && !spec->attr.freq) {
		spec->attr.freq = 1;
		spec->attr.sample_freq = CSINK_DEFAULT_FREQUENCY;
	}
	/* Else the kernel would sample a software event each time that it occurs. */
	if (spec->attr.freq)
		spec->attr.sample_type |= PERF_SAMPLE_PERIOD;
}

/* Report if the process could not be stopped while its threads were listed. */
static void warn_not_stopped(const struct csink_persist_event *event, int err)
{
	if (err && err != -ESRCH)
		csink_say("note: process %d could not be stopped while its threads were listed (%s): a thread that it "
			  "started then may be missing",
			  event->pid, csink_errno_name(-err));
}

static int detach(struct persist *persist)
{
	struct csink_persist_event event = {0};
	struct csink_persist_set set;
	struct csink_event_spec spec;
	int lost, err, status = resolve(persist, &spec, &event);

	if (status)
		return status;
	if (persist->nr_ids)
		return csink_fail(CSINK_EXIT_USAGE,
				  "persist detach opens an event of its own and prints its id: it takes no '%s'",
				  persist->ids[0]);
	complete_attr(&spec, &event);
	lost = csink_persist_lost(persist->base);
	err = csink_persist_set_open(&set, &spec, &event);
	snprintf(event.name, sizeof(event.name), "%s", spec.rec.name);
	if (!err) {
		warn_not_stopped(&event, set.stop_err);
		err = csink_persist_detach_set(set.at, set.nr, &event, persist->base);
	}
	csink_persist_set_close(&set);
	if (err) {
		if (*set.text)
			csink_say("%s", set.text);
		else
			csink_say("%s cannot be made persistent: %s", event.name, why(err));
		return CSINK_EXIT_FAILED;
	}
	if (lost > 0)
		csink_say("%d earlier event%s ended with a keeper that was killed", lost, lost == 1 ? "" : "s");
	csink_text_print(stdout, "%" PRIu64 "\n", event.id);
	return 0;
}

/* ---- list ---- */

static void print_target(char *buf, size_t size, const struct csink_persist_event *event)
{
	if (event->cpu < 0)
		snprintf(buf, size, "pid %d", event->pid);
	else if (event->pid < 0)
		snprintf(buf, size, "cpu %d", event->cpu);
	else
		snprintf(buf, size, "pid %d on cpu %d", event->pid, event->cpu);
}

static int print_text(const struct csink_persist_event *event, void *data)
{
	char target[48], since[32] = "?";
	time_t when = (time_t)(event->since_ns / (int64_t)CSINK_NS_PER_S);
	struct tm tm;

	(void)data;
	print_target(target, sizeof(target), event);
	if (localtime_r(&when, &tm))
		strftime(since, sizeof(since), "%F %T", &tm);
	csink_text_print(stdout, "%10" PRIu64 "  %-24s %-22s ring %4u  %04o  uid %-6u since %s, by process %d\n",
			 event->id, *event->name ? event->name : "?", target, event->pages, event->mode, event->uid,
			 since, event->opener);
	return 0;
}

static int print_json(const struct csink_persist_event *event, void *data)
{
	struct csink_json *out = data;
	char mode[16];

	csink_json_open(out, NULL, '{');
	csink_json_number(out, "id", (int64_t)event->id);
	csink_json_text(out, "name", event->name);
	csink_json_number(out, "type", event->attr.type);
	csink_json_number(out, "config", (int64_t)event->attr.config);
	csink_json_number(out, event->attr.freq ? "frequency" : "period", (int64_t)event->attr.sample_period);
	csink_json_number(out, "pid", event->pid);
	csink_json_number(out, "cpu", event->cpu);
	csink_json_number(out, "events", event->nr_members);
	csink_json_number(out, "pages", event->pages);
	csink_json_bool(out, "backward", event->attr.write_backward);
	snprintf(mode, sizeof(mode), "%04o", event->mode);
	csink_json_text(out, "mode", mode);
	csink_json_number(out, "uid", event->uid);
	csink_json_number(out, "opener", event->opener);
	csink_json_number(out, "since_ns", event->since_ns);
	csink_json_close(out, '}');
	return 0;
}

static int list(struct persist *persist)
{
	int lost, nr;

	if (persist->nr_ids)
		return csink_fail(CSINK_EXIT_USAGE, "persist list takes no '%s'", persist->ids[0]);
	if (persist->json)
		csink_json_open(&persist->out, NULL, '[');
	nr = csink_persist_list(persist->json ? print_json : print_text, &persist->out, persist->base);
	if (persist->json) {
		csink_json_close(&persist->out, ']');
		putchar('\n');
	}
	lost = csink_persist_lost(persist->base);
	if (lost > 0)
		csink_say("%d event%s ended with a keeper that was killed", lost, lost == 1 ? "" : "s");
	if (nr >= 0)
		return 0;
	return csink_fail(CSINK_EXIT_FAILED, "persistent events cannot be listed: %s", why(nr));
}

/* ---- of one event after the other ---- */

static int read_event(struct persist *persist, uint64_t id)
{
	struct csink_persist_value value;
	int err = csink_persist_read(id, &value, persist->base);

	if (err)
		return err;
	if (!persist->json) {
		csink_text_print(stdout, "%10" PRIu64 "  %20" PRIu64 "  enabled %.6f s  running %.6f s\n", id,
				 value.value, (double)value.enabled_ns / 1e9, (double)value.running_ns / 1e9);
		return 0;
	}
	csink_json_open(&persist->out, NULL, '{');
	csink_json_number(&persist->out, "id", (int64_t)id);
	csink_json_number(&persist->out, "value", (int64_t)value.value);
	csink_json_number(&persist->out, "enabled_ns", (int64_t)value.enabled_ns);
	csink_json_number(&persist->out, "running_ns", (int64_t)value.running_ns);
	csink_json_close(&persist->out, '}');
	return 0;
}

static int match(const struct csink_persist_event *event, void *data)
{
	struct csink_persist_event *wanted = data;

	if (event->id != wanted->id)
		return 0;
	*wanted = *event;
	return 1;
}

/* What its rings hold. */
static int print_samples(struct persist *persist, uint64_t id)
{
	struct csink_persist_event event = {.id = id};
	int err = csink_persist_list(match, &event, persist->base);

	if (err != 1)
		return err < 0 ? err : -ENOENT;
	return csink_persist_samples(&event, persist->base, persist->json ? &persist->out : NULL);
}

/* Then this process is the last to have it open, unless its opener still lives: the event ends. */
static int attach_event(struct persist *persist, uint64_t id)
{
	struct csink_persist_member member;
	int fd, err = csink_persist_open_member(id, 0, &member, persist->base);

	if (err)
		return err;
	fd = member.fd;
	err = csink_persist_attach(fd, persist->base);
	close(fd);
	return err;
}

static int each_id(struct persist *persist, const char *verb, int (*act)(struct persist *, uint64_t))
{
	int status = 0, err;
	uint64_t id;

	if (!persist->nr_ids)
		return csink_fail(CSINK_EXIT_USAGE, "persist %s needs an id (see countersink persist list)", verb);
	if (persist->json)
		csink_json_open(&persist->out, NULL, '[');
	for (int i = 0; i < persist->nr_ids; i++) {
		err = csink_number_parse(persist->ids[i], &id);
		if (!err)
			err = act(persist, id);
		if (!err)
			continue;
		csink_say("event %s: %s", persist->ids[i], why(err));
		status = CSINK_EXIT_FAILED;
	}
	if (persist->json) {
		csink_json_close(&persist->out, ']');
		putchar('\n');
	}
	return status;
}

static int act(struct persist *persist, const char *verb)
{
	if (!strcmp(verb, "detach"))
		return detach(persist);
	if (!strcmp(verb, "list"))
		return list(persist);
	if (!strcmp(verb, "read"))
		return each_id(persist, verb, read_event);
	if (!strcmp(verb, "samples"))
		return each_id(persist, verb, print_samples);
	if (!strcmp(verb, "attach"))
		return each_id(persist, verb, attach_event);
	return csink_fail(
		CSINK_EXIT_USAGE,
		"unknown action '%s': persist takes detach, attach, list, read or samples (see countersink help "
		"persist)",
		verb);
}

static int main_persist(const struct csink_options *o, int nr, char **operands)
{
	const char *base = csink_options_text(o, CSINK_PERSIST_OPT_PERSIST_DIR);
	struct persist persist = {.options = o,
				  .base = *base ? base : NULL,
				  .json = csink_options_bool(o, CSINK_PERSIST_OPT_JSON),
				  .ids = operands + 1,
				  .nr_ids = nr - 1};

	/* The keeper's own: what persist_start.c runs. */
	if (nr == 2 && !strcmp(*operands, "keep"))
		return csink_keeper_run(operands[1]);
	if (!nr)
		return csink_fail(CSINK_EXIT_USAGE,
				  "no action given: use countersink persist detach, attach, list, read or samples");
	csink_json_init(&persist.out, stdout, 0);
	return csink_end_output("persist", act(&persist, *operands));
}

const struct csink_command csink_command_persist = {
	.name = "persist",
	.synopsis = "persist detach|attach|list|read|samples [OPTION]... [ID]...",
	.help = "keep events open after the process that opened them ends",
	.main = main_persist,
	CSINK_COMMAND_OPTIONS(CSINK_PERSIST_OPTIONS),
};
