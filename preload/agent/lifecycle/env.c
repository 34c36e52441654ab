/*
 * Our variables in the environments of programs that the program starts. What inherits `environ` has them anyway; a
 * program that builds an environment of its own (env -i, a service manager) gets them put back here.
 * The constructor, and any thread of the program in its own call; csink_env_for_exec() also in a vfork child: it
 * allocates nothing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/rawcall.h"
#include "include/internal/shared_options.h"
#include "preload/agent/lifecycle/config.h"
#include "preload/agent/lifecycle/libc.h"
#include "preload/agent/sampler/preloaded.h"
#include "preload/agent/sampler/process.h"
#include "preload/core/libc_version.h"
#include "preload/core/preload_entry.h"
#include "preload/core/private_memory.h"
#include "preload/core/record/run_dir.h"

enum { MAX_OURS = 24, OURS_BYTES = 8192 };

/* Copies: programs overwrite the memory that the environment came in (setproctitle). */
static CSINK_COLD char ours_text[OURS_BYTES];
static const char *ours[MAX_OURS];
static uint32_t nr_ours;
static const char *library;      /* the entry of LD_PRELOAD that is us */
static const char *library_file; /* the file that it stands for; NULL: not determined by its text */

static char run_dir_text[sizeof(CSINK_ENV_RUN_DIR) + sizeof(csink_config.run_dir)];
static char run_place_text[sizeof(CSINK_ENV_RUN_PLACE) + CSINK_RUN_DIR_PLACE];
static char run_owner_text[sizeof(CSINK_ENV_RUN_OWNER) + 16];

static size_t name_length(const char *entry)
{
	const char *equals = strchr(entry, '=');

	return equals ? (size_t)(equals - entry) : strlen(entry);
}

/* putenv(3) where the process, or a forked child, begins: without the program's allocator, which may not have begun,
 * and without libc's lock. setenv(3) copies an array that is not libc's. */
static void put(char *entry)
{
	size_t bytes = name_length(entry) + 1, nr = 0;
	char **at = __environ, **more;

	for (; at && at[nr]; nr++) {
		if (!strncmp(at[nr], entry, bytes)) {
			at[nr] = entry;
			return;
		}
	}
	more = csink_private_get((nr + 2) * sizeof(*more));
	if (!more)
		return;
	if (nr)
		memcpy(more, at, nr * sizeof(*more));
	more[nr] = entry;
	__environ = more;
}

static bool is_ours(const char *entry)
{
	return !strncmp(entry, CSINK_ENV_PREFIX, sizeof(CSINK_ENV_PREFIX) - 1);
}

static bool is_preload(const char *entry)
{
	return !strncmp(entry, "LD_PRELOAD=", 11);
}

static char *keep(char **at, const char *text, size_t length)
{
	char *to = *at;

	if (to + length + 1 > ours_text + sizeof(ours_text))
		return NULL;
	memcpy(to, text, length);
	to[length] = 0;
	*at = to + length + 1;
	return to;
}

/* The part of LD_PRELOAD that names us; entries are separated by colons or spaces. */
static void keep_library(char **at, const char *value)
{
	char beside[512];

	while (*value) {
		size_t n = 0;

		while (value[n] && value[n] != ':' && value[n] != ' ')
			n++;
		if (memmem(value, n, "libcountersink", 14) &&
		    !(n < sizeof(beside) && csink_entry_of_object(value, n, beside))) {
			library = keep(at, value, n);
			return;
		}
		value += n + (value[n] != '\0');
	}
}

static void keep_library_file(char **at)
{
	size_t directory = library ? csink_entry_directory(library, strlen(library)) : 0;
	char *file = directory ? keep(at, library, directory + sizeof("/" CSINK_LIBRARY) - 1) : NULL;

	if (file)
		memcpy(file + directory, "/" CSINK_LIBRARY, sizeof("/" CSINK_LIBRARY));
	library_file = file;
	csink_libc_version_init(library_file, csink_libc_loader_path());
}

