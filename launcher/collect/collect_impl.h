/* What the collect*.c files share; no other file includes this. */
#ifndef CSINK_COLLECT_IMPL_H
#define CSINK_COLLECT_IMPL_H

#include <stdbool.h>

#include "launcher/base/rank.h"
#include "launcher/base/roots.h"
#include "launcher/base/table.h"
#include "launcher/collect/collect.h"
#include "launcher/collect/recording_read.h"
#include "launcher/collect/script_lines.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"
#include "launcher/symbols/symbols.h"

/* What is kept of each recording while all are merged. */
struct image {
	char *path; /* of the recording; NULL: it is read and removed */
	int32_t pid, ppid;
	uint32_t state;
	uint64_t start_realtime_ns, start_ns, end_ns, cpu_start_ns, cpu_end_ns;
	char comm[16];
	uint64_t nr_threads;
	uint64_t nr_former_threads; /* of a slice: that slices before have, too */
	uint32_t former;            /* index + 1 of the image that this pid had before */
	uint32_t nr_moment;         /* index + 1 in the collector's moment; 0: it is read from its file */
	bool is_last;               /* no later image of this pid */
	bool is_read;               /* its samples are in the profile */
	bool is_outside;            /* sampled from outside, where the others are of the library */
	bool is_by_cpu;             /* from outside, by samples of CPUs: they have a share of c->unseen */
	bool is_left_out;  /* from outside, of a program that is not followed: its CPU time alone is in the profile */
	bool has_engine;   /* the library sampled it */
	bool is_open;      /* of a slice: the program goes on, and CPU time without samples is not given yet */
	bool is_past;      /* of a slice: it had ended before */
	bool is_continued; /* what was before is in the run's profile: neither its samples nor its start-up are here */
	bool becomes_inside; /* from outside: the process has an image of the library later */
	bool is_uncounted;   /* from outside: it has a share of c->uncounted */
	uint32_t unseen;     /* index + 1 in the collector's; 0: none */
	double unsampled_ns; /* from outside: CPU time that its samples lack, as far as that is known */
	int32_t *tids;       /* the threads that it knew */
	uint32_t nr_tids;
	bool lacks_tids;        /* it knew others, too */
	int64_t covered_cpu_ns; /* CPU time given to samples so far */
};

/* An object that some process had mapped; processes that mapped it elsewhere share its locations. Or the code in no
 * object that one process had. */
struct module {
	csink_str_t path;            /* as its process sees it */
	char root[CSINK_ROOT_BYTES]; /* which has another root: through this one it is reached; "": ours */
	uint8_t build_id[20];
	uint8_t build_id_len, is_vdso;
	bool is_library;  /* libcountersink.so itself */
	int32_t pid;      /* of a process that had it */
	int32_t anon_pid; /* of the process whose code in no object this is; 0: an object */
	uint8_t *image;   /* a registered image of code made at run time, malloc'ed; NULL: none */
	size_t nr_image;
	uint32_t mapping;
	uint64_t bias; /* of the first process that had it */
	struct csink_want *wants;
	uint32_t nr_wants, cap_wants;
};

