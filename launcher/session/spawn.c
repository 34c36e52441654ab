/* Starting the command: see spawn.h. */
#include "launcher/session/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "include/internal/alloc_object.h"
#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/lock_object.h"
#include "launcher/base/message.h"
#include "launcher/base/path.h"
#include "preload/core/preload_entry.h"
#include "preload/core/program_file.h"
#include "preload/core/record/run_dir.h"
#include "preload/core/seccomp_probe.h"

CSINK_OPTION_TABLE(csink_run_options, CSINK_RUN_OPTIONS);

#define PRELOAD "LD_PRELOAD"

enum { NR_TIMERS = 3 }; /* of setitimer(2) */

/*
 * The entry that works with every loader, if the installation has its files: a library that was copied alone is named
 * by its plain path. What the loader puts in place of $PLATFORM is one of the names for what the kernel calls the
 * machine; where the kernel does not say, the loader cannot either.
 */
static void use_entry(char path[PATH_MAX])
{
	const char *platform = (const char *)getauxval(AT_PLATFORM);
	size_t parent = (size_t)(strrchr(path, '/') - path);
	char at[PATH_MAX];

	if (!platform || parent + sizeof(CSINK_ENTRY_TAIL) > PATH_MAX ||
	    snprintf(at, sizeof(at), "%.*s/%s/" CSINK_LIBRARY, (int)parent, path, platform) >= (int)sizeof(at))
		return;
	if (!access(at, R_OK))
		strcpy(path + parent, CSINK_ENTRY_TAIL);
}

int csink_library_file(const char *entry, size_t length, char path[PATH_MAX])
{
	size_t directory = csink_entry_directory(entry, length);

	if (!directory || snprintf(path, PATH_MAX, "%.*s/" CSINK_LIBRARY, (int)directory, entry) >= PATH_MAX)
		return -ENOENT;
	return 0;
}

bool csink_object_is_there(const char *library, const char *object)
{
	char path[PATH_MAX], *end;

	if (csink_library_file(library, strlen(library), path))
		return false;
	end = strrchr(path, '/') + 1;
	if ((size_t)(path + PATH_MAX - end) <= strlen(object))
		return false;
	strcpy(end, object);
	return !access(path, R_OK);
}

const char *csink_missing_object(const char *library, const char *const *texts)
{
	if (*texts[CSINK_OPT_ALLOC] && !csink_object_is_there(library, CSINK_ALLOC_LIBRARY))
		return CSINK_ALLOC_LIBRARY;
	if (*texts[CSINK_OPT_LOCK] && !csink_object_is_there(library, CSINK_LOCK_LIBRARY))
		return CSINK_LOCK_LIBRARY;
	return NULL;
}

int csink_library_find(char path[PATH_MAX], char *why, size_t why_size)
{
	static const char *const directories[] = {"lib", "lib64"};
	char prefix[PATH_MAX]; /* also where a library was copied alone */
	int err = csink_path_of_private(CSINK_LIBRARY, path);

	strcpy(prefix, path);
	for (size_t i = 0; err == -ENOENT && i < CSINK_ARRAY_SIZE(directories); i++) {
		if (snprintf(path, PATH_MAX, "%s/%s/" CSINK_LIBRARY, prefix, directories[i]) < PATH_MAX &&
		    !access(path, R_OK))
			err = 0;
	}
	if (err == -ENOENT)
		return csink_why(-ENOENT, why, why_size, "%s/lib has no " CSINK_LIBRARY " (incomplete installation?)",
				 prefix);
	if (err)
		return csink_why(-ENOENT, why, why_size,
				 "cannot find where countersink is installed: /proc/self/exe cannot be read, and the "
				 "name by which "
				 "it was executed does not lead to it (mount /proc, or run it by its path)");
	if (strpbrk(path, ": \t\n"))
		return csink_why(
			-EINVAL, why, why_size,
			"LD_PRELOAD cannot name '%s': install countersink in a directory whose path has no blanks or "
			"colons",
			path);
	use_entry(path);
	return 0;
}

static bool names(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(entry, name, len) && entry[len] == '=';
}

