/* The timer queue over fork, clone, vfork and exec, and in a time namespace. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/core/timer/queue.h"
#include "tests/unit/tap.h"
#include "tests/unit/timerq_wait.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define KEEP CSINK_TIMERQ_KEEP_IN_CHILD
#define ARMED CSINK_TIMERQ_ARMED

static struct csink_timerq *queue;
static _Atomic int nr_calls;

static void count(int id, void *data)
{
	(void)id;
	(void)data;
	nr_calls++;
}

static void make(uint32_t flags)
{
	struct csink_timerq_config config = {.flags = flags};

	csink_timerq_destroy(queue);
	queue = NULL;
	nr_calls = 0;
	if (csink_timerq_create(&queue, &config))
		exit(1);
}

static void end(void)
{
	csink_timerq_destroy(queue);
	queue = NULL;
}

/* A child's report is its exit status: the number of its first check that failed, or 0. */
static int status_of(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define must(number, condition)                                                                                        \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			_exit(number);                                                                                 \
	} while (0)

static void *handler_of(int sig)
{
	struct sigaction action;

	sigaction(sig, NULL, &action);
	return (void *)action.sa_handler;
}

/* What a child must find when the queue is not to go on, however it was made. */
static void check_empty_child(int id)
{
	must(1, csink_timerq_isempty(queue) == 1);
	must(2, csink_timerq_unregister(queue, id) == -ENOENT);
	must(3, csink_timerq_misses(queue, 0) == 0);
	must(4, csink_timerq_unblock(queue) == -EPERM);
	nr_calls = 0;
	id = csink_timerq_setup(queue, 0, MS, NULL, count);
	must(5, id > 0);
	if (csink_timerq_signal(queue)) {
		must(6, wait_for(nr_calls >= 5));
	} else {
		must(7, csink_timerq_run(queue, monotonic_ns()) == 1);
		must(8, nr_calls == 1);
	}
	must(9, csink_timerq_unregister(queue, id) == 0);
	must(10, csink_timerq_isempty(queue) == 1);
	must(11, !csink_timerq_signal(queue) || handler_of(csink_timerq_signal(queue)) == (void *)SIG_DFL);
	must(12, csink_timerq_destroy(queue) == 0);
	_exit(0);
}

