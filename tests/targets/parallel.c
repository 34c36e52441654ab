/*
 * Programs with a part that others wait for, for --wall:
 *   parallel PROGRAM [UNIT [FUNCTION]]
 * UNIT is how long one unit of work is, in us; FUNCTION is made a fifth faster. Each prints nothing and exits with 0.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/targets/work.h"

static uint64_t unit = 1000;
static const char *faster = "";
static volatile uint64_t sink;

/* A function that does so many units of work, itself: a call that is inlined would be a function of its own. */
#define WORK(name)                                                                                                     \
	static __attribute__((noinline)) void name(double units)                                                       \
	{                                                                                                              \
		double share = strcmp(faster, #name) ? 1 : 0.8;                                                        \
		uint64_t rounds = (uint64_t)(units * share * (double)unit * ROUNDS_MS / 1000), x = sink;               \
                                                                                                                       \
		while (rounds--)                                                                                       \
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;                                       \
		sink = x;                                                                                              \
	}

static pthread_t start(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, arg))
		exit(1);
	return thread;
}

static pid_t job(void (*work)(double), double units)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (!pid) {
		work(units);
		_exit(0);
	}
	return pid;
}

static void join_all(pthread_t *threads, int nr)
{
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

/* A token through a pipe; false at its end. */
static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		exit(1);
}

static int get(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static void make_pipe(int fds[2])
{
	if (pipe(fds))
		exit(1);
}

/* ---- pool: one thread prepares what two then work on ---- */

WORK(pool_serial)
WORK(pool_work)

static void *pool_thread(void *arg)
{
	(void)arg;
	pool_work(75);
	return NULL;
}

static void pool(void)
{
	for (int i = 0; i < 4; i++) {
		pthread_t threads[2];

		pool_serial(25);
		threads[0] = start(pool_thread, NULL);
		threads[1] = start(pool_thread, NULL);
		join_all(threads, 2);
	}
}

/* ---- make: two jobs at a time, then one that needs them all ---- */

WORK(make_long)
WORK(make_small)
WORK(make_link)

static void make(void)
{
	pid_t longest = job(make_long, 250), small;

	for (int i = 0; i < 4; i++) {
		small = job(make_small, 25);
		waitpid(small, NULL, 0);
	}
	waitpid(longest, NULL, 0);
	small = job(make_link, 100);
	waitpid(small, NULL, 0);
}

/* ---- pipe, pipeline: items go from process to process, one ahead at most ---- */

WORK(pipe_produce)
WORK(pipe_consume)
WORK(stage_first)
WORK(stage_second)
WORK(stage_third)

/* Work on each item: wait for it (unless this is the first stage), work, wait for room, pass it on. */
static void stage(void (*work)(double), double units, int nr, int in, int room_in, int out, int room_out)
{
	for (int i = 0; i < nr; i++) {
		if (in >= 0 && !get(in))
			exit(1);
		work(units);
		if (room_in >= 0)
			put(room_in);
		if (out >= 0 && get(room_out))
			put(out);
	}
}

static pid_t stage_process(void (*work)(double), double units, int nr, int in, int room_in, int out, int room_out)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (!pid) {
		stage(work, units, nr, in, room_in, out, room_out);
		_exit(0);
	}
	return pid;
}

static void pipe_two(void)
{
	int items[2], room[2];
	pid_t pid;

	make_pipe(items), make_pipe(room);
	put(room[1]);
	pid = stage_process(pipe_produce, 1, 150, -1, -1, items[1], room[0]);
	stage(pipe_consume, 2.4, 150, items[0], room[1], -1, -1);
	waitpid(pid, NULL, 0);
}

static void pipe_three(void)
{
	int first[2], first_room[2], second[2], second_room[2];
	pid_t pids[2];

	make_pipe(first), make_pipe(first_room), make_pipe(second), make_pipe(second_room);
	put(first_room[1]), put(second_room[1]);
	pids[0] = stage_process(stage_first, 0.5, 150, -1, -1, first[1], first_room[0]);
	pids[1] = stage_process(stage_second, 0.7, 150, first[0], first_room[1], second[1], second_room[0]);
	stage(stage_third, 2, 150, second[0], second_room[1], -1, -1);
	waitpid(pids[0], NULL, 0), waitpid(pids[1], NULL, 0);
}

/* ---- lock: two threads, most of whose work needs it ---- */

WORK(lock_held)
WORK(lock_free)
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *lock_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&lock);
		lock_held(2);
		pthread_mutex_unlock(&lock);
		lock_free(1);
	}
	return NULL;
}

static void locks(void)
{
	pthread_t threads[2] = {start(lock_thread, NULL), start(lock_thread, NULL)};

	join_all(threads, 2);
}

/* ---- blocks: one reads, two compress, one writes, as pigz does ---- */

WORK(block_read)
WORK(block_compress)
WORK(block_write)
static int blocks[2], packed[2];

static void *compress_thread(void *arg)
{
	(void)arg;
	while (get(blocks[0])) {
		block_compress(8);
		put(packed[1]);
	}
	return NULL;
}

static void *write_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < 80; i++)
		if (get(packed[0]))
			block_write(0.2);
	return NULL;
}

