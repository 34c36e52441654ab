/*
 * A profile, or the difference of two, as one HTML page: no network, no other file, opened by any browser of the last
 * years. Flame graph and icicle, callers and callees of a function, a table of functions, a timeline where the profile
 * has times. The page's own parts are in launcher/output/html/; what a profile says is put in as data, so that a name
 * in it is never more than text.
 */
#ifndef CSINK_HTML_H
#define CSINK_HTML_H

#include <stdint.h>
#include <stdio.h>

struct csink_profile;

/* A profile on a page. */
struct csink_html_side {
	const struct csink_profile *profile;
	const char *name; /* "main, 12 runs": shown wherever the side is meant, never just "before" or "A" */
	uint32_t nr_runs; /* that the profile is the sum of: values are shown for one run. 0: as the profile says, else
			     1 */
};

/*
 * What a page shows: one profile, or a differential flame graph of two. Frames of two are matched by function and the
 * base name of the module; the first is what there was, the second what there is: a frame that grew is one whose value
 * is larger in the second. The reader of the page can have the widths be those of the second (what was lost has no
 * width then) or of the first (what is new has none), and compare values for a run or shares of the whole; both names
 * and what the widths mean stand above the graph. A type is in the page if both profiles have it by that name.
 */
struct csink_html_page {
	struct csink_html_side sides[2];
	uint32_t nr_sides;
	const char *title; /* NULL: the command's name, or "countersink" */
	const char *type;  /* the sample type that is shown first, by name; NULL: the profile's default */
};

/** Write a page. Returns 0, -ENOENT (two profiles have no type in common), -ENOMEM, or -errno of the stream (which is
 * flushed). Context: thread. */
int csink_html_write(FILE *out, const struct csink_html_page *page);

/** Write what comes before a page's data (html/frame.html), with the title in it. Context: thread. */
void csink_html_put_head(FILE *out, const char *head, const char *title);

#endif