static pid_t clone_without_hooks(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void test_empty_child(uint32_t flags, const char *how)
{
	pid_t child;
	int id;

	make(flags);
	id = csink_timerq_setup(queue, 0, MS, NULL, count);
	csink_timerq_run(queue, monotonic_ns() + 20 * MS);
	csink_timerq_block(queue);
	child = fork();
	if (!child)
		check_empty_child(id);
	is_num(status_of(child), 0, "in a forked child the queue is empty, unblocked and usable");
	child = clone_without_hooks();
	if (!child)
		check_empty_child(id);
	is_num(status_of(child), 0, "in a child of a raw clone the queue is empty, unblocked and usable");
	csink_timerq_unblock(queue);
	ok(!csink_timerq_isempty(queue) && csink_timerq_misses(queue, id) >= 0, "the parent's queue keeps its event");
	is_num(csink_timerq_unregister(queue, id), 0, "the parent's event is unregistered by its id");
	printf("# that was a queue that is %s\n", how);
}

/* A child that makes no call on the queue: nothing of ours may be left installed. */
static void test_silent_child(void)
{
	pid_t child;

	make(ARMED);
	csink_timerq_setup(queue, 0, MS, NULL, count);
	child = fork();
	if (!child) {
		must(1, handler_of(csink_timerq_signal(queue)) == (void *)SIG_DFL);
		_exit(0);
	}
	is_num(status_of(child), 0, "fork restores the disposition in the child");
	nr_calls = 0;
	ok(wait_for(nr_calls >= 3), "the parent's timer continues after fork");
}

static void test_kept(void)
{
	uint64_t before, after, t0, nth;
	pid_t child;
	int id, once;

	make(ARMED | KEEP);
	before = monotonic_ns();
	id = csink_timerq_setup(queue, 0, MS, NULL, count);
	after = monotonic_ns();
	once = csink_timerq_setup(queue, 3600 * 1000 * MS, 0, NULL, count);
	ok(wait_for(nr_calls >= 3), "an event to be kept runs");
	/* Late as it is forked. */
	csink_timerq_block(queue);
	wait_for(monotonic_ns() >= queue->heap[0].due_ns + MS / 3);
	child = fork();
	if (!child) {
		nr_calls = 0;
		must(1, wait_for(nr_calls >= 5)); /* without any call on the queue */
		csink_timerq_block(queue);
		must(2, csink_timerq_misses(queue, id) < 1000000);
		nth = (queue->heap[0].due_ns - before) / MS;
		t0 = queue->heap[0].due_ns - nth * MS;
		must(3, t0 >= before && t0 <= after);
		must(4, csink_timerq_unregister(queue, id) == 0);
		must(5, csink_timerq_unregister(queue, once) == 0);
		must(6, csink_timerq_isempty(queue) == 1);
		must(7, csink_timerq_destroy(queue) == 0);
		_exit(0);
	}
	csink_timerq_unblock(queue);
	is_num(status_of(child), 0, "kept events go on in the child, under their ids, on the same schedule");
	nr_calls = 0;
	ok(wait_for(nr_calls >= 3), "kept events continue in the parent");

	make(KEEP);
	id = csink_timerq_register(queue, MS, NULL, count);
	csink_timerq_block(queue);
	child = clone_without_hooks();
	if (!child) {
		must(1, csink_timerq_next(queue) == 0);
		csink_timerq_run(queue, monotonic_ns());
		must(2, wait_for(csink_timerq_run(queue, monotonic_ns()) == 1));
		must(3, csink_timerq_unregister(queue, id) == 0);
		_exit(0);
	}
	is_num(status_of(child), 0, "kept events of a polled queue continue in the child");
}

/* ---- fork at bad moments ---------------------------------------------------------------------------------------- */

static pid_t forked;
static uint32_t keep_flag;

static void fork_inside(int id, void *data)
{
	(void)data;
	if (nr_calls++)
		return;
	forked = fork();
	if (forked)
		return;
	must(1, csink_timerq_isempty(queue) == !keep_flag);
	must(2, csink_timerq_unregister(queue, id) == (keep_flag ? 0 : -ENOENT));
	must(3, csink_timerq_setup(queue, 0, MS, NULL, count) > 0);
	must(4, csink_timerq_run(queue, monotonic_ns()) == -EBUSY); /* still inside a callback */
}

/* The child comes back from the callback into the dispatch that it inherited. */
static void test_fork_in_callback(uint32_t flags)
{
	make(flags);
	keep_flag = flags & KEEP;
	forked = 0;
	csink_timerq_setup(queue, 0, MS, NULL, fork_inside);
	if (!(flags & ARMED))
		csink_timerq_run(queue, monotonic_ns());
	wait_for(nr_calls >= 1);
	if (!forked) {
		must(5, flags & ARMED ? wait_for(nr_calls >= 5) : csink_timerq_run(queue, monotonic_ns()) == 1);
		must(6, csink_timerq_destroy(queue) == 0);
		_exit(0);
	}
	is_num(status_of(forked), 0, "fork in a callback: the child's queue works after it");
	if (!(flags & ARMED))
		csink_timerq_run(queue, monotonic_ns() + 10 * MS);
	ok(wait_for(nr_calls >= 2), "after fork in a callback the parent's queue works");
}

static _Atomic int is_inside, may_return;

static void stay_inside(int id, void *data)
{
	(void)id;
	(void)data;
	is_inside = 1;
	while (!may_return)
		;
}

static void *run_queue(void *unused)
{
	csink_timerq_run(queue, monotonic_ns());
	return unused;
}

static void test_fork_during_callback(void)
{
	pthread_t runner;
	pid_t child;
	int id;

	make(0);
	is_inside = may_return = 0;
	id = csink_timerq_setup(queue, 0, MS, NULL, stay_inside);
	pthread_create(&runner, NULL, run_queue, NULL);
	ok(wait_for(is_inside), "another thread is in a callback");
	is_num(csink_timerq_run(queue, monotonic_ns()), -EBUSY, "run returns at once");
	child = fork();
	if (!child)
		check_empty_child(id);
	is_num(status_of(child), 0, "a child forked at that moment has a queue that works");
	may_return = 1;
	pthread_join(runner, NULL);
	is_num(csink_timerq_unregister(queue, id), 0, "the parent keeps its event after fork during a callback");
}

static void test_vfork(void)
{
	pid_t child;
	int id;

	make(0);
	id = csink_timerq_register(queue, MS, NULL, count);
	child = vfork();
	if (!child)
		_exit(csink_timerq_isempty(queue));
	is_num(status_of(child), 0, "a vfork child sees the parent's queue");
	is_num(csink_timerq_unregister(queue, id), 0, "a vfork child leaves the parent's queue unchanged");
}

/* ---- exec ------------------------------------------------------------------------------------------------------- */

/* What the new program looks at. */
static int after_exec(int sig)
{
	struct sigaction action;
	sigset_t set;
	char byte;
	int fd;

	sigpending(&set);
	if (sigismember(&set, sig))
		return 1;
	sigaction(sig, NULL, &action);
	if (action.sa_handler != SIG_DFL)
		return 2;
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* Absent where the kernel cannot list timers. */
	fd = open("/proc/self/timers", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, &byte, 1) > 0)
		return 3;
	return 0;
}

