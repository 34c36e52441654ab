/*
 * CPU time, and of attach counts of events, that no sample has, so that a profile's sum is what the kernel accounted:
 * each part under a name of its own, in brackets and with a label, so that it is not mistaken for a function and can be
 * filtered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/search.h"
#include "launcher/collect/collect_impl.h"
#include "launcher/collect/moment.h"

/* More than any process can have used: a damaged header. */
#define INSANE_NS (1LL << 60)
#define CLOCKS_DIFFER_NS 4000000 /* a kernel tick */

#define EXITS_AND_SWITCHES "[kernel: exits and switches]"

/* Returns the number + 1 of a new function, which is no object's. @mapping  NULL: none; 0 without memory. */
static uint32_t add_function(struct collector *c, const struct csink_profile_mapping *mapping,
			     const struct csink_profile_line *line)
{
	uint32_t location =
		csink_profile_location_add(c->p, mapping ? csink_profile_mapping_add(c->p, mapping) : 0, 0, line, 1);

	if (CSINK_GROW(c->pseudo, c->nr_pseudo, c->cap_pseudo))
		return 0;
	c->pseudo[c->nr_pseudo].function = line->function;
	c->pseudo[c->nr_pseudo].location = location;
	return ++c->nr_pseudo;
}

void csink_collect_pseudo(struct collector *c, const char *word, const char *frame, const uint32_t *callers,
			  const struct csink_profile_label *labels, uint32_t nr_labels, const int64_t *values)
{
	struct csink_profile_function function = {.name = csink_profile_str(c->p, frame)};
	struct csink_profile_label all[9];
	struct csink_profile_line line = {0};
	uint32_t location, stack[8], nr = 0;

	function.system_name = function.name;
	line.function = csink_profile_function_add(c->p, &function);
	location = CSINK_TABLE_INTERN(c->pseudo_table, csink_hash_number(line.function),
				      c->pseudo[id - 1].function == line.function, add_function(c, NULL, &line));
	if (!location)
		return;
	location = c->pseudo[location - 1].location;
	nr_labels = CSINK_MIN(nr_labels, CSINK_ARRAY_SIZE(all) - 1);
	memcpy(all, labels, nr_labels * sizeof(*all));
	all[nr_labels++] = (struct csink_profile_label){.key = csink_profile_str(c->p, CSINK_LABEL_PSEUDO),
							.str = csink_profile_str(c->p, word)};
	stack[nr++] = location;
	while (callers && *callers && nr < CSINK_ARRAY_SIZE(stack))
		stack[nr++] = *callers++;
	csink_profile_sample_add(c->p, csink_profile_stack_add(c->p, stack, nr),
				 csink_profile_labels_add(c->p, all, nr_labels), values);
}

uint32_t csink_collect_process_labels(struct collector *c, int32_t pid, const char *comm,
				      struct csink_profile_label *labels)
{
	int32_t rank = csink_collect_rank_of(c, pid);
	uint32_t nr = 0;

	if (pid)
		labels[nr++] =
			(struct csink_profile_label){.key = csink_profile_str(c->p, CSINK_LABEL_PID), .num = pid};
	if (*comm)
		labels[nr++] = (struct csink_profile_label){.key = csink_profile_str(c->p, CSINK_LABEL_PROCESS),
							    .str = csink_profile_str(c->p, comm)};
	if (rank >= 0)
		labels[nr++] =
			(struct csink_profile_label){.key = csink_profile_str(c->p, CSINK_LABEL_RANK), .num = rank};
	return nr;
}

/* Give CPU time to a process's pseudo-function. Returns what was given. */
static int64_t give(struct collector *c, const char *word, const char *frame, int32_t pid, const char *comm, int64_t ns)
{
	int64_t values[CSINK_MAX_EVENTS + 1] = {0};
	struct csink_profile_label labels[3];

	if (ns <= 0 || ns > INSANE_NS)
		return 0;
	values[c->cpu_event + 1] = ns;
	csink_collect_pseudo(c, word, frame, NULL, labels, csink_collect_process_labels(c, pid, comm, labels), values);
	return ns;
}

