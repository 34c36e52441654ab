/*
 * The library part of the reservation. PCP's answers are scripted here: a pmprobe of our own, on $PATH, gives one line
 * of a file at each call, so that every order of answers can be had, the rarest too; a socket stands for pmcd. The real
 * agent is in tests/reserve.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/countersink/reserve.h"
#include "include/internal/clock.h"
#include "tests/unit/tap.h"

static char directory[PATH_MAX / 2], lock_file[PATH_MAX], answers[PATH_MAX], calls[PATH_MAX];
static int listener = -1;

static void write_file(const char *name, mode_t mode, const char *text)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		abort();
}

/* The n-th call of pmprobe gives the n-th line; the last one stays. "active N" is an answer; other lines are printed as
 * they are; "names" answers the question for names and is kept apart. The shell alone does it, without other programs:
 * some answers must come in time, on a busy machine as well. */
static const char program[] =
	"#!/bin/sh\n"
	"cd \"${0%/*}\" || exit 1\n"
	"echo \"$*\" >>calls\n"
	"case $* in *hwcounters*) read -r line <names; echo \"$line\"; exit ;; esac\n"
	"nr=0\n"
	"while read -r call; do case $call in *active*) nr=$((nr + 1)) ;; esac; done <calls\n"
	"while [ $nr -gt 0 ] && read -r next; do line=$next nr=$((nr - 1)); done <answers\n"
	"case $line in\n"
	"hang) exec sleep 60 ;;\n"
	"die) kill -KILL $$ ;;\n"
	"babble) exec yes ;;\n"
	"shout) echo 'pmprobe: Cannot connect to PMCD on host \"local:\": No route' >&2; exit 1 ;;\n"
	"environment) env >environment; set -- 0; line='1 0' ;;\n"
	"esac\n"
	"echo \"perfevent.active $line\"\n";

static void set_up(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char text[PATH_MAX];

	snprintf(directory, sizeof(directory), "/tmp/countersink-test.XXXXXX");
	if (!mkdtemp(directory))
		abort();
	snprintf(lock_file, sizeof(lock_file), "%s/perfevent/perflock", directory);
	snprintf(answers, sizeof(answers), "%s/answers", directory);
	snprintf(calls, sizeof(calls), "%s/calls", directory);
	snprintf(text, sizeof(text), "%s/perfevent", directory);
	mkdir(text, 0755);
	write_file("pmprobe", 0755, program);
	write_file("names", 0644, "perfevent.hwcounters.x.value 2\n");
	write_file("perfevent/perflock", 0644, "");
	snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/socket", directory);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 5))
		abort();
	setenv("PMCD_SOCKET", address.sun_path, 1);
	setenv("PMCD_PORT", "1", 1); /* no process listens there */
	setenv("PCP_PMDAS_DIR", directory, 1);
	snprintf(text, sizeof(text), "%s:/usr/bin:/bin", directory);
	setenv("PATH", text, 1);
}

static void clean_up(void)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	if (system(command))
		printf("# %s is left\n", directory);
}

static int nr_calls(const char *what)
{
	char line[256];
	FILE *f = fopen(calls, "re");
	int nr = 0;

	while (f && fgets(line, sizeof(line), f))
		nr += strstr(line, what) != NULL;
	if (f)
		fclose(f);
	return nr;
}

/* Reserve with these answers. The result of confirm, or of acquire where that fails. */
static int reserve(struct csink_reserve *r, const char *script, uint64_t timeout_ms)
{
	struct csink_reserve_config config;
	int err;

	write_file("answers", 0644, script);
	unlink(calls);
	csink_reserve_config_init(&config);
	config.timeout_ns = timeout_ms * 1000000;
	err = csink_reserve_acquire(r, &config);
	return err ? err : csink_reserve_confirm(r);
}

static bool is_locked(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int fd = open(lock_file, O_RDONLY | O_CLOEXEC);
	bool is = !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;

	close(fd);
	return is;
}

