/*
 * The life of a process image: see image.h. begin_process() is the library's constructor, also where __gmon_start__()
 * calls it before other libraries' constructors; csink_image_begin_child()
 * runs in forked children, csink_image_before_exec() and csink_image_end() on the thread that calls exec or ends the
 * process. Nothing here runs in a handler of ours.
 */
#include "preload/agent/lifecycle/image.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/arm_thread.h"
#include "preload/agent/lifecycle/bus_guard.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/filtered.h"
#include "preload/agent/lifecycle/finish.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/killed_runs.h"
#include "preload/agent/lifecycle/libc.h"
#include "preload/agent/lifecycle/own_run.h"
#include "preload/agent/lifecycle/plain.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/agent/lifecycle/started.h"
#include "preload/agent/lifecycle/untracked_threads.h"
#include "preload/agent/sampler/engine.h"
#include "preload/agent/sampler/fd_guard.h"
#include "preload/agent/sampler/housekeeping.h"
#include "preload/agent/sampler/lsan.h"
#include "preload/agent/sampler/phases.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/preloaded.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/agent/unwind/find_object.h"
#include "preload/agent/unwind/modules.h"
#include "preload/core/calls_off.h"
#include "preload/core/record/output_path.h"
#include "preload/core/record/run_dir.h"
#include "preload/core/record/stacks.h"
#include "preload/core/seccomp_probe.h"
#include "preload/core/status.h"

extern void *__libc_stack_end;

/* ---- the header -------------------------------------------------------------------------------------------------- */

static void describe_program(struct csink_rec_header *header, char **argv)
{
	size_t used = 0;

	csink_rank_take(header->rank_values);
	csink_module_program(header->exe, sizeof(header->exe));
	for (int i = 0; argv[i] && used < sizeof(header->cmdline) - 1; i++) {
		size_t length = CSINK_MIN(strlen(argv[i]), sizeof(header->cmdline) - 1 - used);

		memcpy(header->cmdline + used, argv[i], length);
		used += length + 1;
	}
}

static void describe_process(struct csink_rec_header *header, uint64_t cpu_start_ns)
{
	header->pid = csink_process.pid;
	header->ppid = getppid();
	header->cpu_start_ns = cpu_start_ns;
	header->cpu_end_ns = cpu_start_ns;
	header->start_realtime_ns = csink_clock_ns(CLOCK_REALTIME);
	header->start_monotonic_ns = csink_now_ns();
	header->end_monotonic_ns = header->start_monotonic_ns;
	csink_rawcall(SYS_prctl, PR_GET_NAME, header->comm);
	header->nr_events = csink_own_recording.nr_events = csink_plan.nr_events;
	for (uint32_t i = 0; i < csink_plan.nr_events; i++)
		header->events[i] = csink_plan.events[i].rec;
	memcpy(header->rates, csink_plan.rates, sizeof(header->rates));
	header->engine = csink_engine_state.engine;
	/* Last: without it, those who read while the process runs leave the recording alone. */
	__atomic_store_n(&header->state, CSINK_REC_LIVE, __ATOMIC_RELEASE);
}

/* The walker that was asked for, else our own, else frame pointers; the header says which and why. */
static void choose_unwind(struct csink_rec_header *header)
{
	int method = csink_config.unwind == CSINK_NR_UNWINDS ? CSINK_UNWIND_DWARF : csink_config.unwind;
	int err = method == CSINK_UNWIND_DWARF ? csink_walk_dwarf_init() : 0;

	csink_plan.timeline = csink_config.timeline;
	csink_plan.max_depth = csink_config.max_depth;
	if (err) {
		snprintf(header->unwind_reason, sizeof(header->unwind_reason), "no memory for rows: %s",
			 strerror(-err));
		method = CSINK_UNWIND_FP;
	}
	csink_plan.walk = csink_unwind_walker((enum csink_unwind)method);
	header->unwind = (uint32_t)method;
}

/* Merging needs the addresses of native frames, which csink_walk_cfas() has of csink_walk_dwarf() only. */
static enum csink_interp_mode frames_mode(void)
{
	return csink_plan.walk == csink_walk_dwarf ? (enum csink_interp_mode)csink_config.frames : CSINK_INTERP_NATIVE;
}

