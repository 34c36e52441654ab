/*
 * The functions behind those that we interpose: the next definition of each after ours, which may be another preloaded
 * library's. Each is looked up by the first call that needs it, without the loader (libc.h): dlsym(3) takes the
 * loader's lock, and a forked child or a signal handler that calls execve() or sigaction() must not wait for it. Where
 * that cannot be done (glibc < 2.35), the constructor looks all of them up; only a call that comes before it (from the
 * constructor of a library that is initialised first) then looks for its own function.
 */
#ifndef CSINK_REAL_H
#define CSINK_REAL_H

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
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <threads.h>
#include <unistd.h>

/* In glibc, but in no header under these names. */
int __ppoll_chk(struct pollfd *fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask, size_t bytes);
int __xpg_sigpause(int signo);
void __longjmp_chk(struct __jmp_buf_tag env[1], int value) __attribute__((noreturn));

/* clang-format off */
#define CSINK_REALS(X) \
	X(execve) X(execveat) X(execvpe) X(fexecve) X(posix_spawn) X(posix_spawnp) X(clone) X(_Fork) X(daemon) X(system) \
	X(popen) X(close) X(fclose) X(closefrom) X(close_range) X(dup2) X(dup3) X(_exit) X(_Exit) X(quick_exit) \
	X(pthread_create) X(pthread_exit) X(thrd_create) X(sigaction) X(signal) X(sysv_signal) X(sigset) X(sighold) \
	X(sigrelse) X(sigignore) X(siginterrupt) X(sigaltstack) X(pthread_sigmask) X(sigprocmask) X(sigpending) \
	X(sigblock) X(sigsetmask) X(sigsuspend) X(pselect) X(ppoll) X(__ppoll_chk) X(epoll_pwait) X(epoll_pwait2) \
	X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(signalfd) X(setuid) X(seteuid) X(setreuid) X(setresuid) \
	X(setrlimit) X(setrlimit64) X(prlimit) X(prlimit64) X(mlockall) X(dlopen) X(dlmopen) X(prctl) X(longjmp) X(_longjmp) \
	X(siglongjmp) X(__longjmp_chk)
/* clang-format on */

/* As enum csink_real: CSINK_REAL_execve and so on. */
enum csink_real {
#define X(name) CSINK_REAL_##name,
	CSINK_REALS(X)
#undef X
		CSINK_NR_REALS
};

/** The function of that number; NULL if this libc has none. Context: any, once csink_reals_init() has run. */
void *csink_real(enum csink_real which);

/**
 * A function that is called clone and is not libc's, which the program's objects would call but for ours; NULL: there
 * is none. CSINK_REAL_clone is libc's even then. Context: any.
 */
void *csink_real_other_clone(void);

/** Its name. Context: any. */
const char *csink_real_name(enum csink_real which);

/** Look up what cannot be looked up later. Context: init, after csink_libc_init(). */
void csink_reals_init(void);

/* REAL(write) is the next definition of write after ours, with its type. */
#define REAL(name) ((__typeof__(&name))csink_real(CSINK_REAL_##name))

#endif
