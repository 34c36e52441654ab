/*
 * Which engine: once for the process, in its main thread. What decides is whether the kernel opens the events, and
 * whether the program or a debugger wants the signal.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "countersink/explain.h"
#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "preload/agent/sampler/engine_impl.h"
#include "preload/agent/sampler/lsan.h"
#include "preload/agent/sampler/plan.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/switches.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/seccomp_probe.h"

/* CPU timers fire on the tick, of 1 to 10 ms; with HZ = 250, as most distributions build it, every 4 ms. */
#define TICK_NS 4000000ULL

/* Valgrind puts libraries of its own there, for the programs that it runs. */
static bool is_in_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "/vgpreload_core");
}

/*
 * Go's runtime executes programs by a system call of its own, which no library sees. It has its mark among the notes of
 * the program.
 */
bool csink_engine_is_go(void)
{
	const ElfW(Phdr) *phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR), *end = phdr + getauxval(AT_PHNUM);
	uintptr_t bias = 0;

	for (const ElfW(Phdr) *at = phdr; at < end; at++)
		if (at->p_type == PT_PHDR)
			bias = (uintptr_t)phdr - at->p_vaddr;
	for (; phdr < end; phdr++) {
		const char *note = (const char *)(bias + phdr->p_vaddr), *last = note + phdr->p_memsz;

		while (phdr->p_type == PT_NOTE && note + sizeof(ElfW(Nhdr)) + 4 <= last) {
			const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
			size_t align = phdr->p_align > 4 ? phdr->p_align - 1 : 3;

			note += sizeof(*head);
			if (head->n_namesz == 4 && !memcmp(note, "Go\0", 4))
				return true;
			note += ((head->n_namesz + 3) & ~3UL) + ((head->n_descsz + align) & ~align);
		}
	}
	return false;
}

static void leave_kernel_out(struct csink_thread *thread)
{
	for (uint32_t i = 0; i < CSINK_MIN(csink_plan.nr_opened, csink_plan.off_cpu_event); i++) {
		if (csink_plan.events[i].rec.flags & CSINK_EVENT_REFUSED)
			continue;
		/* It would count 0, whatever goes on. */
		if (csink_event_is_kernels_own(&csink_plan.events[i])) {
			csink_engine_refuse_event(thread, i, csink_engine_kernels_own);
			continue;
		}
		csink_event_set_user_only(&csink_plan.events[i]);
		csink_own_recording.header->events[i].flags |= CSINK_EVENT_USER_ONLY;
	}
}

/* Is it this event that cannot be had, rather than the way in which it is opened? */
static bool is_events_own(uint32_t failed, int err)
{
	bool first = failed == csink_engine_leader(0);

	if (err == -EMFILE || err == -ENFILE || err == -EPERM || err == -ENOMEM || err == -ENOBUFS)
		return false;
	/* The first one of all: another engine may do better, unless there is no such event. */
	return !first || err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -ENOSPC;
}

/*
 * Open the groups, giving up what the kernel refuses: its own side first (paranoid 2), then single events.
 */
static int try_perf(struct csink_thread *thread, enum csink_engine engine)
{
	uint32_t failed = 0;
	int err = csink_engine_state.signo < 0 ? csink_engine_state.signo
					       : csink_engine_state.install_signal(csink_engine_state.signo);
	char words[120];

	while (!err) {
		err = csink_engine_open_groups(thread, engine, &failed);
		if (!err) {
			thread->engine = engine;
			return 0;
		}
		memset(thread->groups, 0, sizeof(thread->groups));
		if (err == -EACCES && !(csink_plan.events[failed].rec.flags & CSINK_EVENT_USER_ONLY))
			leave_kernel_out(thread);
		else if (failed != csink_plan.cpu_event && is_events_own(failed, err))
			csink_engine_refuse_event(thread, failed, csink_explain_brief(-err, words, sizeof(words)));
		else
			return err;
		err = 0;
	}
	return err;
}

/* Note in the recording which engine samples, now that it is known. */
static void name_leaders(void)
{
	struct csink_rec_header *header = csink_own_recording.header;

	for (uint32_t g = 0; g < csink_plan.nr_groups; g++) {
		uint32_t at = csink_engine_leader(g);
		struct csink_event_spec *leader;

		if (at == CSINK_MAX_EVENTS)
			continue;
		leader = &csink_plan.events[at];
		leader->rec.flags |= CSINK_EVENT_LEADER;
		leader->rec.period = leader->attr.freq ? 0 : leader->attr.sample_period;
		header->events[at].flags |= CSINK_EVENT_LEADER;
		header->events[at].period = leader->rec.period;
	}
}