static void main_stack(struct csink_stack_bounds *stack)
{
	struct rlimit lim;
	uintptr_t bytes = 8 << 20;

	if (getrlimit(RLIMIT_STACK, &lim) == 0 && lim.rlim_cur < bytes)
		bytes = lim.rlim_cur;
	stack->high = (uintptr_t)__libc_stack_end;
	stack->low = stack->high - bytes;
}

/* ---- start ----------------------------------------------------------------------------------------------------
 */

/* Where a process that had more rights has made room for what it starts with fewer. */
static int record_beside(int err)
{
	char beside[300];
	uid_t uid = geteuid();

	if (csink_run_dir_beside(csink_config.run_dir, uid, beside, sizeof(beside)) < 0 ||
	    !csink_run_dir_is_of(beside, uid))
		return err;
	return csink_recording_create(&csink_own_recording, beside, csink_config.max_bytes);
}

/* Expected after chroot, a change of credentials, or at the end of a launcher's run: not an error. A process that
 * cannot record then is named by the process that started it, and by the kernel's list of processes. */
static bool is_out_of_reach(int err)
{
	return err == -EACCES || err == -EPERM || err == -ENOENT || err == -EROFS;
}

/* A phrase for a message: why a recording cannot be made. */
static const char *explain_unrecorded(int err, char *text, size_t size)
{
	struct rlimit lim;

	if (err != -EFBIG)
		return strerror(-err);
	if (getrlimit(RLIMIT_FSIZE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY)
		snprintf(text, size, "files are limited to %llu bytes (RLIMIT_FSIZE, ulimit -f)",
			 (unsigned long long)lim.rlim_cur);
	else
		snprintf(text, size, "too little address space (RLIMIT_AS, ulimit -v) or --max-memory");
	return text;
}

/* A new run tries the next place where a full one has room for a directory, but not for the first blocks. */
static int try_recording(void)
{
	char *dir = csink_config.run_dir;
	bool is_new = !*dir;
	unsigned int place = 0;
	int err, full = 0;

	for (;;) {
		err = is_new ? csink_run_dir_create(&place, dir, sizeof(csink_config.run_dir)) : 0;
		if (err) {
			*dir = '\0'; /* not the last place that was tried */
			return full ? full : err;
		}
		err = csink_recording_create(&csink_own_recording, dir, csink_config.max_bytes);
		if (!is_new || err != -ENOSPC)
			return err == -EACCES ? record_beside(err) : err;
		full = err;
		rmdir(dir);
	}
}

static bool has_recording(int err)
{
	char text[100];

	if (err && !(is_out_of_reach(err) && csink_config.owner != getpid()))
		csink_finish_complain("cannot record in %s: %s; the program runs without being profiled",
				      csink_config.run_dir[0] ? csink_config.run_dir : "any temporary directory",
				      explain_unrecorded(err, text, sizeof(text)));
	return err == 0;
}

/* For a program that starts. A directory that passed the checks may still not be writable. */
static bool open_first_recording(void)
{
	int err;

	if (csink_own_run_is_launchers())
		return false;
	csink_finish_init();
	err = try_recording();
	if (is_out_of_reach(err) && csink_config.owner != getpid() && csink_own_run_may_replace()) {
		csink_own_run_begin(strerror(-err));
		csink_finish_init();
		err = try_recording();
	}
	return has_recording(err);
}

/* With slices: a clock's event costs at each switch of threads, a timer that the kernel's tick serves does not. */
static bool prefers_timer(void)
{
	struct timespec tick;

	return csink_config.has_slices && csink_config.engine == CSINK_NR_ENGINES && !csink_config.off_cpu &&
	       !csink_plan.cpu_event && !csink_rawcall(SYS_clock_getres, CLOCK_REALTIME_COARSE, &tick) &&
	       csink_engine_state.period_ns >= 2 * (uint64_t)tick.tv_nsec;
}

static void begin_image(char **argv, uint64_t cpu_start_ns)
{
	struct csink_thread *thread;
	char problem[700] = "";
	bool is_by_timer, is_go = csink_engine_is_go();

	csink_modules_reserve();
	thread = csink_thread_get();
	if (!thread)
		return;
	csink_image_choose_events(problem, sizeof(problem));
	describe_process(csink_own_recording.header, cpu_start_ns);
	describe_program(csink_own_recording.header, argv);
	csink_finish_name(&thread->writer);
	choose_unwind(csink_own_recording.header);
	csink_interp_begin(frames_mode());
	csink_modules_init(&csink_own_recording, &thread->writer);
	csink_interp_started();
	csink_plan.budget = csink_config.budget;
	csink_housekeeping_init(NULL);
	csink_phases_init();
	csink_engine_state.install_signal = csink_signal_install;
	is_by_timer = prefers_timer();
	csink_engine_state.wanted = is_by_timer ? CSINK_ENGINE_TIMER : csink_config.engine;
	main_stack(&thread->stack);
	atomic_store_explicit(&csink_process.active, 1, memory_order_release);
	csink_thread_start(thread, CSINK_THREAD_MAIN);
	csink_untracked_threads_at_start();
	if (is_go)
		csink_arm_for_children();
	if (is_by_timer && csink_config.owner == csink_process.pid)
		csink_recording_note(
			&csink_own_recording, &thread->writer, 0,
			CSINK_ENV_PREFIX
			"ROTATE samples by timers, which cost nothing where threads switch; " CSINK_ENV_PREFIX
			"ENGINE=sigtrap is more exact");
	csink_objects_begin(&thread->writer);
	if (*problem)
		csink_recording_note(&csink_own_recording, &thread->writer, 1, "%s", problem);
	if (*csink_config.own_run)
		csink_recording_note(&csink_own_recording, &thread->writer, 0, "%s", csink_config.own_run);
	if (*csink_config.bad)
		csink_recording_note(&csink_own_recording, &thread->writer, 1, "%s", csink_config.bad);
}

/* A child that cannot have a recording runs without being profiled. */
static void run_unprofiled(struct csink_thread *thread)
{
	if (thread && csink_self == thread)
		csink_masks_reveal(thread);
	csink_self = NULL;
}

static void copy_findings(struct csink_rec_header *to, const struct csink_rec_header *from)
{
	/* Neighbours in the header: fewer calls. */
	_Static_assert(offsetof(struct csink_rec_header, rank_values) ==
			       offsetof(struct csink_rec_header, exe) + sizeof(to->exe) + sizeof(to->cmdline),
		       "exe, cmdline and rank_values are neighbours");
	_Static_assert(offsetof(struct csink_rec_header, unwind_reason) == offsetof(struct csink_rec_header, unwind) +
										   sizeof(to->unwind) +
										   sizeof(to->engine_reason),
		       "unwind and both reasons are neighbours");
	memcpy(to->exe, from->exe, sizeof(to->exe) + sizeof(to->cmdline) + sizeof(to->rank_values));
	memcpy(&to->unwind, &from->unwind, sizeof(to->unwind) + sizeof(to->engine_reason) + sizeof(to->unwind_reason));
}

/*
 * What is forked after the run was collected is not profiled: the launcher's report names what starts then. But a
 * child may come to run just as the run is collected: its parent may have ended before (COLLECTED_WHOLE), or the
 * directory may go while the child looks for it (the launcher marks the parent's recording first, so that one more look
 * at the mark is enough). Such a child has a run of its own, and so has the one that daemon(3) forks: it is the process
 * that goes on.
 */
static bool open_child_recording(const struct csink_recording *parent)
{
	uint32_t mark = csink_recording_mark(parent);
	int err;

	if (mark == CSINK_REC_COLLECTED && !csink_config.becomes_daemon)
		return false;
	err = mark ? -ENOENT : try_recording();
	if (err == -ENOENT && csink_recording_mark(parent)) {
		csink_own_run_of_child();
		err = try_recording();
	}
	return has_recording(err);
}

/* The child takes over what its parent found out about events, engine and unwinding. */
void csink_image_begin_child(void)
{
	CSINK_KEEP_ERRNO;
	struct csink_recording before = csink_own_recording;
	struct csink_thread *thread = csink_self;

	if (!atomic_load(&csink_process.active))
		return;
	atomic_store(&csink_process.active, 0);
	if (csink_calls_are_off(CSINK_CALLS_LIFE)) {
		csink_self = NULL;
		return;
	}
	csink_fd_guard_forked();
	csink_writer_reset();
	csink_objects_forked();
	csink_threads_reset();
	csink_stacks_reset();
	csink_signals_forked(); /* after the groups: a signal that is kept may close them */
	if (thread)
		thread->forked_by = thread->tid;
	else {
		thread = csink_thread_get();
		if (thread)
			memset(&thread->hidden, 0, sizeof(thread->hidden));
	}
	if (thread && csink_config_follows_forks() && open_child_recording(&before)) {
		describe_process(csink_own_recording.header, 0);
		copy_findings(csink_own_recording.header, before.header);
		csink_interp_begin(frames_mode());
		csink_modules_init(&csink_own_recording, &thread->writer);
		csink_phases_rewrite();
		csink_housekeeping_init(NULL);
		csink_recording_close(&before);
		atomic_store_explicit(&csink_process.active, 1, memory_order_release);
		csink_thread_start(thread, CSINK_THREAD_MAIN);
	} else {
		csink_started_record_child(&before, csink_config_follows_forks() ? CSINK_SPAWN_NO_REACH
										 : CSINK_SPAWN_NOT_FOLLOWED);
		/* Preloaded objects count in it. */
		if (csink_own_recording.header == before.header)
			csink_own_recording.header = NULL;
		csink_recording_close(&before);
		run_unprofiled(thread);
	}
}

/* A process that is not profiled reports that on stderr, unless a launcher reports it. */
static bool may_begin(const struct csink_status *status, const char **why)
{
	const char *quiet = getenv(CSINK_ENV_PREFIX "QUIET"), *run_dir = getenv(CSINK_ENV_RUN_DIR);

	if (csink_filtered_may_begin(status, why))
		return true;
	csink_config.quiet = (quiet && *quiet) || (run_dir && *run_dir && !csink_own_run_is_due());
	csink_finish_complain("the program runs without being profiled: %s", *why);
	return false;
}

static void note_filter(const char *why)
{
	struct csink_started own = {.reason = CSINK_SPAWN_OWN};

	if (!*why || !csink_self)
		return;
	csink_thread_mute(csink_self, true); /* the handler uses the same writer */
	csink_recording_note(&csink_own_recording, &csink_self->writer, 1, "%s", why);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(csink_filters_children); i++)
		if (csink_filters_children[i])
			csink_started_record(&own, csink_filters_children[i]);
	csink_thread_mute(csink_self, false);
}

