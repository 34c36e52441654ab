/*
 * SIGBUS. A process of the same user may truncate a recording's file, as those do that clean up in /dev/shm: the next
 * access to the mapping raises SIGBUS, which would end the program. While the action of SIGBUS is the default one it is
 * caught here, the mapping is replaced by private memory, and the program goes on.
 *
 * Any other SIGBUS does what it does without us: the default action is restored, and the faulting instruction is run
 * again, or the signal is sent again with what it had; core dump and exit status are those of the program's own fault.
 *
 * A program that sets an action of its own for SIGBUS gets that from the kernel, and ours is gone; its recording is
 * then not protected any more, nor is it in threads that block SIGBUS. What the program reads back is the default
 * action that it knows of.
 */
#include "preload/agent/lifecycle/bus_guard.h"

#include "include/internal/alignment_check.h"
#include "include/internal/rawcall.h"
#include "preload/agent/lifecycle/hidden_signals.h"
#include "preload/agent/lifecycle/real.h"
#include "preload/core/record/recording.h"

static volatile bool is_on;
static struct sigaction default_action; /* as the program has set it: SIG_DFL, with flags and a mask of no effect */

static void on_bus(int signo, siginfo_t *info, void *context)
{
	struct csink_kernel_action plain = {0};

	(void)context;
	csink_alignment_check_off();
	if (info->si_code == BUS_ADRERR && csink_recording_replace((uintptr_t)info->si_addr))
		return;
	csink_rawcall(SYS_rt_sigaction, signo, &plain, NULL, CSINK_SET_BYTES);
	/* A fault happens again. What was sent, or is the kernel's word of another page, has to be sent again: it is
	 * pending until this returns. */
	if (info->si_code <= 0 || info->si_code == BUS_MCEERR_AO)
		csink_rawcall(SYS_rt_tgsigqueueinfo, csink_rawcall(SYS_getpid), csink_rawcall(SYS_gettid), signo, info);
}

bool csink_bus_guard_is_on(void)
{
	return is_on;
}

static bool is_ours(const struct sigaction *act)
{
	return act->sa_flags & SA_SIGINFO && act->sa_sigaction == on_bus;
}

void csink_bus_guard_enter(void)
{
	/*
	 * Not on an alternate stack: our handler of samples has a stack of its own, from which the kernel would go to
	 * the beginning of the alternate one, where the interrupted function may be.
	 */
	struct sigaction act = {.sa_flags = SA_SIGINFO | SA_RESTART, .sa_mask = {{~0UL}}}; /* all that the kernel has */
	void *handler[4] = {NULL}; /* the kernel's struct sigaction */

	/* Asked of the kernel: sanitizers answer for themselves. */
	if (csink_rawcall(SYS_rt_sigaction, SIGBUS, NULL, handler, CSINK_SET_BYTES) || handler[0])
		return;
	act.sa_sigaction = on_bus;
	is_on = REAL(sigaction)(SIGBUS, &act, NULL) == 0;
	csink_signals_renew();
}

/* No handler of the program may run inside our handlers: they block SIGBUS again. */
static void leave(void)
{
	is_on = false;
	csink_signals_renew();
}

void csink_bus_guard_end(void)
{
	if (!is_on)
		return;
	REAL(sigaction)(SIGBUS, &default_action, NULL);
	leave();
}

int csink_bus_guard_sigaction(const struct sigaction *act, struct sigaction *old)
{
	/* A vfork child's actions are its own; it shares is_on with us. */
	bool changes = act && !csink_in_vfork_child();
	int result;

	if (changes && is_on && act->sa_handler != SIG_DFL)
		leave();
	result = csink_signal_set_other(SIGBUS, act, old);
	if (result == 0 && old && is_ours(old))
		*old = default_action;
	if (changes && result == 0 && act->sa_handler == SIG_DFL) {
		default_action = *act;
		csink_bus_guard_enter();
	}
	return result;
}
