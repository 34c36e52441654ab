/*
 * What /proc/PID/status is understood to say: text in pieces of every size, with lines longer than any buffer; and this
 * process itself, a debugged one, one under filters, and one whose user has thousands of groups.
 */
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/core/status.h"
#include "tests/unit/tap.h"

enum { MANY_GROUPS = 9000 };

static const char head[] =
	"Name:\tTgid:\\n\nUmask:\t0022\nState:\tR (running)\nTgid:\t71\nNgid:\t0\nPid:\t72\nPPid:\t61\n"
	"TracerPid:\t62\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\nFDSize:\t64\nGroups:\t";
static const char tail[] = "\nVmPeak:\t    1234 kB\nSigCgt:\t0000000180000010\nCapEff:\t000001ffffffffff\n"
			   "Seccomp:\t2\n";
static const char last[] = "Seccomp_filters:\t3\nSpeculation_Store_Bypass:\tvulnerable\n";

/* Feed a text to a reader in pieces of so many bytes. */
static int read_pieces(const char *text, size_t length, size_t piece, struct csink_status *status)
{
	int ends[2], ret;
	pid_t pid;

	if (pipe(ends))
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		signal(SIGPIPE, SIG_IGN); /* the reader may know all before the end */
		while (length) {
			size_t n = length < piece ? length : piece;

			if (write(ends[1], text, n) != (ssize_t)n)
				break;
			text += n;
			length -= n;
		}
		_exit(0);
	}
	close(ends[1]);
	ret = csink_status_read_fd(ends[0], status);
	close(ends[0]);
	waitpid(pid, NULL, 0);
	return ret;
}

static int is_as_written(const struct csink_status *status, int nr_filters)
{
	return status->tgid == 71 && status->parent == 61 && status->tracer == 62 && status->uid == 1000 &&
	       status->caught == 0x180000010 && status->effective == 0x1ffffffffff && status->seccomp == 2 &&
	       status->nr_filters == nr_filters;
}

static void test_pieces(void)
{
	static char text[sizeof(head) + 6 * MANY_GROUPS + sizeof(tail) + sizeof(last)];
	static const size_t pieces[] = {7, 64, 1000, 2047, 2048, 2049, 60000};
	struct csink_status status;
	int right = 0, tries = 0;

	for (int nr = 0; nr <= MANY_GROUPS; nr += nr < 700 ? 23 : 1700) {
		size_t at = (size_t)sprintf(text, "%s", head);

		for (int i = 0; i < nr; i++)
			at += (size_t)sprintf(text + at, "%d ", 10000 + i);
		at += (size_t)sprintf(text + at, "%s%s", tail, last);
		for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
			memset(&status, 0xff, sizeof(status));
			tries++;
			if (read_pieces(text, at, pieces[i], &status) == 0 && is_as_written(&status, 3))
				right++;
			else
				fprintf(stderr, "#   %d groups in pieces of %zu\n", nr, pieces[i]);
		}
	}
	is_num(right, tries, "lines are found behind ones of any length, in pieces of any size");
}

static void test_older_kernels(void)
{
	char text[sizeof(head) + sizeof(tail)];
	struct csink_status status;
	int n = sprintf(text, "%s%s", head, tail);

	ok(read_pieces(text, (size_t)n, 4096, &status) == 0 && is_as_written(&status, 1),
	   "filters that are not counted are one");
	ok(read_pieces("Name:\tx\nPPid:\t4\n", 16, 4096, &status) == 0 && status.parent == 4 && status.tracer == 0 &&
		   status.nr_filters == 0 && status.seccomp == -1 && status.caught == UINT64_MAX,
	   "missing fields are unknown");
}

static void on_signal(int signo)
{
	(void)signo;
}

static void test_own(void)
{
	struct csink_status status, thread;

	signal(SIGUSR2, on_signal);
	is_num(csink_status_read(CSINK_STATUS_PROCESS, &status), 0, "this process can be read");
	ok(status.tgid == getpid() && status.parent == getppid() && status.uid == getuid(),
	   "the process's own status has its ids");
	ok(status.caught & 1ULL << (SIGUSR2 - 1) && !(status.caught & 1ULL << (SIGUSR1 - 1)),
	   "the process's own status has its handlers");
	ok(csink_status_read(CSINK_STATUS_THREAD, &thread) == 0 && thread.tgid == getpid() &&
		   csink_status_read(getpid(), &thread) == 0 && thread.parent == getppid(),
	   "the status by TID and by PID agree");
	errno = 0;
	is_num(csink_status_read(0x3fffffff, &status), -ENOENT, "a missing process: ENOENT");
	is_num(errno, 0, "a missing process leaves errno alone");
}

/* Runs in a child; its status is the answer. */
static int child_says(int (*child)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(child());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int filtered(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {1, &allow};
	struct csink_status before, after;

	if (csink_status_read(CSINK_STATUS_PROCESS, &before) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) || csink_status_read(CSINK_STATUS_PROCESS, &after))
		return 100;
	return after.seccomp == 2 ? after.nr_filters - before.nr_filters : 101;
}

static int filtered_with_groups(void)
{
	static gid_t groups[MANY_GROUPS];

	for (int i = 0; i < MANY_GROUPS; i++)
		groups[i] = (gid_t)(100000 + i);
	return setgroups(MANY_GROUPS, groups) ? 102 : filtered();
}

static int traced(void)
{
	struct csink_status status;

	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) || csink_status_read(CSINK_STATUS_PROCESS, &status) ||
	       status.tracer != getppid();
}

int main(void)
{
	int nr;

	test_pieces();
	test_older_kernels();
	test_own();
	is_num(child_says(traced), 0, "a tracer is seen");
	is_num(child_says(filtered), 2, "two filters are counted");
	nr = child_says(filtered_with_groups);
	if (nr == 102)
		skip("two filters are counted with thousands of groups", "setting groups needs CAP_SETGID");
	else
		is_num(nr, 2, "two filters are counted with thousands of groups");
	return done();
}