/* Somebody else's lock. */
static int hold(short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
	int fd = open(lock_file, O_RDWR | O_CLOEXEC);

	if (fcntl(fd, F_OFD_SETLK, &lock))
		abort();
	return fd;
}

#define LONG 20000 /* ms: a deadline that only a fault meets */
#define SHORT 500  /* ms: in which pmprobe answers at least once after the lock; on a busy machine it may need more */
#define SETTLE_NS 300000000ULL /* zeros before the lock are asked about for so long (reserve.c) */

/*
 * Zeros before the lock are asked about for SETTLE_NS, in which a busy machine may not give all answers: only a try
 * counts in which it does.
 */
static int reserve_in_time(struct csink_reserve *r, const char *script)
{
	bool in_time = false;
	uint64_t from_ns;
	int err = 0;

	for (int i = 0; !in_time && i < 100; i++) {
		if (i)
			csink_reserve_release(r);
		from_ns = csink_monotonic_ns();
		err = reserve(r, script, LONG);
		in_time = r->locked_ns - from_ns < SETTLE_NS;
	}
	return err;
}

static void test_zeros_before(void)
{
	struct csink_reserve r;

	is_num(reserve_in_time(&r, "1 0\n1 0\n1 4\n1 0\n"), 0, "zeros before the lock are waited out");
	is_num(r.active_before, 4, "active_before is the count after those zeros");
	csink_reserve_release(&r);
}

/* An agent that never stops; where it was not heard at all, once more with more time. */
static void test_still_active(struct csink_reserve *r)
{
	uint64_t timeout_ms = SHORT;
	int err;

	while ((err = reserve(r, "1 6\n", timeout_ms)) == -ETIMEDOUT && r->cause == CSINK_RESERVE_SILENT &&
	       timeout_ms < LONG) {
		csink_reserve_release(r);
		timeout_ms *= 4;
	}
	is_num(err, -ETIMEDOUT, "an agent that never stops: ETIMEDOUT");
}

static void test_answers(void)
{
	struct csink_reserve r;

	is_num(reserve(&r, "1 6\n1 0\n", LONG), 0, "6, then zeros: confirmed");
	is_num(r.state, CSINK_RESERVE_CONFIRMED, "the state is CONFIRMED");
	is_num(r.active_before, 6, "active_before is 6");
	is_num(r.nr_asked, 4, "the agent is asked once before the lock, three times after it");
	ok(r.confirmed_from_ns >= r.locked_ns && r.confirmed_to_ns >= r.confirmed_from_ns,
	   "the confirmation comes after the lock");
	ok(!r.shared, "a single holder does not share");
	ok(is_locked(), "the lock is held after a confirmation");
	is_num(csink_reserve_verify(&r), 0, "a confirmed reservation verifies");
	write_file("answers", 0644, "1 6\n");
	is_num(csink_reserve_verify(&r), -EBUSY, "verify finds an agent that counts again: EBUSY");
	is_num(r.state, CSINK_RESERVE_LOCKED, "a failed verification ends the confirmation");
	is_num(csink_reserve_verify(&r), -EBADF, "verify without a confirmation: EBADF");
	csink_reserve_release(&r);
	ok(!is_locked(), "release frees the lock");
	csink_reserve_release(&r);
	is_num(csink_reserve_confirm(&r), -EBADF, "confirm after release: EBADF");

	is_num(reserve(&r, "1 6\n1 6\n1 6\n1 0\n", LONG), 0, "an agent that stops late is confirmed");
	is_num(r.nr_asked, 6, "the agent is asked until three zeros came");
	csink_reserve_release(&r);

	is_num(reserve(&r, "1 6\n1 0\n1 0\n1 6\n1 0\n1 0\n1 0\n", LONG), 0, "two zeros before a 6 do not confirm");
	is_num(r.nr_asked, 7, "two zeros before a 6 do not count towards the three");
	csink_reserve_release(&r);

	test_zeros_before();

	test_still_active(&r);
	is_num(r.cause, CSINK_RESERVE_STILL_ACTIVE, "the cause of the timeout is STILL_ACTIVE");
	is_num(r.active, 6, "active is the agent's last count");
	ok(is_locked(), "the lock stays after the timeout");
	write_file("answers", 0644, "1 0\n");
	r.config.timeout_ns = LONG * 1000000ULL;
	is_num(csink_reserve_confirm(&r), 0, "confirm can be tried again after the timeout");
	csink_reserve_release(&r);

	is_num(reserve(&r, "1 0\n", LONG), -ENODATA, "zeros alone confirm nothing: ENODATA");
	is_num(r.cause, CSINK_RESERVE_NEVER_ACTIVE, "the cause of zeros alone is NEVER_ACTIVE");
	csink_reserve_release(&r);

	write_file("names", 0644, "perfevent.hwcounters -12357 Unknown metric name\n");
	is_num(reserve_in_time(&r, "1 0\n"), -ENODATA, "an agent without events: ENODATA");
	is_num(r.cause, CSINK_RESERVE_NO_EVENTS, "the cause without events is NO_EVENTS");
	is_num(nr_calls("active"), 1, "an agent without events is asked once");
	csink_reserve_release(&r);
	write_file("names", 0644, "perfevent.hwcounters.x.value 2\n");
	is_num(reserve(&r, "-12358 Unknown or illegal metric identifier (pmLookupDesc)\n", LONG), -ENODATA,
	       "an agent that could set up no event: ENODATA");
	is_num(r.cause, CSINK_RESERVE_NO_EVENTS, "the cause without any event set up is NO_EVENTS");
	csink_reserve_release(&r);
}

