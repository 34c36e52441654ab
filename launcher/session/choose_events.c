/* The events of an option --events: see choose_events.h. */
#include "launcher/session/choose_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/alloc_object.h"
#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/lock_object.h"
#include "launcher/base/options.h"

static const struct csink_event_roots roots; /* the system's own */

#define LOCK_CONDITIONS "lock:" CSINK_LOCK_CONDITIONS

static bool has_item(const char *list, const char *name, const char *ends)
{
	const char *at = strstr(list, name);
	size_t length = strlen(name);

	while (at && ((at != list && !strchr(",{", at[-1])) || (at[length] && !strchr(ends, at[length]))))
		at = strstr(at + 1, name);
	return at != NULL;
}

bool csink_list_has(const char *list, const char *name)
{
	/* "lock:" with anything else is a tracepoint. */
	if (!strcmp(name, "lock"))
		return has_item(list, name, ",}") || has_item(list, LOCK_CONDITIONS, ",}");
	return has_item(list, name, ",:/}");
}

/* What the library measures is no event of the kernel's. Returns 0, or -EOPNOTSUPP and *err. */
static int refuse_own(const char *list, struct csink_event_error *err)
{
	const char *name = csink_list_has(list, "alloc") ? "alloc" : csink_list_has(list, "lock") ? "lock" : NULL;

	if (!name)
		return 0;
	err->err = -EOPNOTSUPP;
	err->offset = (uint32_t)(strstr(list, name) - list);
	err->length = (uint32_t)strlen(name);
	snprintf(err->line, sizeof(err->line),
		 "%s is measured from the start of a program on: by run and gate, outside of {}", name);
	return err->err;
}

int csink_choose_listed(const char *list, struct csink_event_spec *specs, uint32_t max, struct csink_event_error *err)
{
	int nr = refuse_own(list, err) ?: csink_events_parse(list, specs, max, err);

	return nr > 0 ? csink_events_bind(&roots, specs, (uint32_t)nr, max, err) : nr;
}

int csink_choose_sampling(const char *list, struct csink_event_spec *specs, uint32_t max, char *reason, size_t size,
			  struct csink_event_error *err)
{
	int refused = refuse_own(list, err);

	if (refused)
		return refused;
	if (strcmp(list, "auto"))
		return csink_events_take(list, specs, max, err);
	csink_events_auto(&specs[0], reason, size);
	return csink_events_bind(&roots, specs, 1, max, err);
}

/* ---- what the library measures itself ---- */

static int wrong_period(const char *list, const char *item, size_t length, struct csink_event_error *err)
{
	err->err = -EINVAL;
	err->offset = (uint32_t)(item - list);
	err->length = (uint32_t)length;
	snprintf(err->line, sizeof(err->line),
		 "'%.*s': write alloc, or alloc:period=BYTES, with a number from %llu to %llu (K, M and G may follow)",
		 (int)CSINK_MIN(length, 64), item, CSINK_ALLOC_MIN_PERIOD, CSINK_ALLOC_MAX_PERIOD);
	return err->err;
}

/* Returns 1 for an item that is alloc, 0 for another one, or -EINVAL. */
static int take_alloc(const char *list, const char *item, size_t length, struct csink_chosen_events *chosen,
		      struct csink_event_error *err)
{
	static const char name[] = "alloc", period[] = ":period=";
	size_t at = sizeof(name) - 1;
	char text[32];

	if (length < at || memcmp(item, name, at) != 0 || (length > at && item[at] != ':' && item[at] != '/'))
		return 0;
	chosen->alloc_is_first = item == list;
	chosen->alloc_period = CSINK_ALLOC_PERIOD;
	if (length == at)
		return 1;
	if (length - at < sizeof(period) || memcmp(item + at, period, sizeof(period) - 1) != 0)
		return wrong_period(list, item, length, err);
	at += sizeof(period) - 1;
	if (length - at >= sizeof(text))
		return wrong_period(list, item, length, err);
	snprintf(text, sizeof(text), "%.*s", (int)(length - at), item + at);
	if (csink_bytes_parse(text, &chosen->alloc_period) || chosen->alloc_period < CSINK_ALLOC_MIN_PERIOD ||
	    chosen->alloc_period > CSINK_ALLOC_MAX_PERIOD)
		return wrong_period(list, item, length, err);
	chosen->alloc_has_period = true;
	return 1;
}

