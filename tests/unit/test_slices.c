/*
 * Slices of a run: those of consecutive moments add up to the profile of the whole, to the last nanosecond, whatever a
 * process does meanwhile; their schedule on the wall clock; their names, and which files are taken for them.
 */
#include "launcher/session/slices.h"

#include <errno.h>
#include <sys/stat.h>

#include "include/internal/base.h"
#include "launcher/collect/collect.h"
#include "launcher/profile/merge.h"
#include "launcher/profile/profile.h"
#include "tests/unit/record.h"
#include "tests/unit/tap.h"

#define MS 1000000LL

/* ---- sums ---- */

static char directory[] = "/tmp/csink-slices.XXXXXX";
static struct csink_moment *base;
static struct csink_merge *merged;
static struct csink_outside outside;
static uint32_t nr_slices;

static struct csink_profile *finished(const struct csink_merge *merge)
{
	struct csink_profile *p;

	if (csink_merge_finish(merge, &p))
		abort();
	return p;
}

/* What a merge has is laid out by content. */
static bool same_stack(const struct csink_profile *p, const struct csink_profile *q, uint32_t sample)
{
	const struct csink_profile_range *a = &p->stacks[p->samples[sample].stack];
	const struct csink_profile_range *b = &q->stacks[q->samples[sample].stack];

	for (uint32_t i = 0; a->nr == b->nr && i < a->nr; i++) {
		const struct csink_profile_location *l = &p->locations[p->stack_ids[a->first + i]];
		const struct csink_profile_location *m = &q->locations[q->stack_ids[b->first + i]];

		if (l->address != m->address || l->nr_lines != m->nr_lines)
			return false;
		for (uint32_t k = 0; k < l->nr_lines; k++)
			if (strcmp(csink_profile_text(p, p->functions[p->lines[l->first_line + k].function].name),
				   csink_profile_text(q, q->functions[q->lines[m->first_line + k].function].name)) != 0)
				return false;
	}
	return a->nr == b->nr;
}

static bool same_labels(const struct csink_profile *p, const struct csink_profile *q, uint32_t sample)
{
	const struct csink_profile_range *a = &p->label_sets[p->samples[sample].labels];
	const struct csink_profile_range *b = &q->label_sets[q->samples[sample].labels];

	for (uint32_t i = 0; a->nr == b->nr && i < a->nr; i++) {
		const struct csink_profile_label *l = &p->labels[a->first + i], *m = &q->labels[b->first + i];

		if (strcmp(csink_profile_text(p, l->key), csink_profile_text(q, m->key)) != 0 ||
		    strcmp(csink_profile_text(p, l->str), csink_profile_text(q, m->str)) != 0 || l->num != m->num)
			return false;
	}
	return a->nr == b->nr;
}

static bool are_same(const struct csink_profile *p, const struct csink_profile *q)
{
	bool same = p->nr_samples && p->nr_samples == q->nr_samples && p->nr_types == q->nr_types;

	for (uint32_t i = 0; same && i < p->nr_samples; i++)
		same = same_stack(p, q, i) && same_labels(p, q, i) &&
		       !memcmp(csink_profile_values(p, i), csink_profile_values(q, i), p->nr_types * sizeof(int64_t));
	return same;
}

static int64_t sum_of(const struct csink_merge *merge, uint32_t type)
{
	struct csink_profile *p = finished(merge);
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->nr_samples; i++)
		sum += csink_profile_values(p, i)[type];
	csink_profile_free(p);
	return sum;
}

static void add_to(struct csink_merge *merge, struct csink_profile *p)
{
	if (csink_merge_add(merge, p))
		abort();
	csink_profile_free(p);
}

/* All that is there now becomes a slice, which counts if it could be written. */
static struct csink_moment *cut(bool is_last, bool is_written)
{
	struct csink_slice slice = {.number = ++nr_slices, .is_last = is_last, .missed_why = "", .outside = &outside};
	struct csink_moment *now;
	struct csink_profile *p;