static void test_no_answer(void)
{
	struct csink_reserve_config config;
	struct csink_reserve r;
	char path[PATH_MAX];
	int pipe_fds[2], fd;

	is_num(reserve(&r, "-12386 No PMCD agent for domain of request\n", LONG), -ENOTCONN,
	       "no agent behind pmcd: ENOTCONN");
	is_num(r.cause, CSINK_RESERVE_NO_AGENT, "the cause without an agent is NO_AGENT");
	ok(strstr(r.text, "No PMCD agent") != NULL, "text has pmcd's message");
	ok(is_locked(), "the lock is held without an agent");
	csink_reserve_release(&r);
	is_num(reserve(&r, "shout\n", LONG), -ENOTCONN, "a pmprobe that cannot connect: ENOTCONN");
	is_num(r.cause, CSINK_RESERVE_NO_PMCD, "the cause without a connection is NO_PMCD");
	ok(strstr(r.text, "No route") != NULL, "text has pmprobe's message");
	csink_reserve_release(&r);
	is_num(reserve(&r, "die\n", LONG), -ENOTCONN, "a pmprobe that dies: ENOTCONN");
	csink_reserve_release(&r);
	is_num(reserve(&r, "hang\n", 100), -ETIMEDOUT, "a pmprobe that hangs is killed: ETIMEDOUT");
	is_num(r.cause, CSINK_RESERVE_SILENT, "the cause of a pmprobe that hangs is SILENT");
	csink_reserve_release(&r);
	is_num(reserve(&r, "babble\n", 100), -ETIMEDOUT, "a pmprobe that writes without end: ETIMEDOUT");
	csink_reserve_release(&r);
	is_num(reserve(&r, "1 6\n1 6\nhang\n", 400), -ETIMEDOUT, "silence after an answer: ETIMEDOUT");
	csink_reserve_release(&r);

	/* Cancelled while it waits. */
	csink_reserve_config_init(&config);
	if (pipe2(pipe_fds, O_CLOEXEC) || write(pipe_fds[1], "", 1) != 1)
		abort();
	config.cancel_fd = pipe_fds[0];
	config.timeout_ns = UINT64_MAX;
	write_file("answers", 0644, "hang\n");
	is_num(csink_reserve_acquire(&r, &config), -ECANCELED, "cancel_fd ends acquire: ECANCELED");
	is_num(r.fd, -1, "a cancelled acquire holds no file");
	ok(!is_locked(), "a cancelled acquire holds no lock");
	fd = hold(F_WRLCK);
	write_file("answers", 0644, "1 0\n");
	config.wait_for_lock = 1;
	is_num(csink_reserve_acquire(&r, &config), -ECANCELED, "cancel_fd ends the wait for a lock: ECANCELED");
	close(fd);
	close(pipe_fds[0]);
	close(pipe_fds[1]);

	snprintf(path, sizeof(path), "%s/pmprobe", directory);
	if (!access("/usr/bin/pmprobe", X_OK)) {
		skip("no pmprobe installed", "PCP is installed");
	} else {
		chmod(path, 0644);
		is_num(reserve(&r, "1 6\n", LONG), -ENOTCONN, "no pmprobe installed: ENOTCONN");
		is_num(r.cause, CSINK_RESERVE_NO_PMPROBE, "the cause without pmprobe is NO_PMPROBE");
		csink_reserve_release(&r);
		chmod(path, 0755);
	}
	close(listener);
	is_num(reserve(&r, "1 6\n", LONG), -ENOTCONN, "no process listens: ENOTCONN");
	is_num(r.cause, CSINK_RESERVE_NO_PMCD, "the cause without a listener is NO_PMCD");
	is_num(nr_calls(""), 0, "pmprobe is not started without a listener");
	ok(is_locked(), "the lock is held without a listener");
	csink_reserve_release(&r);
}

