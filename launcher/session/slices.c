/* Slices of a run: see slices.h. */
#include "launcher/session/slices.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/base/standard_streams.h"
#include "launcher/collect/collect.h"
#include "launcher/output/export.h"
#include "launcher/output/pprof.h"
#include "launcher/profile/profile.h"
#include "launcher/session/output_place.h"
#include "launcher/session/outside.h"
#include "launcher/session/slice_state.h"
#include "launcher/symbols/symbols_kept.h"

#define WRITER_NICE 10
#define TAKE_LEAST 1000 /* recordings, from which on those of programs that have ended are removed */
#define MAX_NAMES 1000  /* that other files may have, one after the other */

/* ---- what was asked for ---- */

static int refuse(const struct csink_options *o, uint32_t row, const char *why)
{
	char where[64];

	csink_options_where(o, row, where, sizeof(where));
	return csink_fail(-EINVAL, "%s: %s", where, why);
}

int csink_slices_wanted(const struct csink_options *o, uint32_t row)
{
	char where[64];

	if (*csink_options_text(o, row))
		return 1;
	/* From the environment they are for those runs that have slices. */
	for (uint32_t i = row + 1; i <= row + 2; i++) {
		if (o->values[i].source != CSINK_FROM_OPTION)
			continue;
		csink_options_where(o, i, where, sizeof(where));
		return csink_fail(-EINVAL, "%s needs --rotate", where);
	}
	return 0;
}

static int check_format(const char *path, char *why, size_t why_size)
{
	const struct csink_export_format *format;
	char profile[PATH_MAX], exported[PATH_MAX];

	snprintf(profile, sizeof(profile), "%s", path);
	format = csink_export_beside(profile, sizeof(profile), exported);
	return format ? csink_why(-EINVAL, why, why_size,
				  "slices are profiles, and %s asks for another format: use --output=NAME.pb.gz, and "
				  "`countersink export` later",
				  csink_output_name(path))
		      : 0;
}

int csink_slices_resolve(struct csink_slices *s, const struct csink_options *o, uint32_t row, uint32_t output,
			 const char *command, int32_t pid)
{
	char host[256] = "localhost", why[PATH_MAX + 256] = "";
	char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES] = {{0}};
	struct csink_output_names names = {
		.pid = pid, .host = host, .command = command, .rank = csink_rank_take(values)};
	int wanted = csink_slices_wanted(o, row);

	if (wanted <= 0)
		return wanted;
	s->clock.slice_ns = csink_options_seconds(o, row);
	s->keep = csink_options_number(o, row + 1);
	s->keep_bytes = csink_options_bytes(o, row + 2);
	if (s->clock.slice_ns < CSINK_NS_PER_S / 10)
		return refuse(o, row, "a slice takes at least 0.1 s");
	gethostname(host, sizeof(host) - 1);
	if (csink_slice_names_init(&s->names, csink_options_text(o, output), &names, why, sizeof(why)))
		return refuse(o, output, why);
	s->next_number = s->names.has_time ? 0 : csink_slice_names_next(&s->names);
	s->run_start_realtime_ns = csink_clock_ns(CLOCK_REALTIME);
	if (csink_slice_names_make(&s->names, s->run_start_realtime_ns, s->next_number, s->answer.last_path,
				   sizeof(s->answer.last_path)))
		return refuse(o, output, "the path is too long");
	if (check_format(s->answer.last_path, why, sizeof(why)))
		return refuse(o, output, why);
	if (csink_output_check(s->answer.last_path, why, sizeof(why)))
		csink_say("slices cannot be written to %s: %s; the run continues, and its last slice will be saved "
			  "elsewhere",
			  s->answer.last_path, why);
	return 1;
}

bool csink_slices_prefer_timer(uint64_t frequency)
{
	struct timespec tick;

	return !clock_getres(CLOCK_REALTIME_COARSE, &tick) && !tick.tv_sec && tick.tv_nsec &&
	       frequency * 2 * (uint64_t)tick.tv_nsec <= CSINK_NS_PER_S;
}