/* @status  NULL: not known. */
static void begin_asked(char **argv, const struct csink_status *status, const char *why)
{
	uint64_t cpu_start_ns = csink_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	const char *due;
	bool is_first;

	csink_config_read();
	due = csink_own_run_is_due();
	if (due)
		csink_own_run_begin(due);
	csink_process.pid = getpid();
	csink_process.is_traced = status && status->tracer;
	csink_signals_begin(status ? status->caught : UINT64_MAX);
	if (!csink_config_follows(argv[0])) {
		csink_env_init(); /* for those that it starts */
		return;
	}
	csink_bus_guard_enter(); /* a recording may be truncated as soon as it is there */
	is_first = !*csink_config.run_dir;
	if (open_first_recording()) {
		/* Under a filter not all the calls that this takes may be allowed; a tracer may wait for the helper. */
		if (csink_config.standalone && csink_config.owner == getpid() && status && !status->nr_filters &&
		    !status->tracer) {
			if (csink_config.has_slices && is_first)
				csink_finish_keep(CSINK_FINISH_KEEP);
			csink_killed_runs_look();
		}
		csink_env_init();
		begin_image(argv, cpu_start_ns);
		note_filter(why);
		pthread_atfork(csink_fd_guard_before_fork, csink_fd_guard_after_fork, csink_image_begin_child);
	} else
		csink_bus_guard_end();
	csink_signals_begun();
}

