/* Tracepoints: subsystem:name, whose id is attr.config, read from tracefs. */
#include <errno.h>
#include <string.h>

#include "preload/api/events/event_parse.h"
#include "preload/core/sysfs.h"

/* Where tracefs is mounted: its own place first, then inside debugfs, as older distributions have it. */
static const char *const usual_places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static size_t list_places(const struct csink_event_roots *roots, const char *const **places)
{
	*places = roots->tracefs ? &roots->tracefs : usual_places;
	return roots->tracefs ? 1 : CSINK_ARRAY_SIZE(usual_places);
}

static bool is_plain_name(struct csink_text text)
{
	if (!text.length || text.length > 64 || *text.at == '.')
		return false;
	return !memchr(text.at, '/', text.length);
}

int csink_event_from_tracepoint(struct csink_event_parser *parser, struct csink_text subsystem, struct csink_text name,
				struct csink_event_spec *spec)
{
	const char *const *places;
	size_t nr = list_places(parser->roots, &places);
	int ret = 0, found = 0;
	int64_t id;

	if (!is_plain_name(subsystem) || !is_plain_name(name))
		return 0;
	for (size_t i = 0; i < nr && !found; i++) {
		ret = csink_sysfs_read_number(&id, "%s/events/%.*s/%.*s/id", places[i], (int)subsystem.length,
					      subsystem.at, (int)name.length, name.at);
		if (!ret)
			found = 1;
		else if (ret == -EACCES || ret == -EPERM)
			found = -EACCES;
	}
	if (found <= 0)
		return found;
	spec->attr.type = PERF_TYPE_TRACEPOINT;
	spec->attr.config = (uint64_t)id;
	csink_text_copy(csink_text(subsystem.at, name.at + name.length), spec->rec.name, sizeof(spec->rec.name));
	return 1;
}

static void offer_names(const char *place, struct csink_text subsystem, struct csink_nearest *near)
{
	const char *name;

	CSINK_SYSFS_EACH(name, "%s/events/%.*s", place, (int)subsystem.length, subsystem.at) {
		csink_nearest_offer(near, name);
	}
}

static int fail_not_there(struct csink_event_parser *parser, struct csink_text where, const char *place,
			  struct csink_text subsystem, struct csink_text name)
{
	char hint[3 * (CSINK_NEAREST_NAME + 8) + 32];
	CSINK_SYSFS_DIR(dir, "%s/events/%.*s", place, (int)subsystem.length, subsystem.at);
	struct csink_nearest near;
	bool has_subsystem = dir.fd >= 0;

	csink_nearest_init(&near, has_subsystem ? name.at : subsystem.at,
			   has_subsystem ? name.length : subsystem.length);
	offer_names(place, has_subsystem ? subsystem : (struct csink_text){"", 0}, &near);
	csink_nearest_print(&near, hint, sizeof(hint));
	if (has_subsystem)
		return csink_event_fail(parser, -ENOENT, where, "subsystem '%.*s' has no tracepoint '%.*s'%s",
					(int)subsystem.length, subsystem.at, (int)name.length, name.at, hint);
	return csink_event_fail(parser, -ENOENT, where, "'%.*s' is no event, and no subsystem of tracepoints%s",
				(int)subsystem.length, subsystem.at, hint);
}

int csink_event_fail_tracepoint(struct csink_event_parser *parser, struct csink_text where, struct csink_text subsystem,
				struct csink_text name, int found)
{
	const char *const *places;
	size_t nr = list_places(parser->roots, &places);

	if (found == -EACCES)
		return csink_event_fail(
			parser, -EACCES, where,
			"'%.*s': if it is a tracepoint, its number is in %s, which only root may read here "
			"(mount -o remount,mode=755 %s)",
			(int)where.length, where.at, places[0], places[0]);
	for (size_t i = 0; i < nr; i++) {
		CSINK_SYSFS_DIR(dir, "%s/events", places[i]);

		if (dir.fd >= 0)
			return fail_not_there(parser, where, places[i], subsystem, name);
	}
	return csink_event_fail(parser, -ENOENT, where,
				"'%.*s': no such event; if it is a tracepoint, tracefs is needed (mount -t tracefs "
				"tracefs %s)",
				(int)where.length, where.at, places[0]);
}
