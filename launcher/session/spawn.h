/* Starting the command: its environment, and a child that is as the launcher itself was started. */
#ifndef CSINK_SPAWN_H
#define CSINK_SPAWN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "launcher/base/options.h"
#include "launcher/session/inherited.h"

/** The options of run, whose values the library reads from their environment variables. */
extern const struct csink_option csink_run_options[CSINK_NR_RUN_OPTS];

/**
 * Find the library to inject: in countersink's own directory (csink_path_of_private()), else ../lib or ../lib64 as seen
 * from the launcher's own directory.
 * @path  its entry for LD_PRELOAD: with $PLATFORM in it where that is installed (preload/core/preload_entry.h).
 * @why  on failure, one line for people.
 * Returns 0, -ENOENT (not there), -EINVAL (its path cannot stand in LD_PRELOAD).
 */
int csink_library_find(char path[PATH_MAX], char *why, size_t why_size);

/**
 * The file that an entry of LD_PRELOAD stands for, of @length bytes. Returns 0, or -ENOENT if the entry is not ours or
 * its text does not determine the file.
 */
int csink_library_file(const char *entry, size_t length, char path[PATH_MAX]);

/** Is a preload object where the entry of the library leads to? */
bool csink_object_is_there(const char *library, const char *object);

/** The file of a preload object that the options ask for and that is not there; NULL: none. */
const char *csink_missing_object(const char *library, const char *const *texts);

/**
 * The environment of the command: the launcher's own with LD_PRELOAD appended to, the resolved options in their
 * variables, and the run directory.
 * @library  NULL: nothing is injected, and the environment stays as it is.
 * @texts    of each run option: what its variable gets; "" removes it.
 * Returns an array to be freed as a whole (it points into env, too), or NULL without memory.
 */
char **csink_env_build(char *const *env, const char *library, const char *run_dir, const char *const *texts);

struct csink_child {
	pid_t pid;
	int exec_fd;      /* gives an int, errno of a failed exec, or ends when the command runs; CLOEXEC */
	sigset_t earlier; /* pending in the launcher when the command was not there yet */
};

/**
 * Fork and exec the command, found by PATH as execvp(3) does, with the signals and limits in inherited. Timers that
 * were armed before the launcher was executed (alarm(2), setitimer(2)) become the command's, as an exec would have had
 * it. Returns 0 or -errno of fork or pipe.
 */
int csink_spawn(char **argv, char **env, const struct csink_inherited *inherited, struct csink_child *child);

/**
 * The same with other standard streams, for a command that does not take the launcher's place: timers stay here.
 * @fds  three: what becomes 0, 1 and 2. Each is that number itself, or above 2.
 */
int csink_spawn_with(char **argv, char **env, const struct csink_inherited *inherited, const int *fds,
		     struct csink_child *child);

#endif
