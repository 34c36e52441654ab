/* `countersink attach`: count and sample processes that run already, from outside; nothing is injected. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/attach/follow.h"
#include "launcher/attach/select.h"
#include "launcher/commands.h"
#include "launcher/output/json.h"
#include "launcher/output/pprof.h"
#include "launcher/output/report.h"
#include "launcher/profile/profile.h"
#include "launcher/reserve/reservation.h"
#include "launcher/run/folder.h"
#include "launcher/run/output.h"
#include "launcher/run/outside.h"
#include "launcher/run/relay.h"
#include "launcher/run/spawn.h"
#include "preload/counters/halt.h"

#define MAX_RATE_FILE "/proc/sys/kernel/perf_event_max_sample_rate"
#define TICK_MS 50 /* how often we look whether the targets live, and at what lies below the rings' marks */

struct attach {
	struct csink_options options;
	char **argv; /* a command to start, or NULL */
	struct csink_attach_choice choice;
	int32_t tid; /* one thread only; 0: processes */
	int cgroup_fd;
	bool quiet, json;
	char output[PATH_MAX];
	char what[128]; /* "redis-server (1234)" */

	struct csink_attach_follow follow;
	struct csink_outside outside;
	struct csink_reservation reservation;
	struct csink_inherited inherited;
	struct csink_halt halt;
	struct csink_folder folder;
	uint64_t from_ns;                  /* CLOCK_MONOTONIC: from here on everything was counted */
	uint32_t nr_threads, nr_processes; /* attached to */
	int signo;                         /* that ended it */
	int command_status;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * CSINK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* ---- what was asked for ---- */

static int resolve_events(struct attach *a)
{
	static const struct csink_event_roots roots; /* the system's own */
	const char *list = csink_options_text(&a->options, CSINK_ATTACH_OPT_EVENTS);
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_event_error err;
	char where[64];
	int nr = 1;

	if (!strcmp(list, "auto"))
		csink_events_auto(&specs[0], a->outside.event_reason, sizeof(a->outside.event_reason));
	else
		nr = csink_events_parse(list, specs, CSINK_MAX_EVENTS, &err);
	if (nr > 0)
		nr = csink_events_bind(&roots, specs, (uint32_t)nr, CSINK_MAX_EVENTS, &err);
	if (nr < 0 || csink_events_fit(specs, (uint32_t)nr, &err)) {
		csink_options_where(&a->options, CSINK_ATTACH_OPT_EVENTS, where, sizeof(where));
		csink_say("%s: %s", where, err.line);
		return -EINVAL;
	}
	a->follow.counters.nr_events = (uint32_t)nr;
	for (int i = 0; i < nr; i++)
		a->follow.counters.events[i].spec = specs[i];
	return 0;
}

static uint64_t rate_limit(void)
{
	unsigned long long limit = UINT64_MAX;
	FILE *file = fopen(MAX_RATE_FILE, "re");

	if (file && fscanf(file, "%llu", &limit) != 1)
		limit = UINT64_MAX;
	if (file)
		fclose(file);
	return limit;
}

/* Events that do not say themselves how often they sample get the common period or frequency; clocks always a period.
 */
static int resolve_rate(struct attach *a)
{
	const struct csink_option_value *period_from = &a->options.values[CSINK_ATTACH_OPT_PERIOD];
	const struct csink_option_value *frequency_from = &a->options.values[CSINK_ATTACH_OPT_FREQUENCY];
	uint64_t period = csink_options_number(&a->options, CSINK_ATTACH_OPT_PERIOD);
	uint64_t asked = csink_options_number(&a->options, CSINK_ATTACH_OPT_FREQUENCY), frequency = asked;

	if (period && period_from->source == CSINK_FROM_OPTION && frequency_from->source == CSINK_FROM_OPTION) {
		csink_say("options --frequency and --period exclude each other: give one of them");
		return -EINVAL;
	}
	if (frequency_from->source > period_from->source)
		period = 0;
	for (uint32_t i = 0; i < a->follow.counters.nr_events; i++) {
		struct csink_event_spec *spec = &a->follow.counters.events[i].spec;
		bool is_clock = spec->rec.flags & CSINK_EVENT_CPU_NS;
		uint64_t limit = CSINK_MIN(rate_limit(), is_clock ? (uint64_t)CSINK_MAX_CLOCK_FREQUENCY : UINT64_MAX);

		if (spec->attr.sample_period || spec->attr.freq)
			continue;
		if (asked > limit && !period && frequency == asked) {
			frequency = limit;
			csink_outside_note(&a->outside,
					   "%llu samples a second are more than is allowed or can be borne: using %llu",
					   (unsigned long long)asked, (unsigned long long)limit);
		}
		if (period)
			spec->attr.sample_period = period;
		else if (is_clock)
			spec->attr.sample_period = CSINK_NS_PER_S / frequency;
		else
			spec->attr.freq = 1, spec->attr.sample_freq = frequency;
	}
	return 0;
}

static int resolve_output(struct attach *a)
{
	char host[256] = "localhost", where[64], why[PATH_MAX + 128];
	struct csink_output_names names = {.pid = a->choice.nr ? a->choice.pids[0] : getpid(),
					   .host = host,
					   .command = a->argv ? a->argv[0] : a->what,
					   .rank = csink_output_rank()};

	gethostname(host, sizeof(host) - 1);
	if (csink_output_expand(csink_options_text(&a->options, CSINK_ATTACH_OPT_OUTPUT), &names, a->output,
				sizeof(a->output), why, sizeof(why))) {
		csink_options_where(&a->options, CSINK_ATTACH_OPT_OUTPUT, where, sizeof(where));
		csink_say("%s: %s", where, why);
		return -EINVAL;
	}
	if (csink_output_check(a->output, why, sizeof(why)))
		csink_say("the profile cannot be written to %s: %s; it will be saved elsewhere", a->output, why);
	return 0;
}

static void resolve_rest(struct attach *a)
{
	static const char *const ways[] = {
		[CSINK_ATTACH_COPY] = "dwarf", [CSINK_ATTACH_FP] = "fp", [CSINK_ATTACH_LEAF] = "none"};
	const char *unwind = csink_options_text(&a->options, CSINK_ATTACH_OPT_UNWIND);

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(ways); i++)
		if (!strcmp(unwind, ways[i]))
			a->follow.counters.stacks = i;
	a->follow.max_depth = (uint32_t)CSINK_MIN(csink_options_number(&a->options, CSINK_ATTACH_OPT_MAX_DEPTH),
						  (uint64_t)CSINK_MAX_DEPTH);
	a->quiet = csink_options_bool(&a->options, CSINK_ATTACH_OPT_QUIET);
	a->json = csink_options_bool(&a->options, CSINK_ATTACH_OPT_JSON);
}