	if (csink_moment_take_after(directory, base, is_last, &now))
		abort();
	if (csink_collect_slice(base, now, &slice, &p))
		abort();
	if (!is_written) {
		csink_profile_free(p);
		csink_moment_free(now);
		return NULL;
	}
	add_to(merged, p);
	csink_moment_free(base);
	return base = now;
}

static void begin(void)
{
	merged = csink_merge_create(CSINK_MERGE_IDS);
	base = NULL;
	outside = (struct csink_outside){0};
}

/* A process with two threads, a row and a cell. */
struct process {
	struct record r;
	struct csink_rec_thread *threads[2];
	struct csink_rec_row *row;
	struct csink_rec_cell *cell;
	char name[32];
	uint64_t clock_ns;
};

static void save(struct process *p)
{
	record_write(&p->r, directory, p->name);
}

static struct process *removed[2]; /* whose recordings are not there */

/* The last slice, and the whole from the same recordings. */
static void end(const char *what)
{
	struct csink_merge *whole = csink_merge_create(CSINK_MERGE_IDS);
	struct csink_profile *p, *q;

	cut(true, true);
	for (int i = 0; i < 2; i++)
		if (removed[i])
			save(removed[i]);
	if (csink_collect(directory, &outside, &p))
		abort();
	add_to(whole, p);
	is_num(sum_of(merged, 0), sum_of(whole, 0), what);
	is_num(sum_of(merged, 1), sum_of(whole, 1), what);
	p = finished(merged);
	q = finished(whole);
	ok(are_same(p, q), "%s: each sample has the same weights", what);
	csink_profile_free(p);
	csink_profile_free(q);
	csink_merge_free(whole);
	csink_merge_free(merged);
	csink_moment_free(base);
}

static void start(struct process *p, int32_t pid, uint32_t seq, uint64_t start_ns, uint64_t cpu_start_ns)
{
	uint64_t weight = 4 * MS;
	uint32_t small = 1 * MS;

	*p = (struct process){.r = record_new(8), .clock_ns = cpu_start_ns};
	p->r.header->state = CSINK_REC_LIVE;
	p->r.header->pid = pid;
	p->r.header->seq = seq;
	p->r.header->start_monotonic_ns = start_ns;
	p->r.header->cpu_start_ns = cpu_start_ns;
	p->r.header->cpu_end_ns = cpu_start_ns;
	record_module(&p->r, "/bin/prog", 0x400000, 0x401000, 0x402000);
	for (int i = 0; i < 2; i++)
		p->threads[i] = record_thread(&p->r, pid + i, "prog");
	p->row = record_row(&p->r, p->threads[0], NULL, 0x401010, 4, &weight);
	p->cell = record_cell(&p->r, p->threads[1], NULL, 0x401030, 1, &small);
	snprintf(p->name, sizeof(p->name), "%d.%u.rec", pid, seq);
	save(p);
}

static void work(struct process *p, uint64_t row_ns, uint32_t cell_ns, uint64_t new_ns, uint64_t clock_ns)
{
	p->row->weights[0] += row_ns;
	p->row->nr_samples += row_ns != 0;
	p->cell->weights[0] += cell_ns;
	p->cell->nr_samples += cell_ns != 0;
	if (new_ns)
		record_row(&p->r, p->threads[0], NULL, 0x401040, 1, &new_ns);
	p->clock_ns += clock_ns;
	p->r.header->cpu_end_ns = p->clock_ns;
	save(p);
}

static void finish(struct process *p, uint32_t state)
{
	p->r.header->state = state;
	save(p);
}

static void drop(struct process *p)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/%s", directory, p->name);
	unlink(path);
	free(p->r.bytes);
}

