/* What a recording has about itself and its process: engine, losses, notes, programs without our library. */
#include <inttypes.h>

#include "include/internal/grow.h"
#include "launcher/base/hash.h"
#include "launcher/base/path.h"
#include "launcher/collect/collect_impl.h"

static struct csink_slot *spawned_slot(const struct collector *c, int32_t pid)
{
	uint32_t hash = csink_hash_number((uint32_t)pid);
	struct csink_slot *slot;

	CSINK_TABLE_PROBE(c->spawned_table, hash, slot, c->spawned[id - 1].pid == pid);
	return slot;
}

const struct spawned *csink_collect_spawned(const struct collector *c, int32_t pid)
{
	uint32_t id = c->spawned_table.slots ? spawned_slot(c, pid)->id : 0;

	return id ? &c->spawned[id - 1] : NULL;
}

static void add_spawned(struct collector *c, const struct spawned *spawned)
{
	if (csink_table_room(&c->spawned_table) || !CSINK_APPEND(c->spawned, c->nr_spawned, c->cap_spawned, *spawned))
		return; /* without memory its time is [not sampled], as that of a process of which nothing is known */
	csink_table_set(&c->spawned_table, spawned_slot(c, spawned->pid), csink_hash_number((uint32_t)spawned->pid),
			c->nr_spawned);
}

/* What cannot be read may have been injected: then it has a recording of its own. */
static bool has_recording(const struct collector *c, int32_t pid, uint64_t since_ns)
{
	for (uint32_t i = 0; i < c->nr_images; i++)
		if (c->images[i].pid == pid && c->images[i].start_ns > since_ns)
			return true;
	return false;
}

/* Where the kernel lists the processes, they are named from that list, once each; before the end there is none yet. */
static void take_spawn(struct collector *c, const struct image *image, const struct csink_rec_spawn *spawn)
{
	if (!spawn->head.aux) /* withdrawn */
		return;
	if (spawn->head.aux == CSINK_SPAWN_UNREADABLE && has_recording(c, spawn->pid, image->start_ns))
		return;
	if (!c->is_early && (!c->outside || !c->outside->processes))
		csink_collect_unprofiled(c, csink_base_name(spawn->path), spawn->head.aux);
	else
		add_spawned(c, &(struct spawned){
				       .pid = spawn->pid,
				       .reason = spawn->head.aux,
				       .became = spawn->pid == image->pid && image->is_last,
				       .name = csink_profile_str(c->p, csink_base_name(spawn->path)),
			       });
}

/* A process that could not be injected; not a child of the library, which tried a seccomp filter. */
static void name_outside(struct collector *c, const struct image *image)
{
	const struct spawned *spawned = csink_collect_spawned(c, image->pid);

	if (image->is_by_cpu) /* collect_account.c does */
		return;
	if (!spawned || spawned->reason != CSINK_SPAWN_OWN)
		csink_collect_tally(c, CSINK_FACT_OUTSIDE, "%s", image->comm);
}

static void take_texts(struct collector *c, const struct csink_recorded *rec)
{
	for (uint32_t i = 0; i < rec->nr_notes; i++) {
		const struct csink_rec_note *note = rec->notes[i];

		if (note->head.aux != CSINK_NOTE_OUTPUT)
			csink_collect_tally(c, note->head.aux ? CSINK_FACT_WARNING : CSINK_FACT_NOTE, "%s", note->text);
	}
	if (rec->header.children_bytes > CSINK_REC_HEADER_BYTES - sizeof(rec->header))
		csink_collect_tally(c, CSINK_FACT_NOTE,
				    "more children were not profiled than a recording has room to name");
	if (rec->header.cut.is_continued && !rec->header.cut.bytes)
		csink_collect_tally(c, CSINK_FACT_NOTE,
				    "what a process did before its run's profile was made is in this one, too: the "
				    "memory file system had no room to distinguish them");
	if (rec->is_cut)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "a recording was cut short: the last samples of its process are missing");
	if (rec->nr_damaged)
		csink_collect_tally(c, CSINK_FACT_WARNING, "a recording is damaged: parts of it could not be read");
}

static void note_shared(struct collector *c, const struct image *image, const struct csink_recorded *rec)
{
	bool any = false;

	for (uint32_t i = 0; i < rec->nr_threads; i++)
		any |= rec->threads[i]->nr_former != 0;
	if (any)
		csink_collect_tally(c, CSINK_FACT_NOTE,
				    "threads of a %s process that followed one another are shown as one: a quarter of "
				    "its recording is used (--max-memory)",
				    image->comm);
}

static void take_tables(struct collector *c, const struct csink_recorded *rec)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < rec->nr_codes; i++)
		nr += rec->codes[i]->lacks_table != 0;
	if (nr)
		csink_collect_tally(
			c, CSINK_FACT_NOTE,
			"lines of %u function%s are not known: the line table could not be read, or has more "
			"than the %u KB that are recorded",
			nr, nr == 1 ? "" : "s", CSINK_CODE_MAX_TABLE >> 10);
}