/* What was sampled from outside has no CPU clock of its process: it goes on from where the former image was. */
static void place_outside(struct collector *c, struct image *image)
{
	const struct image *former = image->former ? &c->images[image->former - 1] : NULL;

	image->cpu_start_ns = former ? former->cpu_end_ns : 0;
	image->cpu_end_ns = image->cpu_start_ns + (image->is_by_cpu ? 0 : image->covered_cpu_ns);
}

/* One that was replaced past us, by an exec that we did not see, has rows from after its header was last written. */
static void correct_end(struct image *image)
{
	image->cpu_end_ns = CSINK_MAX(image->cpu_end_ns, image->cpu_start_ns + image->covered_cpu_ns);
}

/* CPU time of a program that is not in the recordings, or may not be shown. */
static int64_t add_absent(struct collector *c, int32_t pid, const char *name, enum csink_spawn_reason reason,
			  int64_t ns)
{
	const char *word = reason == CSINK_SPAWN_NOT_FOLLOWED ? "not followed" : "not injected";
	char frame[64];

	snprintf(frame, sizeof(frame), "[%s: %.16s]", word, name);
	return give(c, word, frame, pid, name, ns);
}

/* CPU time that goes to no sample of an image; what slices before have of it is covered already. */
static int64_t give_rest(struct collector *c, const struct image *image, int64_t open)
{
	return image->is_open ? 0 : give(c, "not sampled", "[not sampled]", image->pid, image->comm, open);
}

/* Start-up is in the first slice that has the image. */
static int64_t give_start(struct collector *c, const struct image *image, int64_t before)
{
	if (c->slice && image->is_continued)
		return before > 0 && before <= INSANE_NS ? before : 0;
	return give(c, "start-up", "[start-up: exec and loader]", image->pid, image->comm, before);
}

/* What lies before our constructor, and what its rows leave open up to the last flush. */
static void account_image(struct collector *c, struct image *image)
{
	const struct image *former = image->former ? &c->images[image->former - 1] : NULL;
	int64_t before = (int64_t)(image->cpu_start_ns - (former ? former->cpu_end_ns : 0));
	int64_t open;

	if (image->is_continued && !c->slice)
		before = 0;
	if (image->is_left_out) {
		add_absent(c, image->pid, image->comm, CSINK_SPAWN_NOT_FOLLOWED, image->covered_cpu_ns);
		csink_collect_unprofiled(c, image->comm, CSINK_SPAWN_NOT_FOLLOWED);
	}
	if (image->is_outside) /* the process's own count has what is open there */
		return;
	open = csink_add((int64_t)(image->cpu_end_ns - image->cpu_start_ns), -image->covered_cpu_ns);
	/* Samples from outside of the same exec go on where the library has none: it has no engine, or does not know
	 * the thread. */
	if (former && former->is_outside && before < 0)
		open = csink_add(open, before);
	image->covered_cpu_ns = csink_add(image->covered_cpu_ns, give_rest(c, image, open));
	csink_collect_slice_given(c, image);
	image->covered_cpu_ns = csink_add(image->covered_cpu_ns, give_start(c, image, before));
}

/* What the recordings of a pid account for, and the process's last name. */
struct covered {
	int32_t pid;
	int64_t cpu_ns;
	const char *comm;
	uint64_t start_ns;
	bool execed;      /* its last recording ends with an exec */
	bool is_outside;  /* its last recording is of samples from outside alone */
	bool is_left_out; /* and of a program that is not followed */
	bool is_known;    /* the kernel's list has this pid, or one that must be the same process */
	bool is_counted;
};

