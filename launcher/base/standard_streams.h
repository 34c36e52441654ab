/* Which descriptors a process of ours has: the standard streams, and no others. */
#ifndef CSINK_STANDARD_STREAMS_H
#define CSINK_STANDARD_STREAMS_H

/**
 * Started with a standard stream closed, our own files would land on its number, and what is meant for stderr in one of
 * them. So fill the gaps, by what cannot be written, for what was to be printed there is lost; O_CLOEXEC gives commands
 * their streams as closed as they were. Context: init.
 */
void csink_standard_streams_fill(void);

/** Close every descriptor from @first on, before Linux 5.9 too. Context: a child. */
void csink_descriptors_close_from(int first);

#endif
