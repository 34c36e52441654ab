/*
 * The libc functions that the agent interposes and passes on: one list for the functions that find the next definition
 * (lifecycle/real.h) and for the names that the agent must not call itself (poison.h).
 */
#ifndef CSINK_INTERPOSED_H
#define CSINK_INTERPOSED_H

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <threads.h>
#include <unistd.h>

/* In glibc, but in no header under these names. */
int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask, size_t bytes);
int __xpg_sigpause(int signo);
int pthread_attr_getsigmask_np(const pthread_attr_t *attr, sigset_t *mask); /* since glibc 2.32 */
void __longjmp_chk(struct __jmp_buf_tag env[1], int value) __attribute__((noreturn));

/* clang-format off */
#define CSINK_REALS(X) \
	X(execve) X(execveat) X(execvpe) X(fexecve) X(posix_spawn) X(posix_spawnp) X(clone) X(_Fork) X(daemon) X(system) \
	X(popen) X(close) X(fclose) X(closefrom) X(close_range) X(dup2) X(dup3) X(_exit) X(_Exit) X(quick_exit) \
	X(pthread_create) X(pthread_exit) X(thrd_create) X(sigaction) X(signal) X(sysv_signal) X(sigset) X(sighold) \
	X(sigrelse) X(sigignore) X(siginterrupt) X(sigaltstack) X(pthread_sigmask) X(sigprocmask) X(sigpending) \
	X(sigblock) X(sigsetmask) X(sigsuspend) X(pselect) X(ppoll) X(__ppoll_chk) X(epoll_pwait) X(epoll_pwait2) \
	X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(signalfd) X(setuid) X(seteuid) X(setreuid) X(setresuid) \
	X(setrlimit) X(setrlimit64) X(prlimit) X(prlimit64) X(mlockall) X(mmap) X(mmap64) X(munmap) X(mremap) \
	X(mprotect) X(pkey_mprotect) X(madvise) X(dlopen) X(dlmopen) X(prctl) X(ptrace) X(longjmp) X(_longjmp) \
	X(siglongjmp) X(__longjmp_chk)

/* Not interposed, but looked up by their names, too: younger than the oldest glibc (old_glibc.h). */
#define CSINK_YOUNG(X) X(pthread_attr_getsigmask_np)
/* clang-format on */

#endif