/* A rate that no program tolerates, and the rate that was used. */
static void take_rate(struct collector *c, const struct csink_rec_event *event, const struct csink_rec_rate *rate)
{
	const char *what = event->period ? "period raised" : "frequency lowered";

	if (!rate->asked)
		return;
	if (rate->why == CSINK_RATE_MEASURED)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%s: %s from %" PRIu64 " to %" PRIu64 ": it happens so often (counted for some "
				    "microseconds before the program) that sampling would leave the program no time",
				    event->name, what, rate->asked, rate->now);
	else if (rate->why == CSINK_RATE_BUDGET && (rate->asked == rate->now || !rate->now))
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%s: samples took more of the CPU time than --budget allows, and cannot be taken "
				    "less often",
				    event->name);
	else if (rate->why == CSINK_RATE_BUDGET)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%s: %s from %" PRIu64 " to %" PRIu64 ", by a factor of %" PRIu64
				    ": samples took more of the CPU time than --budget allows",
				    event->name, what, rate->asked, rate->now,
				    event->period ? rate->now / rate->asked : rate->asked / rate->now);
	else if (rate->why == CSINK_RATE_REGAINED)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%s: sampled less often for some time: samples took more of the CPU time than "
				    "--budget allows",
				    event->name);
	else if (rate->why == CSINK_RATE_THROTTLED)
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%s: %s from %" PRIu64 " to %" PRIu64 ": the kernel allows no more samples "
				    "(kernel.perf_event_max_sample_rate), and counts nothing between them",
				    event->name, what, rate->asked, rate->now);
	else
		csink_collect_tally(c, CSINK_FACT_WARNING,
				    "%s: %s from %" PRIu64 " to %" PRIu64 ": samples took more than %d %% of the time",
				    event->name, what, rate->asked, rate->now, CSINK_MAX_SHARE);
}

static void take_event(struct collector *c, const struct csink_rec_event *event, const struct csink_rec_rate *rate)
{
	bool is_asked = event->flags & CSINK_EVENT_USER_ASKED;

	if (event->flags & CSINK_EVENT_REFUSED)
		csink_collect_tally(c, CSINK_FACT_REFUSED, "%s", event->name);
	/* A clock goes on in the kernel; only its samples cannot be taken there. */
	if (event->flags & CSINK_EVENT_USER_ONLY && event->flags & CSINK_EVENT_CPU_NS)
		csink_collect_tally(c, CSINK_FACT_NOTE,
				    "time in the kernel is attributed to the user code that runs next: %s takes no "
				    "samples in the kernel (%s)",
				    event->name, is_asked ? "as asked" : "perf_event_paranoid");
	else if (event->flags & CSINK_EVENT_USER_ONLY && !is_asked)
		csink_collect_tally(c, CSINK_FACT_USER_ONLY, "%s", event->name);
	take_rate(c, event, rate);
	if (event->flags & CSINK_EVENT_SCALED)
		csink_collect_tally(c, CSINK_FACT_SCALED, "%s", event->name);
}

/* What the kernel dropped is lost, whatever the samples beside it are of. */
static void take_kernels_losses(struct collector *c, const struct csink_rec_header *header)
{
	c->losses[CSINK_LOSS_RING] += header->losses[CSINK_LOSS_RING];
	c->losses[CSINK_LOSS_THROTTLED] += header->losses[CSINK_LOSS_THROTTLED];
}

static void take_header(struct collector *c, const struct csink_rec_header *header)
{
	static const char *const engines[] = {"none", "sigtrap", "signal", "timer", "from outside"};
	static const char *const unwinds[] = {"none: leaf functions only", "frame pointers", "libunwind", "dwarf"};

	csink_collect_tally(c, CSINK_FACT_ENGINE, "%s%s%s", engines[header->engine], *header->engine_reason ? ": " : "",
			    header->engine_reason);
	csink_collect_tally(c, CSINK_FACT_UNWIND, "%s%s%s", unwinds[header->unwind], *header->unwind_reason ? ": " : "",
			    header->unwind_reason);
	for (uint32_t i = 0; i < header->nr_events; i++)
		take_event(c, &header->events[i], &header->rates[i]);
	for (uint32_t i = 0; i < CSINK_NR_LOSSES; i++)
		c->losses[i] += header->losses[i];
	for (uint32_t i = 0; i < CSINK_NR_ALLOC_LOSSES; i++)
		c->alloc_losses[i] += header->alloc_losses[i];
}

void csink_collect_notes(struct collector *c, const struct image *image, const struct csink_recorded *rec,
			 bool is_shown)
{
	if (!is_shown) {
		take_kernels_losses(c, &rec->header);
		return;
	}
	if (image->is_outside && c->outside && !c->outside->is_attached)
		name_outside(c, image);
	take_texts(c, rec);
	note_shared(c, image, rec);
	take_tables(c, rec);
	for (uint32_t i = 0; i < rec->nr_spawns; i++)
		take_spawn(c, image, rec->spawns[i]);
	take_header(c, &rec->header);
	csink_collect_private_heaps(c, rec);
}
