/* See launcher/output/show_progress.h. */
#include "launcher/output/show_progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/clock.h"
#include "launcher/base/progress.h"
#include "launcher/base/text.h"

#define FIRST_NS CSINK_NS_PER_S
#define EACH_NS (CSINK_NS_PER_S / 10)

void (*csink_progress_hook)(const char *what, uint64_t done, uint64_t total);

static uint64_t next_ns;
static bool is_shown;

static void show(const char *what, uint64_t done, uint64_t total)
{
	uint64_t now = csink_monotonic_ns();

	if (now < next_ns)
		return;
	next_ns = now + EACH_NS;
	is_shown = true;
	if (total)
		csink_text_print(stderr, "\r%s: %llu of %llu (%llu %%)\033[K", what, (unsigned long long)done,
				 (unsigned long long)total, (unsigned long long)(done * 100 / total));
	else
		csink_text_print(stderr, "\r%s\033[K", what);
	fflush(stderr);
}

void csink_progress_start(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDERR_FILENO) || !term || !strcmp(term, "dumb"))
		return;
	next_ns = csink_monotonic_ns() + FIRST_NS;
	csink_progress_hook = show;
}

void csink_progress_end(void)
{
	csink_progress_hook = NULL;
	if (is_shown)
		fputs("\r\033[K", stderr);
	is_shown = false;
	fflush(stderr);
}