/* One element for each pid, sorted. Returns how many; 0 and NULL without memory or recordings. */
static uint32_t cover(const struct collector *c, struct covered **out)
{
	struct covered *all = calloc((size_t)c->nr_images + 1, sizeof(*all));
	uint32_t i, nr = 0, kept = 0;

	*out = all;
	for (i = 0; all && i < c->nr_images; i++) {
		if (c->images[i].is_read && !c->images[i].is_by_cpu)
			all[nr++] = (struct covered){.pid = c->images[i].pid,
						     .cpu_ns = c->images[i].covered_cpu_ns,
						     .comm = c->images[i].comm,
						     .start_ns = c->images[i].start_ns,
						     .execed = c->images[i].state == CSINK_REC_EXECED,
						     .is_outside = c->images[i].is_outside,
						     .is_left_out = c->images[i].is_left_out};
	}
	if (!nr)
		return 0;
	qsort(all, nr, sizeof(*all), csink_compare_i32);
	for (i = 1; i < nr; i++) {
		if (all[i].pid != all[kept].pid) {
			all[++kept] = all[i];
			continue;
		}
		all[kept].cpu_ns = csink_add(all[kept].cpu_ns, all[i].cpu_ns);
		if (all[i].start_ns >= all[kept].start_ns) {
			all[kept].start_ns = all[i].start_ns;
			all[kept].comm = all[i].comm;
			all[kept].execed = all[i].execed;
			all[kept].is_outside = all[i].is_outside;
			all[kept].is_left_out = all[i].is_left_out;
		}
	}
	return kept + 1;
}

void csink_collect_unprofiled(struct collector *c, const char *name, enum csink_spawn_reason reason)
{
	static const char *const reasons[] = {
		[0] = "not injected",
		[CSINK_SPAWN_STATIC] = "static, cannot be preloaded into",
		[CSINK_SPAWN_SETUID] = "set-user-id or with capabilities",
		[CSINK_SPAWN_OTHER_ABI] = "of another architecture or C library",
		[CSINK_SPAWN_NO_REACH] = "not injected: chroot, seccomp, or dropped privileges",
		[CSINK_SPAWN_NOT_FOLLOWED] = "not followed",
		[CSINK_SPAWN_OLDER_LIBC] = "not injected: older C library",
		[CSINK_SPAWN_UNREADABLE] = "may be executed and not read, so that the kernel ends its events",
		[CSINK_SPAWN_EVENTS_ENDED] = "set-user-id, or may not be read: the kernel ended its events",
	};

	/* In the last slice it is known whether it was sampled from outside. */
	if (c->slice && !c->slice->is_last)
		return;
	csink_collect_tally(c, CSINK_FACT_UNPROFILED, "%s (%s)", name,
			    reasons[reason < CSINK_ARRAY_SIZE(reasons) ? reason : 0]);
}

/* What is asked of every process, by PID; the table has the latest, since PIDs are given out again. */
struct accounts {
	struct csink_table processes; /* index + 1 in c->outside->processes */
	uint32_t *formers;            /* of those: index + 1 of the one before with the same PID */
	struct covered *all;          /* what recordings account for, sorted by PID */
	uint32_t nr;
	struct covered **unknown; /* of them, those that the kernel's list does not have */
	uint32_t nr_unknown;
};

static struct csink_slot *process_slot(const struct collector *c, const struct csink_table *table, int32_t pid)
{
	uint32_t hash = csink_hash_number((uint32_t)pid);
	struct csink_slot *slot;

	CSINK_TABLE_PROBE(*table, hash, slot, c->outside->processes[id - 1].pid == pid);
	return slot;
}

static struct covered *find_covered(struct covered *all, uint32_t nr, int32_t pid)
{
	return nr ? bsearch(&(struct covered){.pid = pid}, all, nr, sizeof(*all), csink_compare_i32) : NULL;
}

/*
 * In a pid namespace of its own a process calls itself by another number than the kernel does for us: what is named the
 * same, and without a counterpart on either side, is taken for the same, in order.
 */
static struct covered *find_namesake(struct accounts *a, const struct csink_outside_process *process)
{
	for (uint32_t i = 0; i < a->nr_unknown; i++) {
		struct covered *found = a->unknown[i];

		if (strcmp(found->comm, process->comm))
			continue;
		memmove(a->unknown + i, a->unknown + i + 1, (--a->nr_unknown - i) * sizeof(*a->unknown));
		return found;
	}
	return NULL;
}

