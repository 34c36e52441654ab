/* See object_code.h. Runs in the attach command's one thread. */
#include "launcher/attach/object_code.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/regular.h"

#define CHUNK (64U << 10) /* bytes that are read at once, of the file */
#define NR_CHUNKS 256     /* at most, of an object: the last ones that were asked for */

struct csink_object_code {
	const char *memory; /* NULL: the file has them */
	uint64_t bytes;
	struct stat file;
	bool is_gone; /* its path has another file by now, or none */
	struct chunk {
		uint64_t number; /* + 1; 0: none */
		uint32_t bytes;
		char *at;
	} chunks[NR_CHUNKS];
};

struct csink_object_code *csink_object_code_new(const struct stat *file, const void *memory, uint64_t bytes)
{
	struct csink_object_code *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	code->memory = memory;
	code->bytes = bytes;
	if (file)
		code->file = *file;
	return code;
}

void csink_object_code_free(struct csink_object_code *code)
{
	for (uint32_t i = 0; code && i < NR_CHUNKS; i++)
		free(code->chunks[i].at);
	free(code);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void read_chunk(struct csink_object_code *code, const char *path, struct chunk *chunk, uint64_t number)
{
	int fd = csink_regular_open(path, 0, CSINK_REGULAR_ANY);
	struct stat now;
	ssize_t n = -1;

	if (fd < 0 || fstat(fd, &now) || !is_same(&now, &code->file)) {
		code->is_gone = true;
	} else {
		if (!chunk->at)
			chunk->at = malloc(CHUNK);
		if (chunk->at)
			n = pread(fd, chunk->at, CHUNK, (off_t)(number * CHUNK));
		chunk->number = number + 1;
		chunk->bytes = n > 0 ? (uint32_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
}

/* Bytes of the file, from an offset to where a chunk ends. */
static size_t copy(struct csink_object_code *code, const char *path, uint64_t offset, char *to, size_t bytes)
{
	uint64_t number = offset / CHUNK, within = offset % CHUNK;
	struct chunk *chunk = &code->chunks[number % NR_CHUNKS];

	if (code->memory) {
		bytes = offset < code->bytes ? CSINK_MIN(bytes, code->bytes - offset) : 0;
		memcpy(to, code->memory + offset, bytes);
		return bytes;
	}
	if (chunk->number != number + 1 && !code->is_gone)
		read_chunk(code, path, chunk, number);
	if (chunk->number != number + 1 || within >= chunk->bytes)
		return 0;
	bytes = CSINK_MIN(bytes, chunk->bytes - within);
	memcpy(to, chunk->at + within, bytes);
	return bytes;
}

size_t csink_object_code_read(const struct csink_attach_object *object, uint64_t vaddr, void *to, size_t bytes)
{
	for (uint32_t i = 0; i < object->nr_code && object->instructions; i++) {
		uint64_t before = vaddr - object->code[i].vaddr, left = object->code[i].filesz - before;
		size_t done, more;

		if (vaddr < object->code[i].vaddr || before >= object->code[i].filesz)
			continue;
		bytes = CSINK_MIN(bytes, left);
		done = copy(object->instructions, object->path, object->code[i].offset + before, to, bytes);
		more = done && done < bytes
			       ? copy(object->instructions, object->path, object->code[i].offset + before + done,
				      (char *)to + done, bytes - done)
			       : 0;
		return done + more;
	}
	return 0;
}