/* ---- whom to attach to ---- */

static void name_target(struct attach *a)
{
	struct csink_task task;

	if (a->choice.nr && !csink_task_read(a->choice.pids[0], &task))
		snprintf(a->what, sizeof(a->what), "%s", task.comm);
}

/* One way, and one only. Returns 0 or -errno, which has been said. */
static int choose(struct attach *a, int nr_operands, char **operands, bool is_command)
{
	const char *pids = csink_options_text(&a->options, CSINK_ATTACH_OPT_PID);
	const char *cgroup = csink_options_text(&a->options, CSINK_ATTACH_OPT_CGROUP);
	int32_t tid = (int32_t)csink_options_number(&a->options, CSINK_ATTACH_OPT_TID), pid;
	char why[PATH_MAX + 512] = "";
	int err = 0;

	if (!!*pids + !!tid + !!*cgroup + (nr_operands > 0) != 1 || (nr_operands > 1 && !is_command)) {
		csink_say(
			"say what to attach to, in one way: -p PID, -t TID, --cgroup PATH, a PATTERN for names, or -- "
			"COMMAND (see countersink help attach)");
		return -EINVAL;
	}
	a->follow.counters.inherit = true;
	if (*pids) {
		err = csink_attach_choose_pids(pids, &a->choice, why, sizeof(why));
	} else if (tid) {
		pid = csink_attach_process_of(tid, why, sizeof(why));
		a->choice = (struct csink_attach_choice){malloc(sizeof(pid)), 1, 1};
		a->follow.counters.inherit = false;
		a->tid = tid;
		if (a->choice.pids)
			a->choice.pids[0] = pid;
		err = pid < 0 ? pid : a->choice.pids ? 0 : -ENOMEM;
	} else if (*cgroup) {
		a->cgroup_fd = csink_attach_open_cgroup(cgroup, why, sizeof(why));
		a->follow.counters.inherit = false;
		err = a->cgroup_fd < 0 ? a->cgroup_fd : csink_attach_choose_cgroup(a->cgroup_fd, &a->choice);
	} else if (is_command) {
		a->argv = operands;
		a->follow.counters.at_exec = true;
	} else {
		err = csink_attach_choose_pattern(operands[0], &a->choice, why, sizeof(why));
	}
	a->follow.counters.cgroup_fd = a->cgroup_fd;
	if (err)
		csink_say("%s", *why ? why : strerror(-err));
	name_target(a);
	return err;
}

