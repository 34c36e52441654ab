/*
 * CSINK_PMC_SELF: reading a counter in user space, from pages as the kernel would fill them; and that on software
 * events, which have no counter, it is read(2), as value.how says. On real counters: tests/pmu/test_pmc_counters.c.
 */
#include <string.h>

#include "preload/api/pmc/pmc_impl.h"
#include "tests/unit/pmc_target.h"

/* ---- pages ---- */

static struct perf_event_mmap_page page;
static uint64_t counter_value, tick_value;
static uint32_t counter_index;
static int nr_reads, nr_switches;

static uint64_t fake_counter(uint32_t index)
{
	counter_index = index;
	nr_reads++;
	if (nr_switches) { /* the kernel takes the event off and puts it on again */
		nr_switches--;
		page.lock += 2;
		page.offset += 1000;
	}
	return counter_value;
}

static uint64_t fake_ticks(void)
{
	return tick_value;
}

static const struct csink_pmc_self_counters fake = {fake_counter, fake_ticks};

static void fill(void)
{
	memset(&page, 0, sizeof(page));
	page.cap_user_rdpmc = page.cap_user_time = 1;
	page.index = 3;
	page.pmc_width = 48;
	page.offset = 5000;
	page.time_enabled = 100;
	page.time_running = 90;
	page.time_mult = 1;
	counter_value = 42;
	tick_value = 7;
	nr_reads = nr_switches = 0;
}

/* value, or -1: refused */
static long long read_page(struct csink_pmc_value *value)
{
	memset(value, 0, sizeof(*value));
	return csink_pmc_self_read(&page, &fake, value) ? (long long)value->value : -1;
}

static void test_values(void)
{
	static const struct {
		uint16_t width;
		uint64_t counter;
		int64_t offset;
		long long want;
		const char *what;
	} rows[] = {
		{48, 42, 5000, 5042, "the counter is added to what was counted before"},
		{48, 0xffffffffffff, 5000, 4999, "a counter of 48 bits that is negative"},
		{48, 0x800000000000, 1LL << 47, 0, "the lowest one"},
		{40, 0xffffffffff, 10, 9, "a counter of 40 bits"},
		{32, 0xffffffff, 10, 9, "a counter of 32 bits"},
		{32, 0x1ffffffff, 10, 9, "bits above its width are ignored"},
		{64, UINT64_MAX, 10, 9, "a counter of 64 bits"},
		{64, 1ULL << 40, 10, (1LL << 40) + 10, "a large one"},
		{48, 42, -40, 2, "a negative offset"},
	};
	struct csink_pmc_value value;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fill();
		page.pmc_width = rows[i].width;
		page.offset = rows[i].offset;
		counter_value = rows[i].counter;
		is_num(read_page(&value), rows[i].want, rows[i].what);
	}
	fill();
	read_page(&value);
	is_num(counter_index, 2, "index counts from 1");
	is_num((long long)value.enabled_ns, 107, "the time since the last switch is in enabled_ns");
	is_num((long long)value.running_ns, 97, "the time since the last switch is in running_ns");
	fill();
	page.time_shift = 4;
	page.time_mult = 32; /* 2 ns a tick */
	tick_value = 1003;
	read_page(&value);
	is_num((long long)value.enabled_ns, 100 + 2006, "rdpmc: ticks of the TSC are scaled to ns");
	fill();
	page.cap_user_time_short = 1;
	page.time_mask = 0xff;
	page.time_cycles = 0x1f0;
	tick_value = 0x05; /* a clock of 8 bits that went round */
	read_page(&value);
	is_num((long long)value.enabled_ns, 100 + 0x205, "a short clock goes round");
}

static void test_refusals(void)
{
	struct csink_pmc_value value;

	fill();
	page.index = 0;
	is_num(read_page(&value), -1, "index 0: the counter is not read");
	is_num(nr_reads, 0, "index 0: no counter instruction is executed");
	fill();
	page.cap_user_rdpmc = 0;
	is_num(read_page(&value), -1, "cap_user_rdpmc is 0: the counter is not read");
	is_num(nr_reads, 0, "cap_user_rdpmc is 0: no counter instruction is executed");
	fill();
	page.cap_user_time = 0;
	is_num(read_page(&value), -1, "a page without times: the counter is not read");
	fill();
	page.pmc_width = 0;
	is_num(read_page(&value), -1, "a counter width of 0: the counter is not read");
	fill();
	page.pmc_width = 65;
	is_num(read_page(&value), -1, "a counter width of 65: the counter is not read");
}

static void test_switches(void)
{
	struct csink_pmc_value value;

	fill();
	nr_switches = 3;
	is_num(read_page(&value), 8042, "a page that changed meanwhile is read again");
	is_num(nr_reads, 4, "a page that changed is read as often as necessary");
	fill();
	page.lock = 1; /* the kernel is at it */
	is_num(read_page(&value), -1, "a page that stays locked: no endless loop");
	fill();
	nr_switches = 1 << 30;
	is_num(read_page(&value), -1, "a page that always changes: no endless loop");
}

/* ---- on this machine ---- */

static void *read_elsewhere(void *arg)
{
	struct csink_pmc_value *value = arg;

	csink_pmc_read((csink_pmc_id_t)value->reserved, value);
	return NULL;
}

static void test_software(void)
{
	csink_pmc_id_t pmc = allocate(CSINK_PMC_SELF);
	struct csink_pmc_value value = {0}, other = {.reserved = (uint32_t)pmc};
	int before = nr_open_fds();
	pthread_t thread;

	is_num(csink_pmc_start(pmc), 0, "a PMC of a software event starts");
	touch_pages();
	is_num(csink_pmc_read(pmc, &value), 0, "a software event is read");
	is_about((long long)value.value, PAGES, "a software event counts this thread");
	is_num(value.how, CSINK_PMC_BY_READ, "a software event's value comes from read(2)");
	is_num(value.nr_targets, 1, "a software event has one target");
	pthread_create(&thread, NULL, touching_thread, NULL);
	pthread_join(thread, NULL);
	is_about(value_of(pmc), PAGES, "other threads are not counted");
	pthread_create(&thread, NULL, read_elsewhere, &other);
	pthread_join(thread, NULL);
	is_about((long long)other.value, PAGES, "another thread can read it");
	is_num(csink_pmc_detach(pmc, 0), 0, "a software event is detached");
	is_about(value_of(pmc), PAGES, "a detached event keeps its count");
	is_num(nr_open_fds(), before, "a detached event's file is closed");
	csink_pmc_release(pmc);
	is_err(csink_pmc_allocate(EVENT, CSINK_PMC_SELF | CSINK_PMC_DESCENDANTS, -1), -EINVAL, "EINVAL",
	       "allocate: EINVAL, oneself with descendants");
}

static int forked_child(void)
{
	csink_pmc_id_t pmc = allocate(CSINK_PMC_SELF);
	struct csink_pmc_value value;

	csink_pmc_start(pmc);
	touch_pages();
	return csink_pmc_read(pmc, &value) || value.value < PAGES;
}

int main(void)
{
	csink_pmc_id_t pmc = allocate(CSINK_PMC_SELF);

	test_values();
	test_refusals();
	test_switches();
	test_software();
	csink_pmc_start(pmc);
	in_child(forked_child, 0, "a child of a fork can have its own");
	is_num(csink_pmc_release(pmc), 0, "a PMC is released after a forked child's use");
	return done();
}