static bool has_begun; /* set by the main thread */

/* @unused  argc, but not on aarch64 by way of __gmon_start__(). argv ends with NULL. */
__attribute__((constructor, noclone)) static void begin_process(int unused, char **argv)
{
	CSINK_KEEP_ERRNO;
	const struct csink_status *known = NULL;
	struct csink_status status;
	const char *why;

	(void)unused;
	if (has_begun)
		return;
	has_begun = true;
	/* Until its runtime has begun, sigaction(2) and what else it intercepts do nothing. A block of memory begins
	 * it. */
	if (csink_has_lsan())
		CSINK_ALLOW(free)(CSINK_ALLOW(malloc)(1));
	csink_find_object_init();
	csink_libc_init();
	csink_reals_init();
	csink_plain_init();
	if (csink_config_is_asked()) {
		if (csink_status_read(CSINK_STATUS_PROCESS, &status) == 0)
			known = &status;
		if (may_begin(known, &why))
			begin_asked(argv, known, why);
	}
}

/*
 * crti.o, of which each library has a part, calls this at the beginning of the library's initialization, if anybody
 * defines it. Constructors use CPU time and start threads, and those of all libraries that the program is linked with
 * come before ours. Before libc is initialised it has no environment: another preloaded object may ask to be first
 * (DF_1_INITFIRST). A thread that opens a library so early is not the one to begin.
 */
