/* What the readers*.c files share; no other file includes this. */
#ifndef CSINK_READERS_IMPL_H
#define CSINK_READERS_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "launcher/attach/attach_sample.h"
#include "launcher/attach/readers.h"

struct csink_reader_process {
	int32_t pid;
	uint64_t serial; /* differs between processes of one PID */
	struct csink_attach_python python;
};

/* Where a thread's state is. */
struct csink_reader_thread {
	int32_t tid;
	int32_t inside;  /* its number inside its PID namespace, or of its creator, where the state is the creator's */
	int32_t creator; /* of a process's first thread: the thread that forked it */
	uint64_t serial, state;
	/* Without a state: when to look again, unless the lists' first states change before; how often that was. */
	uint64_t again_ns, firsts;
	uint32_t nr_looked;
};

struct csink_reader {
	struct csink_attach_readers *all;
	uint32_t cpu;
	pthread_t thread;
	bool runs, is_first; /* is_first: it runs before all others */
	uint64_t cursor, rest_until_ns;
	char record[CSINK_RINGS_MAX_RECORD];
	struct csink_remote remote;
	struct csink_python_stack stack;
	struct csink_attach_codes_room *room;
	uint32_t ids[CSINK_MAX_DEPTH];
	/* Words [taken, put) are main's to take: see readers_queue.c. */
	uint64_t *queue;
	uint32_t queue_words;   /* a power of two */
	_Atomic uint64_t put;   /* stored by the reader (release), loaded by main (acquire) */
	_Atomic uint64_t taken; /* stored by main (release), loaded by the reader (acquire) */
};

struct csink_attach_readers {
	struct csink_attach_counters *counters;
	struct csink_attach_codes *codes;
	int stop_fd;
	uint32_t nr_left;         /* threads that did not end */
	struct csink_reader **at; /* by CPU; NULL: none */
	/* Main and the readers use all that follows, with the lock: see readers_known.c. */
	pthread_mutex_t lock;
	struct csink_reader_process *processes;
	uint32_t nr_processes, cap_processes;
	uint64_t nr_serials;
	struct csink_table process_index; /* by PID; an id is an index + 1 */
	struct csink_reader_thread *known;
	uint32_t nr_known, cap_known;
	struct csink_table known_index; /* by TID */
};

/* readers_known.c */

/** Copy what is known of a process. False: it has no interpreter. Context: any thread. */
bool csink_readers_find(struct csink_attach_readers *r, int32_t pid, struct csink_reader_process *to);

/**
 * Find the state of a sample's thread. Walks the interpreter's list at the thread's first sample.
 * @thread  set to what is known of it; later the state may be freed, or another thread's.
 * Returns false where it has none. Context: a reader.
 */
bool csink_readers_state(struct csink_attach_readers *r, const struct csink_reader_process *process, int32_t tid,
			 uint64_t now_ns, struct csink_reader_thread *thread);

/** The state of a thread is none, or another thread's: it is looked for again. Context: a reader. */
void csink_readers_forget(struct csink_attach_readers *r, int32_t tid);

/** A forked child has its parent's interpreter, at the same addresses. Context: a reader. */
void csink_readers_fork(struct csink_attach_readers *r, const char *record);

void csink_readers_free_known(struct csink_attach_readers *r);

/* readers_stack.c */

/** Read the frames of a sample's thread, which has a state, into reader->stack and ids. Context: the reader. */
enum csink_read_state csink_reader_read(struct csink_reader *reader, const struct csink_reader_process *process,
					const struct csink_attach_sample *s, const struct csink_reader_thread *thread);

/* readers_queue.c */

/** Allocate the queue. Returns 0 or -ENOMEM. */
int csink_reader_queue_init(struct csink_reader *reader);

/** Hand over what was read to main. Where there is no room, main misses it. Context: the reader. */
void csink_reader_queue(struct csink_reader *reader, const struct csink_attach_sample *s, enum csink_read_state state);

#endif