/* The process's clock runs ahead of its samples, and is caught up by them, and runs ahead again. */
static void test_clock_ahead(void)
{
	struct process p;

	begin();
	start(&p, 100, 0, 1000, 3 * MS);
	cut(false, true);
	work(&p, 10 * MS + 1, 3, 7 * MS, 40 * MS);
	cut(false, true);
	work(&p, 13 * MS + 5, 2 * MS + 1, 5, 1);
	cut(false, true);
	work(&p, 0, 0, 0, 2 * MS);
	cut(false, true);
	work(&p, 11, 12, 13, 9 * MS + 7);
	finish(&p, CSINK_REC_EXITED);
	end("a clock that runs ahead of samples");
	drop(&p);
}

/* It ends some slices before the run does, and a part is not written in time. */
static void test_ends_early(void)
{
	struct process p, q;

	begin();
	start(&p, 100, 0, 1000, 3 * MS);
	work(&p, 10 * MS, 0, 7 * MS, 40 * MS);
	cut(false, true);
	work(&p, 1 * MS, 5, 0, 7 * MS);
	cut(false, false);
	finish(&p, CSINK_REC_EXITED);
	start(&q, 300, 0, 5000, 1 * MS);
	cut(false, true);
	work(&q, 2 * MS, 0, 0, 3 * MS);
	cut(false, true);
	cut(false, true);
	outside =
		(struct csink_outside){.has_rusage = 1, .user_ns = 90 * MS, .sys_ns = 5 * MS + 3, .wall_ns = 200 * MS};
	end("totals of the kernel, a process that ended before, one that was killed");
	drop(&p);
	drop(&q);
}

/* Two programs of one process. */
static void test_exec(void)
{
	struct process p, q;

	begin();
	start(&p, 100, 0, 1000, 3 * MS);
	cut(false, true);
	work(&p, 10 * MS, 0, 7 * MS, 30 * MS);
	finish(&p, CSINK_REC_EXECED);
	cut(false, true);
	start(&q, 100, 1, 9000, 34 * MS);
	work(&q, 4 * MS, 9, 1, 8 * MS);
	cut(false, true);
	work(&q, 4 * MS, 9, 1, 18 * MS);
	finish(&q, CSINK_REC_EXITED);
	outside =
		(struct csink_outside){.has_rusage = 1, .user_ns = 70 * MS, .sys_ns = 1 * MS + 3, .wall_ns = 200 * MS};
	end("a program that starts another one in its place");
	drop(&p);
	drop(&q);
}

static bool is_there(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return !lstat(path, &st);
}

#define PID_NONE 0x7ffffff0 /* no process has it */

/* The recordings of programs that have ended are removed meanwhile; the whole is made of copies of them. */
static void test_removed(void)
{
	struct csink_outside_process process = {
		.pid = PID_NONE, .comm = "prog", .cpu_ns = 70 * MS, .has_cpu = 1, .ppid = 1};
	struct process p, q;
	uint32_t nr;

	begin();
	start(&p, PID_NONE, 0, 1000, 3 * MS);
	cut(false, true);
	work(&p, 10 * MS, 7, 7 * MS, 30 * MS);
	finish(&p, CSINK_REC_EXECED);
	start(&q, PID_NONE, 1, 9000, 34 * MS);
	cut(false, true);
	is_num(csink_moment_take_ended(base, 3), 0, "two recordings: none is removed where three are few");
	nr = csink_moment_take_ended(base, 2);
	is_num(nr, 1, "a program that became another one: its recording is removed");
	ok(!is_there(p.name) && is_there(q.name), "and no other one");
	work(&q, 4 * MS, 9, 1, 18 * MS);
	finish(&q, CSINK_REC_EXITED);
	cut(false, true);
	is_num(csink_moment_take_ended(base, 0), 1, "a program that has ended: the same");
	cut(false, true);
	removed[0] = &p;
	removed[1] = &q;
	outside = (struct csink_outside){
		.has_rusage = 1, .user_ns = 70 * MS, .sys_ns = 3, .processes = &process, .nr_processes = 1};
	end("recordings that were removed");
	removed[0] = removed[1] = NULL;
	drop(&p);
	drop(&q);
}

