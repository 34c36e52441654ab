/* Programs that are started with a standard stream closed. */
#ifndef CSINK_STANDARD_STREAMS_H
#define CSINK_STANDARD_STREAMS_H

/**
 * Started with a standard stream closed, our own files would land on its number, and what is meant for stderr in one of
 * them. So fill the gaps, by what cannot be written, for what was to be printed there is lost; O_CLOEXEC gives commands
 * their streams as closed as they were. Context: init.
 */
void csink_standard_streams_fill(void);

#endif
