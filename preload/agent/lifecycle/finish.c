/*
 * The end of a recording without a launcher: see finish.h. Runs in the constructor and on the thread that ends the
 * process, which may be in a signal handler of the program: no malloc. Not called from handlers of ours.
 */
#include "preload/agent/lifecycle/finish.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "include/internal/text_char.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/handover.h"
#include "preload/agent/lifecycle/installed.h"
#include "preload/agent/lifecycle/libc.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/calls_off.h"
#include "preload/core/private_memory.h"
#include "preload/core/record/output_path.h"
#include "preload/core/record/run_dir.h"

enum { HELPER_STACK = 64 * 1024 };

static CSINK_COLD char output[PATH_MAX]; /* absolute */
static pid_t output_pid;                 /* the process whose number a pattern in it has become; 0: none */
static pid_t finished_pid;               /* the process whose profile was made */
static int kept_stderr = -1;

void csink_finish_complain(const char *fmt, ...)
{
	char text[600], line[1024];
	va_list ap;
	size_t n;

	if (csink_config.quiet)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = csink_text_line(line, sizeof(line) - 1, text);
	line[n] = '\n';
	/* One write, straight to the fd: the program's stdio buffers are its own. */
	if (dprintf(kept_stderr < 0 ? STDERR_FILENO : kept_stderr, "countersink: %.*s", (int)n + 1, line) < 0)
		return;
}

static void fix_output(void)
{
	char host[256] = "localhost", comm[17] = "", path[PATH_MAX], why[200], cwd[PATH_MAX];
	char values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES];
	struct csink_output_names names = {getpid(), host, comm, csink_rank_take(values)};

	output_pid = csink_output_has_pid(csink_config.output) ? names.pid : 0;
	gethostname(host, sizeof(host) - 1);
	csink_rawcall(SYS_prctl, PR_GET_NAME, comm);
	if (csink_output_expand(csink_config.output, &names, path, sizeof(path), why, sizeof(why)) < 0) {
		/* Slices have names with more letters. */
		if (!csink_config.has_slices)
			csink_finish_complain(CSINK_ENV_PREFIX "OUTPUT=%s: %s; using %s", csink_config.output, why,
					      CSINK_LIB_DEFAULT_OUTPUT);
		csink_output_expand(CSINK_LIB_DEFAULT_OUTPUT, &names, path, sizeof(path), why, sizeof(why));
	}
	if (path[0] == '/' || !getcwd(cwd, sizeof(cwd)) ||
	    snprintf(output, sizeof(output), "%s/%s", cwd, path) >= (int)sizeof(output))
		snprintf(output, sizeof(output), "%s", path);
}

void csink_finish_init(void)
{
	/* Only without a launcher is the path relative, or has a name in it to expand: a launcher gives a whole path.
	 */
	if (csink_config.standalone)
		fix_output();
}

static bool is_owner(void)
{
	return csink_config.standalone && csink_config.owner == csink_process.pid;
}

void csink_finish_name(struct csink_writer *writer)
{
	if (is_owner())
		csink_recording_output(&csink_own_recording, writer, output);
}

void csink_finish_keep_stderr(void)
{
	enum { HIGH = 64 }; /* out of the way of what the program opens still */
	if (csink_config.report && is_owner() && kept_stderr < 0)
		kept_stderr = (int)csink_rawcall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, HIGH);
}

/* ---- making the profile --------------------------------------------------------------------------------------------
 */

struct helper {
	char *const *argv;
	char *const *envp;
	char *stack_end;  /* of run_helper() */
	unsigned int how; /* enum how */
	int err;
};

enum how {
	IS_ROOT = 1,   /* it takes back the rights of root, which the program has put aside */
	IS_SILENT = 2, /* in the background: nothing of the program's may stay open in it */
	BEGINS = 4,    /* in the background once it has begun: until then it may complain */
	IS_AWAITED = 8,
};

