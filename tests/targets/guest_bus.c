/*
 * guest_bus WAY: what a program does with SIGBUS, and prints of it: the same whether or not a recording of its is
 * truncated meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static volatile uint64_t sum;
static char *hole; /* a page that is not in its file any more */
static sigjmp_buf back;

static void work(void)
{
	sum = spin(sum, 100 * ROUNDS_MS);
}

static void make_hole(void)
{
	FILE *file = tmpfile();

	if (!file || ftruncate(fileno(file), 4096))
		exit(1);
	hole = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	hole[0] = 1;
	if (ftruncate(fileno(file), 0))
		exit(1);
}

static const char *kind_of(void (*handler)(int))
{
	return handler == SIG_DFL ? "default" : handler == SIG_IGN ? "ignored" : "a handler";
}

static void on_bus(int signo, siginfo_t *info, void *context)
{

	(void)context;
	printf("signal %d, code %d, %s\n", signo, info->si_code, info->si_addr == hole ? "the hole" : "elsewhere");
	siglongjmp(back, 1);
}

static void on_old(int signo)
{
	printf("signal %d\n", signo);
}

static void print_action(const char *when)
{
	struct sigaction now;
	sigset_t none;

	memset(&now, 0xff, sizeof(now));
	sigemptyset(&none);
	sigaction(SIGBUS, NULL, &now);
	printf("%s: %s, flags %x, %s\n", when, kind_of(now.sa_handler),
	       (unsigned int)now.sa_flags & ~0x04000000u /* SA_RESTORER */,
	       memcmp(&now.sa_mask, &none, 8) ? "a mask" : "no mask");
}

static void actions(void)
{
	struct sigaction act = {.sa_flags = SA_SIGINFO | SA_NODEFER}, old;

	print_action("at first");
	act.sa_sigaction = on_bus;
	sigaddset(&act.sa_mask, SIGUSR1);
	sigaction(SIGBUS, &act, &old);
	printf("before the first: %s, flags %x\n", kind_of(old.sa_handler), (unsigned int)old.sa_flags);
	print_action("with a handler");
	printf("signal: %s\n", kind_of(signal(SIGBUS, SIG_IGN)));
	print_action("ignored");
	raise(SIGBUS);
	printf("signal: %s\n", kind_of(signal(SIGBUS, SIG_DFL)));
	printf("signal: %s\n", kind_of(signal(SIGBUS, on_old)));
	raise(SIGBUS);
	act = (struct sigaction){.sa_flags = SA_RESTART};
	act.sa_handler = SIG_DFL;
	sigaction(SIGBUS, &act, NULL);
	print_action("default again");
	printf("sigset: %s\n", kind_of(sigset(SIGBUS, on_old)));
	printf("sigset: %s\n", kind_of(sigset(SIGBUS, SIG_DFL)));
	printf("signal: %s\n", kind_of(signal(SIGBUS, SIG_DFL)));
	sigignore(SIGBUS);
	print_action("at last");
}

static void faults(void)
{
	struct sigaction act = {.sa_flags = SA_SIGINFO};

	act.sa_sigaction = on_bus;
	sigaction(SIGBUS, &act, NULL);
	for (int i = 0; i < 3; i++)
		if (!sigsetjmp(back, 1))
			hole[0]++;
}

static void pending(void)
{
	sigset_t set, now;
	int got = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGBUS);
	work();
	sigpending(&now);
	sigwait(&set, &got);
	printf("pending: %d, taken: %d\n", sigismember(&now, SIGBUS), got);
	sigprocmask(SIG_SETMASK, NULL, &now);
	printf("blocked: %d\n", sigismember(&now, SIGBUS));
}

/* A fault of a thread that blocks the signal ends the process all the same. */
static void blocked_fault(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	hole[0]++;
}

static void fault(void)
{
	hole[0]++;
}

static void send(void)
{
	kill(getpid(), SIGBUS);
	pause();
}

static void *raise_it(void *arg)
{
	raise(SIGBUS);
	return arg;
}

static void send_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, raise_it, NULL);
	pthread_join(thread, NULL);
}

static void queue(void)
{
	sigqueue(getpid(), SIGBUS, (union sigval){.sival_int = 7});
	pause();
}

#if defined(__x86_64__)
/* 300,000,000 steps in registers, with the processor's check of alignment; then, if asked for, a load that it refuses.
 */
static void check_alignment(bool loads)
{
	uint64_t steps = 300000000;
	uint64_t words[2] = {0};
	const char *at = (const char *)words + 1;

	/* Not in the red zone below the stack pointer. */
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n"
			 "pushfq\n"
			 "orl $0x40000, (%%rsp)\n"
			 "popfq\n"
			 "1: decq %0\n"
			 "jnz 1b\n"
			 "testb %b2, %b2\n"
			 "jz 2f\n"
			 "movq (%1), %0\n"
			 "2: pushfq\n"
			 "andl $~0x40000, (%%rsp)\n"
			 "popfq\n"
			 "leaq 128(%%rsp), %%rsp\n"
			 : "+r"(steps)
			 : "r"(at), "q"(loads)
			 : "cc", "memory");
}
#else
static void check_alignment(bool loads)
{
	if (loads)
		raise(SIGBUS);
}
#endif

static void check_alignment_of_none(void)
{
	check_alignment(false);
	puts("aligned");
}

static void load_unaligned(void)
{
	check_alignment(true);
}

/* How a child ends of what it does. */
static void child(const char *name, void (*what)(void))
{
	const struct rlimit none = {0, 0};
	siginfo_t info = {0};
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		work();
		what();
		fflush(stdout);
		_exit(0);
	}
	waitid(P_PID, (id_t)pid, &info, WEXITED);
	printf("%s: code %d, status %d\n", name, info.si_code, info.si_status);
}

static void exec_ignored(void)
{
	signal(SIGBUS, SIG_IGN);
	execl("/proc/self/exe", "guest_bus", "print", (char *)NULL);
}

static void exec_default(void)
{
	execl("/proc/self/exe", "guest_bus", "print", (char *)NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "print")) {
		print_action("in a new image");
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	make_hole();
	if (argc > 1 && !strcmp(argv[1], "die"))
		fault();
	work();
	child("actions", actions);
	child("faults", faults);
	child("pending", pending);
	child("a fault", fault);
	child("a fault, blocked", blocked_fault);
	child("sent", send);
	child("raised in a thread", send_in_thread);
	child("queued", queue);
	child("a check of alignment", check_alignment_of_none);
	child("an unaligned load", load_unaligned);
	child("exec, ignored", exec_ignored);
	child("exec, default", exec_default);
	work();
	return 0;
}
