/* The reservation that commands make: see reservation.h. */
#include "launcher/session/reservation.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "include/internal/cleanup.h"
#include "launcher/session/inherited.h"

#define MAX_PROBED 32

/* PMUs of the kernel's that count without hardware. */

bool csink_reservation_is_wanted(const struct csink_event_spec *specs, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (csink_event_is_hardware(&specs[i]))
			return true;
	}
	return false;
}

bool csink_reservation_has_pmu(void)
{
	struct csink_event_error err;
	struct csink_event_spec spec;
	CSINK_AUTO_CLOSE int fd = -1;

	if (csink_events_parse("cycles", &spec, 1, &err) != 1)
		return false;
	csink_event_set_user_only(&spec);
	spec.attr.disabled = 1;
	fd = csink_perf_open(&spec.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd >= 0;
}

int csink_reservation_cancel_fd(void)
{
	sigset_t set;
	int fd;

	csink_ending_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* ---- the kernel's word ---- */

/*
 * The events that a task can have on one PMU, as one group. Those of whole CPUs are not this process's to try; nor are
 * those of a hybrid machine's PMUs, which only count on their own CPUs.
 */
static uint32_t list_probed(const struct csink_reservation_wish *wish, struct perf_event_attr *attrs)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < wish->nr_specs && nr < MAX_PROBED; i++) {
		const struct csink_event_spec *spec = &wish->specs[i];

		if (csink_event_is_hardware(spec) && !spec->cpu_wide && !spec->cpus[0])
			attrs[nr++] = spec->attr;
	}
	return nr;
}

static void probe(struct csink_reservation *reservation, const struct csink_reservation_wish *wish)
{
	struct perf_event_attr attrs[MAX_PROBED];
	uint32_t nr = list_probed(wish, attrs);

	if (!nr)
		return;
	reservation->has_probe = true;
	if (csink_reserve_probe(attrs, nr, &reservation->probe) != -EACCES)
		return;
	/* As the run itself will do, where this user may not look at the kernel's side. */
	for (uint32_t i = 0; i < nr; i++)
		attrs[i].exclude_kernel = attrs[i].exclude_hv = attrs[i].exclude_callchain_kernel = 1;
	csink_reserve_probe(attrs, nr, &reservation->probe);
}

/* ---- the verdict ---- */

/* There is no agent that could hold counters and be asked. */
static bool is_without_agent(const struct csink_reserve *reserve)
{
	switch (reserve->cause) {
	case CSINK_RESERVE_NO_LOCK_FILE:
	case CSINK_RESERVE_NO_EVENTS:
		return true;
	case CSINK_RESERVE_NO_PMCD:
	case CSINK_RESERVE_NO_AGENT:
		return !reserve->agent_pid;
	default:
		return false;
	}
}

static bool judge(const struct csink_reservation *reservation, bool has_agent)
{
	bool fits = reservation->has_probe && reservation->probe.fit == CSINK_RESERVE_FITS;
	/* An event that this machine has not says nothing about other users of counters. */
	bool is_refused = reservation->has_probe && reservation->probe.fit == CSINK_RESERVE_REFUSED;

	if (reservation->hooks.nr_errors)
		return false;
	if (has_agent)
		return reservation->reserve.state == CSINK_RESERVE_CONFIRMED &&
		       (!reservation->has_probe || fits || is_refused);
	/* A hook that says yes answers for its daemon. */
	return fits || (reservation->hooks.nr && (!reservation->has_probe || is_refused));
}

