/* Writes what symbols_cache.c reads, and keeps the directory from growing: see symbols_cache.h. */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "include/internal/grow.h"
#include "launcher/base/outfile.h"
#include "launcher/base/search.h"
#include "launcher/symbols/symbols_cache_impl.h"

#define MAX_BYTES (256LL << 20) /* of all files */
#define MAX_ANSWERS 500000      /* of a file; what was known before gives way */

/* ---- the directory ---- */

static int compare_times(const FTSENT **a, const FTSENT **b)
{
	const struct timespec *left = &(*a)->fts_statp->st_mtim, *right = &(*b)->fts_statp->st_mtim;

	return CSINK_COMPARE(left->tv_sec, right->tv_sec) ?: CSINK_COMPARE(left->tv_nsec, right->tv_nsec);
}

/* Remove the oldest files if all together are larger than MAX_BYTES. */
static void prune(const char *file)
{
	char parent[4096], path[4096 + NAME_MAX], *const roots[] = {parent, NULL};
	const FTSENT *all, *at;
	int64_t bytes = 0;
	FTS *files;

	snprintf(parent, sizeof(parent), "%s", file);
	*strrchr(parent, '/') = 0;
	files = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, compare_times);
	all = files && fts_read(files) ? fts_children(files, 0) : NULL;
	for (at = all; at; at = at->fts_link)
		bytes += at->fts_info == FTS_F ? at->fts_statp->st_size : 0;
	for (at = all; at && bytes > MAX_BYTES; at = at->fts_link) {
		snprintf(path, sizeof(path), "%s/%s", parent, at->fts_name);
		if (at->fts_info == FTS_F && !unlink(path))
			bytes -= at->fts_statp->st_size;
	}
	if (files)
		fts_close(files);
}

/* ---- a file ---- */

/* The file as it will be. Functions and texts are the profile's, which has each of them once. */
struct making {
	struct csink_profile *p;
	struct csink_answer *answers; /* location: index of the first line */
	struct csink_kept_line *lines;
	uint16_t *nr_of; /* lines of each answer */
	uint32_t nr_answers, cap_answers, nr_lines, cap_lines, cap_of;
};

/* Lines that the last answers had are not written again: neighbours often share them. */
#define LOOK_BACK 32

static bool has_lines(const struct making *m, uint32_t answer, const struct csink_profile_line *lines, uint32_t nr)
{
	const struct csink_kept_line *kept = m->lines + m->answers[answer].location;

	if (m->nr_of[answer] != nr)
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		if (kept[i].function != lines[i].function || kept[i].line != (uint32_t)lines[i].line)
			return false;
	}
	return true;
}

static int make_answer(struct making *m, uint64_t low, uint64_t high, int flags, const struct csink_profile_line *lines,
		       uint32_t nr)
{
	uint32_t same = m->nr_answers;

	for (uint32_t i = 1; nr && same == m->nr_answers && i <= CSINK_MIN(m->nr_answers, (uint32_t)LOOK_BACK); i++) {
		if (has_lines(m, m->nr_answers - i, lines, nr))
			same = m->nr_answers - i;
	}
	if (CSINK_GROW(m->answers, m->nr_answers, m->cap_answers) || CSINK_GROW(m->nr_of, m->nr_answers, m->cap_of))
		return -ENOMEM;
	m->answers[m->nr_answers] =
		(struct csink_answer){low, high, same < m->nr_answers ? m->answers[same].location : m->nr_lines, flags};
	m->nr_of[m->nr_answers] = (uint16_t)nr;
	for (uint32_t i = 0; same == m->nr_answers && i < nr; i++) {
		if (!CSINK_APPEND(m->lines, m->nr_lines, m->cap_lines,
				  (struct csink_kept_line){lines[i].function, (uint32_t)lines[i].line}))
			return -ENOMEM;
	}
	m->nr_answers++;
	return 0;
}

/* functions: of the answers' profile in ours; 0: not there yet. */
static uint32_t copy_function(struct making *m, const struct csink_profile *from, uint32_t *functions, uint32_t id)
{
	struct csink_profile_function function = from->functions[id];

	if (!functions[id]) {
		function.name = csink_profile_str(m->p, csink_profile_text(from, function.name));
		function.system_name = csink_profile_str(m->p, csink_profile_text(from, function.system_name));
		function.file = csink_profile_str(m->p, csink_profile_text(from, function.file));
		functions[id] = csink_profile_function_add(m->p, &function);
	}
	return functions[id];
}