static void compress(void)
{
	pthread_t threads[2], writer;

	make_pipe(blocks), make_pipe(packed);
	writer = start(write_thread, NULL);
	threads[0] = start(compress_thread, NULL);
	threads[1] = start(compress_thread, NULL);
	for (int i = 0; i < 80; i++) {
		block_read(0.3);
		put(blocks[1]);
	}
	close(blocks[1]);
	join_all(threads, 2);
	pthread_join(writer, NULL);
}

/* ---- nested: threads that start threads and wait for them ---- */

WORK(nest_outer)
WORK(nest_inner)

static void *inner_thread(void *arg)
{
	nest_inner(arg ? 20 : 60);
	return NULL;
}

static void nested(void)
{
	for (int i = 0; i < 4; i++) {
		pthread_t threads[2];

		nest_outer(30);
		threads[0] = start(inner_thread, NULL);
		threads[1] = start(inner_thread, &unit);
		nest_outer(10);
		join_all(threads, 2);
	}
}

/* ---- halves: a tree of halves that are joined by one thread ---- */

WORK(half_leaf)
WORK(half_join)

static void *half_thread(void *arg)
{
	(void)arg;
	half_leaf(40);
	return NULL;
}

static void halves(void)
{
	for (int i = 0; i < 4; i++) {
		pthread_t other = start(half_thread, NULL);

		half_thread(NULL);
		pthread_join(other, NULL);
		half_join(70);
	}
}

/* ---- server: one thread answers two clients, each of which waits for its answer ---- */

WORK(server_answer)
WORK(client_ask)
static int asked[2], answered[2][2];

static void *client_thread(void *arg)
{
	int nr = arg != NULL;
	char who = (char)nr;

	for (int i = 0; i < 120; i++) {
		client_ask(0.5);
		if (write(asked[1], &who, 1) != 1 || !get(answered[nr][0]))
			exit(1);
	}
	return NULL;
}

static void server(void)
{
	pthread_t threads[2];
	char who;

	make_pipe(asked), make_pipe(answered[0]), make_pipe(answered[1]);
	threads[0] = start(client_thread, NULL);
	threads[1] = start(client_thread, &unit);
	for (int i = 0; i < 240 && read(asked[0], &who, 1) == 1; i++) {
		server_answer(1.5);
		put(answered[who & 1][1]);
	}
	join_all(threads, 2);
}

/* ---- chunks: processes with unequal parts, as a pool of processes has them ---- */

WORK(chunk_heavy)
WORK(chunk_light)
WORK(chunk_reduce)

static void chunks(void)
{
	for (int i = 0; i < 4; i++) {
		pid_t light = job(chunk_light, 40), heavy = job(chunk_heavy, 70);

		waitpid(light, NULL, 0);
		waitpid(heavy, NULL, 0);
		chunk_reduce(20);
	}
}

/* ---- events: an event loop runs commands, as redis with two threads that read and write for it ---- */

WORK(events_read)
WORK(events_run)
WORK(events_write)
static int to_read[2], to_run[2], to_write[2], events_room[2];

static void *events_thread(void *arg)
{
	(void)arg;
	while (get(to_read[0])) {
		events_read(0.6);
		put(to_run[1]);
	}
	return NULL;
}

static void *reply_thread(void *arg)
{
	(void)arg;
	while (get(to_write[0])) {
		events_write(0.3);
		put(events_room[1]);
	}
	return NULL;
}

static void events(void)
{
	pthread_t threads[2];

	make_pipe(to_read), make_pipe(to_run), make_pipe(to_write), make_pipe(events_room);
	threads[0] = start(events_thread, NULL);
	threads[1] = start(reply_thread, NULL);
	for (int i = 0; i < 4; i++) /* connections, each with one request at a time */
		put(to_read[1]);
	for (int i = 0; i < 300; i++) {
		if (!get(to_run[0]))
			exit(1);
		events_run(1);
		put(to_write[1]);
		if (i < 296 && get(events_room[0]))
			put(to_read[1]);
	}
	close(to_read[1]);
	close(to_write[1]);
	join_all(threads, 2);
}

/* ---- handoffs: one thread waits for another all the time, and ends last ---- */

WORK(handoff_work)
WORK(handoff_note)
static int handed[2], taken[2];

static void *note_thread(void *arg)
{
	(void)arg;
	while (get(handed[0])) {
		handoff_note(0.2);
		put(taken[1]);
	}
	handoff_note(8);
	return NULL;
}

static void handoffs(void)
{
	pthread_t thread;

	make_pipe(handed), make_pipe(taken);
	thread = start(note_thread, NULL);
	for (int i = 0; i < 200; i++) {
		handoff_work(1);
		put(handed[1]);
		if (!get(taken[0]))
			exit(1);
	}
	close(handed[1]);
	join_all(&thread, 1);
}

static const struct {
	const char *name;
	void (*run)(void);
} programs[] = {
	{"pool", pool},     {"make", make},         {"pipe", pipe_two}, {"pipeline", pipe_three},
	{"lock", locks},    {"compress", compress}, {"nested", nested}, {"halves", halves},
	{"server", server}, {"chunks", chunks},     {"events", events}, {"handoffs", handoffs},
};

int main(int argc, char **argv)
{
	unit = arg_num(argc, argv, 2, 1000);
	if (argc > 3)
		faster = argv[3];
	for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(*programs); i++) {
		if (!strcmp(argv[1], programs[i].name)) {
			programs[i].run();
			return 0;
		}
	}
	return 2;
}
