/* See ended_run.h. Runs in the launcher's one thread. */
#include "launcher/session/ended_run.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/shared_options.h"

/* Beginnings of their names. */
static const char *const kept[] = {CSINK_ENV_RUN_ENDED "=",  CSINK_ENV_MAX_PLACE "=",    CSINK_ENV_PREFIX "SEND",
				   CSINK_ENV_PREFIX "SPOOL", CSINK_ENV_PREFIX "ROTATE=", CSINK_ENV_PREFIX "KEEP"};

static bool begins_with(const char *entry, const char *name)
{
	return !strncmp(entry, name, strlen(name));
}

static bool is_for_library(const char *entry)
{
	size_t i = 0;

	while (i < CSINK_ARRAY_SIZE(kept) && !begins_with(entry, kept[i]))
		i++;
	return begins_with(entry, CSINK_ENV_PREFIX) && i == CSINK_ARRAY_SIZE(kept);
}

void csink_ended_run_begin(void)
{
	char **to = environ;

	if (!getenv(CSINK_ENV_RUN_ENDED))
		return;
	for (char **from = environ; *from; from++) {
		if (!is_for_library(*from))
			*to++ = *from;
	}
	*to = NULL;
}