static void close_accounts(struct accounts *a)
{
	csink_table_free(&a->processes);
	free(a->formers);
	free(a->all);
	free(a->unknown);
}

/* Without memory what it lacks is not found. */
static void open_accounts(struct collector *c, struct accounts *a)
{
	const struct csink_outside *outside = c->outside;
	struct csink_slot *slot;

	memset(a, 0, sizeof(*a));
	a->nr = cover(c, &a->all);
	a->formers = calloc((size_t)outside->nr_processes + 1, sizeof(*a->formers));
	a->unknown = calloc((size_t)a->nr + 1, sizeof(struct covered *));
	for (uint32_t i = 0; i < outside->nr_processes && a->formers && !csink_table_room(&a->processes); i++) {
		int32_t pid = outside->processes[i].pid;
		struct covered *own = find_covered(a->all, a->nr, pid);

		slot = process_slot(c, &a->processes, pid);
		a->formers[i] = slot->id;
		csink_table_set(&a->processes, slot, csink_hash_number((uint32_t)pid), i + 1);
		if (own)
			own->is_known = true;
	}
	for (uint32_t i = 0; i < a->nr && a->unknown; i++)
		if (!a->all[i].is_known)
			a->unknown[a->nr_unknown++] = &a->all[i];
}

/* What a process that could not be injected starts cannot be either, for the same reason. */
static enum csink_spawn_reason inherited_reason(const struct collector *c, const struct accounts *a,
						const struct csink_outside_process *process)
{
	const struct spawned *spawned = csink_collect_spawned(c, process->pid);
	uint32_t id, before = c->outside->nr_processes;
	int32_t pid = process->ppid;

	if (spawned)
		return spawned->reason;
	while (!spawned && a->processes.slots) {
		id = process_slot(c, &a->processes, pid)->id;
		while (id > before) /* parents come before their children */
			id = a->formers[id - 1];
		if (!id)
			break;
		spawned = csink_collect_spawned(c, pid);
		pid = c->outside->processes[id - 1].ppid;
		before = id - 1;
	}
	if (spawned && spawned->reason == CSINK_SPAWN_NO_REACH)
		return spawned->reason;
	return c->outside->is_filtered ? CSINK_SPAWN_NOT_FOLLOWED : 0;
}

/* Names of programs whose CPU time is not known. */
struct names {
	char *text;
	size_t size;
};

static void add_name(const struct names *names, const char *name)
{
	size_t used = strlen(names->text), len = strnlen(name, 16);

	for (const char *at = names->text; (at = strstr(at, name)); at += len ? len : 1)
		if ((at == names->text || at[-1] == ' ') && (at[len] == ',' || !at[len]))
			return;
	snprintf(names->text + used, names->size - used, "%s%.16s", used ? ", " : "", name);
}

/* The kernel ends its events at the exec of such a program: what was counted came before. */
static bool has_lost_its_events(const struct csink_outside_process *process, enum csink_spawn_reason reason)
{
	return (reason == CSINK_SPAWN_SETUID || reason == CSINK_SPAWN_UNREADABLE ||
		reason == CSINK_SPAWN_EVENTS_ENDED) &&
	       !process->still_running;
}

/* What lay between the last samples from outside and the end, or was too short for one. */
static int64_t give_unsampled(struct collector *c, const struct csink_outside_process *process, int64_t rest)
{
	char frame[64];

	snprintf(frame, sizeof(frame), "[not sampled: %.16s]", process->comm);
	return give(c, "not sampled", frame, process->pid, process->comm, rest);
}

/* Does the library go on sampling the process? What the process used after its last sample is then in its later
 * profile. */
static bool goes_on(const struct covered *own, const struct csink_outside_process *process)
{
	return own && process->still_running && !own->is_outside && !own->execed;
}