static bool take_lock(const char *list, const char *item, size_t length, struct csink_chosen_events *chosen)
{
	bool has_conditions = length == strlen(LOCK_CONDITIONS) && !memcmp(item, LOCK_CONDITIONS, length);

	if (!has_conditions && (length != 4 || memcmp(item, "lock", 4) != 0))
		return false;
	chosen->has_lock = true;
	chosen->lock_is_first |= item == list;
	chosen->lock_has_conditions |= has_conditions;
	return true;
}

/* Copy the list to @rest without its items that are alloc or lock; commas within {} and // part no items. */
static int without_own(const char *list, char *rest, struct csink_chosen_events *chosen, struct csink_event_error *err)
{
	const char *item = list, *at = list;
	bool in_slashes = false;
	int depth = 0, found;
	char *to = rest;

	for (;; at++) {
		depth += *at == '{';
		depth -= *at == '}';
		in_slashes ^= *at == '/';
		if (*at && (*at != ',' || depth > 0 || in_slashes))
			continue;
		found = take_alloc(list, item, (size_t)(at - item), chosen, err);
		if (found < 0)
			return found;
		if (!found && !take_lock(list, item, (size_t)(at - item), chosen)) {
			if (to != rest)
				*to++ = ',';
			to = mempcpy(to, item, (size_t)(at - item));
		}
		if (!*at)
			break;
		item = at + 1;
	}
	*to = '\0';
	return 0;
}

int csink_choose_planned(const char *list, uint32_t max, struct csink_chosen_events *chosen, char *reason, size_t size,
			 struct csink_event_error *err)
{
	CSINK_AUTO_FREE char *rest = malloc(strlen(list) + 2);
	int nr, failed;

	chosen->alloc_period = 0;
	chosen->has_lock = chosen->lock_is_first = chosen->lock_has_conditions = false;
	chosen->alloc_is_first = chosen->alloc_has_period = false;
	if (!rest) {
		snprintf(err->line, sizeof(err->line), "no memory");
		return err->err = -ENOMEM;
	}
	failed = without_own(list, rest, chosen, err);
	if (failed)
		return failed;
	chosen->is_alloc_alone = chosen->alloc_period && !*rest;
	if (chosen->alloc_period && max > CSINK_ALLOC_NR_EVENTS)
		max -= CSINK_ALLOC_NR_EVENTS;
	if (chosen->has_lock && max > CSINK_LOCK_NR_EVENTS)
		max -= CSINK_LOCK_NR_EVENTS;
	nr = csink_choose_sampling(*rest ? rest : "auto", chosen->specs, max, reason, size, err);
	if (nr < 0)
		return nr;
	chosen->nr = (uint32_t)nr;
	failed = csink_events_plan(chosen->specs, chosen->nr, err);
	if (!failed && csink_events_print(chosen->specs, chosen->nr, chosen->text, sizeof(chosen->text)) <= 0)
		chosen->text[0] = '\0';
	return failed;
}

void csink_own_values(struct csink_chosen_events *chosen, uint64_t *period, bool finds_leaks, char *alloc,
		      const char **lock)
{
	static const char *const lock_words[][2] = {{"yes", "yes," CSINK_LOCK_CONDITIONS},
						    {"first", "first," CSINK_LOCK_CONDITIONS}};

	*lock = chosen->has_lock ? lock_words[chosen->lock_is_first][chosen->lock_has_conditions] : "";
	*alloc = '\0';
	if (!chosen->alloc_period)
		return;
	if (*period && !chosen->alloc_has_period)
		chosen->alloc_period = CSINK_MAX(CSINK_MIN(*period, CSINK_ALLOC_MAX_PERIOD), CSINK_ALLOC_MIN_PERIOD);
	if (chosen->is_alloc_alone)
		*period = 0;
	snprintf(alloc, CSINK_ALLOC_TEXT, "%llu%s%s", (unsigned long long)chosen->alloc_period,
		 chosen->alloc_is_first ? ",first" : "", finds_leaks ? ",leaks" : "");
}
