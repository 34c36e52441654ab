/* Uses CPU time in a signal handler on an alternate stack, far from the thread's: for so many milliseconds. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sum;
static long ms;

__attribute__((noinline)) void inside_handler(void)
{
	struct timespec now;

	do {
		for (int i = 0; i < 10000; i++)
			sum += (unsigned long)i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
}

__attribute__((noinline)) void handle(int sig)
{
	(void)sig;
	inside_handler();
	sum++;
}

int main(int argc, char **argv)
{
	stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};

	ms = argc > 1 ? atol(argv[1]) : 100;
	return !stack.ss_sp || sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1);
}
