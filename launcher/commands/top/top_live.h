/* The view of `countersink top` on a terminal, until a key, a signal or the terminal ends it. */
#ifndef CSINK_TOP_LIVE_H
#define CSINK_TOP_LIVE_H

#include "launcher/commands/top/top_screen.h"

/**
 * Show it.
 * @screen  with what is shown at first; its picture is made here.
 * Returns what to exit with; errors have been reported. A signal that ends it ends the process.
 */
int csink_top_live(struct csink_top_screen *screen);

#endif
