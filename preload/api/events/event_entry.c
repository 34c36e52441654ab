/* The injected library's way to events by their names; it loads this library for that alone. Context: init. */
#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/names_entry.h"
#include "preload/core/calls_off.h"
#include "preload/core/seccomp_probe.h"

static int resolve(const struct csink_names_ask *ask, struct csink_event_spec *out, struct csink_event_error *err)
{
	static const struct csink_event_roots machine;
	int nr = csink_events_parse(ask->list, out, ask->max, err), ret = 0;

	if (nr > 0 && !ask->is_planned)
		nr = csink_events_bind(&machine, out, (uint32_t)nr, ask->max, err);
	if (nr > 0 && !ask->is_planned)
		ret = csink_events_check(out, (uint32_t)nr, err);
	if (!ret && nr > 1 && !out[0].braced)
		ret = csink_events_plan(out, (uint32_t)nr, err);
	return ret ? ret : nr;
}

CSINK_EXPORT int csink_private_names(const struct csink_names_ask *ask, struct csink_event_spec *out,
				     struct csink_event_error *err)
{
	char reason[160];

	if (strncmp(ask->version, CSINK_VERSION, sizeof(ask->version)) || ask->spec_bytes != sizeof(*out) ||
	    ask->error_bytes != sizeof(*err))
		return -ENOEXEC;
	csink_deadly_calls = ask->deadly_calls;
	csink_calls_off = ask->calls_off;
	if (strcmp(ask->list, "auto") != 0)
		return resolve(ask, out, err);
	csink_events_auto(out, reason, sizeof(reason));
	return 1;
}