/* ---- one slice ---- */

struct csink_slice csink_slices_describe(const struct csink_slices *s, uint64_t end_ns, bool is_last)
{
	return (struct csink_slice){
		.number = s->answer.nr_written + 1,
		.start_realtime_ns = s->start_realtime_ns,
		.duration_ns = end_ns - s->start_monotonic_ns,
		.run_start_realtime_ns = s->run_start_realtime_ns,
		.is_last = is_last,
		.nr_missed = s->nr_missed,
		.missed_why = s->missed_why,
		.outside = s->outside,
	};
}

/*
 * What is stored counts from the moment on at which the slice has its name. A last slice is written also where that
 * cannot be stored: it would be written twice if this process were killed before it has removed the recordings.
 */
static int publish(struct csink_slices *s, const struct csink_profile *profile, const struct csink_slice_next *next)
{
	struct csink_outfile file;
	int err = csink_outfile_open(&file, next->path, CSINK_OUTFILE_ONCE), stored;

	if (err)
		return err;
	err = csink_pprof_write_fd(profile, file.fd);
	stored = s->is_stored ? csink_slice_state_prepare(s, next, file.fd) : 0;
	if (!err && !next->is_last)
		err = stored;
	return csink_outfile_close(&file, err);
}

/*
 * Under the first name that is not taken.
 * @to  up to where it reaches; NULL: that is not known, and not stored.
 */
static int write_slice(struct csink_slices *s, const struct csink_profile *profile, const struct csink_moment *to,
		       bool is_last, char *path)
{
	uint64_t number = s->next_number;
	int err = -EEXIST;

	for (int i = 0; err == -EEXIST && i < MAX_NAMES; i++, number++) {
		err = csink_slice_names_make(&s->names, s->named_ns, number, path, PATH_MAX);
		if (!err)
			err = publish(s, profile,
				      &(struct csink_slice_next){
					      .to = to, .path = path, .number = number + 1, .is_last = is_last});
	}
	if (s->is_stored && !err)
		csink_slice_state_commit(s);
	else if (s->is_stored)
		csink_slice_state_discard(s);
	/* Where the template has a time, each slice begins without a number. */
	if (!err && !s->names.has_time)
		s->next_number = number;
	return err;
}

/* A server that is away is reported once, as is its return; and of the last slice, what has become of it. */
static void send_slice(const struct csink_slices *s, const char *path)
{
	uint64_t begin_ns = csink_monotonic_ns();
	bool was_away = s->server && s->server->is_away;
	int spoken = was_away && !s->is_ending ? dup(STDERR_FILENO) : -1,
	    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int err;

	if (spoken >= 0 && null >= 0)
		dup2(null, STDERR_FILENO);
	err = s->on_written(s->arg, path);
	if (spoken >= 0)
		dup2(spoken, STDERR_FILENO);
	if (s->server && !err)
		__atomic_store_n(&s->server->reached_ns, csink_monotonic_ns(), __ATOMIC_RELAXED);
	/* Of several processes that send at once, one finds that the server was away until now; one that began before
	 * that, and fails later, does not find it away again. */
	if (s->server && (!err || begin_ns > __atomic_load_n(&s->server->reached_ns, __ATOMIC_RELAXED)) &&
	    __atomic_exchange_n(&s->server->is_away, err == -EAGAIN, __ATOMIC_RELAXED) && !err)
		csink_say("slices are sent again, and those that were kept");
	close(spoken);
	close(null);
}

/* It may take longer than a slice. Without a process for it, that is waited for. */
static void pass_on(const struct csink_slices *s, const char *path)
{
	pid_t pid;

	if (!s->on_written)
		return;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	pid = fork();
	if (pid > 0)
		return;
	/* The launcher waits for the end of this process's parent, not for this one's; nor does its lock outlive it. */
	if (!pid)
		csink_descriptors_close_from(STDERR_FILENO + 1);
	send_slice(s, path);
	if (!pid)
		_exit(0);
}