/* The kernel counted threads whose end the library did not see. Weights of their samples are scaled to that. */
static void test_killed(void)
{
	struct csink_outside_thread threads[] = {{100, 100, 60 * MS}, {100, 101, 30 * MS}};
	struct csink_outside_process process = {.pid = 100, .comm = "prog", .cpu_ns = 95 * MS, .has_cpu = 1, .ppid = 1};
	struct process p;

	begin();
	start(&p, 100, 0, 1000, 3 * MS);
	p.threads[0]->totals[0] = 4 * MS;
	p.threads[0]->nr_samples = 4;
	work(&p, 0, 0, 0, 5 * MS);
	cut(false, true);
	p.threads[0]->totals[0] = 50 * MS;
	p.threads[0]->nr_samples = 5;
	work(&p, 46 * MS, 0, 0, 50 * MS);
	outside = (struct csink_outside){.has_rusage = 1,
					 .user_ns = 95 * MS,
					 .sys_ns = 3,
					 .processes = &process,
					 .nr_processes = 1,
					 .threads = threads,
					 .nr_threads = 2};
	end("killed, with the kernel's counts of its threads");
	drop(&p);
}

/* ---- the schedule ---- */

#define S 1000000000ULL
#define NOON 1795608000ULL /* a multiple of a minute and an hour */

static void is_cut(struct csink_slice_clock *clock, uint64_t real_ns, uint64_t mono_ns, uint64_t begin_ns,
		   uint64_t due_ns, const char *what)
{
	uint64_t begin = csink_slice_clock_next(clock, real_ns, mono_ns);
	char point[128];

	snprintf(point, sizeof(point), "%s: begins", what);
	is_num((long long)begin, (long long)begin_ns, point);
	snprintf(point, sizeof(point), "%s: ends", what);
	is_num((long long)clock->due_ns, (long long)due_ns, point);
}

static void test_clock(void)
{
	struct csink_slice_clock clock = {.slice_ns = 60 * S};

	is_cut(&clock, NOON * S + 47 * S, 1000 * S, NOON * S + 47 * S, 1013 * S, "the first slice");
	is_cut(&clock, (NOON + 60) * S + 5, 1013 * S + 5, (NOON + 60) * S, 1073 * S, "the second");
	is_cut(&clock, (NOON + 120) * S + S / 2, 1073 * S + 9, (NOON + 120) * S, 1133 * S, "a clock that is slewed");
	is_cut(&clock, (NOON + 370) * S, 1323 * S, (NOON + 360) * S, 1373 * S, "after ends that were missed");
	is_cut(&clock, (NOON + 3600 + 417) * S, 1373 * S, (NOON + 3600 + 417) * S, 1376 * S,
	       "a clock that was put forward");
	is_cut(&clock, (NOON - 600 + 30) * S, 1376 * S, (NOON - 600 + 30) * S, 1406 * S, "a clock that was put back");
	is_cut(&clock, (NOON - 540) * S, 1406 * S, (NOON - 540) * S, 1466 * S, "after that");
}

/* ---- names ---- */

static void is_name(const char *template, uint64_t number, const char *want)
{
	struct csink_output_names values = {.pid = 42, .host = "h", .command = "/bin/cmd", .rank = "3"};
	struct csink_slice_names names;
	char name[PATH_MAX] = "", why[PATH_MAX] = "";

	if (!csink_slice_names_init(&names, template, &values, why, sizeof(why)))
		csink_slice_names_make(&names, 1795335300ULL * S, number, name, sizeof(name));
	is_str(*name ? name : why, want, template);
}

static void put_file(const char *name, size_t bytes)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	while (bytes--)
		fputc('x', file);
	fclose(file);
}

static void remove_file(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	unlink(path);
}

static const char *const slices[] = {"a.20261122T081500Z.0007.pb.gz", "a.20261122T081400Z.0008.pb.gz",
				     "a.20261122T081600Z.0009.pb.gz", "a.20261122T081700Z.12345.pb.gz"};
