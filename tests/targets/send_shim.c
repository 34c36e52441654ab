/*
 * Preloaded into countersink-send. SEND_SHIM=names, no look-up of a name ends; SEND_SHIM=options, a libcurl that cannot
 * sign requests; SEND_SHIM=memory, one that has no memory for any request but the first;
 * SEND_SHIM=clock, see below. SEND_SHIM_KILL, too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { OUT_OF_MEMORY = 27, UNKNOWN_OPTION = 48, AWS_SIGV4 = 10305 }; /* of curl/curl.h */

int curl_easy_setopt(void *curl, int option, ...);
int curl_easy_perform(void *curl);

static int is_wanted(const char *what)
{
	const char *value = getenv("SEND_SHIM");

	return value && !strcmp(value, what);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(real))dlsym(RTLD_NEXT, "getaddrinfo");

	while (is_wanted("names"))
		pause();
	return real(name, service, hints, list);
}

/* Each value is one word: a pointer, a long, or a number of 64 bits. */
int curl_easy_setopt(void *curl, int option, ...)
{
	int (*real)(void *, int, ...) = (__typeof__(real))dlsym(RTLD_NEXT, "curl_easy_setopt");
	va_list list;
	void *value;

	va_start(list, option);
	value = va_arg(list, void *);
	va_end(list);
	return option == AWS_SIGV4 && is_wanted("options") ? UNKNOWN_OPTION : real(curl, option, value);
}

int curl_easy_perform(void *curl)
{
	static int nr;
	int (*real)(void *) = (__typeof__(real))dlsym(RTLD_NEXT, "curl_easy_perform");

	return nr++ && is_wanted("memory") ? OUT_OF_MEMORY : real(curl);
}

/* ---- SEND_SHIM=clock: sleeping takes no time, and the clocks show that it has ---- */

static long long offset_ns;

int nanosleep(const struct timespec *time, struct timespec *left)
{
	int (*real)(const struct timespec *, struct timespec *) = (__typeof__(real))dlsym(RTLD_NEXT, "nanosleep");
	const char *log = getenv("SEND_SHIM_LOG");
	FILE *out;

	out = log && is_wanted("clock") ? fopen(log, "ae") : NULL;
	if (out) {
		fprintf(out, "%lld.%09ld\n", (long long)time->tv_sec, time->tv_nsec);
		fclose(out);
	}
	/* Shorter ones are for locks, which other processes have. */
	if (!is_wanted("clock") || (!time->tv_sec && time->tv_nsec < 50000000))
		return real(time, left);
	offset_ns += time->tv_sec * 1000000000LL + time->tv_nsec;
	return 0;
}

/* SEND_SHIM_AHEAD: seconds that have passed since the process before. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	int (*real)(clockid_t, struct timespec *) = (__typeof__(real))dlsym(RTLD_NEXT, "clock_gettime");
	const char *ahead = getenv("SEND_SHIM_AHEAD");
	long long ns;
	int err = real(clock, time);

	if (err || !is_wanted("clock"))
		return err;
	ns = time->tv_nsec + offset_ns + (ahead ? atoll(ahead) * 1000000000 : 0);
	time->tv_sec += ns / 1000000000;
	time->tv_nsec = ns % 1000000000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

/* ---- SEND_SHIM_KILL=N: killed before the N-th call that changes a file, sends or receives ---- */

static void count_call(void)
{
	static int nr;
	const char *last = getenv("SEND_SHIM_KILL");

	if (last && ++nr == atoi(last))
		raise(SIGKILL);
}

#define COUNTED(type, name, parameters, ...)                                                                           \
	type name parameters                                                                                           \
	{                                                                                                              \
		type(*real) parameters = (__typeof__(real))dlsym(RTLD_NEXT, #name);                                    \
                                                                                                                       \
		count_call();                                                                                          \
		return real(__VA_ARGS__);                                                                              \
	}

/* SEND_SHIM=full: there is no room for what is written to files. */
ssize_t write(int fd, const void *bytes, size_t nr)
{
	ssize_t (*real)(int, const void *, size_t) = (__typeof__(real))dlsym(RTLD_NEXT, "write");

	count_call();
	if (fd <= 2 || !is_wanted("full"))
		return real(fd, bytes, nr);
	errno = ENOSPC;
	return -1;
}

COUNTED(ssize_t, pwrite, (int fd, const void *bytes, size_t nr, off_t at), fd, bytes, nr, at)
/*
 * SEND_SHIM_SYNC=FILE: it gets a line for each file that is written to the disk, and for each that is renamed.
 * SEND_SHIM=nosync: the disk fails.
 */
static void log_sync(const char *what, int fd, const char *name)
{
	const char *log = getenv("SEND_SHIM_SYNC");
	FILE *out = log ? fopen(log, "ae") : NULL;
	char link[64], path[4096] = "";
	const char *base;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (out && !name && readlink(link, path, sizeof(path) - 1) > 0)
		base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	else
		base = name ? name : "";
	if (!out)
		return;
	/* Names begin with the time. */
	fprintf(out, "%s %s\n", what, base + strspn(base, "0123456789abcdef."));
	fclose(out);
}

static int sync_by(const char *call, int fd)
{
	int (*real)(int) = (__typeof__(real))dlsym(RTLD_NEXT, call);

	count_call();
	log_sync("sync", fd, NULL);
	if (!is_wanted("nosync"))
		return real(fd);
	errno = EIO;
	return -1;
}

int fsync(int fd)
{
	return sync_by("fsync", fd);
}

int fdatasync(int fd)
{
	return sync_by("fdatasync", fd);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	int (*real)(int, const char *, int, const char *) = (__typeof__(real))dlsym(RTLD_NEXT, "renameat");

	count_call();
	log_sync("rename", -1, to);
	return real(from_fd, from, to_fd, to);
}

COUNTED(int, unlinkat, (int fd, const char *name, int flags), fd, name, flags)
COUNTED(ssize_t, send, (int fd, const void *bytes, size_t nr, int flags), fd, bytes, nr, flags)
COUNTED(ssize_t, recv, (int fd, void *bytes, size_t nr, int flags), fd, bytes, nr, flags)

int openat(int fd, const char *name, int flags, ...)
{
	int (*real)(int, const char *, int, ...) = (__typeof__(real))dlsym(RTLD_NEXT, "openat");
	va_list list;
	mode_t mode = 0;

	if (flags & O_CREAT) {
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
		count_call();
	}
	return real(fd, name, flags, mode);
}
