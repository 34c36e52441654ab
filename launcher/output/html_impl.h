/* What the html*.c files share; no other file includes this. */
#ifndef CSINK_HTML_IMPL_H
#define CSINK_HTML_IMPL_H

#include <stdint.h>
#include <stdio.h>

#include "launcher/output/calltree.h"
#include "launcher/output/html.h"

#define CSINK_HTML_MAX_TYPES 16

/* What the data of a page is made from: one side, or base and now. */
struct csink_html_page {
	const struct csink_html_side *sides;
	uint32_t nr_sides;
	const char *title;
	struct csink_html_type {
		const char *name, *unit;
		uint32_t of_side[2]; /* index in the profile of each side */
	} types[CSINK_HTML_MAX_TYPES];
	uint32_t nr_types, type; /* type: shown first */
};

/** Write the page's data as JSON that can stand in a <script> element. Returns 0 or -ENOMEM. */
int csink_html_write_data(FILE *out, const struct csink_html_page *page);

/* html_page.S: the page before and after its data, which the build makes of html/. */
extern const char csink_html_head[], csink_html_head_end[], csink_html_tail[], csink_html_tail_end[];

#endif
