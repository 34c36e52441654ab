/*
 * Profiles on disk: gzipped profile.proto, as go tool pprof and its relatives read and write it. The reader takes files
 * of others too and trusts nothing in them.
 */
#ifndef CSINK_PPROF_H
#define CSINK_PPROF_H

#include <stddef.h>

struct csink_profile;

/**
 * Write a profile to a file: whole or not at all (a temporary file beside the target, renamed). A file that was there
 * is kept as path.old. A path that is no regular file (/dev/stdout, a pipe) is written to directly. Returns 0, -errno
 * or a negative csink_outfile_errno; then nothing was changed. Context: thread.
 */
int csink_pprof_write(const struct csink_profile *p, const char *path);

/** The same. @how  bits of enum csink_outfile_how: CSINK_OUTFILE_PRIVATE for a place that the user did not name. */
int csink_pprof_write_as(const struct csink_profile *p, const char *path, unsigned int how);

/** The same into an open file. */
int csink_pprof_write_fd(const struct csink_profile *p, int fd);

/**
 * Read a profile, gzipped or plain; folded stacks (folded.h) too, which are text. why (may be NULL, then why_len is 0)
 * receives a phrase for people on error: "truncated gzip stream". Returns 0 and *out (csink_profile_free it),
 * -EBADMSG (no pprof profile, damaged, or unreasonably large when unpacked), -ENOMEM, or what opening gave.
 */
int csink_pprof_read(const char *path, struct csink_profile **out, char *why, size_t why_len);

/** The same from memory, for tests and fuzzers. */
int csink_pprof_parse(const void *buf, size_t len, struct csink_profile **out, char *why, size_t why_len);

/** Encode without compressing: *buf is malloc'ed. Returns 0 or -ENOMEM. */
int csink_pprof_encode(const struct csink_profile *p, void **buf, size_t *len);

#endif