extern void _init(void) CSINK_HIDDEN; /* our part of crti.o */
enum { OWN_INIT_BYTES = 64 };

CSINK_EXPORT void __gmon_start__(int unused, char **argv);
CSINK_EXPORT void __gmon_start__(int unused, char **argv)
{
	if (!has_begun && __environ && gettid() == getpid()) {
		/* A constructor that ends the program comes before what would run destructors. Where our own part
		 * calls, the library may have been loaded by the program, and destructors are the last. */
		if ((uintptr_t)__builtin_return_address(0) - (uintptr_t)_init >= OWN_INIT_BYTES)
			atexit(csink_image_end);
		begin_process(unused, argv);
	}
}

/* ---- end ----------------------------------------------------------------------------------------------------------
 */

static void last_flush(enum csink_rec_state state)
{
	struct csink_rec_header *header = csink_own_recording.header;
	struct csink_thread *thread = csink_self;

	if (thread && thread->entry) {
		csink_thread_flush(thread);
		csink_thread_name(thread);
	}
	csink_threads_flush_others();
	if (thread && thread->entry) {
		csink_housekeeping_last();
		/* Not what the library itself needed until the main thread was sampled: long, on a slow machine. */
		csink_untracked_threads_at_end(header->cpu_end_ns -
					       CSINK_MAX(header->cpu_start_ns, thread->cpu_base_ns));
	}
	__atomic_store_n(&header->state, state, __ATOMIC_RELEASE);
}

void csink_image_before_exec(void)
{
	if (csink_self)
		csink_thread_pause(csink_self);
	last_flush(CSINK_REC_EXECED);
	csink_signals_before_exec();
}

void csink_image_exec_failed(void)
{
	__atomic_store_n(&csink_own_recording.header->state, CSINK_REC_LIVE, __ATOMIC_RELEASE);
	csink_signals_exec_failed();
	csink_threads_unflush_others();
	if (csink_self)
		csink_thread_resume(csink_self);
}

void csink_image_end(void)
{
	CSINK_KEEP_ERRNO;

	if (csink_calls_are_off(CSINK_CALLS_LIFE))
		return; /* what was committed counts, as after a kill */
	/* Not in a vfork child, which shares our memory and is about to vanish. */
	if (atomic_load(&csink_process.active) && getpid() == csink_process.pid) {
		/* To close the groups and open them again would cost as much as all the rest. */
		if (csink_self)
			csink_thread_mute(csink_self, true);
		csink_objects_in_use();
		last_flush(CSINK_REC_EXITED);
		csink_finish_image();
		if (csink_self)
			csink_thread_mute(csink_self, false);
	}
}
