/*
 * Reads recordings (include/internal/recording_format.h) as untrusted input: what is handed out here has been checked,
 * so that its users need not check a size, a count or a reference again. Strings are ended, but may hold any byte.
 */
#ifndef CSINK_RECORDING_READ_H
#define CSINK_RECORDING_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/internal/recording_format.h"

#define CSINK_RECORDED_NONE UINT32_MAX

/* A row, or a cell. */
struct csink_recorded_row {
	csink_ref_t ref;
	uint32_t thread; /* index, or CSINK_RECORDED_NONE */
	uint32_t node;   /* index, or CSINK_RECORDED_NONE */
	uint16_t phase;
	uint64_t leaf;
	uint64_t nr_samples;
};

/* A caller, or a root of stacks. From every one a root is reached in at most CSINK_MAX_DEPTH + 1 steps. */
struct csink_recorded_node {
	uint64_t pc; /* of a root: its time */
	csink_ref_t ref;
	uint32_t parent; /* index; CSINK_RECORDED_NONE: a root */
	uint32_t root;   /* index, its own if it is one; CSINK_RECORDED_NONE: it has none, and no stack refers to it */
	uint32_t depth;  /* of a root 0 */
};

/* Entries in the order of the file. Everything points into this structure's own copy of the file. */
struct csink_recorded {
	struct csink_rec_header header; /* strings ended, nr_events <= CSINK_MAX_EVENTS */
	const struct csink_rec_module **modules;
	const struct csink_rec_thread **threads;
	struct csink_recorded_node *nodes;
	struct csink_recorded_row *rows;
	uint64_t *weights;   /* of row i, event e: [i * header.nr_events + e] */
	uint64_t *former_ns; /* of threads: CPU time that csink_recorded_subtract() took out of their samples; NULL:
				none */
	const struct csink_rec_note **notes;
	const struct csink_rec_spawn **spawns;
	const struct csink_rec_phase **phases;
	const struct csink_rec_code **codes;         /* texts end with NUL, tables are within the entry */
	const struct csink_rec_image **images;       /* nr_image of each is within the entry */
	struct csink_rec_wait **waits;               /* sums are changed where a slice begins later */
	const struct csink_rec_timeline **timelines; /* nr of each is within the entry */
	uint64_t nr_gone_threads;                    /* whose entries other threads have now */
	uint64_t nr_former_threads;                  /* of a slice: how many of the threads slices before have, too */
	uint32_t nr_former_dated;                    /* the same of dated releases */
	uint32_t nr_modules, nr_threads, nr_nodes, nr_rows, nr_notes, nr_spawns, nr_timelines, nr_phases, nr_codes,
		nr_images, nr_waits;
	uint32_t nr_damaged; /* extents and entries that could not be read, and rows whose references lead nowhere */
	uint64_t *filled;    /* a bit for each block that has data, and is no hole of the file; NULL: all have */
	bool is_cut;         /* the file is shorter than its header says */
	void *data;
	size_t bytes;
};

/**
 * Read a recording. Memory is bounded by a small multiple of the file's data on disk; a damaged entry costs the rest of
 * its extent, which is counted in nr_damaged.
 * @why  receives a phrase for people on error ("not a recording"); may be NULL, then why_len is 0.
 * Returns 0 (csink_recorded_free it), -EBADMSG (no recording, or its header is damaged), -EPROTO (of another
 * version), -ENOMEM, or what opening and reading gave. Context: thread.
 */
int csink_recorded_read(const char *path, struct csink_recorded *rec, char *why, size_t why_len);

/**
 * Copy what is in use of a recording as it is now, to be parsed later: header, data, bytes and filled are set, and
 * nothing else. Returns as above.
 */
int csink_recorded_copy(const char *path, struct csink_recorded *rec, char *why, size_t why_len);

/** The same, but of a recording that was collected while its process goes on: as it was at the cut; then it returns 1.
 */
int csink_recorded_copy_collected(const char *path, struct csink_recorded *rec, char *why, size_t why_len);

/** The same from a part of a file that is such a copy. */
int csink_recorded_copy_part(int fd, int64_t at, uint64_t bytes, struct csink_recorded *rec);

/** Read the header alone, checked as above. */
int csink_recorded_read_header(const char *path, struct csink_rec_header *header, char *why, size_t why_len);

/** Parse a copy, which stays as it is. Returns as csink_recorded_read(). */
int csink_recorded_parse_copy(const struct csink_recorded *copy, struct csink_recorded *rec, char *why, size_t why_len);

/** The same as a whole from memory (copied), for tests and fuzzers. */
int csink_recorded_parse(const void *buf, size_t len, struct csink_recorded *rec, char *why, size_t why_len);

/** The index in rows of the row or cell at a reference, or CSINK_RECORDED_NONE. */
uint32_t csink_recorded_row_at(const struct csink_recorded *rec, csink_ref_t ref);

/** The CPU time of a thread as a profile has it: by its clock, where that is known and the event, which goes on in time
 * that a hypervisor takes, counted more. */
static inline uint64_t csink_recorded_thread_ns(const struct csink_rec_thread *thread, uint32_t event)
{
	uint64_t counted = thread->totals[event], clock = counted - CSINK_MIN(thread->stolen_ns, counted);

	return CSINK_MIN(thread->cpu_ns ? thread->cpu_ns : clock, counted);
}

/** The function of an interpreter at a reference, or NULL. */
const struct csink_rec_code *csink_recorded_code_at(const struct csink_recorded *rec, csink_ref_t ref);

/** The index in images of the image at a reference, or CSINK_RECORDED_NONE. */
uint32_t csink_recorded_image_at(const struct csink_recorded *rec, csink_ref_t ref);

/** Free what a successful read or parse allocated. */
void csink_recorded_free(struct csink_recorded *rec);

#endif
