/* A process that gets what is sent to the launcher's group: see witness.h. */
#include "launcher/run/witness.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/rawcall.h"

/* Asks for an answer: the last of all signals, since the kernel gives the lower ones first. */
#define ASK SIGRTMAX

enum {
	NR_NOTES = 64, /* of the newest ones */
	STACK_BYTES = 16 * 1024,
	DEADLINE_MS = 900, /* by then it is as good as stopped */
};

struct csink_witness_notes {
	_Atomic uint32_t answered; /* the value of the last ASK */
	uint32_t asked;            /* written by the launcher alone */
	uint32_t nr;               /* ever noted; the witness writes it, and what follows, before it answers */
	struct {
		uint32_t signo;
		uint32_t pid; /* of the sender */
	} notes[NR_NOTES];
	pid_t launcher;
	_Alignas(16) char stack[STACK_BYTES];
};

/* One that was killed: it is waited for when the next one ends, so that nothing has to wait until it gets a CPU. */
static struct csink_witness last;

static void note(struct csink_witness_notes *notes, const siginfo_t *info)
{
	uint32_t at = notes->nr++ % NR_NOTES;

	notes->notes[at].signo = (uint32_t)info->si_signo;
	notes->notes[at].pid = (uint32_t)info->si_pid;
}

/* In the witness. It has the launcher's TLS as well as its memory, and so calls nothing of libc's. */
static int watch(void *arg)
{
	struct csink_witness_notes *notes = arg;
	uint64_t all = ~0ULL;
	siginfo_t info;

	csink_rawcall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	csink_rawcall(SYS_close_range, 0, UINT32_MAX, 0);
	while (csink_rawcall(SYS_getppid) == notes->launcher) {
		if (csink_rawcall(SYS_rt_sigtimedwait, &all, &info, NULL, sizeof(all)) < 0)
			continue;
		if (info.si_signo != ASK || info.si_code != SI_QUEUE || info.si_pid != notes->launcher) {
			note(notes, &info);
			continue;
		}
		/* Release pairs with the acquire in ask(): the notes come first. */
		atomic_store_explicit(&notes->answered, (uint32_t)info.si_value.sival_int, memory_order_release);
		csink_rawcall(SYS_futex, &notes->answered, FUTEX_WAKE, 1);
	}
	csink_rawcall(SYS_exit_group, 0);
	return 0;
}

void csink_witness_begin(struct csink_witness *witness)
{
	struct csink_witness_notes *notes =
		mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigset_t all, saved;

	memset(witness, 0, sizeof(*witness));
	if (notes == MAP_FAILED)
		return;
	witness->notes = notes;
	notes->launcher = getpid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &saved);
	/* No signal at its end: the launcher waits for the command's. */
	witness->pid = clone(watch, notes->stack + STACK_BYTES, CLONE_VM, notes);
	sigprocmask(SIG_SETMASK, &saved, NULL);
	if (witness->pid < 0)
		witness->pid = 0;
}

/* Wait until it has noted all that it got so far. */
static bool ask(struct csink_witness *witness)
{
	static const struct timespec deadline = {0, DEADLINE_MS * 1000000L};
	struct csink_witness_notes *notes = witness->notes;
	uint32_t wanted = ++notes->asked, now;

	if (sigqueue(witness->pid, ASK, (union sigval){.sival_int = (int)wanted}))
		return false;
	/* Acquire pairs with the release in watch(). */
	while ((now = atomic_load_explicit(&notes->answered, memory_order_acquire)) != wanted)
		if (csink_rawcall(SYS_futex, &notes->answered, FUTEX_WAIT, now, &deadline) < 0 && errno == ETIMEDOUT)
			return false;
	return true;
}

bool csink_witness_saw(struct csink_witness *witness, const struct signalfd_siginfo *info)
{
	struct csink_witness_notes *notes = witness->notes;
	bool found = false;

	if (!witness->pid || !ask(witness))
		return false;
	for (uint32_t i = 0; i < NR_NOTES; i++) {
		if (notes->notes[i].signo != info->ssi_signo || notes->notes[i].pid != info->ssi_pid)
			continue;
		notes->notes[i].signo = 0;
		found = true;
		/* A standard signal that came twice may have reached the launcher as one. */
		if ((int)info->ssi_signo >= SIGRTMIN)
			break;
	}
	return found;
}

static void forget_last(void)
{
	if (last.pid)
		while (waitpid(last.pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	if (last.notes)
		munmap(last.notes, sizeof(*last.notes));
	memset(&last, 0, sizeof(last));
}

void csink_witness_end(struct csink_witness *witness)
{
	if (!witness->notes)
		return;
	forget_last();
	if (witness->pid)
		kill(witness->pid, SIGKILL);
	last = *witness;
	memset(witness, 0, sizeof(*witness));
}
