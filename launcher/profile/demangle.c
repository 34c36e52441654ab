/*
 * libiberty has no limit on what a name may become: its output doubles with each part that repeats the two before it,
 * and its search for packs of arguments may visit as many parts without printing one. So it prints into a buffer of
 * limited size, and a timer ends a search that prints nothing. Both leave libiberty by siglongjmp: its C++ demangler
 * keeps everything on the stack; its Rust demangler may leak the buffer of one identifier. Its D demangler cannot
 * print piece by piece: the length of D names is estimated first.
 */
#include "launcher/profile/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NS = 200 * 1000 * 1000, MAX_LATE = 8, MAX_REFUSED = 1000 };
#define MAX_BYTES (256UL << 20) /* of all names of a file */

static struct {
	unsigned refused, late;
	size_t bytes;
} spent;

/* The name at work. */
static struct {
	sigjmp_buf out;
	volatile sig_atomic_t is_timed;
	size_t used;
	char text[CSINK_DEMANGLED_BYTES];
} work;

void csink_demangle_begin(void)
{
	memset(&spent, 0, sizeof(spent));
}

unsigned csink_demangle_refused(void)
{
	return spent.refused;
}

/* ---- time ---- */

static void on_late(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	if (work.is_timed && info->si_code == SI_TIMER) {
		work.is_timed = 0;
		spent.late++;
		siglongjmp(work.out, 1);
	}
}

/* Nothing else uses SIGPROF here: it is not among the signals that are forwarded to the program. */
static bool has_timer(timer_t *timer)
{
	static int state; /* 0: not tried yet; 1: there; -1: none */
	static timer_t made;
	struct sigaction act = {.sa_sigaction = on_late, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	sigset_t own;

	if (!state) {
		event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
		sigemptyset(&own);
		sigaddset(&own, SIGPROF);
		state = sigaction(SIGPROF, &act, NULL) || sigprocmask(SIG_UNBLOCK, &own, NULL) ||
					timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &made)
				? -1
				: 1;
	}
	*timer = made;
	return state > 0;
}

static void set_timer(timer_t timer, long ns)
{
	struct itimerspec spec = {.it_value.tv_nsec = ns};

	timer_settime(timer, 0, &spec, NULL);
}

/* Few repetitions cannot come to much: k of them multiply a name by 3^(k/3) at most. Conversions are read twice. */
static bool may_be_long(const char *symbol)
{
	unsigned nr = 0;

	for (const char *at = symbol; *at; at++)
		nr += *at == 'S' || *at == 'T' || (at[0] == 'c' && at[1] == 'v');
	return nr > 24;
}

/* ---- length ---- */

static void take(const char *text, size_t len, void *unused)
{
	(void)unused;
	if (len >= sizeof(work.text) - work.used)
		siglongjmp(work.out, 1);
	if (len) /* libiberty prints nothing from no place */
		memcpy(work.text + work.used, text, len);
	work.used += len;
}

/* Returns 1 with the text in work.text, 0 (no name of Rust or C++) or -1 (too much). */
static int print(const char *symbol, int options)
{
	volatile bool is_timed = false;
	volatile int done = 0;
	timer_t timer;

	work.used = 0;
	if (sigsetjmp(work.out, 0)) {
		done = -1;
	} else {
		done = rust_demangle_callback(symbol, options, take, NULL);
		if (!done) {
			work.used = 0;
			is_timed = may_be_long(symbol) && has_timer(&timer);
			if (is_timed) {
				work.is_timed = 1;
				set_timer(timer, MAX_NS);
			}
			done = cplus_demangle_v3_callback(symbol, options, take, NULL);
		}
	}
	work.is_timed = 0;
	if (is_timed && has_timer(&timer)) {
		sigset_t own;

		set_timer(timer, 0);
		sigemptyset(&own); /* the jump out of the handler left it blocked */
		sigaddset(&own, SIGPROF);
		sigprocmask(SIG_UNBLOCK, &own, NULL);
	}
	work.text[work.used] = 0;
	return done;
}

/* ---- D ---- */

/* Each of its back references, Q, repeats at most what came before: n of them multiply a name by 3^(n/3) at most. */
static bool d_may_be_long(const char *symbol)
{
	double bytes = (double)strlen(symbol) * 4;
	unsigned nr = 0;

	for (const char *at = symbol; *at; at++)
		nr += *at == 'Q';
	for (; nr >= 3 && bytes < 1e9; nr -= 3)
		bytes *= 3;
	return bytes > 16.0 * 1024 * 1024;
}

static char *demangle_d(const char *symbol, int options)
{
	char *text = cplus_demangle(symbol, DMGL_DLANG | options);

	if (text && strlen(text) >= CSINK_DEMANGLED_BYTES) {
		free(text);
		text = NULL;
	}
	return text;
}

/* ---- */

static char *refuse(bool *refused)
{
	spent.refused++;
	if (refused)
		*refused = true;
	return NULL;
}

char *csink_demangle(const char *symbol, int options, bool *refused)
{
	bool is_d = symbol[0] == '_' && symbol[1] == 'D';
	int done;

	if (refused)
		*refused = false;
	if (!is_d && (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R' && symbol[1] != '_')))
		return NULL;
	if (spent.late >= MAX_LATE || spent.refused >= MAX_REFUSED || spent.bytes >= MAX_BYTES)
		return refuse(refused);
	if (is_d)
		return d_may_be_long(symbol) ? refuse(refused) : demangle_d(symbol, options);
	done = print(symbol, options);
	if (done < 0)
		return refuse(refused);
	spent.bytes += done ? work.used : 0;
	return done ? strdup(work.text) : NULL;
}