/* ---- reservation ---- */

static int reserve(struct attach *a)
{
	const char *mode = csink_options_text(&a->options, CSINK_ATTACH_OPT_RESERVE);
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_reservation_wish wish = {
		.require = !strcmp(mode, "require"),
		.timeout_ns = csink_options_seconds(&a->options, CSINK_ATTACH_OPT_RESERVE_TIMEOUT),
		.hooks = csink_options_text(&a->options, CSINK_ATTACH_OPT_RESERVE_HOOKS),
		.specs = specs,
		.nr_specs = a->follow.counters.nr_events,
	};
	int err;

	for (uint32_t i = 0; i < wish.nr_specs; i++)
		specs[i] = a->follow.counters.events[i].spec;
	if (!strcmp(mode, "no") || (!csink_reservation_is_wanted(specs, wish.nr_specs) &&
				    (strcmp(csink_options_text(&a->options, CSINK_ATTACH_OPT_EVENTS), "auto") ||
				     !csink_reservation_has_pmu())))
		return 0;
	wish.cancel_fd = csink_reservation_cancel_fd();
	err = csink_reservation_make(&a->reservation, &wish);
	close(wish.cancel_fd);
	if (err == -ECANCELED) {
		csink_inherited_restore(&a->inherited); /* the signal is pending: end by it */
		return -ECANCELED;
	}
	if (err)
		csink_say("%s; nothing was attached to (--reserve=auto would)", a->reservation.line);
	/* Now that they are left to us, auto may find that they count. */
	else if (!csink_reservation_is_wanted(specs, wish.nr_specs))
		err = resolve_events(a) || resolve_rate(a) ? -EINVAL : 0;
	return err;
}

static void release(struct attach *a)
{
	csink_reservation_end(&a->reservation);
	if (a->reservation.matters)
		csink_outside_note(&a->outside, "%s", a->reservation.line);
	for (uint32_t i = 0; i < CSINK_MIN(a->reservation.hooks.nr_errors, (uint32_t)CSINK_MAX_HOOK_ERRORS); i++)
		csink_say("%s", a->reservation.hooks.errors[i]);
}

/* ---- attaching ---- */

/* Called while the targets stand still. */
static int open_all(struct csink_targets *targets, void *arg)
{
	struct attach *a = arg;
	struct csink_attach_counters *c = &a->follow.counters;
	struct csink_attach_event *refused = NULL;
	char denied[sizeof(refused->reason)] = "";
	uint32_t nr_denied = 0;
	int32_t last_pid = 0;
	int err = 0;

	for (uint32_t i = 0; i < targets->nr; i++) {
		const struct csink_target *target = &targets->at[i];

		if (a->tid && target->tid != a->tid)
			continue;
		err = csink_attach_counters_open(c, target->pid, target->tid, &refused);
		if (err == -ESRCH)
			continue;
		/* Of several, and of descendants, some may be somebody else's. */
		if ((err == -EACCES || err == -EPERM) && (a->choice.nr > 1 || target->pid != a->choice.pids[0])) {
			if (!nr_denied++)
				snprintf(denied, sizeof(denied), "%s", refused->reason);
			continue;
		}
		if (err)
			break;
		a->nr_threads++;
		a->nr_processes += target->pid != last_pid;
		last_pid = target->pid;
	}
	if (nr_denied)
		csink_outside_note(&a->outside, "%u thread%s could not be attached to: %s", nr_denied,
				   nr_denied == 1 ? "" : "s", denied);
	a->from_ns = now_ns();
	for (uint32_t i = 0; i < c->nr_lineages; i++) {
		if (!i || c->lineages[i].pid != c->lineages[i - 1].pid)
			csink_attach_images_take(&a->follow.images, c->lineages[i].pid, a->from_ns);
	}
	if (err && err != -ESRCH && err != -EACCES && err != -EPERM) {
		csink_say("%s: %s", refused->spec.rec.name, refused->reason);
		return err;
	}
	if (!a->nr_threads || (err && err != -ESRCH && a->choice.nr == 1)) {
		csink_say("cannot attach to process %d%s%s%s: %s", a->choice.pids[0], *a->what ? " (" : "", a->what,
			  *a->what ? ")" : "", refused && err != -ESRCH ? refused->reason : "ESRCH: it has ended");
		return err ? err : -ESRCH;
	}
	return 0;
}