static const char *const others[] = {"a.pb.gz",
				     "a.20261122T081500Z.pb.gz",
				     "a.20261122T081500Z.007.pb.gz",
				     "a.20261122T081500.0007.pb.gz",
				     "a.20261122T081500Z.0007.pb.gz.4711",
				     "b.20261122T081500Z.0007.pb.gz",
				     "a.20261122T081500Z.0007.pb",
				     "a.2026112xT081500Z.0007.pb.gz",
				     "a.20261122T081500Z.0007.old.pb.gz"};

static uint32_t nr_there(const char *const *names, size_t nr)
{
	uint32_t there = 0;

	for (size_t i = 0; i < nr; i++)
		there += is_there(names[i]);
	return there;
}

static void test_keep(void)
{
	struct csink_output_names values = {.pid = 42, .host = "h", .command = "/bin/cmd", .rank = "3"};
	struct csink_slice_names names;
	char template[64], why[PATH_MAX];
	uint64_t now_ns = 1000000000ULL; /* of 1970: numbers alone count */

	snprintf(template, sizeof(template), "%s/a.pb.gz", directory);
	is_num(csink_slice_names_init(&names, template, &values, why, sizeof(why)), 0, "names in a directory");
	is_num((long long)csink_slice_names_next(&names), 1, "the first number");
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(slices); i++)
		put_file(slices[i], 100);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(others); i++)
		put_file(others[i], 100);
	is_num((long long)csink_slice_names_next(&names), 12346, "the number after the highest");
	is_num(csink_slice_names_keep(&names, now_ns, 0, 0), 0, "no bound: all stay");
	is_num(csink_slice_names_keep(&names, now_ns, 3, 0), 1, "one too many");
	ok(!is_there(slices[0]) && is_there(slices[1]), "the lowest number goes, whatever the clock was");
	is_num(csink_slice_names_keep(&names, now_ns, 0, 200), 1, "too many bytes");
	ok(!is_there(slices[1]) && is_there(slices[2]), "the next one goes");
	is_num(csink_slice_names_keep(&names, now_ns, 0, 1), 1, "a bound that no slice fits in");
	ok(is_there(slices[3]), "the newest one stays");
	is_num(nr_there(others, CSINK_ARRAY_SIZE(others)), CSINK_ARRAY_SIZE(others),
	       "no other file is taken for a slice");
	remove_file(slices[3]);
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(others); i++)
		remove_file(others[i]);
}

static void test_keep_by_time(void)
{
	static const char *const files[] = {"b.4711.20261122T081500Z.pb.gz", "b.7.20261122T081500Z.0001.pb.gz",
					    "b.42.20261122T081501Z.pb.gz"};
	struct csink_output_names values = {.pid = 42, .host = "h", .command = "/bin/cmd", .rank = "3"};
	struct csink_slice_names names;
	char template[64], why[PATH_MAX];
	uint64_t now_ns = 1795335302ULL * CSINK_NS_PER_S; /* 2026-11-22 08:15:02 */

	snprintf(template, sizeof(template), "%s/b.%%p.%%t.pb.gz", directory);
	is_num(csink_slice_names_init(&names, template, &values, why, sizeof(why)), 0, "names with a time and a PID");
	for (size_t i = 0; i < CSINK_ARRAY_SIZE(files); i++)
		put_file(files[i], 100);
	put_file("b.x.20261122T081500Z.pb.gz", 1);
	is_num(csink_slice_names_keep(&names, now_ns, 2, 0), 1, "by time: one too many");
	ok(!is_there(files[0]) && is_there(files[1]), "of the same second, the one without a number is older");
	is_num(csink_slice_names_keep(&names, now_ns, 1, 0), 1, "by time: one too many again");
	ok(is_there(files[2]) && is_there("b.x.20261122T081500Z.pb.gz"), "the newest stays, and what has no PID");
	put_file("b.42.20271122T081500Z.pb.gz", 100);
	put_file("b.42.20271122T081600Z.pb.gz", 100);
	is_num(csink_slice_names_keep(&names, now_ns, 2, 0), 1, "by time: the clock was set back: one too many");
	ok(is_there(files[2]) && is_there("b.42.20271122T081600Z.pb.gz"), "of times to come, the oldest goes");
	is_num(csink_slice_names_keep(&names, now_ns, 1, 0), 1, "one too many again");
	ok(is_there(files[2]), "the newest is the one that is not ahead of the clock");
	remove_file(files[2]);
	remove_file("b.x.20261122T081500Z.pb.gz");
}