static void describe(struct csink_reservation *reservation, bool has_agent)
{
	const struct csink_reserve *reserve = &reservation->reserve;
	char fit[200] = "";

	if (reservation->has_probe)
		csink_reserve_probe_print(&reservation->probe, fit, sizeof(fit));
	if (reservation->is_confirmed && has_agent)
		snprintf(reservation->line, sizeof(reservation->line), "the hardware counters are reserved: %s%s%s",
			 reserve->text, *fit ? "; " : "", fit);
	else if (reservation->is_confirmed && reservation->probe.fit == CSINK_RESERVE_FITS && *fit)
		snprintf(reservation->line, sizeof(reservation->line), "the hardware counters are free: %s (%s)", fit,
			 reserve->text);
	else if (reservation->is_confirmed)
		snprintf(reservation->line, sizeof(reservation->line),
			 "the hardware counters are reserved: the hooks in %.200s succeeded (%s)",
			 reservation->hooks.directory, reserve->text);
	else
		snprintf(reservation->line, sizeof(reservation->line), "the hardware counters are %s: %s%s%s",
			 reserve->state == CSINK_RESERVE_NONE ? "not reserved" : "reserved, without confirmation",
			 reserve->text, *fit ? "; " : "", fit);
}

/* Hooks first: what they know of is not the agent's. */
static int lock_and_confirm(struct csink_reservation *reservation, const struct csink_reservation_wish *wish)
{
	struct csink_reserve_config config;
	int err = csink_hooks_reserve(&reservation->hooks, wish->hooks, wish->timeout_ns, wish->cancel_fd);

	if (err == -ECANCELED)
		return err;
	csink_reserve_config_init(&config);
	config.lock_file = wish->lock_file;
	config.timeout_ns = wish->timeout_ns;
	config.wait_for_lock = wish->wait;
	config.cancel_fd = wish->cancel_fd;
	err = csink_reserve_acquire(&reservation->reserve, &config);
	if (!err)
		err = csink_reserve_confirm(&reservation->reserve);
	return err == -ECANCELED ? err : 0;
}

int csink_reservation_make(struct csink_reservation *reservation, const struct csink_reservation_wish *wish)
{
	bool has_agent;
	int err;

	memset(reservation, 0, sizeof(*reservation));
	reservation->reserve.fd = -1;
	reservation->timeout_ns = wish->timeout_ns;
	err = lock_and_confirm(reservation, wish);
	reservation->reserve.config.cancel_fd = -1; /* the caller's until now */
	has_agent = !is_without_agent(&reservation->reserve);
	reservation->matters = has_agent || reservation->hooks.nr;
	if (!err && (reservation->matters || wish->require))
		probe(reservation, wish);
	reservation->is_confirmed = !err && judge(reservation, has_agent);
	/* Reported unasked if the probe found the counters held. */
	reservation->matters |= reservation->has_probe && reservation->probe.fit != CSINK_RESERVE_FITS &&
				reservation->probe.fit != CSINK_RESERVE_REFUSED;
	describe(reservation, has_agent);
	if (!err && wish->require && !reservation->is_confirmed)
		err = -EBUSY;
	if (err) {
		struct csink_hooks failed = reservation->hooks;

		csink_reserve_release(&reservation->reserve);
		csink_hooks_release(&reservation->hooks, wish->timeout_ns);
		/* Why it failed matters more than what failed after. */
		if (failed.nr_errors)
			reservation->hooks = failed;
		reservation->hooks.nr = 0;
	}
	return err;
}

int csink_reservation_end(struct csink_reservation *reservation)
{
	struct csink_reserve *reserve = &reservation->reserve;
	size_t len = strlen(reservation->line);
	int err = 0;

	if (reserve->state == CSINK_RESERVE_CONFIRMED) {
		err = csink_reserve_verify(reserve);
		if (err == -EBUSY)
			snprintf(reservation->line, sizeof(reservation->line),
				 "the hardware counters did not stay reserved to the end: %s", reserve->text);
		else if (!err)
			snprintf(reservation->line + len, sizeof(reservation->line) - len, "; and still at the end");
		else
			snprintf(reservation->line + len, sizeof(reservation->line) - len,
				 "; the end could not be checked: %s", reserve->text);
		err = err == -EBUSY ? err : 0;
	}
	csink_reserve_release(reserve);
	csink_hooks_release(&reservation->hooks, reservation->timeout_ns);
	return err;
}
