/* Shows the progress of long work on standard error: on a terminal only, and only of what takes over a second. */
#ifndef CSINK_SHOW_PROGRESS_H
#define CSINK_SHOW_PROGRESS_H

/** Show progress from now on (launcher/base/progress.h), if standard error is a terminal. Context: main. */
void csink_progress_start(void);

/** Take the line away, if there is one, and show no more. */
void csink_progress_end(void);

#endif