/* What a process that was profiled did after its recording ended: it exited, or became what cannot be profiled. */
static int64_t give_end(struct collector *c, const struct covered *own, const struct csink_outside_process *process,
			int64_t rest, const struct names *unknown)
{
	const struct spawned *spawned = csink_collect_spawned(c, own->pid);
	const char *name = process->comm;
	enum csink_spawn_reason reason = 0;

	if (own->is_left_out && !own->execed)
		return add_absent(c, own->pid, own->comm, CSINK_SPAWN_NOT_FOLLOWED, rest);
	if (own->is_outside && own->execed && !process->is_sampled && (process->reason || c->outside->is_filtered)) {
		reason = process->reason ? process->reason : CSINK_SPAWN_NOT_FOLLOWED;
	} else if (own->is_outside || (own->execed && process->is_sampled)) {
		return give_unsampled(c, process, rest);
	} else if (spawned && spawned->became) {
		name = csink_profile_text(c->p, spawned->name);
		reason = spawned->reason;
	} else if (own->execed) {
		reason = c->outside->is_filtered ? CSINK_SPAWN_NOT_FOLLOWED : 0;
	} else {
		return give(c, "exit", "[exit: after the last flush]", own->pid, own->comm, rest);
	}
	csink_collect_unprofiled(c, name, reason);
	if (has_lost_its_events(process, reason))
		add_name(unknown, name);
	return add_absent(c, own->pid, name, reason, rest);
}

static void count_unrecorded(struct collector *c, int32_t pid)
{
	c->nr_unrecorded++;
	c->nr_unrecorded_threads += CSINK_MAX(csink_collect_nr_threads(c, pid), 1U);
}

/* Processes whose CPU time the kernel reported: what is not covered is their exit, or all of them. */
static int64_t account_processes(struct collector *c, int64_t budget, const struct names *unknown)
{
	const struct csink_outside_process *process;
	const struct spawned *spawned;
	struct covered *own;
	int64_t rest, given = 0;
	enum csink_spawn_reason reason;
	struct accounts a;

	open_accounts(c, &a);
	for (uint32_t i = 0; i < c->outside->nr_processes; i++) {
		process = &c->outside->processes[i];
		own = find_covered(a.all, a.nr, process->pid);
		own = own ? own : find_namesake(&a, process);
		rest = process->has_cpu ? (int64_t)process->cpu_ns - (own ? own->cpu_ns : 0) : 0;
		rest = CSINK_MIN(rest, budget - given);
		if (c->is_shared && c->is_shared[i]) {
			if (!own)
				count_unrecorded(c, process->pid);
			csink_collect_tally(c, CSINK_FACT_OUTSIDE, "%s", process->comm);
			continue;
		}
		if (own) {
			given += goes_on(own, process) ? 0 : give_end(c, own, process, rest, unknown);
			continue;
		}
		if (process->is_sampled) {
			given += give_unsampled(c, process, rest);
			spawned = csink_collect_spawned(c, process->pid);
			if (spawned && spawned->reason == CSINK_SPAWN_OWN)
				continue;
			count_unrecorded(c, process->pid);
			csink_collect_tally(c, CSINK_FACT_OUTSIDE, "%s", process->comm);
			continue;
		}
		reason = process->reason ? process->reason : inherited_reason(c, &a, process);
		given += add_absent(c, process->pid, process->comm, reason, rest);
		if (reason == CSINK_SPAWN_OWN || (process->has_cpu && !process->cpu_ns && !process->reason))
			continue; /* it came and went without running a program */
		csink_collect_unprofiled(c, process->comm, reason);
		if (!process->has_cpu || has_lost_its_events(process, reason))
			add_name(unknown, process->comm);
	}
	close_accounts(&a);
	return given;
}

/* Of the recordings of a run without a list of processes: is one of its process, which goes on? */
static bool is_live(const struct image *image)
{
	return image->is_read && image->is_last && image->state == CSINK_REC_LIVE && csink_collect_is_running(image);
}

/*
 * CPU time of processes that wait4(2)'s times lack: those that go on, and those that no process of the tree waited for.
 * Of one that goes on, what its samples have: its own profile has the rest. That a parent ignores SIGCHLD, or is killed
 * after its child, is in no record: where what the library measured is beyond wait4(2)'s times, the difference is of
 * such. What is counted from outside is not compared, as it has the time that a machine's host takes away.
 */
