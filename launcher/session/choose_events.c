/* The events of an option --events: see choose_events.h. */
#include "launcher/session/choose_events.h"

#include <string.h>

static const struct csink_event_roots roots; /* the system's own */

int csink_choose_listed(const char *list, struct csink_event_spec *specs, uint32_t max, struct csink_event_error *err)
{
	int nr = csink_events_parse(list, specs, max, err);

	return nr > 0 ? csink_events_bind(&roots, specs, (uint32_t)nr, max, err) : nr;
}

int csink_choose_sampling(const char *list, struct csink_event_spec *specs, uint32_t max, char *reason, size_t size,
			  struct csink_event_error *err)
{
	if (strcmp(list, "auto"))
		return csink_events_take(list, specs, max, err);
	csink_events_auto(&specs[0], reason, size);
	return csink_events_bind(&roots, specs, 1, max, err);
}

int csink_choose_planned(const char *list, uint32_t max, struct csink_chosen_events *chosen, char *reason, size_t size,
			 struct csink_event_error *err)
{
	int nr = csink_choose_sampling(list, chosen->specs, max, reason, size, err), failed;

	if (nr < 0)
		return nr;
	chosen->nr = (uint32_t)nr;
	failed = csink_events_plan(chosen->specs, chosen->nr, err);
	if (!failed && csink_events_print(chosen->specs, chosen->nr, chosen->text, sizeof(chosen->text)) <= 0)
		chosen->text[0] = '\0';
	return failed;
}