static void note_stop(struct attach *a)
{
	char how[256];

	if (!a->halt.err && a->halt.stopped_ns)
		snprintf(how, sizeof(how), "all of them stood still for %.1f ms", (double)a->halt.stopped_ns / 1e6);
	else if (a->halt.err == -ECANCELED)
		snprintf(how, sizeof(how),
			 "they were not stopped for it: what they started in that moment may be missing");
	else if (a->halt.err == -EBUSY)
		snprintf(how, sizeof(how),
			 "they could not be stopped for it, since process %d traces them: what they started in that "
			 "moment "
			 "may be missing",
			 a->halt.tracer);
	else
		snprintf(how, sizeof(how),
			 "they could not all be stopped for it (%s): what they started in that moment may be missing",
			 a->halt.err == -EPERM
				 ? "EPERM: no right to trace them; Yama's kernel.yama.ptrace_scope, or seccomp"
			 : a->halt.err == -ETIMEDOUT ? "ETIMEDOUT: one did not stop in a second"
						     : strerror(-a->halt.err));
	csink_outside_note(&a->outside, "attached to %u thread%s of %u process%s; %s", a->nr_threads,
			   a->nr_threads == 1 ? "" : "s", a->nr_processes, a->nr_processes == 1 ? "" : "es", how);
	if (!a->quiet)
		csink_say("%s; Ctrl-C ends it", a->outside.notes[a->outside.nr_notes - 1]);
}

static int attach_to_processes(struct attach *a)
{
	bool may_stop = !csink_options_bool(&a->options, CSINK_ATTACH_OPT_NO_STOP) && !a->tid;
	int err;

	/* What takes long is done before they stand. */
	for (uint32_t i = 0; i < a->choice.nr; i++)
		csink_attach_images_prepare(&a->follow.images, a->choice.pids[i]);
	err = csink_halt(a->choice.pids, a->choice.nr, !a->tid, may_stop, open_all, a, &a->halt);
	if (err == -ESRCH && !a->halt.targets.nr)
		csink_say("ESRCH: process %d%s%s%s has ended", a->choice.pids[0], *a->what ? " (" : "", a->what,
			  *a->what ? ")" : "");
	if (err)
		return err;
	if (a->tid)
		csink_outside_note(&a->outside, "attached to thread %d alone", a->tid);
	else
		note_stop(a);
	return 0;
}

static int attach_to_cgroup(struct attach *a)
{
	struct csink_attach_event *refused = NULL;
	int err = csink_attach_counters_open(&a->follow.counters, -1, -1, &refused);

	if (err) {
		csink_say("%s: %s", refused->spec.rec.name, refused->reason);
		return err;
	}
	a->from_ns = now_ns();
	for (uint32_t i = 0; i < a->choice.nr; i++)
		csink_attach_images_take(&a->follow.images, a->choice.pids[i], a->from_ns);
	a->nr_processes = a->choice.nr;
	csink_outside_note(&a->outside, "attached to the control group %s: %u process%s are in it",
			   csink_options_text(&a->options, CSINK_ATTACH_OPT_CGROUP), a->choice.nr,
			   a->choice.nr == 1 ? "" : "es");
	if (!a->quiet)
		csink_say("%s; Ctrl-C ends it", a->outside.notes[a->outside.nr_notes - 1]);
	return 0;
}

static int prepare_counters(struct attach *a)
{
	struct csink_attach_counters *c = &a->follow.counters;
	int err = csink_attach_counters_init(c);

	if (!err)
		return 0;
	for (uint32_t i = 0; i < c->nr_events; i++) {
		if (c->events[i].err) {
			csink_say("%s: %s", c->events[i].spec.rec.name, c->events[i].reason);
			return err;
		}
	}
	csink_say("cannot make ready to attach: %s", strerror(-err));
	return err;
}

/* ---- following ---- */

