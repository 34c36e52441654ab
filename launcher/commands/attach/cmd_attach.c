/* `countersink attach`: count and sample processes that run already, from outside; nothing is injected. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/attach/attach_target.h"
#include "launcher/attach/follow.h"
#include "launcher/base/format.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "launcher/collect/run_directory.h"
#include "launcher/commands/attach/attach_gap.h"
#include "launcher/commands/attach/attach_json.h"
#include "launcher/commands/attach/attach_options.h"
#include "launcher/commands/attach/attach_slices.h"
#include "launcher/commands/attach/choose_target.h"
#include "launcher/commands/registry.h"
#include "launcher/commands/save.h"
#include "launcher/commands/start_failed.h"
#include "launcher/profile/profile.h"
#include "launcher/session/alone.h"
#include "launcher/session/choose_events.h"
#include "launcher/session/find_program.h"
#include "launcher/session/outside.h"
#include "launcher/session/rate.h"
#include "launcher/session/relay.h"
#include "launcher/session/reserve_command.h"
#include "launcher/session/send_profile.h"
#include "launcher/session/spawn.h"

#define TICK_MS 50 /* how often we look whether the targets live, and at what lies below the rings' marks */

struct attach {
	const struct csink_options *options;
	char **argv; /* a command to start, or NULL */
	struct csink_attach_target target;
	bool quiet, json, rate_is_noted, is_released;
	struct csink_save save;
	struct csink_attach_slices slices;

	struct csink_attach_follow follow;
	struct csink_outside outside;
	struct csink_reservation reservation;
	struct csink_reservation_command reserving;
	struct csink_event_spec specs[CSINK_MAX_EVENTS]; /* that it is for */
	struct csink_inherited inherited;
	struct csink_run_directory directory;
	int signo; /* that ended it */
	int command_status;
};

/* ---- what was asked for ---- */

static int resolve_events(struct attach *a)
{
	const char *list = csink_options_text(a->options, CSINK_ATTACH_OPT_EVENTS);
	struct csink_event_spec specs[CSINK_MAX_EVENTS];
	struct csink_event_error err;
	char where[64];
	int nr = csink_choose_sampling(list, specs, CSINK_MAX_EVENTS, a->outside.event_reason,
				       sizeof(a->outside.event_reason), &err);

	if (nr < 0) {
		csink_options_where(a->options, CSINK_ATTACH_OPT_EVENTS, where, sizeof(where));
		return csink_fail(-EINVAL, "%s: %s", where, err.line);
	}
	a->follow.counters.nr_events = (uint32_t)nr;
	for (int i = 0; i < nr; i++)
		a->follow.counters.events[i].spec = specs[i];
	return 0;
}

/* At a period at which the kernel stops an event again and again, its counts are too small as well. */
static void lengthen_period(struct attach *a, struct csink_event_spec *spec)
{
	uint64_t asked = spec->attr.sample_period, shortest;
	bool measured;

	if (spec->rec.flags & CSINK_EVENT_CPU_NS || spec->attr.freq)
		return;
	shortest = csink_event_shortest_period(spec, asked, &measured);
	if (asked >= shortest)
		return;
	spec->attr.sample_period = spec->rec.period = shortest;
	csink_outside_note(&a->outside, "%s: a sample every %llu is more than a program can tolerate: using %llu%s",
			   spec->rec.name, (unsigned long long)asked, (unsigned long long)shortest,
			   measured ? " (by how often it happened here in some microseconds)" : "");
}

/* Events that do not say themselves how often they sample get the common period or frequency; clocks always a period.
 */