static void run_exec_child(int blocks)
{
	char number[12];
	sigset_t set;

	make(ARMED);
	snprintf(number, sizeof(number), "%d", csink_timerq_signal(queue));
	if (blocks) {
		/* The worst case: the signal is pending for certain when the new program starts. */
		sigemptyset(&set);
		sigaddset(&set, csink_timerq_signal(queue));
		sigprocmask(SIG_BLOCK, &set, NULL);
		csink_timerq_setup(queue, 0, 20000, NULL, count);
		must(11, wait_for(!sigpending(&set) && sigismember(&set, csink_timerq_signal(queue))));
	} else {
		csink_timerq_setup(queue, 0, 20000, NULL, count);
		must(12, wait_for(nr_calls >= 2));
	}
	execl("/proc/self/exe", "test_timerq_process", "--after-exec", number, NULL);
	_exit(13);
}

static void test_exec(void)
{
	int i, died = 0;
	pid_t child;

	end();
	for (i = 0; i < 200; i++) {
		child = fork();
		if (!child)
			run_exec_child(i & 1);
		died += status_of(child) != 0;
	}
	is_num(died, 0, "200 execs at a 20 us period: no signal, timer or handler in the new program");
}

/* ---- time namespace --------------------------------------------------------------------------------------------- */

/* Have the next child live at a monotonic clock that is that many seconds off. */
static int shift_children(long seconds)
{
	char text[64];
	int fd, n;

	if (unshare(CLONE_NEWTIME) && unshare(CLONE_NEWUSER | CLONE_NEWTIME))
		return -errno;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = snprintf(text, sizeof(text), "monotonic %ld 0\n", seconds);
	n = write(fd, text, (size_t)n) == n ? 0 : -errno;
	close(fd);
	return n;
}

/* In a process of its own, as unshare is for good: 0, the failed check, or 99 where it is not allowed. */
static int run_shifted(long seconds)
{
	pid_t child = fork();

	if (child)
		return status_of(child);
	make(ARMED | KEEP);
	csink_timerq_setup(queue, 0, MS, NULL, count);
	must(21, wait_for(nr_calls >= 3));
	if (shift_children(seconds))
		_exit(99);
	child = fork();
	if (!child) {
		uint64_t first;

		nr_calls = 0;
		must(22, wait_for(nr_calls >= 5));
		/* Lateness that the shift alone explains is none: a miss would be a million. */
		must(23, csink_timerq_misses(queue, 0) < 1000000);
		csink_timerq_destroy(queue);
		queue = NULL;
		make(ARMED);
		first = monotonic_ns();
		csink_timerq_setup(queue, 50 * MS, 0, NULL, count);
		must(24, wait_for(nr_calls == 1) && monotonic_ns() >= first + 50 * MS);
		_exit(0);
	}
	_exit(status_of(child));
}

static void test_time_namespace(void)
{
	static const char *const name[] = {"a clock 100,000 s ahead", "a clock almost at its beginning"};
	long shift[] = {100000, 1 - (long)(monotonic_ns() / 1000000000)};
	int i, ret;

	end();
	for (i = 0; i < 2; i++) {
		ret = run_shifted(shift[i]);
		if (ret == 99)
			skip(name[i], "time namespaces are not allowed here");
		else
			is_num(ret, 0, name[i]);
	}
	printf("# in a child in another time namespace events go on at once, and new ones come at their time\n");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--after-exec"))
		return after_exec(atoi(argv[2]));
	test_empty_child(0, "polled");
	test_empty_child(ARMED, "armed");
	test_silent_child();
	test_kept();
	test_fork_in_callback(0);
	test_fork_in_callback(KEEP);
	test_fork_in_callback(ARMED);
	test_fork_in_callback(ARMED | KEEP);
	test_fork_during_callback();
	test_vfork();
	test_exec();
	test_time_namespace();
	end();
	return done();
}
