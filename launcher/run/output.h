/* Where the profile goes: the path's template, and what can be known beforehand about the place. */
#ifndef CSINK_LAUNCHER_RUN_OUTPUT_H
#define CSINK_LAUNCHER_RUN_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

/* What stands in for %p %h %c %r. '/' in a name becomes '_'. */
struct csink_output_names {
	int32_t pid;
	const char *host;
	const char *command; /* its last path component is taken */
	const char *rank;
};

/** The rank of a parallel job: what OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK or SLURM_PROCID says, else "0". */
const char *csink_output_rank(void);

/**
 * Expand a template: %p pid, %h host, %c command, %r rank, %% a percent sign.
 * @why  on failure, a phrase for people.
 * Returns 0, -EINVAL (another letter after %, or an empty path) or -ENAMETOOLONG.
 */
int csink_output_expand(const char *template, const struct csink_output_names *names, char *out, size_t size, char *why,
			size_t why_size);

/**
 * Can a profile be written there? Nothing is created. A full disk and a missing, foreign or read-only folder are found.
 * @why  on failure, a phrase for people: "no such folder: /x/y".
 * Returns 0 or -errno.
 */
int csink_output_check(const char *path, char *why, size_t why_size);

/**
 * The place to fall back to: the file's name in $TMPDIR, /tmp or the home folder, whichever can be written; index
 * counts from 0. Returns 0, or -ENOENT when there are no more places.
 */
int csink_output_fallback(const char *path, uint32_t index, char *out, size_t size);

#endif