/* What this process starts belongs to its run. */
static void set_run_variables(void)
{
	char *place = run_place_text + sizeof(CSINK_ENV_RUN_PLACE);

	snprintf(run_dir_text, sizeof(run_dir_text), CSINK_ENV_RUN_DIR "=%s", csink_config.run_dir);
	snprintf(run_owner_text, sizeof(run_owner_text), CSINK_ENV_RUN_OWNER "=%d", (int)csink_config.owner);
	put(run_dir_text);
	put(run_owner_text);
	if (csink_run_dir_describe(csink_config.run_dir, true, place)) {
		memcpy(run_place_text, CSINK_ENV_RUN_PLACE "=", sizeof(CSINK_ENV_RUN_PLACE));
		put(run_place_text);
	} else {
		unsetenv(CSINK_ENV_RUN_PLACE);
	}
}

void csink_env_init(void)
{
	char *at = ours_text;

	/* Without a directory this process is not profiled (--follow): the first process that is profiled owns the run.
	 */
	if (csink_config.standalone && csink_config.run_dir[0] &&
	    (!getenv(CSINK_ENV_RUN_OWNER) || *csink_config.own_run))
		set_run_variables();
	nr_ours = 0;
	for (char **entry = __environ; entry && *entry; entry++) {
		if (is_ours(*entry) && nr_ours < MAX_OURS) {
			ours[nr_ours] = keep(&at, *entry, strlen(*entry));
			nr_ours += ours[nr_ours] != NULL;
		} else if (is_preload(*entry)) {
			keep_library(&at, *entry + 11);
		}
	}
	keep_library_file(&at);
}

void csink_env_set(char *entry)
{
	size_t n = name_length(entry);
	uint32_t i = 0;

	if (atomic_load(&csink_process.active)) /* other threads may change it, too */
		putenv(entry);
	else
		put(entry);
	while (i < nr_ours && !(!strncmp(ours[i], entry, n) && ours[i][n] == '='))
		i++;
	if (i < MAX_OURS && library) {
		ours[i] = entry;
		nr_ours = CSINK_MAX(nr_ours, i + 1);
	}
}

/* Is an entry of LD_PRELOAD our library, by any of its paths or by a link to it? */
static bool is_library(const char *entry, size_t length)
{
	char file[512];
	struct stat st, own;
	size_t directory;

	if (length < sizeof(file) && csink_entry_of_object(entry, length, file))
		return false;
	if (length == strlen(library) && !memcmp(entry, library, length))
		return true;
	directory = csink_entry_directory(entry, length);
	if (!library_file || !directory || directory + sizeof("/" CSINK_LIBRARY) > sizeof(file))
		return false;
	memcpy(file, entry, directory);
	strcpy(file + directory, "/" CSINK_LIBRARY);
	return !strcmp(file, library_file) || (!csink_raw_stat(file, &st) && !csink_raw_stat(library_file, &own) &&
					       st.st_dev == own.st_dev && st.st_ino == own.st_ino);
}

static bool is_object(const char *entry, size_t length)
{
	char beside[512];
	size_t n = length < sizeof(beside) ? csink_entry_of_object(entry, length, beside) : 0;

	return n && is_library(beside, n);
}

/* Does a whole "LD_PRELOAD=..." name us? @preload may be NULL. */
static bool names_library(const char *preload)
{
	const char *value = preload ? preload + 11 : "";

	while (*value) {
		size_t n = strcspn(value, ": ");

		if (n && is_library(value, n))
			return true;
		value += n + (value[n] != '\0');
	}
	return false;
}

static const char *find_entry(char *const *envp, const char *like)
{
	size_t n = name_length(like);

	for (; envp && *envp; envp++)
		if (!strncmp(*envp, like, n) && (*envp)[n] == '=')
			return *envp;
	return NULL;
}

size_t csink_env_room(char *const *envp)
{
	size_t nr = 0;

	while (envp && envp[nr])
		nr++;
	return (nr + nr_ours + 2) * sizeof(char *) + OURS_BYTES;
}

