/*
 * The processes that an attach follows, image by image (an exec begins a new one), with their threads and what they
 * have mapped: from /proc when they are attached to, from the kernel's records afterwards. Samples are added up here,
 * by thread and stack, until they are saved as recordings.
 */
#ifndef CSINK_IMAGES_H
#define CSINK_IMAGES_H

#include "include/internal/recording_format.h"
#include "launcher/attach/codes.h"
#include "launcher/attach/objects.h"
#include "launcher/base/table.h"
#include "launcher/collect/collect.h"

struct csink_attach_mapping {
	uint64_t start, end, offset, bias;
	struct csink_attach_object *object;
	uint64_t load_ns, unload_ns; /* unload_ns 0: it is there */
};

/** May two times be of one exec, or of one end: of its records, of samples beside them? A hypervisor may run another
 * guest between. */
static inline bool csink_attach_is_near(uint64_t a_ns, uint64_t b_ns)
{
	enum { MOST_NS = 100000000 };

	return a_ns - b_ns < MOST_NS || b_ns - a_ns < MOST_NS;
}

struct csink_attach_thread {
	int32_t tid;
	char name[16];
	uint64_t start_ns, end_ns; /* end_ns 0: not ended */
	uint64_t nr_samples;
	uint64_t totals[CSINK_MAX_EVENTS];
};

struct csink_attach_image {
	int32_t pid, ppid;
	enum csink_rec_state state;
	uint64_t start_ns, end_ns;
	char comm[16], exe[512], cmdline[1024], root[64];
	char rank_values[CSINK_NR_RANK_VARIABLES][CSINK_RANK_VALUE_BYTES];
	bool is_left_out; /* only its CPU time is to be in the profile */
	bool is_exec;     /* it began with an exec that was seen */
	bool has_mapped;  /* something, since it began */
	bool lacks_start; /* its first record was of no fork and no exec: that is yet to come, was lost, or was before
			     its events */
	bool has_run; /* a sample was in the program, and not in the kernel's exec of it; stays false where no exec was
			 seen or awaited */
	bool goes_on; /* its last thread's events have ended, and it has not */
	bool first_has_ended; /* its first thread has, and is not known to go on; others may */
	bool is_injected;     /* our library is mapped: the process samples itself, and records */
	uint32_t epoch;       /* how many mappings have been replaced */
	uint32_t source;      /* the oldest (csink_attach_fd) whose events have the record of its fork or exec: all its
				 threads have these */
	struct csink_attach_mapping *mappings;
	uint32_t nr_mappings, cap_mappings, last_mapping;
	struct csink_attach_thread *threads;
	uint32_t nr_threads, cap_threads, nr_living;
	uint64_t nr_rows, nr_own_rows; /* nr_own_rows: of them, those of samples of its own events */
	uint64_t nr_own_samples;
	uint32_t nr_in_moments; /* samples since the library was mapped that have a moment: csink_attach_images_settle()
				 */
	uint64_t losses[CSINK_NR_LOSSES];
};

/* Samples of one thread with one stack. */
struct csink_attach_row {
	uint32_t image, thread, chain, epoch;
	bool is_by_cpu;   /* samples of a CPU: they count where those of the process itself do not */
	bool is_injected; /* the image was injected then: the library may have recorded these samples, too */
	uint32_t moment;  /* the number of a moment, see csink_attach_images_settle(); 0: none */
	uint64_t leaf, first_ns, last_ns, nr_samples;
	uint64_t weights[CSINK_MAX_EVENTS];
};

struct csink_attach_chain {
	uint32_t first, nr; /* in frames */
	uint16_t flags;     /* enum csink_chain_flags */
};

struct csink_attach_images {
	struct csink_attach_objects objects;
	struct csink_attach_image **at;
	uint32_t nr, cap;
	struct csink_table latest_index; /* the last image of each PID */
	/* The current owner of a TID. */
	struct csink_attach_living {
		int32_t tid;
		uint32_t image, thread; /* image == UINT32_MAX: none */
		uint32_t owner;         /* differs between owners of one TID */
		uint32_t source;        /* of the events that sample it: see csink_attach_images_is_source(); 0: none */
	} * living;
	uint32_t nr_living, cap_living, nr_owners;
	struct csink_table living_index; /* by TID; in each of these tables an id is an index + 1 */

	struct csink_attach_row *rows;
	uint32_t nr_rows, cap_rows;
	struct csink_table row_index;
	struct csink_attach_chain *chains;
	uint32_t nr_chains, cap_chains;
	struct csink_table chain_index;
	uint64_t *frames;
	uint32_t nr_frames, cap_frames;

	uint64_t nr_threads, nr_processes; /* ever seen */
	bool no_memory;                    /* something is missing */
	const char *prepared_root;         /* while a process is prepared: its root, as in csink_attach_image */
	/* Called for each object that a process is found to have, or maps. NULL: not called. */
	void (*on_object)(void *arg, int32_t pid, struct csink_attach_object *object, uint64_t bias);
	void *arg;
};