struct collector {
	struct csink_profile *p;
	bool is_early;                       /* the command goes on: only what is finished is taken */
	bool has_types;                      /* the columns are settled */
	const struct csink_moment *now;      /* in place of files: what they had; NULL: the files */
	const struct csink_moment *before;   /* then: what they had before, which is left out; NULL: nothing */
	const struct csink_slice *slice;     /* then: what came between is a slice; NULL: it is none */
	struct csink_moment *slice_now;      /* then: c->now, which learns what slices have */
	const struct csink_outside *outside; /* may be NULL */
	struct image *images;                /* by start */
	uint32_t nr_images, cap_images;
	int beside[64]; /* directories of other users (preload/core/record/run_dir.h) */
	uint32_t nr_beside;
	struct module *modules;
	uint32_t nr_modules, cap_modules;
	struct csink_table module_table;                 /* index + 1 by path, root and build-id */
	struct csink_table source_table;                 /* mappings that stand for source files */
	struct csink_table line_table;                   /* locations of lines of interpreted functions */
	struct csink_scripts scripts;                    /* source files of JavaScript, by path */
	struct csink_table location_table;               /* of the profile, by mapping and address */
	struct csink_rec_event events[CSINK_MAX_EVENTS]; /* of all recordings together: type i + 1 */
	uint32_t nr_events;
	struct csink_outside_thread *threads; /* c->outside's, by PID and TID, each once */
	uint32_t nr_threads;
	int64_t unwaited_ns; /* CPU time in the profile that wait4(2)'s times lack */
	int cpu_event;       /* index in events of the one that is CPU time, or -1 */
	struct {
		uint32_t function, location;
	} * pseudo; /* the pseudo-functions so far, and the kernel's */
	uint32_t nr_pseudo, cap_pseudo;
	/* Of a program's processes without samples of their own: their CPU time, and what samples of CPUs have of it.
	 */
	struct unseen {
		char comm[16];
		double ns, sampled_ns;
	} * unseen;
	uint32_t nr_unseen, cap_unseen;
	double most; /* of what samples from outside weigh, so much at most */
	/* Where the kernel counted no process (find_uncounted()): what samples from outside weigh, and the CPU time
	 * that they lack, with the ends of processes; 0, 0: there are counts, or some of the time may be another
	 * program's. */
	struct {
		double sampled_ns, missing_ns;
		uint32_t nr; /* processes from outside */
	} uncounted;
	/* Processes that were sampled from outside, and have no samples of their own. */
	uint64_t nr_unrecorded, nr_unrecorded_threads;
	bool *is_shared; /* of c->outside's processes: samples of CPUs have its CPU time; NULL: of none */
	struct csink_table pseudo_table; /* index + 1 by function */
	csink_str_t command;             /* of the first recording */
	uint64_t losses[CSINK_NR_LOSSES];
	uint64_t alloc_losses[CSINK_NR_ALLOC_LOSSES];
	/* Of holders of locks, the innermost functions: labels have an index + 1 until these have names. */
	struct holder {
		uint32_t locations[8], nr;
	} * holders;
	uint32_t nr_holders, cap_holders;
	struct csink_table known_holders;
	/* Of locks that are no variables, where they were initialised: likewise. */
	struct made_lock {
		uint32_t locations[16], nr; /* the innermost one is there, if no other */
		const char *kind;           /* what it is, if no lock; "" */
	} * made_locks;
	uint32_t nr_made_locks, cap_made_locks;
	struct csink_table known_made_locks;
	struct csink_lock_names *lock_names; /* NULL: none yet */
	csink_str_t latest_exe;              /* of a recording with allocations: its file was looked into */
	uint32_t nr_without_in_use; /* processes that ended in a way that left no time to see what was in use */
	struct tally {              /* what several recordings say, and how many do */
		const char *key;
		csink_str_t text;
		uint32_t nr;
	} * tallies;
	uint32_t nr_tallies, cap_tallies;
	struct spawned { /* what recordings say of programs that could not be injected */
		int32_t pid;
		enum csink_spawn_reason reason;
		bool became; /* the process that had this pid, as its last act that we know of */
		csink_str_t name;
	} * spawned;
	uint32_t nr_spawned, cap_spawned;
	/* Ranks of a parallel job. */
	struct ranked {
		int32_t pid, rank;
		uint64_t start_ns; /* of the latest program of that PID: before its exec it was another one's child */
	} * ranked;
	uint32_t nr_ranked, cap_ranked;
	struct csink_table ranked_table;  /* index + 1 by PID */
	struct csink_rank own_rank;       /* the launcher's: that of processes that have no other; size 0: none */
	struct csink_rank found_rank;     /* the largest job, and a variable that has the rank; size 0: no ranks */
	bool has_ranks;                   /* several */
	struct csink_table spawned_table; /* index + 1 of the latest with a PID, since PIDs are given out again */
};