static int resolve_rate(struct attach *a)
{
	struct csink_rate rate;
	const char *wrong;

	if (csink_rate_resolve(a->options, CSINK_ATTACH_OPT_PERIOD, CSINK_ATTACH_OPT_FREQUENCY, &rate, &wrong))
		return csink_fail(-EINVAL, "%s", wrong);
	if (*csink_options_text(a->options, CSINK_ATTACH_OPT_ROTATE) &&
	    a->options->values[CSINK_ATTACH_OPT_FREQUENCY].source == CSINK_FROM_DEFAULT)
		rate.frequency = CSINK_SLICES_FREQUENCY;
	for (uint32_t i = 0; i < a->follow.counters.nr_events; i++) {
		struct csink_event_spec *spec = &a->follow.counters.events[i].spec;
		bool is_clock = spec->rec.flags & CSINK_EVENT_CPU_NS;
		uint64_t frequency;
		char why[CSINK_WHY_BYTES];

		if (rate.period && !spec->attr.sample_period && !spec->attr.freq)
			spec->attr.sample_period = rate.period;
		if (spec->attr.sample_period || spec->attr.freq) {
			lengthen_period(a, spec);
			continue;
		}
		frequency = csink_rate_allowed(rate.frequency, is_clock, why, sizeof(why));
		if (*why && !a->rate_is_noted)
			csink_outside_note(&a->outside, "%s", why);
		a->rate_is_noted |= *why != 0;
		if (is_clock)
			spec->attr.sample_period = CSINK_NS_PER_S / frequency;
		else
			spec->attr.freq = 1, spec->attr.sample_freq = frequency;
	}
	return 0;
}

/* Returns 1, 0 (none are asked for), or -errno, which has been reported. */
static int resolve_slices(struct attach *a, const char *command, int32_t pid)
{
	char where[64];
	int has = csink_slices_wanted(a->options, CSINK_ATTACH_OPT_ROTATE);

	if (has <= 0)
		return has;
	if (a->argv) {
		csink_options_where(a->options, CSINK_ATTACH_OPT_ROTATE, where, sizeof(where));
		return csink_fail(-EINVAL, "%s: of a command that is started, `countersink run --rotate` writes slices",
				  where);
	}
	if (csink_attach_slices_init(&a->slices))
		return csink_fail(-ENOMEM, "no memory for slices");
	has = csink_slices_resolve(a->slices.s, a->options, CSINK_ATTACH_OPT_ROTATE, CSINK_ATTACH_OPT_OUTPUT, command,
				   pid);
	a->slices.s->outside = &a->outside;
	return has;
}

static int resolve_output(struct attach *a)
{
	const struct csink_attach_target *target = &a->target;
	int has = resolve_slices(a, target->name, target->choice.nr ? target->choice.at[0] : getpid());

	if (has)
		return CSINK_MIN(has, 0);
	return csink_save_resolve(&a->save, a->options, CSINK_ATTACH_OPT_OUTPUT, a->argv ? a->argv[0] : target->name,
				  target->choice.nr ? target->choice.at[0] : getpid());
}

/* The kernel copies whole words, and a bit less than 64 KiB at most. */
static int resolve_stack_bytes(struct attach *a)
{
	uint64_t bytes = csink_options_bytes(a->options, CSINK_ATTACH_OPT_STACK_BYTES);
	char where[64];

	if (bytes < 1024 || bytes > 65536) {
		csink_options_where(a->options, CSINK_ATTACH_OPT_STACK_BYTES, where, sizeof(where));
		return csink_fail(-EINVAL, "%s: '%.64s' is not from 1K to 64K", where,
				  csink_options_text(a->options, CSINK_ATTACH_OPT_STACK_BYTES));
	}
	a->follow.counters.stack_bytes = (uint32_t)CSINK_MIN(bytes & ~7ULL, (uint64_t)CSINK_ATTACH_MAX_STACK_BYTES);
	return 0;
}

