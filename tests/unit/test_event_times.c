/*
 * How long the events of a hybrid machine could have run, as csink_event_could_run_ns makes it out from what kernels
 * say: one that has an event enabled wherever its task runs (as Linux does), and one that forgets, as a task ends, the
 * time since the event last ran (Linux 6.1.176).
 */
#include "include/internal/event.h"
#include "tests/unit/tap.h"

enum { MAX = 24, BIG = 0, LITTLE = 1 };
static const char *const kinds[] = {"0-3", "4-7"};

static struct csink_event_spec specs[MAX];
static struct csink_event_times times[MAX];
static uint32_t nr;

/* What is the truth of a program: in ms. */
struct stay {
	double there, share; /* on the kind of CPU; and what part of that its events had a counter */
};

static void add(const char *name, const char *cpus, double enabled_ms, double running_ms, bool is_clock)
{
	struct csink_event_spec *spec = &specs[nr];

	memset(spec, 0, sizeof(*spec));
	snprintf(spec->rec.name, sizeof(spec->rec.name), "%s", name);
	snprintf(spec->cpus, sizeof(spec->cpus), "%s", cpus);
	times[nr++] =
		(struct csink_event_times){spec, (uint64_t)(enabled_ms * 1e6), (uint64_t)(running_ms * 1e6), is_clock};
}

static void add_kind(int kind, const struct stay *stay, double total_ms, bool forgets, int nr_events)
{
	/* What is forgotten is the stay on the other kind, if that came last, and a turn that was waited for. */
	double enabled_ms = forgets ? stay->there * (stay->share < 1 ? 0.9 : 1) : total_ms;

	for (int i = 0; i < nr_events; i++)
		add(kind ? "cpu_atom/cycles/" : "cpu_core/cycles/", kinds[kind], enabled_ms, stay->there * stay->share,
		    false);
}

/* A percent either way. */
static void is_near(uint64_t got, double want_ms, const char *what)
{
	double off = (double)got / 1e6 - want_ms;

	if (!ok((off < 0 ? -off : off) <= want_ms / 100, "%s", what))
		fprintf(stderr, "#   got %g ms, want %g\n", (double)got / 1e6, want_ms);
}

/* Both kinds' events, of which the little ones come after the big ones; with a clock of all, or of each kind as well.
 */
static void check(struct stay big, struct stay little, bool forgets, bool has_clocks, const char *what)
{
	double total_ms = big.there + little.there;
	uint32_t last;

	nr = 0;
	add_kind(BIG, &big, total_ms, forgets, 2);
	add_kind(LITTLE, &little, total_ms, forgets, 2);
	last = nr - 1;
	add("dummy", "", total_ms, total_ms, true);
	for (int kind = BIG; has_clocks && kind <= LITTLE; kind++) {
		double there_ms = kind ? little.there : big.there;

		add("dummy", kinds[kind], there_ms, there_ms, true);
	}
	if (big.there * big.share > 0)
		is_near(csink_event_could_run_ns(times, nr, 0), big.there, what);
	if (little.there * little.share > 0)
		is_near(csink_event_could_run_ns(times, nr, last), little.there, what);
}

static void test_both_kernels(void)
{
	for (int forgets = 0; forgets < 2; forgets++) {
		for (int has_clocks = 0; has_clocks < 2; has_clocks++) {
			check((struct stay){100, 1}, (struct stay){100, 1}, forgets, has_clocks,
			      "CPU kinds used evenly, no multiplexing");
			check((struct stay){1000, 1}, (struct stay){1, 1}, forgets, has_clocks,
			      "CPU kinds used unevenly, no multiplexing");
			check((struct stay){100, 0.6}, (struct stay){100, 0.6}, forgets, has_clocks,
			      "CPU kinds used evenly, multiplexing");
			check((struct stay){100, 0.1}, (struct stay){100, 0.1}, forgets, has_clocks,
			      "CPU kinds used evenly, so much multiplexing that both do not add up to one kind's time");
			check((struct stay){1000, 0.4}, (struct stay){10, 0.4}, forgets, has_clocks,
			      "CPU kinds used unevenly, multiplexing");
			check((struct stay){10, 0.7}, (struct stay){1000, 0.7}, forgets, has_clocks,
			      "CPU kinds used unevenly the other way, multiplexing");
			check((struct stay){200, 1}, (struct stay){0, 1}, forgets, has_clocks,
			      "one CPU kind used, no multiplexing");
			check((struct stay){0, 0.5}, (struct stay){200, 0.5}, forgets, has_clocks,
			      "one CPU kind used, multiplexing");
		}
		check((struct stay){300, 1}, (struct stay){500, 0.3}, forgets, true,
		      "multiplexing on one CPU kind only");
		check((struct stay){300, 0.2}, (struct stay){5, 0.9}, forgets, true,
		      "more multiplexing on one CPU kind");
	}
}

