/* What `countersink top` shows on a terminal, and what its keys change of that. Draws only; takes no picture itself. */
#ifndef CSINK_TOP_SCREEN_H
#define CSINK_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/commands/top/top_picture.h"
#include "launcher/commands/top/top_source.h"
#include "launcher/commands/top/top_terminal.h"

struct csink_top_screen {
	struct csink_top_source *source;
	struct csink_top_picture *picture;
	enum csink_top_view view;
	enum csink_top_sort sort;
	uint64_t interval_ns;
	uint32_t nr_rows; /* of the view */
	uint32_t first;   /* row that is shown first */
	uint32_t height;  /* rows that were shown */
	int64_t selected; /* row; -1: none */
	bool is_paused, has_ended, shows_help;
	bool is_asking;  /* for the interval */
	char answer[12]; /* so far */
};

enum csink_top_wish { CSINK_TOP_GO_ON, CSINK_TOP_QUIT, CSINK_TOP_NOW /* take the next picture */ };

/** Take a key. */
enum csink_top_wish csink_top_screen_key(struct csink_top_screen *screen, int key);

/** Draw it all. Returns 0, -ENOMEM or -errno of the terminal. */
int csink_top_screen_draw(struct csink_top_screen *screen, const struct csink_top_terminal *terminal);

#endif