static void resolve_rest(struct attach *a)
{
	static const struct {
		const char *name;
		enum csink_attach_stacks stacks;
		enum csink_walk_by walk_by;
	} ways[] = {{"auto", CSINK_ATTACH_COPY, CSINK_WALK_BY_EITHER},
		    {"dwarf", CSINK_ATTACH_COPY, CSINK_WALK_BY_OURS},
		    {"libunwind", CSINK_ATTACH_COPY, CSINK_WALK_BY_LIBUNWIND},
		    {"fp", CSINK_ATTACH_FP, 0},
		    {"none", CSINK_ATTACH_LEAF, 0}};
	const char *unwind = csink_options_text(a->options, CSINK_ATTACH_OPT_UNWIND);
	const char *frames = csink_options_text(a->options, CSINK_ATTACH_OPT_FRAMES);

	for (uint32_t i = 0; i < CSINK_ARRAY_SIZE(ways); i++) {
		if (strcmp(unwind, ways[i].name))
			continue;
		a->follow.counters.stacks = ways[i].stacks;
		a->follow.walk_by = ways[i].walk_by;
	}
	a->follow.pythons.frames = !strcmp(frames, "native") ? CSINK_ATTACH_FRAMES_NATIVE
				   : !strcmp(frames, "both") ? CSINK_ATTACH_FRAMES_BOTH
							     : CSINK_ATTACH_FRAMES_AUTO;
	a->follow.max_depth = (uint32_t)CSINK_MIN(csink_options_number(a->options, CSINK_ATTACH_OPT_MAX_DEPTH),
						  (uint64_t)CSINK_MAX_DEPTH);
	a->quiet = csink_options_bool(a->options, CSINK_ATTACH_OPT_QUIET);
	a->json = csink_options_bool(a->options, CSINK_ATTACH_OPT_JSON);
}

/* ---- reservation ---- */

static void note_reservation(void *arg, const char *line, bool is_error)
{
	struct attach *a = arg;

	if (is_error)
		csink_say("%s", line);
	csink_outside_note(&a->outside, "%s", line);
}

/* Returns 0 or -errno, which has been reported. */
static int reserve(struct attach *a)
{
	int err;

	for (uint32_t i = 0; i < a->follow.counters.nr_events; i++)
		a->specs[i] = a->follow.counters.events[i].spec;
	a->reserving = (struct csink_reservation_command){
		.mode = csink_options_text(a->options, CSINK_ATTACH_OPT_RESERVE),
		.timeout_ns = csink_options_seconds(a->options, CSINK_ATTACH_OPT_RESERVE_TIMEOUT),
		.hooks = csink_options_text(a->options, CSINK_ATTACH_OPT_RESERVE_HOOKS),
		.specs = a->specs,
		.nr_specs = a->follow.counters.nr_events,
		.own_choice = !strcmp(csink_options_text(a->options, CSINK_ATTACH_OPT_EVENTS), "auto"),
		.inherited = &a->inherited,
		.note = note_reservation,
		.arg = a,
	};
	err = csink_reservation_begin(&a->reservation, &a->reserving);
	if (err == -EBUSY)
		csink_say_not_reserved(&a->reservation,
				       a->argv ? "the command was not run" : "nothing was attached to");
	if (err <= 0 || csink_reservation_is_wanted(a->specs, a->reserving.nr_specs))
		return err < 0 ? err : 0;
	/* Now that counters are left to us, auto may find that they count. */
	return resolve_events(a) || resolve_rate(a) ? -EINVAL : 0;
}

static void release(struct attach *a)
{
	if (!a->is_released)
		csink_reservation_finish(&a->reservation, &a->reserving);
	a->is_released = true;
}

/* ---- attaching ---- */

static int attach_to_running(struct attach *a)
{
	char why[CSINK_WHY_BYTES];
	int err = csink_attach_begin(&a->target, &a->follow, why, sizeof(why));

	if (err)
		csink_say("%s", why);
	else if (!a->quiet)
		csink_say("%s; Ctrl-C ends it", a->outside.notes[a->outside.nr_notes - 1]);
	return err;
}

/*
 * Nothing can be counted, for this reason: that ends an attach to what runs already, but a command runs all the same,
 * in our place. Returns what to exit with.
 */