static void test_chance(void)
{
	/* Stays so short that each event gets another part of them. */
	nr = 0;
	for (int i = 0; i < 5; i++) {
		add("big", kinds[BIG], 1000, 450, false);
		add("little", kinds[LITTLE], 1000, 10 + 20 * i, false);
	}
	add("dummy", "", 1000, 1000, true);
	is_near(csink_event_could_run_ns(times, nr, 1), 100,
		"an event's own running time does not determine its kind's time");
	is_near(csink_event_could_run_ns(times, nr, 9), 100,
		"another event's running time does not determine its kind's time");
	is_near(csink_event_could_run_ns(times, nr, 0), 900,
		"event 0: its CPU kind's time is that of the kind's other events");
}

static void test_alone(void)
{
	nr = 0;
	add("cpu_core/a/", kinds[BIG], 1000, 300, false);
	add("cpu_core/b/", kinds[BIG], 1000, 400, false);
	is_num((long long)csink_event_could_run_ns(times, nr, 1), 400000000,
	       "an event without a counterpart of the other kind: the time enabled");
	is_num((long long)csink_event_could_run_ns(times, nr, 0), 400000000,
	       "an event's running time is a lower bound for its counterpart");
	add("dummy", kinds[BIG], 600, 600, true);
	is_num((long long)csink_event_could_run_ns(times, nr, 1), 600000000, "a clock gives both kinds' time");
	times[1].running_ns = 650000000;
	is_num((long long)csink_event_could_run_ns(times, nr, 0), 600000000,
	       "an event that was read later than the clock does not lengthen the clock's time for another event");
	times[0].running_ns = 0;
	is_num((long long)csink_event_could_run_ns(times, nr, 0), 600000000,
	       "a clock gives the time of an event that only waited");
	nr = 0;
	add("cpu_core/a/", kinds[BIG], 1000, 0, false);
	add("cpu_atom/a/", kinds[LITTLE], 1000, 1000, false);
	is_num((long long)csink_event_could_run_ns(times, nr, 0), 0, "an event that never ran has no time to wait for");
	is_num((long long)csink_event_could_run_ns(times, nr, 1), 1000000000,
	       "a kind that never ran leaves the time to the other kind");
}

static void test_one_kind_of_cpu(void)
{
	nr = 0;
	add("cycles", "", 1000, 500, false);
	add("instructions", "", 1000, 1000, false);
	is_num((long long)csink_event_could_run_ns(times, nr, 0), 1000000000,
	       "without CPU kinds the time is the time enabled");
	is_num((long long)csink_event_could_run_ns(times, nr, 1), 1000000000, "without CPU kinds the time is exact");
	times[0].enabled_ns = 500000000;
	add("dummy", "", 1000, 1000, true);
	is_num((long long)csink_event_could_run_ns(times, nr, 0), 1000000000,
	       "a forgotten time enabled is replaced by a clock's");
	times[0].running_ns = times[0].enabled_ns = 999999000;
	is_num((long long)csink_event_could_run_ns(times, nr, 0), 999999000,
	       "an event read before the clock gets no more time than its own");
}

static void name(struct csink_event_spec *spec, const char *text, const char *cpus)
{
	snprintf(spec->rec.name, sizeof(spec->rec.name), "%s", text);
	snprintf(spec->cpus, sizeof(spec->cpus), "%s", cpus);
}

static void test_kin(void)
{
	struct csink_event_spec a = {0}, b = {0};

	name(&a, "cpu_core/cycles/:u", "0-3");
	name(&b, "cpu_atom/cycles/:u", "4-7");
	ok(csink_event_is_counterpart(&a, &b) && csink_event_is_counterpart(&b, &a),
	   "the same event of two CPU kinds are counterparts");
	ok(!csink_event_is_counterpart(&a, &a), "an event is not its own counterpart");
	name(&b, "cpu_atom/cycles/", "4-7");
	ok(!csink_event_is_counterpart(&a, &b), "events with different modifiers are not counterparts");
	name(&b, "cycles:u", "");
	ok(!csink_event_is_counterpart(&a, &b) && !csink_event_is_counterpart(&b, &b),
	   "an event that counts on all CPUs has no counterpart");
	name(&a, "big/a_name_of_some_length/", "0-3");
	name(&b, "very_little/a_name_of_some_l~", "4-7");
	ok(csink_event_is_counterpart(&a, &b), "a truncated name still matches its counterpart");
	name(&b, "very_little/another_name_of~", "4-7");
	ok(!csink_event_is_counterpart(&a, &b), "another truncated name does not match");
}

int main(void)
{
	test_both_kernels();
	test_chance();
	test_alone();
	test_one_kind_of_cpu();
	test_kin();
	return done();
}
