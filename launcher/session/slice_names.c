/* Names by a template, and which of them are slices: see slice_names.h. */
#include "launcher/session/slice_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/message.h"
#include "launcher/base/outfile.h"
#include "launcher/base/rank.h"
#include "launcher/base/search.h"

/* Marks in a pattern: control characters, which no value of a letter has. The number has a dot before it. */
enum { MARK_TIME = 1, MARK_NUMBER, MARK_PID };
static const char time_mark[] = {MARK_TIME, 0}, pid_mark[] = {MARK_PID, 0};

#define TIME_FORM "00000000T000000Z" /* 0: a digit */
#define TIME_BYTES (sizeof(TIME_FORM) - 1)
#define DIGITS "0123456789"
#define MIN_DIGITS 4
#define MAX_DIGITS 18
#define MAX_VALUE 100 /* bytes of a variable's */

/* ---- letters ---- */

void csink_output_time(uint64_t realtime_ns, char text[24])
{
	time_t seconds = (time_t)(realtime_ns / CSINK_NS_PER_S);
	struct tm tm = {0};

	gmtime_r(&seconds, &tm);
	if (!strftime(text, 24, "%Y%m%dT%H%M%SZ", &tm))
		*text = '\0';
}

struct text {
	char *out;
	size_t size, used;
	bool is_full;
};

static void put(struct text *t, char c)
{
	t->is_full |= t->used + 1 >= t->size;
	if (!t->is_full)
		t->out[t->used++] = c;
}

/* What is replaced here is not to be taken for a letter, or a mark, afterwards. */
static void put_value(struct text *t, const char *value)
{
	for (size_t i = 0; value[i] && i < MAX_VALUE; i++) {
		unsigned char c = (unsigned char)value[i];

		if (c == '%')
			put(t, '%');
		put(t, c < ' ' || c == 0x7f || c == '/' ? '_' : value[i]);
	}
}

static void put_text(struct text *t, const char *text)
{
	while (*text)
		put(t, *text++);
}

static const char *variable(const char *first, const char *second, const char *third)
{
	const char *names[] = {first, second, third}, *value = NULL;

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(names) && !(value && *value); i++)
		value = names[i] ? getenv(names[i]) : NULL;
	return value && *value ? value : "0";
}

static void put_size(struct text *t)
{
	struct csink_rank rank;
	char number[16];

	snprintf(number, sizeof(number), "%" PRId32, csink_rank_own(&rank) ? rank.size : 1);
	put_value(t, number);
}

/* Returns false if there is no such letter. */
static bool put_letter(struct text *t, char letter, const char *time, const char *pid)
{
	switch (letter) {
	case 't':
		put_text(t, time);
		return true;
	case 'j':
		put_value(t, variable("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"));
		return true;
	case 's':
		put_value(t, variable("SLURM_STEP_ID", NULL, NULL));
		return true;
	case 'n':
		put_size(t);
		return true;
	case 'p':
		if (pid) {
			put_text(t, pid);
			return true;
		}
		/* fall through */
	case 'h':
	case 'c':
	case 'r':
	case '%':
		put(t, '%');
		put(t, letter);
		return true;
	default:
		return false;
	}
}

int csink_output_letters(const char *template, const char *time, const char *pid, char *out, size_t size, char *why,
			 size_t why_size)
{
	struct text t = {.out = out, .size = size};

	for (const char *c = template; *c; c++) {
		if (*c != '%')
			put(&t, *c > 0 && *c <= MARK_PID ? '_' : *c);
		else if (!put_letter(&t, *++c, time, pid))
			return csink_why(-EINVAL, why, why_size,
					 "'%%%.1s' means nothing: %%p pid, %%h host, %%c command, %%r rank, %%n ranks, "
					 "%%j job, %%s step, %%t start, %%%% a percent sign",
					 c);
	}
	if (t.is_full)
		return csink_why(-ENAMETOOLONG, why, why_size, "the path is too long");
	out[t.used] = '\0';
	return 0;
}

/* ---- patterns ---- */

/* The ending of a name: its last two parts where the last one is .gz, else the last. */
static char *ending_of(char *name)
{
	char *dot = strrchr(name, '.'), *before;

	if (!dot || dot == name)
		return name + strlen(name);
	if (strcmp(dot, ".gz"))
		return dot;
	*dot = '\0';
	before = strrchr(name, '.');
	*dot = '.';
	return before && before != name ? before : dot;
}