/* Runs on a stack of its own in our memory while we are stopped (as after vfork): nothing but syscalls. */
static int run_helper(void *arg)
{
	const struct itimerval second = {.it_value = {.tv_sec = 1}};
	const uint64_t default_action[4] = {0};
	struct helper *helper = arg;
	uint64_t none = 0;

	if (helper->how & IS_SILENT)
		csink_rawcall(__NR_close_range, helper->how & BEGINS ? STDERR_FILENO + 1 : 0, ~0U, 0);
	if ((helper->how & IS_SILENT) && (helper->how & IS_AWAITED)) {
		/* The program waits for a second at most. Such a helper may be killed at any moment. */
		csink_rawcall(SYS_rt_sigaction, SIGALRM, default_action, NULL, sizeof(none));
		csink_rawcall(SYS_setitimer, ITIMER_REAL, &second, NULL);
	} else if (kept_stderr >= 0) {
		/* What it prints is the report: ours goes to stderr. dup2 is the child's own, the fd table is not
		 * shared. */
		csink_rawcall(SYS_dup3, kept_stderr, STDERR_FILENO, 0);
	}
	if (csink_config.report && !(helper->how & IS_SILENT) &&
	    csink_rawcall(SYS_dup3, STDERR_FILENO, STDOUT_FILENO, 0) < 0)
		csink_rawcall(SYS_close, STDOUT_FILENO); /* the program's stdout is no place for it */
	csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
	/* The child's own: without libc, which would ask all threads to do the same. */
	if (helper->how & IS_ROOT)
		csink_rawcall(SYS_setresuid, 0, 0, 0);
	helper->err = (int)-csink_rawcall(SYS_execve, helper->argv[0], helper->argv, helper->envp);
	csink_rawcall(SYS_exit_group, 127);
	return 0;
}

/*
 * The kernel gives whatever executes a program SIGCHLD as the signal of its end, however it was made. So the helper has
 * a parent in between, which executes nothing and ends without a signal: no handler of the program's runs, no wait()
 * finds an unknown child.
 */
static int run_parent(void *arg)
{
	struct helper *helper = arg;
	int pid = csink_libc_clone(run_helper, helper->stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, helper), status = 0;

	if (pid < 0)
		helper->err = errno;
	while (pid > 0 && (helper->how & IS_AWAITED) && csink_rawcall(SYS_wait4, pid, &status, 0, NULL) == -EINTR)
		;
	if ((helper->how & BEGINS) && WIFSIGNALED(status))
		helper->err = ETIME;
	csink_rawcall(SYS_exit_group, 0);
	return 0;
}

/*
 * Our environment without what would profile the helper, too, and with the word that this run has ended: it leaves
 * COUNTERSINK_ variables alone that are not meant for it.
 */
static void clean_environment(char **envp)
{
	static char ended[] = CSINK_ENV_RUN_ENDED "=1";

	for (char **entry = __environ; entry && *entry; entry++)
		if (strncmp(*entry, "LD_PRELOAD=", 11))
			*envp++ = *entry;
	*envp++ = ended;
	*envp = NULL;
}

static size_t environment_bytes(void)
{
	size_t nr = 2;

	for (char **entry = __environ; entry && *entry; entry++)
		nr++;
	return nr * sizeof(char *);
}

/* Is the run directory root's, while the program, which may become root again, is another user at its end? */
static bool needs_root(const char *run_dir)
{
	uid_t real, effective, saved;

	return !csink_calls_are_off(CSINK_CALLS_RIGHTS) && !csink_rawcall(SYS_getresuid, &real, &effective, &saved) &&
	       effective && (!real || !saved) && csink_run_dir_is_of(run_dir, 0);
}

