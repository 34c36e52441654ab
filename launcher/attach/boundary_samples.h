/*
 * Sampling programs that cannot be injected, while the rest of their tree is: with the events of the run, by the
 * kernel, into rings of the launcher. Which process opens the events is in include/internal/boundary.h; for a command
 * that cannot be injected itself it is the launcher. Samples are walked and added up as those of attach are, and saved
 * as recordings into the run directory. Used by the launcher's one thread.
 *
 * Order: begin, (self), drain as often as the fd asks for it, stop, finish, free. After a begin that failed only free.
 */
#ifndef CSINK_BOUNDARY_SAMPLES_H
#define CSINK_BOUNDARY_SAMPLES_H

#include "include/internal/boundary.h"
#include "launcher/attach/follow.h"

struct csink_boundary_how {
	const struct csink_event_spec *specs; /* as they are sampled inside: each group's first event has its rate */
	uint32_t nr_specs;
	enum csink_attach_stacks stacks;
	enum csink_walk_by walk_by;
	uint32_t max_depth;
	const char *directory; /* of the run; NULL: none, so that only the command itself can be sampled */
	const char *follow;    /* the names of --follow */
};

/* Events that were opened together. */
struct csink_boundary_source {
	uint64_t token;
	int32_t pid;              /* of the process that they were opened on */
	uint64_t come_ns;         /* the request */
	int anchor_fd;            /* -1: none */
	int first_fd;             /* hangs up when all tasks that have inherited it have ended */
	bool is_closed, is_whole; /* is_whole: all descriptors have come */
	bool is_everywhere;       /* it has all events on all CPUs: ids does not list them */
	uint32_t place;           /* in struct csink_boundary's open */
	uint32_t replaced_by;     /* the source that its threads' samples are taken of since it is closed; 0: none */
	struct csink_boundary_id {
		uint64_t id;
		uint16_t event, cpu;
	} * ids; /* of its events, in the order of CPUs */
	uint32_t nr_ids, cap_ids;
};

/* A thread whose children ask for events. */
struct csink_boundary_asking {
	int32_t tid;
	uint32_t nr;                    /* requests since then */
	uint64_t since_ns, start_ticks; /* start_ticks: of an armed one; a later owner of its TID has others */
	bool is_armed;                  /* the launcher has opened events on it, which they inherit */
};

struct csink_boundary {
	struct csink_attach_follow follow;
	struct csink_boundary_how how;
	struct csink_boundary_file file;
	uint64_t cpus[CSINK_BOUNDARY_MAX_CPUS / 64]; /* which processes may bind themselves to */
	bool is_mapped;                              /* there are rings */
	bool can_look_again;                         /* their timer is there */
	int map_err;                                 /* why there are none */
	int epoll_fd, listen_fd, file_fd;
	struct csink_boundary_source *sources; /* number - 1 */
	uint32_t nr_sources, cap_sources;
	struct csink_table by_token;          /* numbers */
	uint32_t *open;                       /* numbers of the sources that are not closed */
	uint32_t nr_open, cap_open, sweep_at; /* sweep_at: from how many on to look which have ended */
	uint32_t nr_looked_at; /* sources known to be needed, or closed: csink_boundary_sources_replace() */
	struct csink_boundary_asking asking[CSINK_BOUNDARY_PARENTS]; /* by TID, as csink_boundary_parent_at() */
	uint32_t nr_elsewhere;                                       /* requests from other PID namespaces */
};

/**
 * Find out how the events open, and make the files of include/internal/boundary.h. Takes no locked memory yet.
 * @out  receives notes.
 * Returns 0 or -errno.
 */
int csink_boundary_begin(struct csink_boundary *b, const struct csink_boundary_how *how, struct csink_outside *out);

/** Open the events on the caller, for the one child that it forks next. Returns 0 or -errno. */
int csink_boundary_open_self(struct csink_boundary *b);

/** Let the fd become readable where another one does, too. Returns 0 or -errno. */
int csink_boundary_watch(const struct csink_boundary *b, int fd);

/** Becomes readable when csink_boundary_drain is due. */
int csink_boundary_fd(const struct csink_boundary *b);

/** Take requests, then samples. */
void csink_boundary_drain(struct csink_boundary *b);

/** The command has ended: take what is left, and stop the events. @out receives notes. */
void csink_boundary_stop(struct csink_boundary *b, struct csink_outside *out);

/** After that: are there any samples? */
bool csink_boundary_has_samples(const struct csink_boundary *b);

/**
 * After that, when out->processes is known, too: mark the processes that were sampled in this way, and save the
 * recordings.
 * @directory  of the run.
 * @starts     when the library began to sample programs of the run; not needed without samples.
 * Returns 0 or -errno.
 */
int csink_boundary_finish(struct csink_boundary *b, const char *directory, const struct csink_attach_starts *starts,
			  struct csink_outside *out);

void csink_boundary_free(struct csink_boundary *b);

#endif