static int64_t unwaited_ns(const struct collector *c)
{
	const struct csink_outside *outside = c->outside;
	int64_t waited = (int64_t)(outside->user_ns + outside->sys_ns), sum = 0, others = 0;
	struct covered *all, *own;
	uint32_t nr = cover(c, &all);

	for (uint32_t i = 0; i < outside->nr_processes; i++) {
		const struct csink_outside_process *process = &outside->processes[i];
		int64_t ns = process->has_cpu ? (int64_t)CSINK_MIN(process->cpu_ns, (uint64_t)INSANE_NS) : 0;

		own = find_covered(all, nr, process->pid);
		if (own && own->is_counted) /* another process had the PID before */
			own = NULL;
		if (own)
			own->is_counted = true;
		if (own && own->cpu_ns < INSANE_NS)
			ns = goes_on(own, process) ? own->cpu_ns : CSINK_MAX(ns, own->cpu_ns);
		if (process->is_unwaited)
			sum = csink_add(sum, ns);
		else if (own && !own->is_outside && own->cpu_ns < INSANE_NS)
			others = csink_add(others, own->cpu_ns);
	}
	for (uint32_t i = 0; i < c->nr_images && !outside->processes; i++) {
		own = is_live(&c->images[i]) ? find_covered(all, nr, c->images[i].pid) : NULL;
		sum = csink_add(sum, own && own->cpu_ns < INSANE_NS ? own->cpu_ns : 0);
	}
	for (uint32_t i = 0; i < nr && !outside->processes; i++)
		others = csink_add(others, !all[i].is_outside && all[i].cpu_ns < INSANE_NS ? all[i].cpu_ns : 0);
	if (!outside->processes)
		others -= sum;
	free(all);
	if (others - waited > CLOCKS_DIFFER_NS + waited / 50)
		sum = csink_add(sum, others - waited);
	return sum;
}

/* Did the kernel count each process of the tree to its end? */
static bool all_are_counted(const struct csink_outside *outside)
{
	for (uint32_t i = 0; i < outside->nr_processes; i++)
		if (!outside->processes[i].has_cpu || outside->processes[i].still_running)
			return false;
	return true;
}

uint32_t csink_collect_kernel_stack(struct collector *c, const char *name)
{
	struct csink_profile_function function = {.name = csink_profile_str(c->p, name)};
	struct csink_profile_mapping mapping = {.file = csink_profile_str(c->p, "[kernel]"), .has_functions = 1};
	struct csink_profile_line line = {0};
	uint32_t location;

	function.system_name = function.name;
	line.function = csink_profile_function_add(c->p, &function);
	location = CSINK_TABLE_INTERN(c->pseudo_table, csink_hash_number(line.function),
				      c->pseudo[id - 1].function == line.function, add_function(c, &mapping, &line));
	if (location)
		location = c->pseudo[location - 1].location;
	return csink_profile_stack_add(c->p, &location, location != 0);
}

/*
 * A sample of a process after its events had ended can only be in the kernel's do_exit(). Returns what these samples
 * have: no more than no event has counted.
 */
static int64_t give_ends(struct collector *c, int64_t rest)
{
	const struct csink_outside *outside = c->outside;
	double sum = 0, scale;
	int64_t given = 0;
	uint32_t stack;

	for (uint32_t i = 0; i < outside->nr_processes; i++)
		sum += (double)outside->processes[i].ending_ns;
	if (sum <= 0 || rest <= 0)
		return 0;
	scale = CSINK_MIN(1.0, (double)rest / sum);
	stack = csink_collect_kernel_stack(c, "do_exit");
	for (uint32_t i = 0; i < outside->nr_processes; i++) {
		const struct csink_outside_process *process = &outside->processes[i];
		int64_t values[CSINK_MAX_EVENTS + 1] = {0};
		struct csink_profile_label labels[3];
		uint32_t nr;

		if (!process->ending_ns)
			continue;
		nr = csink_collect_process_labels(c, process->pid, process->comm, labels);
		values[c->cpu_event + 1] = (int64_t)((double)process->ending_ns * scale);
		given += values[c->cpu_event + 1];
		csink_profile_sample_add(c->p, stack, csink_profile_labels_add(c->p, labels, nr), values);
	}
	return given;
}

