/*
 * PMCs: each error of pmc_attach(3) and pmc_detach(3), by its name; states; and that what is attached to counts in all
 * its threads and, where asked for, its descendants. The targets touch pages that nobody has touched before when they
 * are told to, so that page faults say exactly who was counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/countersink/pmc.h"
#include "tests/unit/refuse.h"
#include "tests/unit/tap.h"

#define NOBODY 65534
#define PAGES 1000
#define SLACK 250 /* faults of starting a thread or a process, and of libc */
#define EVENT "page-faults:u"

/* ---- targets ---- */

struct target {
	pid_t pid;
	int tell, hear;
};

static void touch_pages(void)
{
	char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		((volatile char *)pages)[i * 4096] = 1;
	munmap(pages, PAGES * 4096);
}

static void *touching_thread(void *arg)
{
	touch_pages();
	return arg;
}

static int in, out;

/* A thread and a process that were there before anybody attached: told by a pipe each. */
static void *waiting_thread(void *arg)
{
	char byte;

	while (read(((int *)arg)[0], &byte, 1) == 1) {
		touch_pages();
		if (write(out, &byte, 1) != 1)
			break;
	}
	return NULL;
}

/* t: touch; T: in a new thread; P: in a new process; o: in the old thread; c: in the old child; x: end. */
static void serve(void)
{
	static int old[2], child[2];
	pthread_t thread;
	char byte;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pipe(old) || pipe(child))
		_exit(1);
	pthread_create(&thread, NULL, waiting_thread, old);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(child[1]);
		waiting_thread(child);
		_exit(0);
	}
	if (write(out, "r", 1) != 1)
		_exit(1);
	while (read(in, &byte, 1) == 1 && byte != 'x') {
		if (byte == 'o' || byte == 'c') {
			if (write(byte == 'o' ? old[1] : child[1], &byte, 1) != 1)
				break;
			continue; /* they answer */
		}
		if (byte == 't')
			touch_pages();
		if (byte == 'T' && !pthread_create(&thread, NULL, touching_thread, NULL))
			pthread_join(thread, NULL);
		if (byte == 'P') {
			pid = fork();
			if (!pid) {
				touch_pages();
				_exit(0);
			}
			waitpid(pid, NULL, 0);
		}
		if (write(out, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static void tell(const struct target *target, char what)
{
	char byte = 0;

	if (write(target->tell, &what, 1) != 1 || read(target->hear, &byte, 1) != 1 || byte != what)
		ok(0, "the target answers '%c'", what);
}

static struct target start_target(void)
{
	int to[2], from[2];
	struct target target;
	char byte;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		abort();
	target.pid = fork();
	if (!target.pid) {
		in = to[0];
		out = from[1];
		close(to[1]);
		close(from[0]);
		serve();
	}
	close(to[0]);
	close(from[1]);
	target.tell = to[1];
	target.hear = from[0];
	if (read(target.hear, &byte, 1) != 1)
		abort();
	return target;
}

static void end_target(const struct target *target)
{
	close(target->tell);
	close(target->hear);
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
}

/* ---- helpers ---- */

static void is_err(int got, int want, const char *name, const char *what)
{
	char reason[400];

	is_num(got, want, what);
	if (got >= 0)
		return;
	csink_pmc_reason(reason, sizeof(reason));
	if (!ok(!strncmp(reason, name, strlen(name)) && reason[strlen(name)] == ':', "... and says %s", name))
		fprintf(stderr, "#   reason: %s\n", reason);
}

static csink_pmc_id_t allocate(unsigned flags)
{
	csink_pmc_id_t pmc = csink_pmc_allocate(EVENT, flags, -1);
	char reason[400];

	if (pmc <= 0) {
		ok(0, "a PMC can be allocated");
		fprintf(stderr, "#   %s\n", csink_pmc_reason(reason, sizeof(reason)));
	}
	return pmc;
}

static long long value_of(csink_pmc_id_t pmc)
{
	struct csink_pmc_value value;
	int err = csink_pmc_read(pmc, &value);

	return err ? err : (long long)value.value;
}

static void is_about(long long got, long long want, const char *what)
{
	if (!ok(got >= want && got < want + SLACK, "%s", what))
		fprintf(stderr, "#   got %lld, want %lld and a little\n", got, want);
}

static int nr_open_fds(void)
{
	int nr = 0;

	for (int fd = 0; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Run a part in a child of its own, after giving up root, and take over its points. */
static void in_child(int (*part)(void), int drop, const char *what)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		tap_nr = tap_failed = 0;
		if (drop && !geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
			_exit(99);
		prctl(PR_SET_DUMPABLE, 1);
		_exit(part());
	}
	waitpid(pid, &status, 0);
	is_num(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, what);
}

/* ---- errors ---- */

static void no_pmc(void)
{
	struct csink_pmc_value value;

	is_err(csink_pmc_attach(1, 0), -ESRCH, "ESRCH", "attach: ESRCH, this process owns no PMC");
	is_err(csink_pmc_detach(1, 0), -ESRCH, "ESRCH", "detach: ESRCH, this process owns no PMC");
	is_err(csink_pmc_start(1), -ESRCH, "ESRCH", "start: the same");
	is_err(csink_pmc_stop(1), -ESRCH, "ESRCH", "stop: the same");
	is_err(csink_pmc_read(1, &value), -ESRCH, "ESRCH", "read: the same");
	is_err(csink_pmc_release(1), -ESRCH, "ESRCH", "release: the same");
	is_err(csink_pmc_state(1), -ESRCH, "ESRCH", "state: the same");
}

static int owns_none_of_the_parents(void)
{
	return csink_pmc_attach(4097, 0) != -ESRCH;
}

static csink_pmc_id_t parents_pmc;

static int forked_child(void)
{
	return csink_pmc_attach(parents_pmc, 0) != -ESRCH || csink_pmc_detach(parents_pmc, 0) != -ESRCH ||
	       csink_pmc_allocate(EVENT, 0, -1) <= 0;
}

static int hardware_in_use(int err)
{
	csink_pmc_id_t pmc = allocate(0);
	struct target target = start_target();
	char reason[400];
	int result;

	refuse_perf_event_open(err);
	result = csink_pmc_attach(pmc, target.pid) != -EBUSY;
	csink_pmc_reason(reason, sizeof(reason));
	result |= !*reason;
	end_target(&target);
	return result;
}

static int busy_by_ebusy(void)
{
	return hardware_in_use(EBUSY);
}

static int busy_by_enospc(void)
{
	return hardware_in_use(ENOSPC);
}

static int foreign_process(void)
{
	csink_pmc_id_t pmc = allocate(0);
	char reason[400];

	/* Whoever we are now: process 1 is somebody else's. */
	if (csink_pmc_attach(pmc, 1) != -EPERM)
		return 1;
	csink_pmc_reason(reason, sizeof(reason));
	return !strstr(reason, "EACCES") && !strstr(reason, "EPERM");
}

static int undumpable_process(void)
{
	csink_pmc_id_t pmc = allocate(0);
	struct target target;
	int result;

	prctl(PR_SET_DUMPABLE, 0);
	target = start_target();
	prctl(PR_SET_DUMPABLE, 1);
	result = csink_pmc_attach(pmc, target.pid) != -EPERM;
	end_target(&target);
	return result;
}

/* A child that may not be watched below a process that may: the whole attachment is undone. */
static int rollback(void)
{
	csink_pmc_id_t pmc = allocate(CSINK_PMC_DESCENDANTS);
	int ready[2], before, after, result;
	struct csink_pmc_value value;
	pid_t pid, child = 0;

	if (pipe(ready))
		return 1;
	pid = fork();
	if (!pid) {
		child = fork();
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_DUMPABLE, 0);
			if (write(ready[1], "r", 1) != 1)
				_exit(1);
		}
		for (;;)
			pause();
	}
	if (read(ready[0], &child, 1) != 1)
		return 1;
	before = nr_open_fds();
	result = csink_pmc_attach(pmc, pid) != -EPERM;
	after = nr_open_fds();
	result |= before != after || csink_pmc_read(pmc, &value) || value.nr_targets != 0;
	result |= csink_pmc_detach(pmc, pid) != -ESRCH; /* monitored by nobody */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return result;
}

static void attach_errors(void)
{
	csink_pmc_id_t pmc = allocate(0), self = allocate(CSINK_PMC_SELF), system;
	struct target target = start_target();
	pid_t dead = fork();

	if (!dead)
		_exit(0);
	waitpid(dead, NULL, 0);
	is_err(csink_pmc_attach(pmc, -5), -EINVAL, "EINVAL", "attach: EINVAL, illegal process id");
	is_err(csink_pmc_attach(pmc + 4096, target.pid), -EINVAL, "EINVAL", "attach: EINVAL, handle not owned");
	is_err(csink_pmc_attach(-1, target.pid), -EINVAL, "EINVAL", "attach: EINVAL, no handle at all");
	is_err(csink_pmc_attach(self, target.pid), -EPERM, "EPERM", "attach: EPERM, set up for RDPMC by itself");
	is_num(csink_pmc_attach(self, 0), 0, "to the process itself it can be attached");
	is_err(csink_pmc_attach(pmc, dead), -ESRCH, "ESRCH", "attach: ESRCH, no such process");
	is_num(csink_pmc_attach(pmc, target.pid), 0, "attach");
	is_err(csink_pmc_attach(pmc, target.pid), -EEXIST, "EEXIST", "attach: EEXIST, tracked already");
	is_num(csink_pmc_start(pmc), 0, "start");
	is_err(csink_pmc_attach(pmc, 0), -EBUSY, "EBUSY", "attach: EBUSY, not quiescent");
	is_num(csink_pmc_stop(pmc), 0, "stop");
	is_num(csink_pmc_attach(pmc, 0), 0, "a stopped one can be attached to another process: the own one, as 0");
	system = csink_pmc_allocate("cpu-clock", CSINK_PMC_SYSTEM, 0);
	if (system > 0) {
		is_err(csink_pmc_attach(system, target.pid), -EINVAL, "EINVAL", "attach: EINVAL, system scope");
		is_err(csink_pmc_detach(system, target.pid), -EINVAL, "EINVAL", "detach: EINVAL, system scope");
		is_num(csink_pmc_start(system), 0, "a CPU can be counted");
		touch_pages();
		ok(value_of(system) > 0, "and is");
		csink_pmc_release(system);
	} else {
		is_err(system, -EPERM, "EACCES", "a CPU may not be counted by this user");
		skip("attach, detach: EINVAL, system scope", "only root may count CPUs here (perf_event_paranoid)");
	}
	csink_pmc_release(pmc);
	csink_pmc_release(self);
	end_target(&target);
}

static void detach_errors(void)
{
	csink_pmc_id_t pmc = allocate(0), other = allocate(0);
	struct target target = start_target(), mortal = start_target();
	long long before;

	is_err(csink_pmc_detach(pmc, -5), -EINVAL, "EINVAL", "detach: EINVAL, illegal process id");
	is_err(csink_pmc_detach(pmc + 4096, target.pid), -EINVAL, "EINVAL", "detach: EINVAL, handle not owned");
	is_err(csink_pmc_detach(pmc, target.pid), -ESRCH, "ESRCH", "detach: ESRCH, not monitored by anyone");
	is_num(csink_pmc_attach(other, target.pid), 0, "another PMC is attached");
	is_err(csink_pmc_detach(pmc, target.pid), -EINVAL, "EINVAL", "detach: EINVAL, not attached to this one");
	is_num(csink_pmc_detach(other, target.pid), 0, "that one can be detached");
	is_num(csink_pmc_attach(pmc, mortal.pid), 0, "attached to one that will end");
	csink_pmc_start(pmc);
	tell(&mortal, 't');
	before = value_of(pmc);
	end_target(&mortal);
	is_about(before, PAGES, "it counts");
	is_about(value_of(pmc), before, "after its end, too");
	is_err(csink_pmc_detach(pmc, mortal.pid), -ESRCH, "ESRCH", "detach: ESRCH, no such process any more");
	is_about(value_of(pmc), before, "what it counted stays");
	csink_pmc_release(pmc);
	csink_pmc_release(other);
	end_target(&target);
}

static void allocate_errors(void)
{
	is_err(csink_pmc_allocate("task-clok", 0, -1), -ENOENT, "ENOENT", "allocate: ENOENT, no such event");
	is_err(csink_pmc_allocate("task-clock,page-faults", 0, -1), -EINVAL, "EINVAL", "allocate: EINVAL, two events");
	is_err(csink_pmc_allocate("task-clock/", 0, -1), -EINVAL, "EINVAL", "allocate: EINVAL, syntax");
	is_err(csink_pmc_allocate("task-clock:period=5", 0, -1), -EINVAL, "EINVAL", "allocate: EINVAL, a period");
	is_err(csink_pmc_allocate("task-clock", 1 << 7, -1), -EINVAL, "EINVAL", "allocate: EINVAL, unknown flag");
	is_err(csink_pmc_allocate("task-clock", 0, 0), -EINVAL, "EINVAL",
	       "allocate: EINVAL, a CPU without system scope");
	is_err(csink_pmc_allocate("cpu-clock", CSINK_PMC_SYSTEM, -1), -EINVAL, "EINVAL", "allocate: EINVAL, no CPU");
	is_err(csink_pmc_allocate("cpu-clock", CSINK_PMC_SYSTEM | CSINK_PMC_DESCENDANTS, 0), -EINVAL, "EINVAL",
	       "allocate: EINVAL, descendants of a CPU");
}

/* ---- counting ---- */

static void counts_threads(void)
{
	csink_pmc_id_t pmc = allocate(0);
	struct target target = start_target();
	struct csink_pmc_value value;
	long long last;

	is_num(csink_pmc_state(pmc), CSINK_PMC_ALLOCATED, "a new one is ALLOCATED");
	is_num(csink_pmc_attach(pmc, target.pid), 0, "attach to a process of two threads and a child");
	tell(&target, 't');
	is_num(value_of(pmc), 0, "nothing is counted before the start");
	is_num(csink_pmc_start(pmc), 0, "start");
	is_num(csink_pmc_state(pmc), CSINK_PMC_RUNNING, "it is RUNNING");
	is_num(csink_pmc_start(pmc), 0, "once more changes nothing");
	tell(&target, 't');
	is_about(last = value_of(pmc), PAGES, "its main thread is counted");
	tell(&target, 'o');
	is_about(value_of(pmc) - last, PAGES, "so is one that it had");
	last = value_of(pmc);
	tell(&target, 'T');
	is_about(value_of(pmc) - last, PAGES, "and one that it starts");
	last = value_of(pmc);
	tell(&target, 'c');
	tell(&target, 'P');
	is_about(value_of(pmc) - last, 0, "but no child, old or new");
	is_num(csink_pmc_read(pmc, &value), 0, "read");
	is_num(value.nr_targets * 10 + value.nr_ended, 10, "one target, none ended");
	ok(value.enabled_ns && value.running_ns == value.enabled_ns, "it counted all of the time");
	csink_pmc_stop(pmc);
	is_num(csink_pmc_state(pmc), CSINK_PMC_STOPPED, "it is STOPPED");
	last = value_of(pmc);
	tell(&target, 't');
	is_num(value_of(pmc), last, "and counts no more");
	csink_pmc_start(pmc);
	is_num(csink_pmc_detach(pmc, target.pid), 0, "a running one can be detached");
	tell(&target, 't');
	is_about(value_of(pmc), last, "the value stays, the target is counted no more");
	is_num(csink_pmc_release(pmc), 0, "release");
	is_num(csink_pmc_state(pmc), -ESRCH, "it is gone");
	end_target(&target);
}

static void counts_descendants(void)
{
	csink_pmc_id_t pmc = allocate(CSINK_PMC_DESCENDANTS), second = allocate(0);
	struct target target = start_target(), other = start_target();
	long long last = 0;

	is_num(csink_pmc_attach(pmc, target.pid), 0, "attach with descendants");
	is_num(csink_pmc_attach(pmc, other.pid), 0, "to a second process, too");
	is_num(csink_pmc_attach(second, target.pid), 0, "two PMCs to one process");
	csink_pmc_start(pmc);
	csink_pmc_start(second);
	for (const char *what = "tTocP"; *what; what++) {
		char name[64];

		tell(&target, *what);
		snprintf(name, sizeof(name), "'%c' is counted", *what);
		is_about(value_of(pmc) - last, PAGES, name);
		last = value_of(pmc);
	}
	is_about(value_of(second), 3 * PAGES, "the second one, without descendants, has three of the five");
	tell(&other, 'P');
	is_about(value_of(pmc) - last, PAGES, "what the other target's child does is in it");
	csink_pmc_release(pmc);
	csink_pmc_release(second);
	end_target(&target);
	end_target(&other);
}

static void counts_itself(void)
{
	csink_pmc_id_t pmc = allocate(0);
	int before = nr_open_fds();

	is_num(csink_pmc_start(pmc), 0, "a PMC without a target is started");
	touch_pages();
	is_about(value_of(pmc), PAGES, "and counts the calling process");
	is_num(csink_pmc_detach(pmc, 0), 0, "which can be detached as 0");
	csink_pmc_release(pmc);
	is_num(nr_open_fds(), before, "no file stays open");
}

int main(void)
{
	no_pmc();
	in_child(owns_none_of_the_parents, 0, "a child owns none before any was allocated");
	parents_pmc = allocate(0);
	in_child(forked_child, 0, "attach, detach: ESRCH in a child of a fork, which can have its own");
	is_num(csink_pmc_attach(parents_pmc, 0), 0, "the parent's is untouched");
	csink_pmc_release(parents_pmc);
	allocate_errors();
	attach_errors();
	detach_errors();
	in_child(busy_by_ebusy, 0, "attach: EBUSY, the counter is in use");
	in_child(busy_by_enospc, 0, "attach: EBUSY, all slots are in use (ENOSPC of the kernel)");
	in_child(foreign_process, 1, "attach: EPERM, no right to watch another user's process");
	in_child(undumpable_process, 1, "attach: EPERM, nor one that may not be dumped");
	in_child(rollback, 1, "attach with descendants: one refusal undoes it all");
	counts_threads();
	counts_descendants();
	counts_itself();
	return done();
}
