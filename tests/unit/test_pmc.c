/*
 * PMCs: states; and that what is attached to counts in all its threads and, where asked for, its descendants. Errors:
 * test_pmc_errors.c.
 */
#include "tests/unit/pmc_target.h"

/* ---- counting ---- */

static void counts_threads(void)
{
	csink_pmc_id_t pmc = allocate(0);
	struct target target = start_target();
	struct csink_pmc_value value;
	char reason[400];
	long long last;

	is_num(csink_pmc_state(pmc), CSINK_PMC_ALLOCATED, "a new PMC is ALLOCATED");
	is_num(csink_pmc_attach(pmc, target.pid), one_if_old(), "attach to a process of two threads and a child");
	if (one_if_old())
		ok(strstr(csink_pmc_reason(reason, sizeof(reason)), "inherit_thread needs Linux 5.13") != NULL,
		   "before Linux 5.13 the reason has the kernel's version");
	tell(&target, 't');
	is_num(value_of(pmc), 0, "no fault is counted before the start");
	is_num(csink_pmc_start(pmc), 0, "a PMC starts");
	is_num(csink_pmc_state(pmc), CSINK_PMC_RUNNING, "a started PMC is RUNNING");
	is_num(csink_pmc_start(pmc), 0, "a second start changes nothing");
	tell(&target, 't');
	is_about(last = value_of(pmc), PAGES, "the main thread is counted");
	tell(&target, 'o');
	is_about(value_of(pmc) - last, PAGES, "an existing thread is counted");
	last = value_of(pmc);
	tell(&target, 'T');
	is_about(value_of(pmc) - last, one_if_old() ? 0 : PAGES,
		 one_if_old() ? "before Linux 5.13 a thread started later is not counted"
			      : "a thread started later is counted");
	last = value_of(pmc);
	tell(&target, 'c');
	tell(&target, 'P');
	is_about(value_of(pmc) - last, 0, "children, old or new, are not counted");
	is_num(csink_pmc_read(pmc, &value), 0, "a PMC is read");
	is_num(value.nr_targets * 10 + value.nr_ended, 10, "the PMC has one target, none ended");
	ok(value.enabled_ns && value.running_ns == value.enabled_ns, "the PMC counted all of the time");
	csink_pmc_stop(pmc);
	is_num(csink_pmc_state(pmc), CSINK_PMC_STOPPED, "a stopped PMC is STOPPED");
	last = value_of(pmc);
	tell(&target, 't');
	is_num(value_of(pmc), last, "a stopped PMC counts nothing");
	csink_pmc_start(pmc);
	is_num(csink_pmc_detach(pmc, target.pid), 0, "a running PMC can be detached");
	tell(&target, 't');
	is_about(value_of(pmc), last, "after detach the value stays, and the target is not counted");
	is_num(csink_pmc_release(pmc), 0, "a PMC is released");
	is_num(csink_pmc_state(pmc), -ESRCH, "a released PMC does not exist: ESRCH");
	end_target(&target);
}

static void counts_descendants(void)
{
	csink_pmc_id_t pmc = allocate(CSINK_PMC_DESCENDANTS), second = allocate(0);
	struct target target = start_target(), other = start_target();
	long long last = 0;

	is_num(csink_pmc_attach(pmc, target.pid), 0, "a PMC attaches to a process with descendants");
	is_num(csink_pmc_attach(pmc, other.pid), 0, "attach with descendants to a second process");
	is_num(csink_pmc_attach(second, target.pid), one_if_old(), "a second PMC attaches to the same process");
	csink_pmc_start(pmc);
	csink_pmc_start(second);
	for (const char *what = "tTocP"; *what; what++) {
		char name[64];

		tell(&target, *what);
		snprintf(name, sizeof(name), "'%c' is counted", *what);
		is_about(value_of(pmc) - last, PAGES, name);
		last = value_of(pmc);
	}
	is_about(value_of(second), (one_if_old() ? 2 : 3) * PAGES,
		 one_if_old() ? "the second one, without descendants, has two of the five: no later thread"
			      : "the second one, without descendants, has three of the five");
	tell(&other, 'P');
	is_about(value_of(pmc) - last, PAGES, "a child of the second target is counted");
	csink_pmc_release(pmc);
	csink_pmc_release(second);
	end_target(&target);
	end_target(&other);
}

static void counts_itself(void)
{
	csink_pmc_id_t pmc = allocate(0);
	int before = nr_open_fds();

	is_num(csink_pmc_start(pmc), one_if_old(), "a PMC without a target is started");
	touch_pages();
	is_about(value_of(pmc), PAGES, "a PMC without a target counts the calling process");
	is_num(csink_pmc_detach(pmc, 0), 0, "the calling process is detached as 0");
	csink_pmc_release(pmc);
	is_num(nr_open_fds(), before, "no file stays open");
}

int main(void)
{
	counts_threads();
	counts_descendants();
	counts_itself();
	return done();
}
