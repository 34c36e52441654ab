/* The format of a cache file. Private to symbols_cache.c, which reads it, and symbols_cache_write.c, which writes it.
 */
#ifndef CSINK_SYMBOLS_CACHE_IMPL_H
#define CSINK_SYMBOLS_CACHE_IMPL_H

#include <stddef.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/symbols/symbols_cache.h"
#include "launcher/symbols/symbols_impl.h"

#define CSINK_KEPT_MAX_FILE (64 << 20) /* bytes */
#define CSINK_KEPT_MAX_LINES 64        /* of an answer */

/*
 * Of this machine's byte order and for it alone: the header, sums of blocks, and then what they are of: answers, sorted
 * and apart; lines; functions; texts, each ended by a zero, the first one empty. Of a large file only the blocks are
 * read that a search comes through; one whose sum is wrong, as of a machine that lost power, is ignored.
 */
struct csink_kept_header {
	char magic[8];
	uint32_t sum;      /* of the header behind this field, and of the sums of blocks */
	uint32_t is_whole; /* no address without an answer is in the debug information */
	uint64_t base;     /* of the addresses of answers */
	uint32_t nr_answers, nr_lines, nr_functions, text_bytes;
	char source[512];
};

struct csink_kept_answer {
	uint32_t low, bytes; /* low: from base on */
	uint32_t first_line;
	uint16_t nr_lines;
	uint16_t flags;
};

struct csink_kept_line {
	uint32_t function, line;
};

struct csink_kept_function {
	uint32_t name, system_name, file; /* where the text begins */
	uint32_t start_line;
};

#define CSINK_KEPT_BLOCK 4096
#define CSINK_KEPT_MAGIC "csinkAN2"

/* One that is open. */
struct csink_symbols_file {
	int fd;
	struct csink_kept_header header;
	char *map; /* the whole file */
	size_t map_bytes;
	const uint32_t *sums;                     /* of the blocks */
	const char *bytes;                        /* what follows these */
	bool *is_read;                            /* of each block: its checksum is right */
	uint64_t len;                             /* of bytes */
	uint64_t lines_at, functions_at, text_at; /* in bytes */
	bool is_damaged;
};

static inline uint32_t csink_kept_sum(const void *bytes, size_t len, uint64_t sum)
{
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), bytes = (const char *)bytes + sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 29;
	}
	for (; len; len--, bytes = (const char *)bytes + 1)
		sum = (sum ^ *(const uint8_t *)bytes) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(sum ^ sum >> 32);
}

static inline uint32_t csink_kept_sum_header(const struct csink_kept_header *h, const uint32_t *sums, uint64_t nr)
{
	size_t head = offsetof(struct csink_kept_header, is_whole);

	return csink_kept_sum(sums, nr * sizeof(*sums), csink_kept_sum((const char *)h + head, sizeof(*h) - head, 1));
}

static inline uint64_t csink_kept_blocks(uint64_t len)
{
	return (len + CSINK_KEPT_BLOCK - 1) / CSINK_KEPT_BLOCK;
}

/**
 * Read a file that is open. @source  as it has to be; NULL: any. Closes fd, at the latest with csink_kept_close().
 * NULL: it is none of ours, is damaged, or there is no memory.
 */
struct csink_symbols_file *csink_kept_open(int fd, const char *source);
void csink_kept_close(struct csink_symbols_file *file);

/** An answer of a file by its index, or NULL if that part is damaged. */
const struct csink_kept_answer *csink_kept_answer_at(struct csink_symbols_file *file, uint32_t index);

/* From a file into a profile. */
struct csink_kept_taking {
	struct csink_symbols_file *from;
	struct csink_profile *to;
	uint32_t *functions; /* those of the file in the profile; 0: not there yet */
};

/** Fill in the lines of an answer (CSINK_KEPT_MAX_LINES). Returns their number, or -1 if the answer is none. */
int csink_kept_take_lines(struct csink_kept_taking *t, const struct csink_kept_answer *answer,
			  struct csink_profile_line *lines);

#endif