static void listen_again(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", getenv("PMCD_SOCKET"));
	unlink(address.sun_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 5))
		abort();
}

static void test_locks(void)
{
	struct csink_reserve_config config;
	struct csink_reserve r, other;
	pid_t pid;
	int fd, status;

	is_num(reserve(&r, "1 6\n1 0\n", LONG), 0, "the first holder is confirmed");
	is_num(reserve(&other, "1 0\n", LONG), 0, "a second holder is confirmed although the agent stopped before");
	ok(other.shared, "the second holder is reported as sharing");
	csink_reserve_release(&r);
	ok(is_locked(), "the lock stays for the remaining holder");
	csink_reserve_release(&other);
	ok(!is_locked(), "the lock is freed with the last holder");

	write_file("names", 0644, "perfevent.hwcounters -12357 Unknown metric name\n");
	fd = hold(F_RDLCK);
	is_num(reserve(&r, "1 0\n", LONG), -ENODATA, "another holder does not confirm an agent without events");
	csink_reserve_release(&r);
	close(fd);
	write_file("names", 0644, "perfevent.hwcounters.x.value 2\n");

	fd = hold(F_WRLCK);
	is_num(reserve(&r, "1 0\n", LONG), -EAGAIN, "a write lock: EAGAIN");
	is_num(r.cause, CSINK_RESERVE_WRITE_LOCKED, "the cause of a write lock is WRITE_LOCKED");
	csink_reserve_config_init(&config);
	config.timeout_ns = 50000000;
	config.wait_for_lock = 1;
	is_num(csink_reserve_acquire(&r, &config), -EAGAIN, "a write lock after a wait: EAGAIN");
	/* Until it goes: this child has the lock, too, and releases it when it knows that we wait. */
	unlink(calls);
	pid = fork();
	if (!pid) {
		while (nr_calls("active") < 1)
			poll(NULL, 0, 1);
		_exit(0);
	}
	close(fd);
	config.timeout_ns = LONG * 1000000ULL;
	is_num(csink_reserve_acquire(&r, &config), 0, "acquire succeeds when the write lock ends");
	csink_reserve_release(&r);
	waitpid(pid, &status, 0);

	unlink(lock_file);
	is_num(reserve(&r, "1 6\n", LONG), -ENOENT, "no lock file: ENOENT");
	is_num(r.cause, CSINK_RESERVE_NO_LOCK_FILE, "the cause without a lock file is NO_LOCK_FILE");
	is_num(nr_calls(""), 0, "pmprobe is not started without a lock file");
	is_num(r.fd, -1, "no file is open without a lock file");
	write_file("perfevent/perflock", 0000, "");
	if (geteuid()) {
		is_num(reserve(&r, "1 6\n", LONG), -EACCES, "a lock file that cannot be read: EACCES");
		is_num(r.cause, CSINK_RESERVE_DENIED, "the cause of an unreadable lock file is DENIED");
	} else {
		skip("a lock file that cannot be read: EACCES", "root reads everything; tests/cli/reserve.t does it");
	}
	chmod(lock_file, 0444);
	config.lock_file = "/proc/self/mem/x";
	is_num(csink_reserve_acquire(&r, &config), -ENOENT, "a path through a file: ENOENT");
	is_num(reserve(&r, "1 6\n1 0\n", LONG), 0, "a read-only lock file is enough");
	csink_reserve_release(&r);
}