static int make_new(struct making *m, const struct csink_answers *answers)
{
	const struct csink_profile *from = answers->p;
	uint32_t *functions = answers->nr ? calloc(from->nr_functions + 1UL, sizeof(*functions)) : NULL;
	struct csink_profile_line lines[CSINK_KEPT_MAX_LINES];
	int err = functions || !answers->nr ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < answers->nr && !err; i++) {
		const struct csink_answer *answer = &answers->all[i];
		const struct csink_profile_location *at = &from->locations[answer->location];

		if (at->nr_lines > CSINK_KEPT_MAX_LINES)
			continue;
		for (uint32_t k = 0; k < at->nr_lines; k++) {
			lines[k] = from->lines[at->first_line + k];
			lines[k].function = copy_function(m, from, functions, lines[k].function);
		}
		err = make_answer(m, answer->low, answer->high, answer->flags, lines, at->nr_lines);
	}
	free(functions);
	return err;
}

static bool is_among(const struct csink_answers *answers, uint32_t nr, uint64_t low, uint64_t high)
{
	for (uint32_t k = 0; k < nr; k++) {
		uint32_t at = CSINK_LOWER(answers[k].nr, i, answers[k].all[i].high <= low);

		if (at < answers[k].nr && answers[k].all[at].low < high)
			return true;
	}
	return false;
}

/* The answers known before, except for those that are replaced. */
static int make_known(struct making *m, struct csink_symbols_file *known, const struct csink_answers *answers,
		      uint32_t nr)
{
	struct csink_kept_taking taking = {
		.from = known, .to = m->p, .functions = calloc(known->header.nr_functions + 1UL, sizeof(uint32_t))};
	struct csink_profile_line lines[CSINK_KEPT_MAX_LINES];
	int err = taking.functions ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < known->header.nr_answers && m->nr_answers < MAX_ANSWERS && !err; i++) {
		const struct csink_kept_answer *answer = csink_kept_answer_at(known, i);
		uint64_t low = answer ? known->header.base + answer->low : 0;
		int got = -1;

		if (answer && !is_among(answers, nr, low, low + answer->bytes))
			got = csink_kept_take_lines(&taking, answer, lines);
		if (got >= 0)
			err = make_answer(m, low, low + answer->bytes, answer->flags, lines, (uint32_t)got);
	}
	free(taking.functions);
	return err;
}

/* Texts behind each other, and where each begins: offsets, by the id of the string. */
static uint64_t place_texts(const struct csink_profile *p, uint32_t *offsets)
{
	uint64_t bytes = 1;

	for (uint32_t i = 1; i < p->nr_strings; i++) {
		offsets[i] = (uint32_t)bytes;
		bytes += p->strings[i].len + 1;
	}
	return bytes;
}

static int compare_answers(const void *a, const void *b)
{
	const struct csink_kept_answer *left = a, *right = b;

	return CSINK_COMPARE(left->low, right->low);
}

static void encode_answers(const struct making *m, uint64_t base, struct csink_kept_answer *out)
{
	for (uint32_t i = 0; i < m->nr_answers; i++)
		out[i] = (struct csink_kept_answer){(uint32_t)(m->answers[i].low - base),
						    (uint32_t)(m->answers[i].high - m->answers[i].low),
						    m->answers[i].location, m->nr_of[i], (uint16_t)m->answers[i].flags};
	if (m->nr_answers)
		qsort(out, m->nr_answers, sizeof(*out), compare_answers);
}

/* out: of len bytes, all 0. The header has its numbers. */
static void encode(const struct making *m, struct csink_kept_header *h, const uint32_t *offsets, char *out)
{
	const struct csink_profile *p = m->p;
	struct csink_kept_answer *answers = (struct csink_kept_answer *)out;
	struct csink_kept_line *lines = (struct csink_kept_line *)(answers + h->nr_answers);
	struct csink_kept_function *functions = (struct csink_kept_function *)(lines + h->nr_lines);
	char *text = (char *)(functions + h->nr_functions);

	encode_answers(m, h->base, answers);
	if (m->nr_lines)
		memcpy(lines, m->lines, m->nr_lines * sizeof(*lines));
	for (uint32_t i = 1; i < p->nr_functions; i++) {
		const struct csink_profile_function *f = &p->functions[i];

		functions[i] = (struct csink_kept_function){offsets[f->name], offsets[f->system_name], offsets[f->file],
							    (uint32_t)f->start_line};
	}
	for (uint32_t i = 1; i < p->nr_strings; i++)
		memcpy(text + offsets[i], p->strings[i].text, p->strings[i].len);
}