/** Read the objects that a process has mapped, so that taking it later is quick. */
void csink_attach_images_prepare(struct csink_attach_images *images, int32_t pid);

/** Take a process that runs, its threads and mappings. False: it is gone, or may not be looked at. */
bool csink_attach_images_take(struct csink_attach_images *images, int32_t pid, uint64_t now_ns);

/** The thread, which is added where it is not known (with its process, if that is there still, or if the number is
 * that of one which ended before). NULL: no memory. */
struct csink_attach_living *csink_attach_images_thread(struct csink_attach_images *images, int32_t pid, int32_t tid,
						       uint64_t time_ns);

#define CSINK_SOURCE_REPLACED UINT32_MAX /* of events that were closed, since another source's count the same */

/**
 * Is this the source (csink_attach_fd) whose samples of the thread are taken? A thread may have inherited events of
 * several, which count the same: the first that samples it is the one.
 */
static inline bool csink_attach_images_is_source(struct csink_attach_living *thread, uint32_t source)
{
	if (!thread->source && source != CSINK_SOURCE_REPLACED)
		thread->source = source;
	return thread->source == source;
}

/** The owner of a TID, if it is known. Else NULL. */
const struct csink_attach_living *csink_attach_images_known(struct csink_attach_images *images, int32_t pid,
							    int32_t tid);

/** The record of the fork or exec that began the process's latest image is of that source's events. 0 is fine. */
void csink_attach_images_note_source(struct csink_attach_images *images, int32_t pid, uint32_t source);

/** The oldest source whose events all threads of a living process have, from its fork or exec on; 0: none is known. */
uint32_t csink_attach_images_source_of(const struct csink_attach_images *images, int32_t pid);

/** Has the last thread of the process ended, as the records show? */
bool csink_attach_images_has_ended(const struct csink_attach_images *images, int32_t pid);

/** Its events have ended, and it has not: what comes of this number is still its own. */
void csink_attach_images_note_going_on(struct csink_attach_images *images, int32_t pid);

/** Has the process executed a program at or after @since_ns, of which mappings are known? */
bool csink_attach_images_has_program(const struct csink_attach_images *images, int32_t pid, uint64_t since_ns);

/* Records of the kernel. */
void csink_attach_images_fork(struct csink_attach_images *images, int32_t pid, int32_t ppid, int32_t tid,
			      uint64_t time_ns);
/** @at_exec  events count from the exec on (csink_attach_counters): then samples may come before this record. */
void csink_attach_images_exec(struct csink_attach_images *images, int32_t pid, const char *comm, uint64_t time_ns,
			      bool at_exec);
void csink_attach_images_comm(struct csink_attach_images *images, int32_t pid, int32_t tid, const char *comm,
			      uint64_t time_ns);
void csink_attach_images_exit(struct csink_attach_images *images, int32_t pid, int32_t tid, uint64_t time_ns);
void csink_attach_images_map(struct csink_attach_images *images, int32_t pid, uint64_t start, uint64_t bytes,
			     uint64_t offset, const char *path, uint64_t time_ns);

/** What is mapped at an address now, or NULL. */
const struct csink_attach_mapping *csink_attach_image_find(struct csink_attach_image *image, uint64_t pc);

struct csink_attach_stack {
	uint64_t leaf;
	const uint64_t *frames;
	uint32_t nr_frames;
	uint16_t flags; /* enum csink_chain_flags */
	bool is_by_cpu; /* as in csink_attach_row */
};

/** Add a sample of that stack. weights: CSINK_MAX_EVENTS, by column; 0 where the sample has none. */
void csink_attach_images_add(struct csink_attach_images *images, const struct csink_attach_living *thread,
			     const struct csink_attach_stack *stack, const uint64_t *weights, uint64_t time_ns);

/** Remove rows. @is_removed  is asked once for each. */
void csink_attach_images_remove(struct csink_attach_images *images,
				bool (*is_removed)(void *arg, const struct csink_attach_row *row), void *arg);

/* When the library began to sample a program, in the order of PIDs and times. */
struct csink_attach_starts {
	const struct csink_collect_start *at;
	uint32_t nr;
};

/**
 * The loader maps the library first, and calls it last: samples that come between are the only ones of that time.
 * Those whose row has a moment (attach_rows.c) and no later sample are distinguished, before rows are saved. So at most
 * a 32nd of that time is missing, and what comes after 16,384 samples.
 */
void csink_attach_images_settle(struct csink_attach_images *images, const struct csink_attach_starts *starts);

/**
 * Write a recording for each image that has samples.
 * @head   what they have in common: events, engine, unwind.
 * @codes  functions of interpreters, which frames refer to; NULL: none do.
 * Returns 0 or -errno.
 */
int csink_attach_images_save(const struct csink_attach_images *images, const char *directory,
			     const struct csink_rec_header *head, const struct csink_attach_codes *codes);

void csink_attach_images_free(struct csink_attach_images *images);

#endif
