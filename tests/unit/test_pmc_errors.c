/* PMCs: each error of pmc_attach(3) and pmc_detach(3), by its name. That they count: test_pmc.c. */
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/unit/pmc_target.h"

/* ---- errors ---- */

static void no_pmc(void)
{
	struct csink_pmc_value value;

	is_err(csink_pmc_attach(1, 0), -ESRCH, "ESRCH", "attach: ESRCH, this process owns no PMC");
	is_err(csink_pmc_detach(1, 0), -ESRCH, "ESRCH", "detach: ESRCH, this process owns no PMC");
	is_err(csink_pmc_start(1), -ESRCH, "ESRCH", "start: ESRCH, this process owns no PMC");
	is_err(csink_pmc_stop(1), -ESRCH, "ESRCH", "stop: ESRCH, this process owns no PMC");
	is_err(csink_pmc_read(1, &value), -ESRCH, "ESRCH", "read: ESRCH, this process owns no PMC");
	is_err(csink_pmc_release(1), -ESRCH, "ESRCH", "release: ESRCH, this process owns no PMC");
	is_err(csink_pmc_state(1), -ESRCH, "ESRCH", "state: ESRCH, this process owns no PMC");
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
	result |= csink_pmc_detach(pmc, pid) != -ESRCH; /* not monitored */
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
	is_num(csink_pmc_attach(self, 0), 0, "a PMC set up for RDPMC attaches to the process itself");
	is_err(csink_pmc_attach(pmc, dead), -ESRCH, "ESRCH", "attach: ESRCH, no such process");
	is_num(csink_pmc_attach(pmc, target.pid), one_if_old(), "a quiescent PMC attaches to a process");
	is_err(csink_pmc_attach(pmc, target.pid), -EEXIST, "EEXIST", "attach: EEXIST, tracked already");
	is_num(csink_pmc_start(pmc), 0, "an attached PMC starts");
	is_err(csink_pmc_attach(pmc, 0), -EBUSY, "EBUSY", "attach: EBUSY, not quiescent");
	is_num(csink_pmc_stop(pmc), 0, "an attached PMC stops");
	is_num(csink_pmc_attach(pmc, 0), one_if_old(), "a stopped PMC attaches to a further process: its own (PID 0)");
	system = csink_pmc_allocate("cpu-clock", CSINK_PMC_SYSTEM, 0);
	if (system > 0) {
		is_err(csink_pmc_attach(system, target.pid), -EINVAL, "EINVAL", "attach: EINVAL, system scope");
		is_err(csink_pmc_detach(system, target.pid), -EINVAL, "EINVAL", "detach: EINVAL, system scope");
		is_num(csink_pmc_start(system), 0, "a CPU can be counted");
		touch_pages();
		ok(value_of(system) > 0, "a started CPU PMC counts");
		csink_pmc_release(system);
	} else {
		is_err(system, -EPERM, "EPERM", "a CPU may not be counted by this user");
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
	is_num(csink_pmc_attach(other, target.pid), one_if_old(), "a second PMC attaches to the target");
	is_err(csink_pmc_detach(pmc, target.pid), -EINVAL, "EINVAL", "detach: EINVAL, not attached to this one");
	is_num(csink_pmc_detach(other, target.pid), 0, "the second PMC can be detached");
	is_num(csink_pmc_attach(pmc, mortal.pid), one_if_old(), "a PMC attaches to a process that will end");
	csink_pmc_start(pmc);
	tell(&mortal, 't');
	before = value_of(pmc);
	end_target(&mortal);
	is_about(before, PAGES, "the PMC counts a target that will end");
	is_about(value_of(pmc), before, "the count of the target is the same after its end");
	is_err(csink_pmc_detach(pmc, mortal.pid), -ESRCH, "ESRCH", "detach: ESRCH, no such process any more");
	is_about(value_of(pmc), before, "the count of the ended target stays");
	csink_pmc_release(pmc);
	csink_pmc_release(other);
	end_target(&target);
}

static void allocate_errors(void)
{
	is_err(csink_pmc_allocate("task-clok", 0, -1), -ENOENT, "ENOENT", "allocate: ENOENT, no such event");
	is_err(csink_pmc_allocate("task-clock,page-faults", 0, -1), -EINVAL, "EINVAL", "allocate: EINVAL, two events");
	is_err(csink_pmc_allocate("task-clock/", 0, -1), -EINVAL, "EINVAL", "allocate: EINVAL, the event's syntax");
	is_err(csink_pmc_allocate("task-clock:period=5", 0, -1), -EINVAL, "EINVAL", "allocate: EINVAL, a period");
	is_err(csink_pmc_allocate("task-clock", 1 << 7, -1), -EINVAL, "EINVAL", "allocate: EINVAL, unknown flag");
	is_err(csink_pmc_allocate("task-clock", 0, 0), -EINVAL, "EINVAL",
	       "allocate: EINVAL, a CPU without system scope");
	is_err(csink_pmc_allocate("cpu-clock", CSINK_PMC_SYSTEM, -1), -EINVAL, "EINVAL", "allocate: EINVAL, no CPU");
	is_err(csink_pmc_allocate("cpu-clock", CSINK_PMC_SYSTEM | CSINK_PMC_DESCENDANTS, 0), -EINVAL, "EINVAL",
	       "allocate: EINVAL, descendants of a CPU");
}

/* ---- whatever the kernel refuses with, the return value and the reason are one error ---- */

static const int kernels[] = {E2BIG,  EACCES, EAGAIN, EBADF,  EBUSY,  EFAULT, EINTR,      EINVAL, EMFILE,
			      ENFILE, ENODEV, ENOENT, ENOMEM, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM,  ESRCH};
static size_t kernels_at;

static const char *name_of(int err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {{EAGAIN, "EAGAIN"}, {EBADF, "EBADF"},   {EBUSY, "EBUSY"},   {EFAULT, "EFAULT"},
		     {EINTR, "EINTR"},   {EINVAL, "EINVAL"}, {EMFILE, "EMFILE"}, {ENFILE, "ENFILE"},
		     {ENODEV, "ENODEV"}, {ENOENT, "ENOENT"}, {ENOMEM, "ENOMEM"}, {EOPNOTSUPP, "EOPNOTSUPP"},
		     {ENOSYS, "ENOSYS"}, {EPERM, "EPERM"},   {ESRCH, "ESRCH"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].err == -err)
			return names[i].name;
	return "none";
}

static bool is_named(int got)
{
	const char *name = name_of(got);
	char reason[400];

	csink_pmc_reason(reason, sizeof(reason));
	if (got < 0 && !strncmp(reason, name, strlen(name)) && reason[strlen(name)] == ':')
		return true;
	fprintf(stderr, "#   %d is not what is said: %s\n", got, reason);
	return false;
}

static int refused_allocate(void)
{
	refuse_perf_event_open(kernels[kernels_at]);
	return !is_named(csink_pmc_allocate(EVENT, 0, -1));
}

static int refused_system(void)
{
	refuse_perf_event_open(kernels[kernels_at]);
	return !is_named(csink_pmc_allocate("cpu-clock", CSINK_PMC_SYSTEM, 0));
}

static int refused_attach(void)
{
	csink_pmc_id_t pmc = allocate(0), self = allocate(CSINK_PMC_SELF);
	struct target target = start_target();
	int result;

	refuse_perf_event_open(kernels[kernels_at]);
	result = !is_named(csink_pmc_attach(pmc, target.pid));
	result |= !is_named(csink_pmc_attach(pmc, 0));
	result |= !is_named(csink_pmc_start(self));
	end_target(&target);
	return result;
}

static void refusals(void)
{
	char what[64];

	for (kernels_at = 0; kernels_at < sizeof(kernels) / sizeof(kernels[0]); kernels_at++) {
		snprintf(what, sizeof(what), "allocate: the kernel's %s", strerror(kernels[kernels_at]));
		in_child(refused_allocate, 0, what);
		snprintf(what, sizeof(what), "allocate, a CPU: the kernel's %s", strerror(kernels[kernels_at]));
		in_child(refused_system, 0, what);
		snprintf(what, sizeof(what), "attach, start: the kernel's %s", strerror(kernels[kernels_at]));
		in_child(refused_attach, 0, what);
	}
}

/* No descriptor is left, after the PMC was allocated. */
static int no_files(void)
{
	csink_pmc_id_t pmc = allocate(0);
	struct target target = start_target();
	struct rlimit few = {128, 128};
	int err;

	setrlimit(RLIMIT_NOFILE, &few);
	while (dup(0) >= 0)
		;
	err = csink_pmc_attach(pmc, target.pid);
	return err != -EMFILE || !is_named(err);
}

int main(void)
{
	no_pmc();
	in_child(owns_none_of_the_parents, 0, "a child owns none before any was allocated");
	parents_pmc = allocate(0);
	in_child(forked_child, 0, "attach, detach: ESRCH in a child of a fork, which can have its own");
	is_num(csink_pmc_attach(parents_pmc, 0), one_if_old(), "the parent's PMC can be used after the child's calls");
	csink_pmc_release(parents_pmc);
	allocate_errors();
	attach_errors();
	detach_errors();
	in_child(busy_by_ebusy, 0, "attach: EBUSY, the counter is in use");
	in_child(busy_by_enospc, 0, "attach: EBUSY, all slots are in use (ENOSPC of the kernel)");
	in_child(foreign_process, 1, "attach: EPERM, no right to watch another user's process");
	in_child(undumpable_process, 1, "attach: EPERM, nor one that may not be dumped");
	in_child(no_files, 0, "attach: EMFILE, no file is left");
	refusals();
	in_child(rollback, 1, "attach with descendants: one refusal undoes it all");
	return done();
}
