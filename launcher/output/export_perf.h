/* What the export_perf*.c files share; no other file includes this. */
#ifndef CSINK_EXPORT_PERF_H
#define CSINK_EXPORT_PERF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "launcher/output/thread_names.h"

struct csink_profile;

#define CSINK_PERF_MAX_EVENTS 16
#define CSINK_PERF_MAX_IPS 1024

struct csink_perf {
	const struct csink_profile *p;
	struct csink_threads threads;
	struct csink_perf_process {
		int32_t pid, tid;
	} * processes; /* of each thread: as perf's records have it */
	struct csink_perf_object {
		uint64_t start, bytes, offset; /* of the mapping in the profile */
		uint64_t base;                 /* where it is in the file */
		const char *file;
		uint8_t build_id[20], build_id_len;
	} * objects; /* of each mapping */
	struct csink_perf_symbol {
		uint64_t address; /* 0: none yet */
		uint32_t lines;   /* from its first to the last one that is in the profile */
		bool is_interpreted;
	} * symbols;           /* of each function in no object */
	uint64_t symbol_bytes; /* of all that have an address */
	struct csink_perf_type {
		uint32_t type; /* of the profile */
		const char *name;
	} events[CSINK_PERF_MAX_EVENTS];
	uint32_t nr_events;
	bool has_times;

	uint64_t ips[CSINK_PERF_MAX_IPS]; /* the call chain at hand */
	uint32_t nr_ips;
	uint64_t context;

	FILE *names, *data; /* in memory: COMM, MMAP2, KSYMBOL; then samples */
	char *names_text, *data_text;
	size_t names_bytes, data_bytes;
};

/** Write a name and zeros up to so many bytes, with at least one NUL; a longer name is cut. */
void csink_perf_put_name(FILE *out, const char *name, size_t padded);

/** Write header, attributes, the records and what perf calls features. Returns 0 or -ENOMEM; errors of the stream are
 * the stream's. */
int csink_perf_write_file(FILE *out, const struct csink_perf *e);

#endif