/* /dev/null.20261122T081500Z.0001 is not what was meant. */
static bool is_no_file(const char *path)
{
	struct stat st;

	return csink_outfile_descriptor(path) >= 0 || (!stat(path, &st) && !S_ISREG(st.st_mode));
}

int csink_slice_names_init(struct csink_slice_names *names, const char *template,
			   const struct csink_output_names *values, char *why, size_t why_size)
{
	static const char with_time[] = {'.', MARK_TIME, MARK_NUMBER, 0}, number_alone[] = {MARK_NUMBER, 0};
	char first[PATH_MAX];
	const char *mark;
	char *ending;
	int err = csink_output_letters(template, time_mark, pid_mark, first, sizeof(first), why, why_size);

	*names = (struct csink_slice_names){.pid = values->pid};
	/* Room for what comes in place of the marks. */
	err = err ?: csink_output_expand(first, values, names->pattern, sizeof(names->pattern) - 64, why, why_size);
	if (err)
		return err;
	names->name_at = (size_t)(csink_output_name(names->pattern) - names->pattern);
	if (!names->pattern[names->name_at])
		return csink_why(-EINVAL, why, why_size, "the path names a directory: name a file in it");
	mark = strchr(names->pattern, MARK_TIME);
	if (mark && mark < names->pattern + names->name_at)
		return csink_why(-EINVAL, why, why_size,
				 "%%t is in the name of a directory, which would be another one for each slice");
	names->has_time = mark;
	if (!mark && is_no_file(names->pattern))
		return csink_why(-EINVAL, why, why_size,
				 "%s is not a regular file, and slices are files: use --output=NAME.pb.gz",
				 names->pattern);
	ending = ending_of(names->pattern + names->name_at);
	mark = names->has_time ? number_alone : with_time;
	memmove(ending + strlen(mark), ending, strlen(ending) + 1);
	memcpy(ending, mark, strlen(mark));
	return 0;
}

int csink_slice_names_make(const struct csink_slice_names *names, uint64_t realtime_ns, uint64_t number, char *out,
			   size_t size)
{
	struct text t = {.out = out, .size = size};
	char time[24], text[32];

	csink_output_time(realtime_ns, time);
	for (const char *c = names->pattern; *c; c++) {
		*text = '\0';
		switch (*c) {
		case MARK_TIME:
			put_text(&t, time);
			break;
		case MARK_NUMBER:
			if (number)
				snprintf(text, sizeof(text), ".%0*" PRIu64, MIN_DIGITS, number);
			put_text(&t, text);
			break;
		case MARK_PID:
			snprintf(text, sizeof(text), "%" PRId32, names->pid);
			put_text(&t, text);
			break;
		default:
			put(&t, *c);
		}
	}
	if (t.is_full)
		return -ENAMETOOLONG;
	out[t.used] = '\0';
	return 0;
}

/* ---- which names are slices ---- */

struct slice_file {
	char name[NAME_MAX + 1];
	char time[TIME_BYTES + 1];
	bool is_ahead;   /* that time is still to come: the clock has been set back since */
	uint64_t number; /* 0: none */
	uint64_t bytes;
};

static bool take_time(const char **name, char *time)
{
	for (size_t i = 0; i < TIME_BYTES; i++) {
		char c = (*name)[i];

		if (TIME_FORM[i] == '0' ? c < '0' || c > '9' : c != TIME_FORM[i])
			return false;
	}
	memcpy(time, *name, TIME_BYTES);
	*name += TIME_BYTES;
	return true;
}

static bool take_digits(const char **name, size_t least, uint64_t *number)
{
	size_t len = strspn(*name, DIGITS);

	if (len < least || len > MAX_DIGITS)
		return false;
	*number = strtoull(*name, NULL, 10);
	*name += len;
	return true;
}

/* The number with its dot: it may be missing where the template has %t. */
static bool take_number(const struct csink_slice_names *names, const char **name, uint64_t *number)
{
	const char *at = *name + 1;

	if (**name == '.' && take_digits(&at, MIN_DIGITS, number)) {
		*name = at;
		return true;
	}
	return names->has_time;
}