/* The slice is written. */
static void count_written(struct csink_slices *s, const char *path)
{
	s->answer.nr_written++;
	s->answer.nr_removed +=
		csink_slice_names_keep(&s->names, csink_clock_ns(CLOCK_REALTIME), s->keep, s->keep_bytes);
	strcpy(s->answer.last_path, path);
	s->nr_missed = 0;
	*s->missed_why = '\0';
	s->is_failing = false;
	pass_on(s, path);
}

int csink_slices_write(struct csink_slices *s, const struct csink_profile *profile)
{
	char path[PATH_MAX];
	int err = write_slice(s, profile, NULL, false, path);

	if (!err)
		count_written(s, path);
	return err;
}

void csink_slices_miss(struct csink_slices *s, int err)
{
	snprintf(s->missed_why, sizeof(s->missed_why), "%s", csink_outfile_error(-err));
	s->nr_missed++;
	if (!s->is_failing)
		csink_say("a slice could not be written: %s; the next one will have its time, too", s->missed_why);
	s->is_failing = true;
}

/* ---- the process that writes slices ---- */

int csink_slices_arm(const struct csink_slices *s)
{
	struct itimerspec due = {.it_value = {.tv_sec = (time_t)(s->clock.due_ns / CSINK_NS_PER_S),
					      .tv_nsec = (long)(s->clock.due_ns % CSINK_NS_PER_S)}};

	return timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &due, NULL) ? -errno : 0;
}

/* What came since the slice before; from then on, if it could be written, the next one begins at the moment. */
static int write_until(struct csink_slices *s, struct csink_moment *to)
{
	struct csink_slice slice = csink_slices_describe(s, csink_moment_ns(to), false);
	struct csink_profile *profile = NULL;
	char path[PATH_MAX];
	int err = csink_collect_slice(s->base, to, &slice, &profile);

	if (!err)
		err = write_slice(s, profile, to, false, path);
	csink_profile_free(profile);
	if (err)
		return err;
	csink_moment_free(s->base);
	s->base = to;
	s->start_monotonic_ns = csink_moment_ns(to);
	s->start_realtime_ns = s->next_start_realtime_ns;
	s->named_ns = s->next_named_ns;
	csink_moment_give_back(to);
	count_written(s, path);
	return 0;
}

/* Of the recordings of programs that have ended, slices have all. */
static void take_ended(struct csink_slices *s)
{
	uint32_t nr_taken = csink_moment_take_ended(s->base, TAKE_LEAST);

	s->answer.nr_taken += nr_taken;
	if (nr_taken && s->is_stored)
		csink_slice_state_store(s);
}

void csink_slices_count_missed(struct csink_slices *s, uint64_t former_ns)
{
	if (s->clock.due_ns > former_ns + s->clock.slice_ns)
		s->nr_missed += (uint32_t)((s->clock.due_ns - former_ns) / s->clock.slice_ns - 1);
}

void csink_slices_cut(struct csink_slices *s)
{
	uint64_t realtime_ns = csink_clock_ns(CLOCK_REALTIME), former_ns = s->clock.due_ns;
	struct csink_moment *to = NULL;
	int err = *s->run_dir ? csink_moment_take_after(s->run_dir, s->base, false, &to) : -ENOENT;

	s->next_start_realtime_ns = realtime_ns;
	s->next_named_ns = csink_slice_clock_next(&s->clock, realtime_ns, csink_monotonic_ns());
	csink_slices_arm(s);
	if (err == -ENOENT) /* no program has started that is recorded */
		return;
	csink_slices_count_missed(s, former_ns);
	if (!err)
		err = write_until(s, to);
	if (err) {
		csink_moment_free(to);
		csink_slices_miss(s, err);
		return;
	}
	take_ended(s);
}

static int publish_last(struct csink_slices *s, const struct csink_profile *profile, const struct csink_moment *to)
{
	char path[PATH_MAX];
	int err;

	s->is_ending = true;
	err = write_slice(s, profile, to, true, path);
	if (err)
		err = csink_output_elsewhere(path, profile, err, "the last slice");
	if (!err)
		count_written(s, path);
	return err;
}

