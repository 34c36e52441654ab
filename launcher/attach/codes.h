/*
 * The functions of interpreters in attached processes, as recordings have them (csink_rec_code): read from the process
 * at their first sample, since it may free them; equal ones of all processes are one. Written by the threads that read
 * frames, under a lock; read by the attach command's thread when these have ended.
 */
#ifndef CSINK_CODES_H
#define CSINK_CODES_H

#include <pthread.h>

#include "launcher/attach/python_stack.h"
#include "launcher/attach/python_states.h"
#include "launcher/base/table.h"

struct csink_attach_code {
	uint16_t kind; /* enum csink_code_kind */
	uint16_t nr_names, lacks_table;
	uint32_t first_line, nr_table;
	char *text; /* as csink_rec_code */
};

struct csink_attach_codes {
	pthread_mutex_t lock;
	struct csink_attach_code *at; /* by id less 1 */
	uint32_t nr, cap;
	uint64_t bytes;
	bool is_closed;
	struct csink_table content;
	/* Which id has what was seen at an address: by a hash of its content and where it is. */
	struct csink_attach_seen {
		uint64_t identity;
		uint32_t id;
	} * seen;
	uint32_t nr_seen, cap_seen;
	struct csink_table seen_index;
};

/** Returns 0 or -errno. */
int csink_attach_codes_init(struct csink_attach_codes *codes);

/* A thread's buffers for csink_attach_codes_take(). */
struct csink_attach_codes_room;

/** Allocate them, to be freed by free(3). NULL: no memory. */
struct csink_attach_codes_room *csink_attach_codes_room_new(void);

/**
 * Find the functions of a stack's frames, whose thread does not run.
 * @python   the process's interpreter; @process differs between processes, also of one PID.
 * @ids      set to a number for each frame, below 2^30.
 * Returns 0, -EAGAIN (one of the frames' code objects is none), or -ENOMEM (there are too many).
 * Context: any thread.
 */
int csink_attach_codes_take(struct csink_attach_codes *codes, struct csink_attach_codes_room *room,
			    const struct csink_python_stack *stack, const struct csink_attach_python *python,
			    uint64_t process, uint32_t *ids);

/** Nothing is added from now on, also by threads that have not ended. */
void csink_attach_codes_close(struct csink_attach_codes *codes);

void csink_attach_codes_free(struct csink_attach_codes *codes);

#endif
