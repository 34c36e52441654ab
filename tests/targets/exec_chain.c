/*
 * Works a little, then replaces itself, again and again.
 *   exec_chain [LINKS] [MICROSECONDS each] [libc|number|own|shared|thread] (100, 2000, libc)
 * By libc's function, by syscall(2), or by an instruction of its own, as runtimes do that leave libc alone, also while
 * a process that shares the memory goes on until the end; or from a second thread, which has done the work, and takes
 * the first one's number over.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "include/internal/rawcall.h"
#include "work.h"

static __attribute__((noinline, noclone)) uint64_t link_work(uint64_t x, uint64_t us)
{
	return spin(x, us * ROUNDS_MS / 1000);
}

static char **thread_next;

static void *exec_in_thread(void *arg)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)link_work(1, *(uint64_t *)arg));
	thread_next[4] = text;
	execv("/proc/self/exe", thread_next);
	return NULL;
}

/* Keeps the memory until the last image, which has the other end, is over. */
static int await_end(void *ends)
{
	char byte;

	csink_rawcall(SYS_close, ((int *)ends)[1]);
	csink_rawcall(SYS_read, ((int *)ends)[0], &byte, 1);
	return 0;
}

static void share_memory(void)
{
	static char stack[64 << 10];
	static int ends[2];

	if (!pipe(ends) && clone(await_end, stack + sizeof(stack), CLONE_VM, ends) > 0)
		close(ends[0]);
}

int main(int argc, char **argv)
{
	uint64_t links = arg_num(argc, argv, 1, 100), us = arg_num(argc, argv, 2, 2000), x = arg_num(argc, argv, 4, 1);
	char *how = argc > 3 ? argv[3] : "libc";
	char links_text[24], us_text[24], x_text[24];
	char *next[] = {argv[0], links_text, us_text, how, x_text, NULL};
	pthread_t thread;

	if (links == 0 || strcmp(how, "thread"))
		x = link_work(x, us);
	if (links == 0) {
		printf("end of the chain: %llu\n", (unsigned long long)x);
		return 0;
	}
	snprintf(links_text, sizeof(links_text), "%llu", (unsigned long long)links - 1);
	snprintf(us_text, sizeof(us_text), "%llu", (unsigned long long)us);
	snprintf(x_text, sizeof(x_text), "%llu", (unsigned long long)x);
	thread_next = next;
	if (!strcmp(how, "thread")) {
		if (!pthread_create(&thread, NULL, exec_in_thread, &us))
			pthread_join(thread, NULL);
		return 1;
	}
	if (!strcmp(how, "shared"))
		share_memory();
	if (!strcmp(how, "number"))
		syscall(SYS_execve, "/proc/self/exe", next, environ);
	else if (!strcmp(how, "own") || !strcmp(how, "shared"))
		csink_rawcall(SYS_execve, "/proc/self/exe", next, environ);
	else
		execv("/proc/self/exe", next);
	return 1;
}