int csink_slices_write_last(struct csink_slices *s, const struct csink_profile *profile)
{
	return publish_last(s, profile, NULL);
}

int csink_slices_end(struct csink_slices *s, bool was_killed)
{
	struct csink_profile *profile = NULL;
	struct csink_moment *to = NULL;
	struct csink_slice slice;
	uint64_t end_ns;
	int err = *s->run_dir ? csink_moment_take_after(s->run_dir, s->base, true, &to) : -ENOENT;

	if (err == -ENOENT && !s->base) /* nothing was recorded: totals alone */
		err = 0;
	end_ns = !to ? csink_monotonic_ns() : was_killed ? csink_moment_last_ns(to) : csink_moment_ns(to);
	if (s->base && end_ns >= s->clock.due_ns)
		s->nr_missed += (uint32_t)((end_ns - s->clock.due_ns) / s->clock.slice_ns + 1);
	slice = csink_slices_describe(s, CSINK_MAX(end_ns, s->start_monotonic_ns), true);
	err = err ?: csink_collect_slice(s->base, to, &slice, &profile);
	if (err)
		csink_say("no last slice: %s", strerror(-err));
	else
		err = publish_last(s, profile, to);
	csink_profile_free(profile);
	csink_moment_free(to);
	csink_moment_free(s->base);
	s->base = NULL;
	return err;
}

/* ---- between it and the launcher ---- */

/* What the launcher sends when the run has ended; behind it what the pointers of outside point to. */
struct totals {
	struct csink_outside outside;
	char run_dir[CSINK_RUN_DIRECTORY_PATH];
};

#define MAX_NOTE 4096

