/* What the environment asks of the library. Read once, by the constructor; constant afterwards. */
#ifndef CSINK_CONFIG_H
#define CSINK_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "include/internal/base.h"

struct csink_config {
	const char *events; /* "auto" or a list */
	uint64_t frequency; /* samples a second of CPU time; 0: period counts */
	uint64_t period;
	const char *output; /* a template */
	int engine;         /* csink_engine_parse's */
	int unwind;         /* csink_unwind_parse's */
	int frames;         /* csink_interp_parse's */
	uint32_t max_depth;
	uint64_t max_bytes; /* of the recording */
	uint32_t budget;    /* of CPU time, for samples, in parts of CSINK_SHARE_WHOLE; 0: no limit */
	bool quiet, report, off_cpu, timeline;
	bool shell_is_outside; /* system(3) and popen(3) start a program that cannot be injected */
	bool standalone;       /* no launcher: the profile is made by us at exit */
	bool has_slices;       /* standalone: and slices of it while it goes on */
	char run_dir[256];     /* changed by csink_handover_begin() alone */
	const char *follow;    /* "all", "none" or names */
	pid_t parent;          /* the launcher; 0: there is none */
	pid_t owner;           /* standalone: the process that makes the profile */
	bool outlives;         /* forked after the run of its parent was collected (own_run.h) */
	bool becomes_daemon;   /* daemon(3) is forking */
	char own_run[256];     /* the run directory that was inherited cannot be used, in words; "" (own_run.h) */
	char bad[256];         /* a value that could not be understood, in words; "" */
};

extern struct csink_config csink_config CSINK_HIDDEN;

/**
 * Is the library to profile? Not if it was linked for its functions and the environment does not ask for it, nor if the
 * program has more privilege than its caller (AT_SECURE). Makes no system call. Context: init.
 */
bool csink_config_is_asked(void);

/**
 * Fill csink_config.
 * Context: init.
 */
void csink_config_read(void);

/**
 * Is this process one that is to be profiled (--follow)?
 * @name  what it was started as, argv[0]; may be NULL.
 * Context: init.
 */
bool csink_config_follows(const char *name);

/** Are the children of a process that is profiled to be profiled, too, before they become another program? Context:
 * any.
 */
static inline bool csink_config_follows_forks(void)
{
	return strcmp(csink_config.follow, "none") != 0;
}

/**
 * Remember our variables, for programs that are started with another environment; and see to it that what they start
 * finds the run directory. Context: init.
 */
void csink_env_init(void);

/** Remove the library from the program's own environment: programs that it starts from now on would fail with it.
 * Context: thread. */
void csink_env_leave(void);

/** Put NAME=VALUE, which stays as it is, into the environment, and into those that are completed for other programs.
 * Context: thread. */
void csink_env_set(char *entry);

/** True once csink_env_init has found us in LD_PRELOAD. Context: any. */
bool csink_env_is_known(void);

/** Could a program started now open our library? Not after a chroot, or with rights that were given up. Context:
 * thread; also in a vfork child. */
bool csink_env_library_is_near(void);

/** True if a program started with that environment finds us and our variables. Context: thread; also in a vfork child.
 */
bool csink_env_is_complete(char *const *envp);

/**
 * The environment for a program to be started: @envp itself if it has what we need, else a copy with our variables put
 * in. The copy is made in @room, of @room_bytes; when that is too small @envp is returned as it is (the program then
 * runs unprofiled).
 * @preload_us  false for a program that cannot be preloaded into (csink_program_supports_preload): then the copy has no
 * mention of it in LD_PRELOAD.
 * Context: thread; also in a vfork child (allocates nothing).
 */
char *const *csink_env_for_exec(char *const *envp, bool preload_us, void *room, size_t room_bytes);

/** Bytes that csink_env_for_exec needs for an environment. Context: thread. */
size_t csink_env_room(char *const *envp);

#endif