static volatile sig_atomic_t nr_sigchld;

static void count_signal(int signo)
{
	nr_sigchld += signo == SIGCHLD;
}

/* What the host must not see of the question: children, signals, files, its mask, errno. */
static void test_guest(void)
{
	struct sigaction action = {.sa_handler = count_signal}, was;
	sigset_t before, after;
	struct csink_reserve r;
	char path[PATH_MAX], line[512];
	bool profiled = false;
	int lowest = dup(0), fd;
	FILE *f;

	close(lowest);
	sigaction(SIGCHLD, &action, &was);
	sigemptyset(&before);
	sigaddset(&before, SIGUSR1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	setenv("LD_PRELOAD", "", 1);
	setenv("COUNTERSINK_EVENTS", "cycles", 1);
	errno = 4711;
	is_num(reserve(&r, "1 6\nenvironment\n1 0\n", LONG), 0,
	       "a reservation succeeds in a process that watches for side effects");
	is_num(errno, 4711, "acquire keeps errno");
	is_num(nr_sigchld, 0, "acquire causes no SIGCHLD");
	is_num(waitpid(-1, NULL, WNOHANG), -1, "wait(2) sees no child of acquire");
	sigprocmask(SIG_SETMASK, NULL, &after);
	ok(sigismember(&after, SIGUSR1) && !sigismember(&after, SIGUSR2), "the signal mask is unchanged");
	ok(fcntl(r.fd, F_GETFD) & FD_CLOEXEC, "the lock file is closed on exec");
	csink_reserve_release(&r);
	fd = dup(0);
	is_num(fd, lowest, "no descriptor is left open by acquire");
	close(fd);
	snprintf(path, sizeof(path), "%s/environment", directory);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		profiled |= !strncmp(line, "COUNTERSINK_", 12) || !strncmp(line, "LD_PRELOAD", 10);
	ok(f && !profiled, "pmprobe's environment has no variables for the profiled process");
	if (f)
		fclose(f);
	unsetenv("COUNTERSINK_EVENTS");
	unsetenv("LD_PRELOAD");

	signal(SIGCHLD, SIG_IGN);
	is_num(reserve(&r, "1 6\n1 0\n", LONG), 0, "acquire works with SIGCHLD ignored");
	csink_reserve_release(&r);
	/* Standard streams that are closed are no excuse to write into something else. */
	fd = dup(0);
	close(0);
	is_num(reserve(&r, "1 6\n1 0\n", LONG), 0, "acquire works with standard input closed");
	csink_reserve_release(&r);
	dup2(fd, 0);
	close(fd);
	sigaction(SIGCHLD, &was, NULL);
}

static struct perf_event_attr attr_of(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = config;
	attr.exclude_kernel = attr.exclude_hv = 1;
	return attr;
}

static void test_probe(void)
{
	struct perf_event_attr attrs[33];
	struct csink_reserve_probe probe;
	char line[200];
	int lowest = dup(0), fd;

	close(lowest);
	for (int i = 0; i < 33; i++)
		attrs[i] = attr_of(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	is_num(csink_reserve_probe(attrs, 0, &probe), -EINVAL, "probe of no event: EINVAL");
	is_num(csink_reserve_probe(attrs, 33, &probe), -EINVAL, "probe of 33 events: EINVAL");
	if (csink_reserve_probe(attrs, 1, &probe) == -EACCES || probe.err == -ENOSYS || probe.err == -EPERM) {
		skip("a group of software events", "perf_event_open is refused here");
		return;
	}
	attrs[1].sample_period = 1000;
	attrs[1].sample_type = PERF_SAMPLE_IP;
	is_num(csink_reserve_probe(attrs, 3, &probe), 0, "software events always fit");
	is_num(probe.fit, CSINK_RESERVE_FITS, "the verdict on software events is FITS");
	is_num(probe.nr_fit, 3, "all three software events fit");
	ok(probe.running_ns > 0 && probe.running_ns == probe.enabled_ns, "the software events counted all the time");
	ok(probe.to_ns - probe.from_ns >= 2000000, "probe lasts two intervals");
	is_str(csink_reserve_probe_print(&probe, line, sizeof(line)), "3 events counted together all the time",
	       "probe's text reports the group");
	attrs[1] = attr_of(PERF_TYPE_SOFTWARE, 9999);
	ok(csink_reserve_probe(attrs, 3, &probe) < 0, "an event that does not open: an error");
	is_num(probe.fit, CSINK_RESERVE_REFUSED, "the verdict on an event that does not open is REFUSED");
	is_num(probe.refused, 1, "the refused event is named by its index");
	is_num(probe.nr_fit, 1, "the events before the refused one fit");
	csink_reserve_probe_print(&probe, line, sizeof(line));
	ok(strstr(line, "event 2 of 3 does not open") && strstr(line, "(1 of 3 fit)"),
	   "the text names the refused event: %s", line);
	probe = (struct csink_reserve_probe){.fit = CSINK_RESERVE_HELD, .nr = 5, .nr_fit = 4};
	csink_reserve_probe_print(&probe, line, sizeof(line));
	ok(strstr(line, "do not fit") && strstr(line, "(4 of 5 fit)"), "the text reports counters that do not fit: %s",
	   line);
	fd = dup(0);
	is_num(fd, lowest, "no descriptor is left open by probe");
	close(fd);
}

static void test_configuration(void)
{
	struct csink_reserve r;
	char path[PATH_MAX], text[PATH_MAX];

	snprintf(path, sizeof(path), "%s/pcp.conf", directory);
	snprintf(text, sizeof(text), "# comment\nPCP_PMDAS_DIRX=/wrong\nPCP_PMDAS_DIR=%s/elsewhere\nPCP_RUN_DIR=/x\n",
		 directory);
	write_file("pcp.conf", 0644, text);
	setenv("PCP_CONF", path, 1);
	unsetenv("PCP_PMDAS_DIR");
	is_num(reserve(&r, "1 6\n", LONG), -ENOENT, "the lock file of pcp.conf is missing: ENOENT");
	snprintf(text, sizeof(text), "%s/elsewhere/perfevent/perflock", directory);
	is_str(r.lock_file, text, "the lock file of pcp.conf is named");
	setenv("PCP_CONF", "/nonexistent", 1);
	reserve(&r, "1 6\n1 0\n", LONG);
	csink_reserve_release(&r);
	is_str(r.lock_file, "/var/lib/pcp/pmdas/perfevent/perflock", "without pcp.conf the default lock file is named");
	unsetenv("PCP_CONF");
	setenv("PCP_PMDAS_DIR", directory, 1);
	is_str(csink_reserve_cause_name(CSINK_RESERVE_WRITE_LOCKED), "write-locked",
	       "each cause of a failed reservation has a name");
	is_str(csink_reserve_cause_name(CSINK_RESERVE_NR_CAUSES), "unknown", "an unknown cause is named unknown");
	is_str(csink_reserve_state_name(CSINK_RESERVE_CONFIRMED), "confirmed",
	       "each state of a reservation has a name");
}

int main(void)
{
	alarm(900);
	set_up();
	test_answers();
	test_no_answer();
	listen_again();
	test_locks();
	test_guest();
	test_configuration();
	test_probe();
	clean_up();
	return done();
}