/* Is an entry of LD_PRELOAD the library, by either of its two paths or by a link to it? */
static bool is_library(const char *entry, size_t len, const char *library)
{
	char given[PATH_MAX], own[PATH_MAX];
	struct stat a, b;

	if (len == strlen(library) && !memcmp(entry, library, len))
		return true;
	return !csink_library_file(entry, len, given) && !csink_library_file(library, strlen(library), own) &&
	       !stat(given, &a) && !stat(own, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool is_object(const char *entry, size_t len, const char *library)
{
	char beside[PATH_MAX];
	size_t beside_len = len < sizeof(beside) ? csink_entry_of_object(entry, len, beside) : 0;

	return beside_len && is_library(beside, beside_len, library);
}

/* LD_PRELOAD's list @was with the library in it once: where it stands already (a launcher within a launcher), else
 * last. The objects of -e alloc and -e lock are first, or left out.
 * @to has room for all, and four colons. */
static void put_library(char *to, const char *was, const char *library, const bool *has)
{
	bool is_in = false, is_empty = true;

	for (uint32_t i = 0; i < CSINK_NR_OBJECTS; i++)
		if (has[i])
			to += sprintf(to, "%.*s%s.so:", (int)strlen(library) - 3, library, csink_object_marks[i]);
	while (*was) {
		size_t len = strcspn(was, ": "), gap = strspn(was + len, ": ");
		bool is_ours = len && is_library(was, len, library);

		if (is_object(was, len, library)) {
			was += len + gap;
			continue;
		}
		is_empty = false;

		if (is_ours && !is_in)
			to = stpcpy(to, library);
		else if (!is_ours)
			to = mempcpy(to, was, len);
		to = mempcpy(to, was + len, gap);
		is_in |= is_ours;
		was += len + gap;
	}
	*to = '\0';
	if (!is_in)
		sprintf(to, "%s%s", is_empty ? "" : ":", library);
}

/* What LD_PRELOAD holds; the loader takes the last of several. "" if there is none. */
static const char *preloaded(char *const *env)
{
	const char *was = "";

	for (; *env; env++) {
		if (names(*env, PRELOAD))
			was = *env + sizeof(PRELOAD);
	}
	return was;
}

/* Variables that are ours to set: none of the old ones is kept. */
static bool is_replaced(const char *entry)
{
	char variable[CSINK_OPTION_NAME];

	if (names(entry, PRELOAD) || names(entry, CSINK_ENV_RUN_DIR) || names(entry, CSINK_ENV_RUN_OWNER) ||
	    names(entry, CSINK_ENV_RUN_PARENT) || names(entry, CSINK_ENV_RUN_PLACE) ||
	    names(entry, CSINK_ENV_RUN_FILTERS) || names(entry, CSINK_ENV_RUN_SHELL))
		return true;
	for (uint32_t i = 0; i < CSINK_NR_RUN_OPTS; i++) {
		csink_option_variable(&csink_run_options[i], variable);
		if (csink_run_options[i].flags & CSINK_OPT_LIB && names(entry, variable))
			return true;
	}
	return false;
}

/* Strings are put behind the array, into the same allocation. */
struct env_builder {
	char **entries;
	size_t nr;
	char *text;
};

__attribute__((format(printf, 2, 3))) static void add(struct env_builder *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	b->entries[b->nr++] = b->text;
	b->text += vsprintf(b->text, fmt, ap) + 1;
	va_end(ap);
}

static void add_preload(struct env_builder *b, const char *was, const char *library, const bool *has)
{
	b->entries[b->nr++] = b->text;
	put_library(stpcpy(b->text, PRELOAD "="), was, library, has);
	b->text += strlen(b->text) + 1;
}

/* Can the shell of system(3) and popen(3) not be injected? */
static bool is_shell_outside(void)
{
	enum csink_program_kind kind;
	CSINK_AUTO_CLOSE int fd = csink_program_open(AT_FDCWD, "/bin/sh", &kind);

	return fd >= 0 && csink_program_reason(kind);
}

char **csink_env_build(char *const *env, const char *library, const char *run_dir, const char *const *texts)
{
	size_t nr = 0, bytes, max = CSINK_NR_RUN_OPTS + 7;
	const char *was = preloaded(env);
	char variable[CSINK_OPTION_NAME], place[CSINK_RUN_DIR_PLACE];
	struct env_builder b = {0};

	while (env[nr])
		nr++;
	max += nr;
	bytes = max * sizeof(*b.entries);
	if (library) {
		bytes += sizeof(PRELOAD) + strlen(was) + 1 +
			 (1 + CSINK_NR_OBJECTS) * (strlen(library) + sizeof(csink_object_marks[0]) + 1);
		bytes += sizeof(CSINK_ENV_RUN_DIR) + strlen(run_dir) + 1;
		bytes += sizeof(CSINK_ENV_RUN_PARENT) + 16;
		bytes += sizeof(CSINK_ENV_RUN_PLACE) + sizeof(place);
		bytes += sizeof(CSINK_ENV_RUN_FILTERS) + 24;
		bytes += sizeof(CSINK_ENV_RUN_SHELL) + 2;
		for (uint32_t i = 0; i < CSINK_NR_RUN_OPTS; i++)
			bytes += sizeof(variable) + 1 + strlen(texts[i]) + 1;
	}
	b.entries = calloc(1, bytes);
	if (!b.entries)
		return NULL;
	b.text = (char *)(b.entries + max);
	for (size_t i = 0; i < nr; i++) {
		if (!library || !is_replaced(env[i]))
			b.entries[b.nr++] = env[i];
	}
	if (!library)
		return b.entries;
	add_preload(&b, was, library,
		    (const bool[CSINK_NR_OBJECTS]){*texts[CSINK_OPT_ALLOC] != 0, *texts[CSINK_OPT_LOCK] != 0});
	add(&b, CSINK_ENV_RUN_DIR "=%s", run_dir);
	add(&b, CSINK_ENV_RUN_PARENT "=%d", (int)getpid());
	if (csink_run_dir_describe(run_dir, false, place))
		add(&b, CSINK_ENV_RUN_PLACE "=%s", place);
	if (csink_nr_filters)
		add(&b, CSINK_ENV_RUN_FILTERS "=" CSINK_RUN_FILTERS_FORMAT, csink_nr_filters, csink_deadly_calls);
	if (is_shell_outside())
		add(&b, CSINK_ENV_RUN_SHELL "=1");
	for (uint32_t i = 0; i < CSINK_NR_RUN_OPTS; i++) {
		if (!(csink_run_options[i].flags & CSINK_OPT_LIB) || !*texts[i])
			continue;
		csink_option_variable(&csink_run_options[i], variable);
		add(&b, "%s=%s", variable, texts[i]);
	}
	return b.entries;
}

/* Put the streams where the program expects them. They are all above 2: the launcher has its own there. */
static int put_streams(const int *fds)
{
	for (int i = 0; i < 3; i++) {
		if (fds[i] != i && dup2(fds[i], i) < 0)
			return -errno;
	}
	return 0;
}

/* Timers of setitimer(2) and alarm(2), which an exec keeps and a fork does not. */
static void swap_timers(const struct itimerval *timers, struct itimerval *was)
{
	static const int kinds[NR_TIMERS] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

	for (int i = 0; i < NR_TIMERS; i++)
		setitimer((__itimer_which_t)kinds[i], &timers[i], was ? &was[i] : NULL);
}

/* @timers  what the child arms; NULL: nothing. */
static int spawn(char **argv, char **env, const struct csink_inherited *inherited, const int *fds,
		 const struct itimerval *timers, struct csink_child *child)
{
	int pipe_fds[2], err;
	ssize_t written;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	sigpending(&child->earlier);
	child->pid = fork();
	if (child->pid < 0) {
		err = -errno;
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return err;
	}
	if (!child->pid) {
		csink_inherited_restore(inherited);
		if (timers)
			swap_timers(timers, NULL);
		if (!put_streams(fds))
			execvpe(argv[0], argv, env);
		err = errno;
		/* A launcher that is gone meanwhile needs no answer. */
		written = write(pipe_fds[1], &err, sizeof(err));
		_exit(written < 0 ? 127 : 126);
	}
	close(pipe_fds[1]);
	child->exec_fd = pipe_fds[0];
	return 0;
}

int csink_spawn(char **argv, char **env, const struct csink_inherited *inherited, struct csink_child *child)
{
	static const int own[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	static const struct itimerval none[NR_TIMERS];
	struct itimerval timers[NR_TIMERS];
	int err;

	swap_timers(none, timers);
	err = spawn(argv, env, inherited, own, timers, child);
	if (err)
		swap_timers(timers, NULL);
	return err;
}

int csink_spawn_with(char **argv, char **env, const struct csink_inherited *inherited, const int *fds,
		     struct csink_child *child)
{
	return spawn(argv, env, inherited, fds, NULL, child);
}