static int put(int fd, const void *data, size_t bytes)
{
	for (const char *at = data; bytes;) {
		ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int get(int fd, void *data, size_t bytes)
{
	for (char *at = data; bytes;) {
		ssize_t n = recv(fd, at, bytes, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int put_totals(int fd, const struct csink_slices *s)
{
	struct totals totals = {.outside = *s->outside};
	const struct csink_outside *out = s->outside;
	int err;

	strcpy(totals.run_dir, s->run_dir);
	err = put(fd, &totals, sizeof(totals))
		      ?: put(fd, out->processes, out->processes ? out->nr_processes * sizeof(*out->processes) : 0)
		      ?: put(fd, out->threads, out->nr_threads * sizeof(*out->threads));
	for (uint32_t i = 0; !err && i < out->nr_notes; i++) {
		char note[MAX_NOTE];

		snprintf(note, sizeof(note), "%s", out->notes[i]);
		err = put(fd, note, sizeof(note));
	}
	return err;
}

/* Malloc'ed, and filled. NULL: it was not got. */
static void *get_array(int fd, uint64_t nr, size_t size)
{
	void *all = calloc(nr + 1, size);

	if (all && get(fd, all, nr * size)) {
		free(all);
		return NULL;
	}
	return all;
}

/* This process ends soon: what is allocated is left to that. Returns 0, or -EPIPE: there is no launcher any more. */
static int get_totals(int fd, struct totals *totals)
{
	struct csink_outside *out = &totals->outside;
	char *notes;

	if (get(fd, totals, sizeof(*totals)))
		return -EPIPE;
	if (out->processes)
		out->processes = get_array(fd, out->nr_processes, sizeof(*out->processes));
	out->threads = get_array(fd, out->nr_threads, sizeof(*out->threads));
	notes = get_array(fd, out->nr_notes, MAX_NOTE);
	out->notes = calloc(out->nr_notes + 1UL, sizeof(*out->notes));
	if (!out->threads || !notes || !out->notes)
		return -EPIPE;
	for (uint32_t i = 0; i < out->nr_notes; i++)
		out->notes[i] = notes + (size_t)i * MAX_NOTE;
	return 0;
}

/* No descriptor of the launcher's is kept open: of pipes and sockets it waits until the other side is closed. */
static void leave_launcher(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(fd, STDERR_FILENO + 1);
	fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	csink_descriptors_close_from(STDERR_FILENO + 2);
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + WRITER_NICE);
}

/* Without the launcher, which was killed, the last slice has no totals. */
static void serve(struct csink_slices *s, int fd)
{
	static struct totals totals;
	static struct csink_outside none;
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.events = POLLIN}};
	uint64_t times;

	s->fd = fd;
	s->timer_fd = fds[1].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	csink_symbols_keep_begin();
	csink_slices_arm(s);
	while (poll(fds, CSINK_ARRAY_SIZE(fds), -1) < 0 || !fds[0].revents) {
		if (fds[1].revents && read(s->timer_fd, &times, sizeof(times)) == sizeof(times))
			csink_slices_cut(s);
	}
	memcpy(none.command, s->outside->command, sizeof(none.command));
	s->outside = &none;
	if (!get_totals(fd, &totals)) {
		s->outside = &totals.outside;
		strcpy(s->run_dir, totals.run_dir);
	} else {
		csink_outside_note(&none, "countersink was killed: what the command does from here on is in no slice");
	}
	s->answer.err = csink_slices_end(s, false);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	put(fd, &s->answer, sizeof(s->answer));
}

/* It lives as long as the process. */
static struct csink_slices_server *share_server(void)
{
	struct csink_slices_server *server =
		mmap(NULL, sizeof(*server), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return server == MAP_FAILED ? NULL : server;
}

void csink_slices_start(struct csink_slices *s)
{
	s->server = share_server();
	s->fd = -1;
	s->start_monotonic_ns = csink_monotonic_ns();
	s->start_realtime_ns = s->run_start_realtime_ns = csink_clock_ns(CLOCK_REALTIME);
	s->named_ns = csink_slice_clock_next(&s->clock, s->start_realtime_ns, s->start_monotonic_ns);
}

int csink_slices_begin(struct csink_slices *s)
{
	int fds[2], err;

	csink_slices_start(s);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	s->writer = fork();
	if (!s->writer) {
		leave_launcher(fds[1]);
		serve(s, STDERR_FILENO + 1);
		_exit(0);
	}
	err = s->writer < 0 ? -errno : 0;
	close(fds[1]);
	if (err)
		close(fds[0]);
	s->fd = err ? -1 : fds[0];
	return err;
}

int csink_slices_finish(struct csink_slices *s)
{
	int err = s->fd < 0 ? -EPIPE : put_totals(s->fd, s);

	err = err ?: get(s->fd, &s->answer, sizeof(s->answer));
	if (s->fd >= 0) {
		close(s->fd);
		while (waitpid(s->writer, NULL, 0) < 0 && errno == EINTR)
			;
		s->fd = -1;
	}
	if (!err)
		return s->answer.err;
	if (s->writer > 0) {
		csink_say("the process that wrote slices was ended: the last slice has the whole run");
		csink_outside_note(s->outside, "the process that wrote slices was ended: this slice has the whole run, "
					       "also what slices before it have");
	}
	s->answer.err = csink_slices_end(s, false);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	return s->answer.err;
}

void csink_slices_cancel(struct csink_slices *s)
{
	if (s->fd < 0)
		return;
	kill(s->writer, SIGKILL);
	while (waitpid(s->writer, NULL, 0) < 0 && errno == EINTR)
		;
	close(s->fd);
	s->fd = -1;
}

bool csink_slices_has_whole(const struct csink_slices *s)
{
	if (s->answer.nr_taken)
		csink_say("no report of the whole run, which had more than 1,000 processes: `countersink merge` of its "
			  "slices makes it");
	return !s->answer.nr_taken;
}

void csink_slices_say(const struct csink_slices *s)
{
	const struct csink_slices_answer *answer = &s->answer;

	if (answer->nr_written)
		csink_say("%" PRIu64 " slice%s written, %" PRIu64 " removed (--keep, --keep-bytes); the last one is %s",
			  answer->nr_written, answer->nr_written == 1 ? "" : "s", answer->nr_removed,
			  answer->last_path);
}
