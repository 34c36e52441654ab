/* The progress of long work, for a caller that shows it. */
#ifndef CSINK_PROGRESS_H
#define CSINK_PROGRESS_H

#include <stdint.h>

/** Called now and then: done of total (0: not known) of what, "merging profiles". NULL: not shown. */
extern void (*csink_progress_hook)(const char *what, uint64_t done, uint64_t total);

static inline void csink_progress(const char *what, uint64_t done, uint64_t total)
{
	if (csink_progress_hook)
		csink_progress_hook(what, done, total);
}

#endif
