/*
 * known_calls SECONDS: use CPU in functions each of which has few, known callers, in all kinds of frames that compilers
 * and C libraries make. `known_calls --calls` prints which function may call which: a line for each pair; the first
 * functions of threads are called by "-", and handlers of signals, which anything may be interrupted by, by "*".
 * It is also built by other compilers, for other C libraries, and without unwind tables.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define APART __attribute__((noinline, used))

static const char calls[] =
	"- main\n- kc_thread\n* kc_handler\n"
	"main kc_round\nmain kc_finish\nkc_finish kc_at_end\n"
	"kc_round kc_descend\nkc_round kc_alloca\nkc_round kc_big\nkc_round kc_switch\n"
	"kc_round kc_sort\nkc_round kc_print\nkc_round kc_aligned\nkc_round kc_tail\nkc_round kc_pointer\n"
	"kc_round kc_many\nkc_round kc_tailed\nkc_descend kc_descend\nkc_descend kc_leaf\n"
	"kc_alloca kc_leaf\nkc_big kc_leaf\nkc_switch kc_leaf\nkc_switch kc_leaf_2\nkc_sort kc_compare\n"
	"kc_compare kc_leaf_2\nkc_aligned kc_leaf\nkc_tail kc_tailed\nkc_tailed kc_leaf_2\n"
	"kc_pointer kc_leaf\nkc_pointer kc_leaf_2\nkc_many kc_leaf\nkc_thread kc_forever\n"
	"kc_forever kc_leaf_2\nkc_handler kc_leaf\nkc_at_end kc_leaf\nkc_finish kc_leaf_2\n";

static volatile unsigned long sink;
static volatile int cold;

APART static unsigned long kc_leaf(unsigned long value)
{
	for (int i = 0; i < 2000; i++)
		value = value * 31 + (unsigned long)i;
	return value;
}

APART static unsigned long kc_leaf_2(unsigned long value)
{
	for (unsigned long i = 0; i < 300; i++)
		value = (value ^ i) * 17 / (i + 1) + (value >> 3);
	return value;
}

APART static void kc_descend(int levels)
{
	if (levels)
		kc_descend(levels - 1);
	else
		sink += kc_leaf(sink);
	sink++; /* no tail call */
}

APART static void kc_alloca(size_t bytes)
{
	char *text = alloca(bytes);

	memset(text, (int)sink, bytes);
	sink += kc_leaf((unsigned char)text[bytes / 2]);
	sink += (unsigned long)text[0];
}

APART static void kc_big(void)
{
	volatile unsigned char room[3000];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = (unsigned char)(i * sink);
	sink += kc_leaf(room[77]);
	sink += room[1];
}

APART static void kc_switch(unsigned long which)
{
	switch (which % 7) {
	case 0:
		sink += kc_leaf(1);
		break;
	case 1:
		sink += kc_leaf_2(2) * which;
		break;
	case 2:
		sink ^= kc_leaf(3) + 17;
		break;
	case 3:
		sink -= kc_leaf_2(4);
		break;
	case 4:
		if (cold)
			abort();
		sink *= kc_leaf(5);
		break;
	case 5:
		sink |= kc_leaf_2(6);
		break;
	default:
		sink += 7;
	}
	sink++;
}

APART static int kc_compare(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	if (x % 64 == 1)
		sink += kc_leaf_2(x);
	return x < y ? -1 : x > y;
}

APART static void kc_sort(void)
{
	unsigned int values[200];

	for (unsigned int i = 0; i < 200; i++)
		values[i] = (unsigned int)rand();
	qsort(values, 200, sizeof(values[0]), kc_compare);
	sink += values[0];
}

APART static void kc_print(void)
{
	char text[200];

	for (int i = 0; i < 20; i++)
		sink += (unsigned long)snprintf(text, sizeof(text), "%d %f %s", i, i * 1.5, "text") + strlen(text);
}

/* Its stack is aligned: the frame is found by way of the frame pointer, or of another register. */
APART static void kc_aligned(void)
{
	volatile unsigned long room[8] __attribute__((aligned(64)));

	room[0] = sink;
	sink += kc_leaf((unsigned long)room);
	sink += room[0];
}

APART static unsigned long kc_tailed(unsigned long value)
{
	value += kc_leaf_2(value);
	sink++;
	return value + kc_leaf_2(sink);
}

APART static unsigned long kc_tail(unsigned long value)
{
	if (value % 2)
		value += 3;
	return kc_tailed(value * 5);
}

APART static void kc_pointer(unsigned long (*volatile function)(unsigned long))
{
	sink += function(sink);
	sink++;
}

APART static double kc_many(int a, double b, const char *c, long d, int e, int f, int g, long h, double i)
{
	double sum = a * b + (double)strlen(c) + (double)(d + e + f + g + h) * i;

	sink += kc_leaf((unsigned long)sum);
	return sum + (double)sink;
}

APART static void kc_handler(int number)
{
	(void)number;
	sink += kc_leaf(7);
	sink++;
}

APART static void kc_round(unsigned long round)
{
	kc_descend((int)(round % 20));
	kc_alloca(100 + round % 3000);
	kc_big();
	kc_switch(round);
	kc_sort();
	kc_print();
	kc_aligned();
	sink += kc_tail(round);
	kc_pointer(round % 2 ? kc_leaf : kc_leaf_2);
	sink += (unsigned long)kc_many(1, 2.5, "three", 4, 5, 6, 7, 8, 9.5);
	sink++;
}

/* It never returns. */
__attribute__((noinline, used, noreturn)) static void kc_forever(void)
{
	for (;;)
		sink += kc_leaf_2(sink);
}

static void *kc_thread(void *unused)
{
	(void)unused;
	kc_forever();
}

static void kc_at_end(void)
{
	for (int i = 0; i < 20000; i++)
		sink += kc_leaf(sink);
}

__attribute__((noinline, used, noreturn)) static void kc_finish(void)
{
	for (int i = 0; i < 20000; i++)
		sink += kc_leaf_2(sink);
	exit(0);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	struct itimerval timer = {{0, 10000}, {0, 10000}}, none = {{0, 0}, {0, 0}};
	struct sigaction action;
	pthread_t thread;

	if (argc > 1 && !strcmp(argv[1], "--calls")) {
		fputs(calls, stdout);
		return 0;
	}
	memset(&action, 0, sizeof(action));
	action.sa_handler = kc_handler;
	action.sa_flags = SA_RESTART;
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &timer, NULL);
	atexit(kc_at_end);
	pthread_create(&thread, NULL, kc_thread, NULL);
	for (unsigned long round = 0; (double)clock() / CLOCKS_PER_SEC < seconds; round++)
		kc_round(round);
	setitimer(ITIMER_PROF, &none, NULL);
	kc_finish();
}