/** Free what a collector has, the profile apart. */
void csink_collect_free(struct collector *c);

/** What an image is by the header of its recording; its path is left to the caller. */
struct image csink_collect_image(const struct csink_rec_header *header);

/** Is a recording one to which no process will add? @path  its own. */
bool csink_collect_is_over(const char *path, const struct csink_rec_header *header);

/** Append a copy of the image of a recording that was removed, with its tids. Returns 0 or -ENOMEM. */
int csink_collect_add_gone(struct image **images, uint32_t *nr, uint32_t *cap, const struct image *gone);

/** Add what is in a directory to c->images: while c->is_early, what is finished. Returns 0, -ENOMEM or what opening
 * gave.
 */
int csink_collect_list(struct collector *c, const char *directory);

/** The same of what is in c->now. Returns 0 or -ENOMEM. */
int csink_collect_list_moment(struct collector *c);

/** The same for the directories beside a run directory, of processes that had given up their rights. */
int csink_collect_list_beside(struct collector *c, const char *run_dir);

/**
 * Sort the images by start, and link those of each pid: they follow each other by exec, but not after an exit, when the
 * pid was used again. Returns 0 or -ENOMEM.
 */
int csink_collect_link(struct collector *c);

/**
 * Is what was sampled from outside in a thread of this image also in a recording of the library? That is of the same
 * process and exec. Returns the library's image, or NULL: there is none, it was not sampled, or it does not know the
 * thread.
 */
struct image *csink_collect_counterpart(struct collector *c, const struct image *outside, int32_t tid);

/**
 * Can threads of the library's image that it did not sample have samples from outside? While the command runs these are
 * not known yet.
 */
bool csink_collect_is_outside_too(const struct collector *c, const struct image *image);

/**
 * All recordings of the library are read: find out how much CPU time samples from outside lack, by the CPU time of
 * their processes. Returns 0 or -ENOMEM.
 */
int csink_collect_outside_prepare(struct collector *c);

/**
 * What the CPU time of the samples of an image from outside is to be multiplied by.
 * @scales  for each thread of the recording; all are 1 before the call.
 * Returns 0 or -ENOMEM.
 */
int csink_collect_outside_scales(const struct collector *c, const struct image *image, const struct csink_recorded *rec,
				 double *scales);

/** The number of a recording's event that is the profile's CPU time; -1: none. */
int csink_collect_time_event(const struct collector *c, const struct csink_recorded *rec);

/** Make ready what the kernel counted of threads. Returns 0 or -ENOMEM. */
int csink_collect_threads_prepare(struct collector *c);

/** The CPU time of a thread that has ended, as the kernel counted it; 0: not known. */
uint64_t csink_collect_thread_ns(const struct collector *c, int32_t pid, int32_t tid);

/** How many of a process's threads the kernel counted. */
uint32_t csink_collect_nr_threads(const struct collector *c, int32_t pid);

/** Is csink_collect_thread_ns() of a thread this image's alone? A first thread goes on through execs. */
bool csink_collect_owns_thread_ns(const struct image *image, int32_t tid);

/**
 * What the CPU time of the samples of an image of the library is to be multiplied by, of those threads whose end the
 * library did not see: what a thread used after its last sample, or the last flush, goes to what was sampled of it, as
 * the library adds it where it sees the end.
 * @scales  for each thread of the recording; all are 1 before the call.
 */
void csink_collect_tail_scales(const struct collector *c, const struct image *image, const struct csink_recorded *rec,
			       double *scales);

/** What recordings say of the process that has, or had last, a PID; NULL: nothing. */
const struct spawned *csink_collect_spawned(const struct collector *c, int32_t pid);

/** Count one more recording with this fact. */
__attribute__((format(printf, 3, 4))) void csink_collect_tally(struct collector *c, const char *key, const char *fmt,
							       ...);