static int attach_without_counters(struct attach *a, const char *why)
{
	release(a);
	if (!a->argv)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "%s", why);
	csink_say("%s: %s runs without being measured", why, a->argv[0]);
	return csink_say_exec_failed(a->argv[0], -csink_run_alone(a->argv, &a->inherited));
}

/* Returns 0 or -errno; @why is the reason then. */
static int prepare_counters(struct attach *a, char *why, size_t size)
{
	struct csink_attach_counters *c = &a->follow.counters;
	char less[256];
	int err = csink_attach_counters_init(c, less, sizeof(less));

	if (*less) {
		csink_outside_note(&a->outside, "%s", less);
		if (!a->quiet)
			csink_say("%s", less);
	}
	if (!err)
		return 0;
	for (uint32_t i = 0; i < c->nr_events; i++) {
		if (c->events[i].err)
			return csink_why(err, why, size, "%s: %s", c->events[i].spec.rec.name, c->events[i].reason);
	}
	return csink_why(err, why, size, "cannot prepare to attach: %s", csink_explain_brief(-err, less, sizeof(less)));
}

/* ---- following ---- */

static int take_signals(void)
{
	sigset_t set;

	csink_ending_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Until a signal, the time, or the end of the last target. */
static void follow(struct attach *a, int signal_fd)
{
	uint64_t duration_ns = csink_options_seconds(a->options, CSINK_ATTACH_OPT_DURATION);
	uint64_t end_ns = duration_ns ? a->target.from_ns + duration_ns : UINT64_MAX;
	struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
			       {.fd = a->follow.counters.rings.epoll_fd, .events = POLLIN}};
	struct signalfd_siginfo info;

	while (!a->signo && csink_monotonic_ns() < end_ns && csink_attach_counters_living(&a->follow.counters)) {
		uint64_t left_ms = (end_ns - CSINK_MIN(csink_monotonic_ns(), end_ns)) / 1000000 + 1;

		poll(fds, CSINK_ARRAY_SIZE(fds), (int)CSINK_MIN(left_ms, (uint64_t)TICK_MS));
		csink_attach_follow_drain(&a->follow, false);
		if (read(signal_fd, &info, sizeof(info)) == sizeof(info))
			a->signo = (int)info.ssi_signo;
		if (a->slices.s)
			csink_attach_slices_poll(&a->slices, &a->outside);
	}
}

static void drain(void *arg)
{
	csink_attach_follow_drain(arg, false);
}

/* Whether a command is Python, as far as its name or the first line of its script says. */
static bool is_python(const char *command)
{
	struct csink_program program;
	char line[128] = "";
	int fd;

	if (csink_program_find(command, &program))
		return false;
	if (!strncmp(csink_base_name(program.path), "python", 6))
		return true;
	fd = open(program.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && read(fd, line, sizeof(line) - 1) < 0)
		line[0] = 0;
	if (fd >= 0)
		close(fd);
	line[strcspn(line, "\n")] = 0;
	return !strncmp(line, "#!", 2) && strstr(line, "python");
}