/* A PID is what is left of the digits: those at the end are of the pattern behind it. */
static bool take_pid(const char **name, const char *behind)
{
	size_t len = strspn(*name, DIGITS),
	       others = *behind == MARK_TIME ? strspn(TIME_FORM, DIGITS) : strspn(behind, DIGITS);

	if (len <= others || len - others > MAX_DIGITS)
		return false;
	*name += len - others;
	return true;
}

static bool can_make(const struct csink_slice_names *names, const char *name, struct slice_file *file)
{
	*file = (struct slice_file){0};
	if (strlen(name) > NAME_MAX)
		return false;
	strcpy(file->name, name);
	for (const char *c = names->pattern + names->name_at; *c; c++) {
		bool fits = *c == MARK_TIME     ? take_time(&name, file->time)
			    : *c == MARK_NUMBER ? take_number(names, &name, &file->number)
			    : *c == MARK_PID    ? take_pid(&name, c + 1)
						: *c == *name++;

		if (!fits)
			return false;
	}
	return !*name;
}

struct slice_files {
	struct slice_file *at;
	uint32_t nr, cap;
};

static void release(struct slice_files *files)
{
	free(files->at);
}

static DIR *open_directory(const struct csink_slice_names *names)
{
	char directory[PATH_MAX];

	snprintf(directory, sizeof(directory), "%.*s", (int)names->name_at, names->pattern);
	return opendir(*directory ? directory : ".");
}

/* What cannot be listed is not there. */
static void list(const struct csink_slice_names *names, DIR *dir, struct slice_files *files)
{
	struct slice_file file;
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (!can_make(names, entry->d_name, &file) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
		    st.st_uid != geteuid())
			continue;
		file.bytes = (uint64_t)st.st_size;
		if (!CSINK_APPEND(files->at, files->nr, files->cap, file))
			return;
	}
}

/* In the order in which they were made: by the number, where all have one, whatever the clock was. */
static int compare_numbers(const void *a, const void *b)
{
	const struct slice_file *left = a, *right = b;

	return CSINK_COMPARE(left->number, right->number) ?: strcmp(left->time, right->time)
								    ?: strcmp(left->name, right->name);
}

/* What has a time to come is older than what is written now. */
static int compare_times(const void *a, const void *b)
{
	const struct slice_file *left = a, *right = b;

	return CSINK_COMPARE(right->is_ahead, left->is_ahead)
		       ?: strcmp(left->time, right->time) ?: CSINK_COMPARE(left->number, right->number)
									   ?: strcmp(left->name, right->name);
}

uint64_t csink_slice_names_next(const struct csink_slice_names *names)
{
	CSINK_AUTO(release) struct slice_files files = {0};
	CSINK_AUTO_CLOSEDIR DIR *dir = open_directory(names);
	uint64_t last = 0;

	list(names, dir, &files);
	for (uint32_t i = 0; i < files.nr; i++)
		last = CSINK_MAX(last, files.at[i].number);
	return last + 1;
}

uint32_t csink_slice_names_keep(const struct csink_slice_names *names, uint64_t realtime_ns, uint64_t keep,
				uint64_t keep_bytes)
{
	CSINK_AUTO(release) struct slice_files files = {0};
	CSINK_AUTO_CLOSEDIR DIR *dir = open_directory(names);
	uint64_t bytes = 0;
	uint32_t removed = 0;
	char now[24];

	list(names, dir, &files);
	if (!files.nr)
		return 0;
	csink_output_time(realtime_ns, now);
	for (uint32_t i = 0; i < files.nr; i++)
		files.at[i].is_ahead = strcmp(files.at[i].time, now) > 0;
	qsort(files.at, files.nr, sizeof(*files.at), names->has_time ? compare_times : compare_numbers);
	for (uint32_t i = 0; i < files.nr; i++)
		bytes += files.at[i].bytes;
	for (uint32_t i = 0; i + 1 < files.nr; i++) {
		if (!(keep && files.nr - i > keep) && !(keep_bytes && bytes > keep_bytes))
			break;
		bytes -= files.at[i].bytes;
		removed += !unlinkat(dirfd(dir), files.at[i].name, 0);
	}
	return removed;
}
