/* A process that receives the signals sent to the launcher's process group: see witness.h. */
#include "launcher/session/witness.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/internal/rawcall.h"

/* Asks for an answer: the last of all signals, since the kernel gives the lower ones first. */
#define ASK SIGRTMAX

enum {
	NR_NOTES = 64,     /* of the newest ones */
	DEADLINE_MS = 900, /* after so long the witness is taken to be stopped */
};

/* Shared by the two processes. */
struct notes {
	_Atomic uint32_t answered; /* the value of the last ASK */
	uint32_t asked;            /* written by the launcher alone */
	uint32_t nr;               /* ever noted; the witness writes it, and what follows, before it answers */
	struct {
		uint32_t signo;
		uint32_t pid; /* of the sender */
	} notes[NR_NOTES];
};

static pid_t witness; /* 0: there is none */
static pid_t launcher;
static struct notes *notes;

static void note(const siginfo_t *info)
{
	uint32_t at = notes->nr++ % NR_NOTES;

	notes->notes[at].signo = (uint32_t)info->si_signo;
	notes->notes[at].pid = (uint32_t)info->si_pid;
}

/* In the witness. Every signal is blocked. */
static void watch(void)
{
	uint64_t all = ~0ULL;
	siginfo_t info;

	csink_rawcall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	csink_rawcall(__NR_close_range, 0, UINT32_MAX, 0);
	while (csink_rawcall(SYS_getppid) == launcher) {
		if (csink_rawcall(SYS_rt_sigtimedwait, &all, &info, NULL, sizeof(all)) < 0)
			continue;
		if (info.si_signo != ASK || info.si_code != SI_QUEUE || info.si_pid != launcher) {
			note(&info);
			continue;
		}
		/* Release pairs with the acquire in ask(): the notes come first. */
		atomic_store_explicit(&notes->answered, (uint32_t)info.si_value.sival_int, memory_order_release);
		csink_rawcall(SYS_futex, &notes->answered, FUTEX_WAKE, 1);
	}
	csink_rawcall(SYS_exit_group, 0);
}

void csink_witness_end(void)
{
	/* At exit, a forked child of the launcher's comes here, too. */
	if (!witness || getpid() != launcher)
		return;
	kill(witness, SIGKILL);
	/* Wait for it: a subreaper of the launcher must not inherit a child that it does not know. */
	while (waitpid(witness, NULL, __WALL) < 0 && errno == EINTR)
		;
	witness = 0;
}

void csink_witness_begin(void)
{
	sigset_t all, saved;
	long pid;

	if (witness)
		return;
	notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (notes == MAP_FAILED)
		return;
	launcher = getpid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &saved);
	/* fork(2), but without a signal at its end, which the launcher would take for the command's. */
	pid = csink_rawcall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0)
		watch();
	sigprocmask(SIG_SETMASK, &saved, NULL);
	if (pid < 0)
		return;
	witness = (pid_t)pid;
	if (atexit(csink_witness_end))
		csink_witness_end();
}

/* Wait until it has noted all that it got so far. */
static bool ask(void)
{
	static const struct timespec deadline = {0, DEADLINE_MS * 1000000L};
	uint32_t wanted = ++notes->asked, now;

	if (sigqueue(witness, ASK, (union sigval){.sival_int = (int)wanted}))
		return false;
	/* Acquire pairs with the release in watch(). */
	while ((now = atomic_load_explicit(&notes->answered, memory_order_acquire)) != wanted)
		if (csink_rawcall(SYS_futex, &notes->answered, FUTEX_WAIT, now, &deadline) == -ETIMEDOUT)
			return false;
	return true;
}

bool csink_witness_saw(const struct signalfd_siginfo *info)
{
	bool found = false;

	if (!witness || !ask())
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