/* Executes countersink with @argv, whose first place is free. Returns 0 or a positive errno. */
static int start_helper(const char **argv, unsigned int how)
{
	char program[PATH_MAX];
	/* Two stacks and the environment. Not malloc'ed: the process may be ending in a signal handler. */
	size_t bytes = 2 * HELPER_STACK + environment_bytes();
	char *stack = csink_private_map(bytes), **envp = (char **)(stack + 2 * HELPER_STACK);
	struct helper helper = {.argv = (char *const *)argv,
				.envp = envp,
				.stack_end = stack + HELPER_STACK,
				.how = how,
				.err = ENOENT};
	uint64_t all = ~0ULL, saved;
	int status = 0;
	pid_t pid;

	argv[0] = program;
	if (csink_installed_find(CSINK_INSTALLED_PROGRAM, program) && stack) {
		helper.err = 0;
		clean_environment(envp);
		/* No signal may run a handler of the program's in the child, which shares our memory. */
		csink_rawcall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &saved, sizeof(all));
		/* No exit signal: neither SIGCHLD nor a wait() without __WALL reports this child. */
		pid = csink_libc_clone(run_parent, stack + 2 * HELPER_STACK, CLONE_VM | CLONE_VFORK, &helper);
		if (pid > 0)
			while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
				;
		else
			helper.err = errno;
		csink_rawcall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, sizeof(saved));
	}
	if (stack)
		csink_rawcall(SYS_munmap, stack, bytes);
	return helper.err;
}

static void make_profile(const char *run_dir, const char *to)
{
	const char *argv[] = {NULL, "report", "-o", to, csink_config.report ? "--" : "--quiet", run_dir, NULL};
	int err = start_helper(argv, IS_AWAITED | (needs_root(run_dir) ? IS_ROOT : 0));

	/* A kernel has these flags of clone(2). */
	if (err)
		csink_finish_complain("%s%s: `countersink report -o %s %s` makes the profile of the recordings",
				      err == ENOENT   ? "no countersink beside the library"
				      : err == EINVAL ? "cannot run countersink in emulated user space"
						      : "cannot run countersink: ",
				      err == ENOENT || err == EINVAL ? "" : strerror(err), to, run_dir);
	/* It has reported any other failure itself. */
}

/* Would a helper that goes on in the background become a child of this process, which its wait() finds? */
static bool becomes_parent(void)
{
	int is_subreaper = 0;

	csink_rawcall(SYS_prctl, PR_GET_CHILD_SUBREAPER, &is_subreaper);
	return is_subreaper || csink_process.pid == 1;
}

void csink_finish_salvage(const char *place)
{
	const char *argv[] = {NULL, "salvage", "--detach", place, NULL};

	start_helper(argv, IS_SILENT | (becomes_parent() ? IS_AWAITED : 0));
}

void csink_finish_keep(enum csink_finish_keeping what)
{
	bool leaves = what == CSINK_FINISH_LEAVE;
	char pid[12], comm[17] = "";
	const char *argv[] = {NULL,
			      "keep",
			      leaves ? "--leave" : "--detach",
			      "-p",
			      pid,
			      "--command",
			      comm,
			      "--output",
			      csink_config.output,
			      csink_config.run_dir,
			      NULL};
	int err = EPERM;

	snprintf(pid, sizeof(pid), "%d", (int)csink_process.pid);
	csink_rawcall(SYS_prctl, PR_GET_NAME, comm);
	if (!becomes_parent())
		err = start_helper(argv, IS_SILENT | BEGINS | IS_AWAITED);
	if (err == EPERM && !leaves)
		csink_finish_complain(
			"no slices, but one profile at the end: this process would be their writer's parent; "
			"another one can start `countersink keep --rotate=%s %s`",
			getenv(CSINK_ENV_PREFIX "ROTATE"), csink_config.run_dir);
	else if (err && !leaves)
		csink_finish_complain("no slices, but one profile at the end: %s", strerror(err));
}

/* Writing past RLIMIT_FSIZE would raise SIGXFSZ in the program. */
static bool is_within_limit(size_t bytes)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_FSIZE, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY || bytes <= lim.rlim_cur;
}