/* Digits behind a PID are no part of it. */
static void test_keep_by_pid(void)
{
	static const char *const templates[] = {"c%p0.pb.gz", "c%p%t.pb.gz", "%p.pb.gz"};
	static const char *const files[][3] = {
		{"c420.20261122T081500Z.0001.pb.gz", "c70.20261122T081500Z.0002.pb.gz",
		 "c7.20261122T081500Z.0003.pb.gz"},
		{"c4220261122T081500Z.pb.gz", "c720261122T081501Z.pb.gz", "c20261122T081500Z.pb.gz"},
		{"42.20261122T081500Z.0001.pb.gz", "7.20261122T081500Z.0002.pb.gz", "x.20261122T081500Z.0003.pb.gz"},
	};
	struct csink_output_names values = {.pid = 42, .host = "h", .command = "/bin/cmd", .rank = "3"};
	struct csink_slice_names names;
	char template[64], why[PATH_MAX];

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(templates); i++) {
		snprintf(template, sizeof(template), "%s/%s", directory, templates[i]);
		csink_slice_names_init(&names, template, &values, why, sizeof(why));
		for (size_t k = 0; k < 3; k++)
			put_file(files[i][k], 100);
		is_num(csink_slice_names_keep(&names, 1795335302ULL * CSINK_NS_PER_S, 1, 0), 1, templates[i]);
		ok(!is_there(files[i][0]) && is_there(files[i][1]) && is_there(files[i][2]),
		   "%s: the oldest goes, and no other file", templates[i]);
		remove_file(files[i][1]);
		remove_file(files[i][2]);
	}
}

int main(void)
{
	if (!mkdtemp(directory))
		return 1;
	test_clock_ahead();
	test_ends_early();
	test_exec();
	test_removed();
	test_killed();
	test_clock();
	is_name("redis.pb.gz", 7, "redis.20261122T081500Z.0007.pb.gz");
	is_name("/x.y/redis", 12345, "/x.y/redis.20261122T081500Z.12345");
	is_name("a.b.pprof", 1, "a.b.20261122T081500Z.0001.pprof");
	is_name(".gz", 1, ".gz.20261122T081500Z.0001");
	is_name("%c/%t.%p.%r.%h%%.pb.gz", 0, "cmd/20261122T081500Z.42.3.h%.pb.gz");
	is_name("%t.pb.gz", 2, "20261122T081500Z.0002.pb.gz");
	is_name("%t/a.pb.gz", 0, "%t is in the name of a directory, which would be another one for each slice");
	is_name("%q", 0,
		"'%q' means nothing: %p pid, %h host, %c command, %r rank, %n ranks, %j job, %s step, %t start, %% a "
		"percent sign");
	is_name("x/", 0, "the path names a directory: name a file in it");
	setenv("SLURM_JOB_ID", "12/../34%t", 1);
	setenv("SLURM_STEP_ID", "5", 1);
	unsetenv("OMPI_COMM_WORLD_RANK");
	unsetenv("PMI_RANK");
	unsetenv("SLURM_PROCID");
	is_name("%j.%s.%n.pb", 1, "12_.._34%t.5.1.20261122T081500Z.0001.pb");
	test_keep();
	test_keep_by_time();
	test_keep_by_pid();
	ok(!csink_slices_prefer_timer(50000), "no tick is as often as the fastest rate");
	rmdir(directory);
	return done();
}