static int try_engine(struct csink_thread *thread, enum csink_engine engine)
{
	switch (engine) {
	case CSINK_ENGINE_SIGTRAP:
		csink_engine_state.signo = SIGTRAP;
		return try_perf(thread, engine);
	case CSINK_ENGINE_SIGNAL:
		csink_engine_state.signo = csink_engine_free_signal();
		/* Where the user's queue of signals is full, the kernel sends this one instead. */
		csink_engine_state.install_signal(SIGIO);
		return try_perf(thread, engine);
	case CSINK_ENGINE_TIMER:
		/* CPU time is all it can weigh. */
		for (uint32_t i = 0; i < csink_plan.nr_opened; i++)
			if (i != csink_plan.cpu_event && i != csink_plan.off_cpu_event &&
			    !(csink_plan.events[i].rec.flags & CSINK_EVENT_REFUSED))
				csink_engine_refuse_event(thread, i, "the timer engine counts CPU time only");
		if (csink_engine_state.period_ns < TICK_NS)
			csink_recording_note(&csink_own_recording, &thread->writer, 0,
					     "the timer engine samples on the kernel's tick only, some milliseconds "
					     "apart; each sample weighs what passed");
		return csink_engine_open_timer(thread);
	default:
		return 0;
	}
}

static const char *explain(int engine, int err, char *words, size_t size)
{
	if (engine == CSINK_ENGINE_TIMER && err == -EAGAIN)
		return "timer_create fails with EAGAIN: no room in the queue of signals (RLIMIT_SIGPENDING)";
	if (csink_deadly_calls & (engine == CSINK_ENGINE_TIMER ? CSINK_DEADLY_TIMER : CSINK_DEADLY_PERF) &&
	    err == -EPERM)
		return engine == CSINK_ENGINE_TIMER ? "a seccomp filter kills processes that call timer_create"
						    : "a seccomp filter kills processes that call perf_event_open";
	/* Its sig_data lies behind the attr of an older kernel. */
	if (engine == CSINK_ENGINE_SIGTRAP && err == -E2BIG)
		return CSINK_SINCE_5_13;
	return csink_explain_brief(-err, words, size);
}

/* Go's runtime without C takes all signals, and creates threads, by system calls of its own. */
static bool needs_library(void)
{
	const ElfW(Dyn) *at = _r_debug.r_map->l_ld;

	while (at && at->d_tag != DT_NULL && at->d_tag != DT_NEEDED)
		at++;
	return !at || at->d_tag;
}

/* The engines to try, from the first to the last one, unless something forbids them; *why is then set to the reason. */
static void choose_range(int *first, int *last, char *why, size_t size)
{
	int wanted = csink_engine_state.wanted;

	csink_engine_state.stay_on_stack = is_in_valgrind();
	if (!csink_has_lsan())
		csink_engine_state.alternate_stack = SA_ONSTACK;
	*first = *last = wanted;
	if (csink_engine_state.stay_on_stack && wanted != CSINK_ENGINE_TIMER && wanted != CSINK_ENGINE_NONE) {
		/* A signal of the kernel's reaches valgrind itself, which dies of it. */
		*first = *last = CSINK_ENGINE_NONE;
		snprintf(why, size,
			 "valgrind runs the program on a CPU of its own: its tool callgrind samples there, or "
			 "--engine=timer");
	} else if ((wanted == CSINK_NR_ENGINES || wanted == CSINK_ENGINE_SIGTRAP) && csink_engine_is_go() &&
		   !needs_library()) {
		*first = *last = CSINK_ENGINE_NONE;
		snprintf(why, size, "the program uses no C library");
	} else if ((wanted == CSINK_NR_ENGINES || wanted == CSINK_ENGINE_SIGTRAP) && csink_engine_is_go()) {
		*first = CSINK_ENGINE_SIGNAL;
		*last = CSINK_ENGINE_TIMER;
		snprintf(why, size, "sigtrap: would kill programs that Go executes without this library");
	} else if (wanted == CSINK_NR_ENGINES) {
		*first = CSINK_ENGINE_SIGTRAP;
		*last = CSINK_ENGINE_TIMER;
		if (csink_process.is_traced) { /* a debugger keeps it for itself */
			*first = CSINK_ENGINE_SIGNAL;
			snprintf(why, size, "sigtrap: a debugger owns SIGTRAP");
		}
	} else {
		snprintf(why, size, "as asked");
	}
}

/* "sigtrap: WHY; signal: WHY", and "sigtrap, signal: WHY" where it is the same for both. */
static void add_reason(char *why, size_t size, int engine, int err)
{
	const char *name = csink_engine_name((enum csink_engine)engine);
	char words[120];
	const char *reason = explain(engine, err, words, sizeof(words));
	size_t used = strnlen(why, size), length = strlen(reason) + 2;
	bool same = used > length && !strncmp(why + used - length, ": ", 2) && !strcmp(why + used - length + 2, reason);

	if (same)
		used -= length;
	if (used < size)
		snprintf(why + used, size - used, "%s%s: %s", same ? ", " : used ? "; " : "", name, reason);
}

int csink_engine_choose(struct csink_thread *thread)
{
	struct csink_rec_header *header = csink_own_recording.header;
	char *why = header->engine_reason;
	int first, last, err = -ENOSYS;

	choose_range(&first, &last, why, sizeof(header->engine_reason));
	for (int engine = first; engine <= last; engine++) {
		err = try_engine(thread, (enum csink_engine)engine);
		if (!err) {
			csink_engine_state.engine = (enum csink_engine)engine;
			name_leaders();
			csink_engine_open_switches(thread);
			break;
		}
		add_reason(why, sizeof(header->engine_reason), engine, err);
	}
	header->engine = csink_engine_state.engine;
	return err;
}