/** Count a program that could not be profiled. @reason 0: unknown. */
void csink_collect_unprofiled(struct collector *c, const char *name, enum csink_spawn_reason reason);

/** Does its process go on? Whether it has the recording open counts, where the kernel says: its PID may be another's.
 */
bool csink_collect_is_running(const struct image *image);

/** An image of a process. */
struct csink_collect_part {
	int32_t pid;
	uint32_t image; /* its number; ascending: by start */
};

/** All images by PID, those of a process in order. Returns a malloc'ed array, or NULL without memory. */
struct csink_collect_part *csink_collect_parts(const struct collector *c);

/** Names of locks are of a recording's modules from here on, as long as it is read. Returns 0 or -ENOMEM. */
int csink_collect_lock_modules(struct collector *c, const struct csink_recorded *rec);

/** The name of a lock of that recording as a string of the profile; 0: it is in no object's data. */
csink_str_t csink_collect_lock_name(struct collector *c, uint64_t address);
void csink_lock_names_free(struct csink_lock_names *names);

/** Give the labels of holders, and of locks that were made somewhere, their text: functions have names now. */
void csink_collect_holders(struct collector *c);

/** Note what a recording's allocations do not show: heaps that are not malloc's. */
void csink_collect_private_heaps(struct collector *c, const struct csink_recorded *rec);

/** Read one recording's stacks, threads, losses and notes into the profile. Returns 0 or -ENOMEM. */
int csink_collect_recording(struct collector *c, struct image *image, const struct csink_recorded *rec);

/**
 * Take what a recording has about itself: its engine, its losses, notes, programs that could not be preloaded into.
 * @is_shown  false: all of its samples are in another recording, too, which is shown.
 */
void csink_collect_notes(struct collector *c, const struct image *image, const struct csink_recorded *rec,
			 bool is_shown);

/** Name everything that the recordings brought. Returns 0 or -ENOMEM. */
int csink_collect_symbols(struct collector *c);

/**
 * Account for CPU time that no sample has: of each recording, then of the whole tree as the kernel has it; of attach
 * also for counts of other events.
 */
void csink_collect_account(struct collector *c);

/**
 * Add values that no sample has.
 * @word   for the label: "start-up"
 * @frame  "[start-up: exec and loader]"
 * @callers  location ids ended by 0, or NULL
 * @labels nr_labels of them, before the pseudo one; at most 8; may be those of a set of the profile
 */
void csink_collect_pseudo(struct collector *c, const char *word, const char *frame, const uint32_t *callers,
			  const struct csink_profile_label *labels, uint32_t nr_labels, const int64_t *values);

/** The stack with one function of the kernel. */
uint32_t csink_collect_kernel_stack(struct collector *c, const char *name);

/** Take in the variables of a recording's process that have its rank. Returns 0 or -ENOMEM. */
int csink_collect_rank(struct collector *c, const struct csink_rec_header *header);

/** Take the launcher's own rank for that of processes that have no other. */
void csink_collect_own_rank(struct collector *c);

/** The comments about ranks and the batch job. */
void csink_collect_rank_facts(struct collector *c);

/** The rank of a process, or -1: it has none. */
int32_t csink_collect_rank_of(const struct collector *c, int32_t pid);

/** The labels of a process; labels has room for 3. Returns how many. */
uint32_t csink_collect_process_labels(struct collector *c, int32_t pid, const char *comm,
				      struct csink_profile_label *labels);

/**
 * Of a slice, before samples are read: what of an image slices before it have, and whether it goes on. Its
 * covered_cpu_ns then begins with that.
 */
void csink_collect_slice_image(struct collector *c, struct image *image);

/** Of a slice: its image's covered_cpu_ns has all but its start-up, which is noted for the next slice. */
void csink_collect_slice_given(struct collector *c, const struct image *image);

/** The comments of a slice: which one it is. Its times become the profile's. */
void csink_collect_slice_facts(struct collector *c);

/** Write the comments. */
void csink_collect_facts(struct collector *c);

#endif