bool csink_env_is_known(void)
{
	return library != NULL;
}

/* Can the loader open it? If the file is not determined by the entry's text, it is assumed to exist. */
bool csink_env_library_is_near(void)
{
	long fd;

	if (!library_file)
		return true;
	fd = csink_rawcall(SYS_openat, AT_FDCWD, library_file, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0)
		csink_rawcall(SYS_close, fd);
	return fd >= 0;
}

bool csink_env_is_complete(char *const *envp)
{
	const char *preload = find_entry(envp, "LD_PRELOAD=");

	if (!library)
		return true;
	if (!names_library(preload))
		return false;
	for (uint32_t i = 0; i < nr_ours; i++)
		if (!find_entry(envp, ours[i]))
			return false;
	return true;
}

/* LD_PRELOAD without us, in @text; NULL if nothing else is in it. */
static const char *preload_without_us(const char *preload, char *text)
{
	const char *value = preload + 11;
	char *to = text + 11;

	memcpy(text, "LD_PRELOAD=", 11);
	while (*value) {
		size_t n = strcspn(value, ": "), gap = strspn(value + n, ": ");

		if (n && !is_library(value, n) && !is_object(value, n)) {
			if (to != text + 11)
				*to++ = ':';
			memcpy(to, value, n);
			to += n;
		}
		value += n + gap;
	}
	*to = 0;
	return to == text + 11 ? NULL : text;
}

void csink_env_leave(void)
{
	const char *preload = getenv("LD_PRELOAD"), *rest;
	char text[OURS_BYTES];

	if (!library || !preload || !names_library(preload - 11) || strlen(preload) + 12 > sizeof(text))
		return;
	rest = preload_without_us(preload - 11, text);
	if (rest)
		setenv("LD_PRELOAD", rest + 11, 1);
	else
		unsetenv("LD_PRELOAD");
}

/* LD_PRELOAD with us behind what the program itself wants there, but the preload objects, which are first. */
static const char *preload_with_us(const char *preload, char *text)
{
	char *to = stpcpy(text, "LD_PRELOAD=");

	if (names_library(preload))
		return preload;
	for (size_t i = 0; i < CSINK_NR_OBJECTS; i++) {
		if (!csink_objects_have((uint32_t)i))
			continue;
		to = mempcpy(to, library, strlen(library) - 3);
		to = stpcpy(stpcpy(to, csink_object_marks[i]), ".so:");
	}
	if (preload && preload[11]) {
		to = stpcpy(to, preload + 11);
		*to++ = ':';
	}
	strcpy(to, library);
	return text;
}

char *const *csink_env_for_exec(char *const *envp, bool preload_us, void *room, size_t room_bytes)
{
	char **out = room, *text = (char *)room + room_bytes - OURS_BYTES;
	const char *preload = find_entry(envp, "LD_PRELOAD=");
	size_t nr = 0;

	if (!library || room_bytes < csink_env_room(envp))
		return envp;
	if (preload_us ? csink_env_is_complete(envp) : !names_library(preload))
		return envp;
	if ((preload ? strlen(preload) : 11) +
		    (1 + CSINK_NR_OBJECTS) * (strlen(library) + sizeof(csink_object_marks[0])) + 4 >
	    OURS_BYTES)
		return envp;
	for (char *const *entry = envp; entry && *entry; entry++)
		if (!is_preload(*entry))
			out[nr++] = *entry;
	/* What the program set itself counts: its own LD_PRELOAD stays in front, its own COUNTERSINK_ values stay. */
	out[nr] = (char *)(preload_us ? preload_with_us(preload, text) : preload_without_us(preload, text));
	nr += out[nr] != NULL;
	for (uint32_t i = 0; i < nr_ours && preload_us; i++)
		if (!find_entry(envp, ours[i]))
			out[nr++] = (char *)ours[i];
	out[nr] = NULL;
	return out;
}