static int take_signals(void)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(ending); i++) {
		if (!sigaction(ending[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&set, ending[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until a signal, the time, or the end of the last target. */
static void follow(struct attach *a, int signal_fd)
{
	uint64_t duration_ns = csink_options_seconds(&a->options, CSINK_ATTACH_OPT_DURATION);
	uint64_t end_ns = duration_ns ? a->from_ns + duration_ns : UINT64_MAX;
	struct epoll_event event = {.events = EPOLLIN}, events[2];
	struct signalfd_siginfo info;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, signal_fd, &event);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, a->follow.counters.rings.epoll_fd, &event);
	while (!a->signo && now_ns() < end_ns && csink_attach_counters_living(&a->follow.counters)) {
		uint64_t left_ms = (end_ns - CSINK_MIN(now_ns(), end_ns)) / 1000000 + 1;

		epoll_wait(epoll_fd, events, 2, (int)CSINK_MIN(left_ms, (uint64_t)TICK_MS));
		csink_attach_follow_drain(&a->follow, false);
		if (read(signal_fd, &info, sizeof(info)) == sizeof(info))
			a->signo = (int)info.ssi_signo;
	}
	close(epoll_fd);
}

static void drain(void *arg)
{
	csink_attach_follow_drain(arg, false);
}

/* Start the command: its counters come on with its exec. Returns 0, or what to exit with. */
static int run_command(struct attach *a)
{
	struct csink_attach_event *refused = NULL;
	struct csink_relay_end end;
	struct csink_child child;
	struct csink_relay relay;
	int err = csink_relay_init(&relay, &a->inherited);

	if (!err)
		err = csink_attach_counters_open(&a->follow.counters, getpid(), 0, &refused);
	if (err) {
		csink_say("%s", refused ? refused->reason : strerror(-err));
		return CSINK_EXIT_RUN_FAILED;
	}
	csink_attach_counters_opened(&a->follow.counters);
	a->from_ns = now_ns();
	a->follow.leave_out = getpid();
	err = csink_spawn(a->argv, environ, &a->inherited, &child);
	if (!err)
		err = csink_relay_wait(&relay, &child, a->follow.counters.rings.epoll_fd, drain, &a->follow, &end);
	if (err) {
		csink_say("cannot run %s: %s", a->argv[0], strerror(-err));
		return CSINK_EXIT_RUN_FAILED;
	}
	if (end.exec_errno)
		return csink_say_exec_failed(a->argv[0], end.exec_errno);
	a->command_status = csink_exit_status(end.status);
	return 0;
}

/* ---- what it comes to ---- */

static void save_profile(struct attach *a, const struct csink_profile *profile)
{
	int err = csink_pprof_write(profile, a->output), first = err;
	char path[PATH_MAX];

	for (uint32_t i = 0; err && !csink_output_fallback(a->output, i, path, sizeof(path)); i++) {
		err = csink_pprof_write(profile, path);
		if (err)
			continue;
		csink_say("%s: %s; the profile is in %s", a->output, strerror(-first), path);
		strcpy(a->output, path);
	}
	if (err) {
		csink_say("%s: %s; nor could the profile be saved elsewhere", a->output, strerror(-first));
		a->output[0] = 0;
	}
}

static void print_report(struct attach *a, const struct csink_profile *profile)
{
	struct csink_report_options options;

	csink_report_options_init(&options, stderr);
	if (csink_options_bool(&a->options, CSINK_ATTACH_OPT_ALL))
		options.limit = 0;
	options.file = a->output[0] ? a->output : NULL;
	csink_report_print(stderr, profile, &options);
	fflush(stderr);
}

static void print_json(struct attach *a)
{
	struct csink_json json;

	csink_json_init(&json, stdout);
	csink_json_open(&json, NULL, '{');
	csink_json_text(&json, "countersink", CSINK_VERSION);
	csink_json_text(&json, "target", a->outside.command);
	csink_json_bool(&json, "stopped", !a->halt.err && a->halt.stopped_ns);
	csink_json_real(&json, "stop_ms", (double)a->halt.stopped_ns / 1e6);
	csink_json_number(&json, "attached_threads", a->nr_threads);
	csink_json_number(&json, "attached_processes", a->nr_processes);
	csink_json_number(&json, "from_monotonic_ns", (int64_t)a->from_ns);
	csink_json_number(&json, "wall_ns", (int64_t)a->outside.wall_ns);
	csink_json_number(&json, "samples", (int64_t)a->follow.nr_samples);
	csink_json_number(&json, "lost", (int64_t)a->follow.counters.rings.nr_lost);
	csink_json_open(&json, "counters", '[');
	for (uint32_t i = 0; i < a->outside.nr_counts; i++) {
		csink_json_open(&json, NULL, '{');
		csink_json_text(&json, "name", a->outside.counts[i].name);
		csink_json_number(&json, "value", (int64_t)a->outside.counts[i].value);
		csink_json_text(&json, "unit", a->outside.counts[i].unit);
		csink_json_number(&json, "enabled_ns", (int64_t)a->outside.counts[i].time_enabled_ns);
		csink_json_number(&json, "running_ns", (int64_t)a->outside.counts[i].time_running_ns);
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_open(&json, "notes", '[');
	for (uint32_t i = 0; i < a->outside.nr_notes; i++)
		csink_json_text(&json, NULL, a->outside.notes[i]);
	csink_json_close(&json, ']');
	csink_json_text(&json, "profile", a->output[0] ? a->output : NULL);
	csink_json_close(&json, '}');
	putchar('\n');
}

static void name_command(struct attach *a)
{
	const struct csink_attach_images *images = &a->follow.images;
	size_t n = 0;

	if (a->argv) {
		snprintf(a->outside.command, sizeof(a->outside.command), "%s", a->argv[0]);
		return;
	}
	for (uint32_t i = 0; i < CSINK_MIN(images->nr, a->nr_processes) && n + 32 < sizeof(a->outside.command); i++)
		n += (size_t)snprintf(a->outside.command + n, sizeof(a->outside.command) - n, "%s%s (%d)",
				      n ? ", " : "", images->at[i]->comm, images->at[i]->pid);
}

/* Returns 0 or -errno, which has been said. */
static int finish(struct attach *a)
{
	struct csink_profile *profile = NULL;
	int err;

	csink_attach_counters_stop(&a->follow.counters);
	a->outside.wall_ns = now_ns() - a->from_ns;
	csink_attach_follow_drain(&a->follow, true);
	csink_attach_counters_read(&a->follow.counters, &a->outside);
	release(a);
	name_command(a);
	err = csink_folder_create(&a->folder);
	if (!err)
		err = csink_attach_follow_save(&a->follow, a->folder.path);
	if (!err)
		err = csink_collect(a->folder.path, &a->outside, &profile);
	csink_folder_remove(&a->folder);
	if (err) {
		csink_say("no profile: %s", strerror(-err));
		return err;
	}
	save_profile(a, profile);
	if (a->json)
		print_json(a);
	else if (!a->quiet && !csink_options_bool(&a->options, CSINK_ATTACH_OPT_NO_REPORT))
		print_report(a, profile);
	else if (!a->quiet && a->output[0])
		csink_say("the profile is in %s", a->output);
	csink_profile_destroy(profile);
	return 0;
}

static int attach_and_report(struct attach *a)
{
	int signal_fd = -1, status = 0, err;

	csink_inherited_take(&a->inherited);
	if (!a->argv)
		signal_fd = take_signals();
	err = reserve(a);
	if (!err)
		err = prepare_counters(a);
	if (err) {
		release(a);
		return CSINK_EXIT_RUN_FAILED;
	}
	if (a->argv) {
		status = run_command(a);
	} else {
		err = a->cgroup_fd >= 0 ? attach_to_cgroup(a) : attach_to_processes(a);
		csink_attach_counters_opened(&a->follow.counters);
		status = err ? CSINK_EXIT_RUN_FAILED : 0;
		if (!err)
			follow(a, signal_fd);
	}
	if (status) {
		release(a);
		return status;
	}
	if (finish(a))
		return a->argv ? a->command_status : CSINK_EXIT_RUN_FAILED;
	return a->command_status;
}

int csink_cmd_attach(int argc, char **argv)
{
	static struct attach a = {.reservation.reserve.fd = -1, .folder.fd = -1, .cgroup_fd = -1};
	int status, at = csink_command_parse(&a.options, argc, argv, &status);

	if (at < 0)
		return status;
	a.follow.outside = &a.outside;
	resolve_rest(&a);
	if (resolve_events(&a) || resolve_rate(&a) ||
	    choose(&a, argc - at, argv + at, at > 0 && !strcmp(argv[at - 1], "--")) || resolve_output(&a))
		return CSINK_EXIT_RUN_FAILED;
	status = attach_and_report(&a);
	if (fflush(stdout) || ferror(stdout))
		csink_say("standard output: %s", strerror(errno));
	csink_attach_follow_free(&a.follow);
	csink_targets_free(&a.halt.targets);
	csink_outside_free(&a.outside);
	free(a.choice.pids);
	return status;
}