/*
 * The rest belongs to no known process. Where all are counted, it is what the kernel's events do not count of them:
 * freeing their memory, before which their events end (Linux 6.16 on), the switching from one thread to the next, and
 * the fork before the command's exec.
 */
static void account_rest(struct collector *c, const char *unknown, int64_t rest)
{
	char frame[160];

	if (*unknown) {
		snprintf(frame, sizeof(frame), "[not injected: %.100s]", unknown);
		give(c, "not injected", frame, 0, "", rest);
	} else if (c->outside->processes && all_are_counted(c->outside)) {
		give(c, "other", EXITS_AND_SWITCHES, 0, "", rest);
	} else if (c->outside->processes) { /* also of what a process without a count used */
		give(c, "other", "[of no known process]", 0, "", rest);
	} else { /* the kernel did not say which processes there were */
		give(c, "other", c->nr_images ? "[exit, or not injected]" : "[not injected]", 0, "", rest);
	}
}

/* Of each event but the CPU time: what was counted, and no sample has, nor slices before. */
static void account_attached_events(struct collector *c)
{
	const struct csink_outside *outside = c->outside;

	for (uint32_t i = 0; i < outside->nr_counts; i++) {
		int column = outside->counts[i].column;
		int64_t values[CSINK_MAX_EVENTS + 1] = {0}, taken;
		struct csink_profile_label labels[3];
		int type;

		if (column < 0 || outside->counts[i].value > INT64_MAX)
			continue;
		type = csink_profile_type_find(c->p, outside->attached_events[column].name);
		if (type <= 0 || type == c->cpu_event + 1)
			continue;
		taken = csink_profile_sum(c->p, (uint32_t)type);
		if (c->slice && c->slice->former_sums)
			taken = csink_add(taken, c->slice->former_sums[type]);
		values[type] = (int64_t)outside->counts[i].value - taken;
		if (values[type] > 0)
			csink_collect_pseudo(c, "not sampled", "[not sampled]", NULL, labels,
					     csink_collect_process_labels(c, 0, "", labels), values);
	}
}

void csink_collect_account(struct collector *c)
{
	const struct csink_outside *outside = c->outside;
	int64_t covered = 0, total, given;
	char unknown[128] = "";

	if (outside && outside->is_attached)
		account_attached_events(c);
	if (c->cpu_event < 0)
		return;
	for (uint32_t i = 0; i < c->nr_images; i++) {
		if (c->images[i].is_outside && !(outside && outside->is_attached)) {
			place_outside(c, &c->images[i]);
			continue;
		}
		correct_end(&c->images[i]);
	}
	for (uint32_t i = 0; i < c->nr_images; i++) {
		if (c->images[i].is_read)
			account_image(c, &c->images[i]);
		covered = csink_add(covered, c->images[i].covered_cpu_ns);
	}
	if (!outside)
		return;
	if (outside->is_attached) {
		/* Threads that were shorter than a period, and each one's end after its last sample. */
		give(c, "not sampled", "[not sampled]", 0, "", (int64_t)outside->attached_cpu_ns - covered);
		if (outside->attached_gap_has_more)
			give(c, "not sampled", "[not counted]", 0, "", outside->attached_gap_ns);
		else
			give(c, "other", EXITS_AND_SWITCHES, 0, "", outside->attached_gap_ns);
		return;
	}
	c->unwaited_ns = outside->has_rusage ? unwaited_ns(c) : 0;
	total = outside->has_rusage ? csink_add((int64_t)(outside->user_ns + outside->sys_ns), c->unwaited_ns)
				    : INT64_MAX;
	given = account_processes(c, total - covered, &(struct names){unknown, sizeof(unknown)});
	if (!outside->has_rusage)
		return;
	given += give_ends(c, total - covered - given);
	account_rest(c, unknown, total - covered - given);
}
