/* Which commit is checked out in the current directory, by git(1). */
#ifndef CSINK_GIT_COMMIT_H
#define CSINK_GIT_COMMIT_H

#include <stdint.h>

struct csink_git_commit {
	char id[80], parent[80]; /* "" unknown; parent: the first one */
	int64_t committed_s;     /* by the committer's clock, since 1970; 0 unknown */
};

/**
 * Ask git, without a shell.
 * @which  a commit, as git names commits: "HEAD".
 * Returns 0, or -ENOENT and all is unknown (no git, no repository, no such commit). Context: thread.
 */
int csink_git_commit_find(const char *which, struct csink_git_commit *out);

#endif
