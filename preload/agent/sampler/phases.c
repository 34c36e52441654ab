/* See phases.h. Names: the thread that calls, not in our handlers; csink_phase_now() in handlers, too. */
#include "preload/agent/sampler/phases.h"

#include <stdatomic.h>
#include <string.h>

#include "include/internal/base.h"
#include "preload/agent/sampler/process.h"
#include "preload/agent/sampler/thread.h"
#include "preload/core/private_memory.h"
#include "preload/core/record/recording.h"

#define NR_PHASES 256 /* with 0, none, and CSINK_PHASE_OFF */
#define NAME_BYTES 64

void csink_phase_begin(const char *name);
void csink_phase_end(void);
void csink_sampling_pause(void);
void csink_sampling_resume(void);
void csink_sampling_stop(void);
void csink_sampling_start(void);

/*
 * Names by phase, from CSINK_PHASE_FIRST on. A slot is taken (1), then its name is there (2): a thread that looks for a
 * name passes over one that another thread is still writing, and may then take a slot for the same name, which a reader
 * adds up.
 */
static struct phase {
	_Atomic uint8_t state;
	char name[NAME_BYTES];
} * phases; /* NR_PHASES of them; NULL: there is no memory. Set by the constructor. */

static _Atomic bool is_stopped;

void csink_phases_init(void)
{
	phases = csink_private_get(NR_PHASES * sizeof(*phases));
}

static void write_name(uint16_t id)
{
	uint32_t len = (uint32_t)strlen(phases[id].name) + 1, bytes = (uint32_t)sizeof(struct csink_rec_phase) + len;
	struct csink_writer writer = {0, 0}; /* of its own: a sample may come in the middle of it */
	struct csink_rec_phase *entry;

	if (!csink_own_recording.header)
		return;
	entry = csink_recording_reserve(&csink_own_recording, &writer, bytes);
	if (!entry)
		return;
	memcpy(entry->name, phases[id].name, len);
	csink_recording_commit(entry, bytes, CSINK_ENTRY_PHASE, id);
}

/* Make a slot the name's. Returns false if it is another's. */
static bool take(uint16_t id, const char *name)
{
	uint8_t none = 0;

	if (!atomic_compare_exchange_strong_explicit(&phases[id].state, &none, 1, memory_order_relaxed,
						     memory_order_relaxed))
		return false;
	memcpy(phases[id].name, name, strnlen(name, NAME_BYTES - 1));
	/* Release pairs with the acquire in find: the name is there. */
	atomic_store_explicit(&phases[id].state, 2, memory_order_release);
	write_name(id);
	return true;
}

static bool is_name(uint16_t id, const char *name)
{
	return atomic_load_explicit(&phases[id].state, memory_order_acquire) == 2 &&
	       !strncmp(phases[id].name, name, NAME_BYTES - 1);
}

/* The phase of a name; made if there is none yet. */
static uint16_t find(const char *name)
{
	static const char others[] = "[other phases]";
	uint32_t hash = 2166136261u, i;
	uint16_t id;

	for (i = 0; name[i] && i < NAME_BYTES - 1; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619u;
	for (i = 0; i < NR_PHASES - CSINK_PHASE_FIRST - 1; i++) {
		id = (uint16_t)(CSINK_PHASE_FIRST + (hash + i) % (NR_PHASES - CSINK_PHASE_FIRST - 1));
		if (is_name(id, name) || take(id, name) || is_name(id, name))
			return id;
	}
	id = NR_PHASES - 1;
	take(id, others);
	return id;
}

uint16_t csink_phase_now(const struct csink_thread *thread)
{
	if (CSINK_UNLIKELY(thread->is_paused || atomic_load_explicit(&is_stopped, memory_order_relaxed)))
		return CSINK_PHASE_OFF;
	return thread->phase;
}

void csink_phases_rewrite(void)
{
	for (uint16_t id = CSINK_PHASE_FIRST; phases && id < NR_PHASES; id++)
		if (atomic_load_explicit(&phases[id].state, memory_order_acquire) == 2)
			write_name(id);
}

/* ---- what the program calls: see countersink.h ---- */

CSINK_EXPORT void csink_phase_begin(const char *name)
{
	struct csink_thread *thread = csink_self;

	if (!thread || !name || !phases)
		return;
	if (thread->nr_phases < CSINK_ARRAY_SIZE(thread->phases)) {
		thread->phases[thread->nr_phases] = thread->phase;
		thread->phase = find(name);
	}
	thread->nr_phases++;
}

CSINK_EXPORT void csink_phase_end(void)
{
	struct csink_thread *thread = csink_self;

	if (!thread || !thread->nr_phases)
		return;
	thread->nr_phases--;
	if (thread->nr_phases < CSINK_ARRAY_SIZE(thread->phases))
		thread->phase = thread->phases[thread->nr_phases];
}

CSINK_EXPORT void csink_sampling_pause(void)
{
	if (csink_self)
		csink_self->is_paused = true;
}

CSINK_EXPORT void csink_sampling_resume(void)
{
	if (csink_self)
		csink_self->is_paused = false;
}

CSINK_EXPORT void csink_sampling_stop(void)
{
	atomic_store_explicit(&is_stopped, true, memory_order_relaxed);
}

CSINK_EXPORT void csink_sampling_start(void)
{
	atomic_store_explicit(&is_stopped, false, memory_order_relaxed);
}
