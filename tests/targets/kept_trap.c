/*
 * kept_trap: blocks SIGTRAP, sends it to its thread and to its process, and lets both through; 400 times. Prints how
 * often not both were caught.
 */
#include "guest.h"

static volatile int nr_caught;

static void on_trap(int signo)
{
	(void)signo;
	nr_caught++;
}

int main(void)
{
	sigset_t trap, before;
	int nr_wrong = 0;

	signal(SIGTRAP, on_trap);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	for (int i = 0; i < 400; i++) {
		nr_caught = 0;
		sigprocmask(SIG_BLOCK, &trap, &before);
		raise(SIGTRAP);
		kill(getpid(), SIGTRAP);
		guest_burn(1);
		sigprocmask(SIG_SETMASK, &before, NULL);
		nr_wrong += nr_caught != 2;
	}
	printf("%d of 400 wrong\n", nr_wrong);
	return 0;
}