/* Start the command: its counters come on with its exec. Returns 0, or what to exit with. */
static int run_command(struct attach *a)
{
	struct csink_attach_event *refused = NULL;
	struct csink_spare_fds spare;
	struct csink_relay_end end;
	struct csink_child child;
	struct csink_relay relay;
	int err = csink_relay_init(&relay, &a->inherited);

	csink_attach_follow_begin(&a->follow);
	if (!err)
		csink_attach_pythons_start(&a->follow.pythons, &a->follow.counters, is_python(a->argv[0]));
	csink_spare_fds_take(&spare);
	if (!err)
		err = csink_attach_counters_open(&a->follow.counters, getpid(), 0, &refused);
	csink_spare_fds_release(&spare);
	if (err)
		return attach_without_counters(a, refused ? refused->reason : strerror(-err));
	csink_attach_counters_opened(&a->follow.counters);
	a->target.from_ns = csink_monotonic_ns();
	a->follow.leave_out = getpid();
	csink_attach_clock_add_self(&a->follow.clock);
	err = csink_spawn(a->argv, environ, &a->inherited, &child);
	if (err) {
		release(a);
		return csink_say_exec_failed(a->argv[0], -csink_start_failed(err, a->argv, &a->inherited));
	}
	err = csink_relay_wait(&relay, &child, a->follow.counters.rings.epoll_fd, drain, &a->follow, &end);
	if (err)
		return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot wait for %s: %s", a->argv[0], strerror(-err));
	if (end.exec_errno)
		return csink_say_exec_failed(a->argv[0], end.exec_errno);
	a->command_status = csink_exit_status(end.status);
	return 0;
}

/* ---- what it comes to ---- */

static void name_command(struct attach *a)
{
	const struct csink_attach_images *images = &a->follow.images;
	char *names = a->outside.command;

	*names = '\0';
	if (a->argv) {
		snprintf(a->outside.command, sizeof(a->outside.command), "%s", a->argv[0]);
		return;
	}
	for (uint32_t i = 0;
	     i < CSINK_MIN(images->nr, a->target.nr_processes) && strlen(names) + 32 < sizeof(a->outside.command); i++)
		csink_append(names, sizeof(a->outside.command), "%s%s (%d)", *names ? ", " : "", images->at[i]->comm,
			     images->at[i]->pid);
}

static int send_profile(void *arg, const char *path)
{
	struct attach *a = arg;

	return csink_send_profile(a->options, CSINK_ATTACH_OPT_SEND, path, &a->inherited, a->quiet || a->json);
}

/* The first processes are known later: slices have what was asked for. */
static void begin_slices(struct attach *a)
{
	snprintf(a->outside.command, sizeof(a->outside.command), "%s", a->target.name);
	if (*csink_options_text(a->options, CSINK_ATTACH_OPT_SEND))
		a->slices.s->on_written = send_profile;
	a->slices.s->arg = a;
	csink_attach_slices_begin(&a->slices, &a->follow);
}

static enum csink_save_words words_of(const struct attach *a)
{
	return a->quiet || a->json                                          ? CSINK_SAVE_ERRORS
	       : csink_options_bool(a->options, CSINK_ATTACH_OPT_NO_REPORT) ? CSINK_SAVE_WHERE
	       : csink_options_bool(a->options, CSINK_ATTACH_OPT_ALL)       ? CSINK_SAVE_REPORT_ALL
									    : CSINK_SAVE_REPORT;
}

/* The last slice, and the report of the whole. */
static int finish_slices(struct attach *a, struct csink_profile *whole)
{
	int err = csink_attach_slices_finish(&a->slices, &a->outside);

	snprintf(a->save.path, sizeof(a->save.path), "%s", a->slices.s->answer.last_path);
	csink_save_report(&a->save, whole, words_of(a));
	if (words_of(a) != CSINK_SAVE_ERRORS)
		csink_slices_say(a->slices.s);
	/* The last one is sent by a child. */
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return err;
}