static bool write_all(int fd, const char *from, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, from, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		from += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* The name of a profile of a process that goes on after the run's own profile was made: OUTPUT.PID, or OUTPUT where
 * that has the PID already. */
static void later_output(char *to, size_t size)
{
	if (!output[0])
		fix_output();
	if (output_pid == csink_process.pid && csink_config.owner != csink_process.pid)
		snprintf(to, size, "%s", output);
	else
		snprintf(to, size, "%.4000s.%d", output, (int)csink_process.pid);
}

/*
 * Copy the cut, which the run's profile has already, into @fd. It lies behind all that is mapped of the recording,
 * whose file has no name any more: mremap(2) with an old size of 0 maps that file once more. The cut in @fd's header
 * shows whether the copy is there.
 */
static bool copy_cut(int fd, size_t recording_bytes)
{
	struct csink_rec_header *header = csink_own_recording.header;
	struct csink_rec_cut cut = header->cut;
	size_t mapped = (size_t)(cut.at + cut.bytes);
	long map = -ENOMEM;

	if (cut.bytes && cut.bytes <= CSINK_REC_MAX_BYTES && cut.at <= 2 * CSINK_REC_MAX_BYTES &&
	    is_within_limit(recording_bytes + cut.bytes) && !csink_calls_are_off(CSINK_CALLS_MEMORY))
		map = csink_rawcall(SYS_mremap, header, 0, mapped, MREMAP_MAYMOVE, 0);
	if (csink_raw_failed(map) || !write_all(fd, (const char *)map + cut.at, cut.bytes))
		cut.bytes = 0;
	if (!csink_raw_failed(map))
		csink_rawcall(SYS_munmap, map, mapped);
	cut.at = recording_bytes;
	cut.is_continued = 1;
	return csink_rawcall(SYS_pwrite64, fd, &cut, sizeof(cut), offsetof(struct csink_rec_header, cut)) ==
	       (long)sizeof(cut);
}

/* Our file was collected and removed while we ran on (a daemon): its pages are still ours. */
static void copy_recording(void)
{
	const struct csink_rec_header *header = csink_own_recording.header;
	size_t bytes = (size_t)atomic_load(&csink_own_recording.next_block) * CSINK_REC_BLOCK;
	char dir[256], file[300], to[PATH_MAX];
	unsigned int place = 0;
	int fd, err;

	later_output(to, sizeof(to));
	err = is_within_limit(bytes) ? csink_run_dir_create(&place, dir, sizeof(dir)) : -EFBIG;
	if (!err) {
		snprintf(file, sizeof(file), "%s/%d.0" CSINK_REC_SUFFIX, dir, (int)csink_process.pid);
		fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 && write_all(fd, (const char *)header, bytes) && copy_cut(fd, bytes)) {
			make_profile(dir, to);
		} else {
			err = -errno;
			unlink(file);
			rmdir(dir);
		}
		if (fd >= 0)
			csink_rawcall(SYS_close, fd);
	}
	if (err)
		csink_finish_complain("samples taken after the profile was made are lost: %s", strerror(-err));
}

/* Was the recording collected before the last samples were in it? A file that cannot be found may be out of reach only,
 * after a chroot: then there is no more to be done than before. */
static bool is_collected_early(void)
{
	uint32_t mark = csink_recording_mark(&csink_own_recording);

	if (mark)
		return mark == CSINK_REC_COLLECTED;
	return access(csink_own_recording.path, F_OK) < 0 && errno == ENOENT && access(csink_config.run_dir, F_OK) == 0;
}

static void make_own_profile(void)
{
	const char *left;
	char to[PATH_MAX];

	if (csink_config.outlives)
		later_output(to, sizeof(to));
	make_profile(csink_config.run_dir, csink_config.outlives ? to : output);
	if (csink_handover_left(&left))
		csink_finish_complain("recordings of processes with more privileges are not in the profile: "
				      "`countersink report -o FILE %s`, as root, makes one of them",
				      left);
}

void csink_finish_image(void)
{
	if (finished_pid == csink_process.pid)
		return;
	finished_pid = csink_process.pid;
	if (is_collected_early())
		copy_recording();
	else if (is_owner())
		make_own_profile();
}