static bool write_parts(int fd, const struct iovec *parts, int nr)
{
	ssize_t len = 0;

	for (int i = 0; i < nr; i++)
		len += (ssize_t)parts[i].iov_len;
	return writev(fd, parts, nr) == len;
}

/* A failure costs the next run some time, and nothing else. */
static void write_file(const char *path, const struct iovec *parts, int nr)
{
	struct csink_outfile file;

	if (!csink_outfile_open(&file, path, CSINK_OUTFILE_PRIVATE))
		csink_outfile_close(&file, write_parts(file.fd, parts, nr) ? 0 : -EIO);
}

/* The same for a file without a name, which is known from now on. Not memory of this process: children would get it. */
static void write_memory(struct csink_symbols_cache *cache, const struct iovec *parts, int nr)
{
	struct csink_symbols_file *known = NULL;
	int fd = memfd_create("countersink-symbols", MFD_CLOEXEC);

	if (fd >= 0 && write_parts(fd, parts, nr))
		known = csink_kept_open(fd, NULL);
	else if (fd >= 0)
		close(fd);
	if (!known)
		return;
	csink_kept_close(cache->known);
	cache->known = known;
}

/* The addresses of one object are not far apart: otherwise it is not kept. */
static bool find_base(const struct making *m, struct csink_kept_header *h)
{
	uint64_t high = 0;

	h->base = UINT64_MAX;
	for (uint32_t i = 0; i < m->nr_answers; i++) {
		h->base = CSINK_MIN(h->base, m->answers[i].low);
		high = CSINK_MAX(high, m->answers[i].high);
	}
	return m->nr_answers && high - h->base <= UINT32_MAX;
}

static void write_made(struct making *m, struct csink_symbols_cache *cache, bool is_whole)
{
	struct csink_kept_header h = {.is_whole = is_whole,
				      .nr_answers = m->nr_answers,
				      .nr_lines = m->nr_lines,
				      .nr_functions = m->p->nr_functions};
	uint32_t *offsets = calloc(m->p->nr_strings + 1UL, sizeof(*offsets)), *sums = NULL;
	uint64_t len, nr = 0;
	char *out = NULL;

	len = (uint64_t)h.nr_answers * sizeof(struct csink_kept_answer) +
	      (uint64_t)h.nr_lines * sizeof(struct csink_kept_line) +
	      (uint64_t)h.nr_functions * sizeof(struct csink_kept_function);
	if (offsets && find_base(m, &h)) {
		h.text_bytes = (uint32_t)place_texts(m->p, offsets);
		len += h.text_bytes;
		nr = csink_kept_blocks(len);
		out = len < CSINK_KEPT_MAX_FILE / 2 ? calloc(1, len) : NULL;
		sums = calloc(nr + 1, sizeof(*sums));
	}
	if (out && sums) {
		struct iovec parts[] = {{&h, sizeof(h)}, {sums, nr * sizeof(*sums)}, {out, len}};

		memcpy(h.magic, CSINK_KEPT_MAGIC, sizeof(h.magic));
		snprintf(h.source, sizeof(h.source), "%s", cache->source);
		encode(m, &h, offsets, out);
		for (uint64_t i = 0; i < nr; i++)
			sums[i] = csink_kept_sum(out + i * CSINK_KEPT_BLOCK,
						 CSINK_MIN(len - i * CSINK_KEPT_BLOCK, (uint64_t)CSINK_KEPT_BLOCK), i);
		h.sum = csink_kept_sum_header(&h, sums, nr);
		if (*cache->path) {
			write_file(cache->path, parts, CSINK_ARRAY_SIZE(parts));
			prune(cache->path);
		}
		if (cache->in_memory)
			write_memory(cache, parts, CSINK_ARRAY_SIZE(parts));
	}
	free(out);
	free(sums);
	free(offsets);
}

void csink_symbols_cache_put(struct csink_symbols_cache *cache, const struct csink_answers *answers, uint32_t nr,
			     bool is_whole)
{
	struct making making = {.p = *cache->path || cache->in_memory ? csink_profile_create() : NULL};
	int err = making.p ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nr && !err; i++)
		err = make_new(&making, &answers[i]);
	if (!err && cache->known)
		err = make_known(&making, cache->known, answers, nr);
	if (!err && !csink_profile_error(making.p))
		write_made(&making, cache, is_whole);
	csink_profile_free(making.p);
	free(making.answers);
	free(making.nr_of);
	free(making.lines);
}