/* Returns 0 or -errno, which has been reported. */
static int finish(struct attach *a)
{
	struct csink_profile *profile = NULL;
	int err;

	csink_attach_follow_drain(&a->follow, false);
	csink_attach_clock_read(&a->follow.clock);
	csink_attach_counters_stop(&a->follow.counters);
	a->outside.wall_ns = csink_monotonic_ns() - a->target.from_ns;
	csink_attach_follow_drain(&a->follow, true);
	csink_attach_counters_read(&a->follow.counters, &a->outside);
	a->outside.attached_gap_ns = csink_attach_gap(&a->follow, a->outside.attached_cpu_ns);
	csink_attach_gap_note(&a->follow, &a->outside);
	release(a);
	name_command(a);
	err = csink_run_directory_create(&a->directory);
	if (!err)
		err = csink_attach_follow_save(&a->follow, a->directory.path);
	if (!err)
		err = csink_collect(a->directory.path, &a->outside, &profile);
	csink_run_directory_remove(&a->directory);
	if (err)
		return csink_fail(err, "no profile: %s", strerror(-err));
	csink_attach_gap_take_off(profile, a->outside.attached_gap_ns);
	a->save.folds_native = csink_options_bool(a->options, CSINK_ATTACH_OPT_FOLD_NATIVE);
	err = a->slices.s ? finish_slices(a, profile) : csink_save_profile(&a->save, profile, words_of(a));
	if (a->json)
		csink_attach_print_json(&a->target, &a->follow, &a->outside, a->save.path);
	csink_profile_free(profile);
	if (!a->slices.s)
		send_profile(a, a->save.path);
	return err;
}

static int attach_and_report(struct attach *a)
{
	int signal_fd = -1, status = 0, err;
	char why[CSINK_WHY_BYTES];

	csink_inherited_take(&a->inherited);
	if (!a->argv) {
		signal_fd = take_signals();
		/* Without it, nothing could end the attachment. */
		if (signal_fd < 0)
			return csink_fail(CSINK_EXIT_RUN_FAILED, "cannot prepare to attach: %s",
					  csink_explain_brief(errno, why, sizeof(why)));
	}
	if (reserve(a)) {
		release(a);
		return CSINK_EXIT_RUN_FAILED;
	}
	if (prepare_counters(a, why, sizeof(why)))
		return attach_without_counters(a, why);
	if (a->argv) {
		status = run_command(a);
	} else {
		err = attach_to_running(a);
		status = err ? CSINK_EXIT_RUN_FAILED : 0;
		if (!err && a->slices.s)
			begin_slices(a);
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

static int main_attach(const struct csink_options *o, int nr, char **operands)
{
	static struct attach a = {.reservation.reserve.fd = -1, .directory.fd = -1, .target.cgroup_fd = -1};
	bool is_command = !strcmp(operands[-1], "--"); /* argv[0] is there in any case */
	int status, written;

	a.options = o;
	a.follow.outside = &a.outside;
	a.outside.is_attached = 1;
	a.follow.clock.is_wanted = true;
	resolve_rest(&a);
	a.target.may_stop = !csink_options_bool(o, CSINK_ATTACH_OPT_NO_STOP);
	a.target.cgroup = csink_options_text(o, CSINK_ATTACH_OPT_CGROUP);
	if (csink_send_check(o, CSINK_ATTACH_OPT_SEND) || resolve_stack_bytes(&a) || resolve_events(&a) ||
	    resolve_rate(&a) || csink_attach_choose(o, nr, operands, is_command, &a.target, &a.follow.counters))
		return CSINK_EXIT_RUN_FAILED;
	if (a.follow.counters.at_exec)
		a.argv = operands;
	if (resolve_output(&a))
		return CSINK_EXIT_RUN_FAILED;
	status = attach_and_report(&a);
	/* A command's status is its own, whatever becomes of what we have to say. */
	written = csink_end_output("attach", status);
	status = a.argv ? status : written;
	csink_attach_follow_free(&a.follow);
	csink_targets_free(&a.target.stop.targets);
	csink_outside_free(&a.outside);
	free(a.target.choice.at);
	return status;
}

const struct csink_command csink_command_attach = {
	.name = "attach",
	.synopsis = "attach [OPTION]... [-p PID | PATTERN | -- COMMAND...]",
	.help = "profile processes that are already running",
	.main = main_attach,
	CSINK_COMMAND_OPTIONS(CSINK_ATTACH_OPTIONS),
	.usage_status = CSINK_EXIT_RUN_FAILED,
	.failed_status = CSINK_EXIT_RUN_FAILED,
};
