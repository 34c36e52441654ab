/* Module epochs (epochs.h): built for each recording by collect, asked for every distinct frame. */
#include "launcher/collect/epochs.h"
#include "launcher/base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"

/* Modules that lie over each other, summed over all pieces. A storm of dlopen has thousands. */
#define MAX_MEMBERS (1U << 24)

struct ordered {
	uint64_t load_ns, start, end;
	uint32_t index;
};

/* Later in the file: sighted later. */
CSINK_COMPARE_BY(compare_loads, struct ordered, load_ns, index)

static uint32_t piece_of(const struct csink_epochs *epochs, uint64_t address)
{
	/* UINT32_MAX: before the first */
	return CSINK_LOWER(epochs->nr_bounds, i, epochs->bounds[i] <= address) - 1;
}

/* Count the members of each piece, then put them there: two rounds over the modules in the order of loading. */
static int fill(struct csink_epochs *epochs, const struct ordered *modules, uint32_t nr)
{
	CSINK_AUTO_FREE uint32_t *next = calloc(epochs->nr_bounds + 1, sizeof(*next));
	uint32_t i, piece;
	uint64_t total = 0;

	if (!next)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		for (piece = piece_of(epochs, modules[i].start);
		     epochs->bounds[piece] < modules[i].end && total <= MAX_MEMBERS; piece++, total++)
			next[piece]++;
	}
	epochs->members = total <= MAX_MEMBERS ? calloc(total + 1, sizeof(*epochs->members)) : NULL;
	if (!epochs->members)
		return total <= MAX_MEMBERS ? -ENOMEM : -E2BIG;
	for (i = 0; i < epochs->nr_bounds; i++) {
		epochs->firsts[i + 1] = epochs->firsts[i] + next[i];
		next[i] = epochs->firsts[i];
	}
	for (i = 0; i < nr; i++) {
		for (piece = piece_of(epochs, modules[i].start); epochs->bounds[piece] < modules[i].end; piece++)
			epochs->members[next[piece]++] = modules[i].index;
	}
	return 0;
}

int csink_epochs_build(struct csink_epochs *epochs, const struct csink_recorded *rec)
{
	uint32_t i, nr = rec->nr_modules, unique = 0;
	CSINK_AUTO_FREE struct ordered *modules = calloc(nr + 1, sizeof(*modules));
	int err = -ENOMEM;

	*epochs = (struct csink_epochs){.rec = rec};
	epochs->bounds = calloc(2 * (size_t)nr + 1, sizeof(*epochs->bounds));
	epochs->firsts = calloc(2 * (size_t)nr + 2, sizeof(*epochs->firsts));
	if (modules && epochs->bounds && epochs->firsts) {
		for (i = 0; i < nr; i++) {
			epochs->bounds[2 * i] = rec->modules[i]->start;
			epochs->bounds[2 * i + 1] = rec->modules[i]->end;
			modules[i] = (struct ordered){rec->modules[i]->load_ns, rec->modules[i]->start,
						      rec->modules[i]->end, i};
		}
		qsort(epochs->bounds, 2 * (size_t)nr, sizeof(*epochs->bounds), csink_compare_u64);
		for (i = 0; i < 2 * nr; i++) {
			if (!unique || epochs->bounds[unique - 1] != epochs->bounds[i])
				epochs->bounds[unique++] = epochs->bounds[i];
		}
		epochs->nr_bounds = unique;
		qsort(modules, nr, sizeof(*modules), compare_loads);
		err = fill(epochs, modules, nr);
	}
	if (err)
		csink_epochs_free(epochs);
	return err;
}

void csink_epochs_free(struct csink_epochs *epochs)
{
	free(epochs->bounds);
	free(epochs->firsts);
	free(epochs->members);
	memset(epochs, 0, sizeof(*epochs));
}

/*
 * The last that was loaded by then and not unloaded before. Modules are sighted a little after they are mapped: so what
 * was sighted next is meant, if nothing else was there; and what was last seen leaving, if nothing came after it.
 */
static uint32_t choose(const struct csink_recorded *rec, const uint32_t *members, uint32_t nr, uint64_t time_ns)
{
	const struct csink_rec_module *module;
	/* The first that was sighted later. */
	uint32_t low = CSINK_LOWER(nr, i, rec->modules[members[i]]->load_ns <= time_ns);

	if (low) {
		module = rec->modules[members[low - 1]];
		if (!module->unload_ns || module->unload_ns >= time_ns || low == nr)
			return members[low - 1];
	}
	return members[low];
}

uint32_t csink_epochs_find(const struct csink_epochs *epochs, uint64_t address, uint64_t time_ns, bool *is_sole)
{
	uint32_t piece = piece_of(epochs, address), first, nr;

	*is_sole = true;
	if (piece >= epochs->nr_bounds)
		return CSINK_NO_MODULE;
	first = epochs->firsts[piece];
	nr = epochs->firsts[piece + 1] - first;
	*is_sole = nr < 2;
	if (!nr)
		return CSINK_NO_MODULE;
	return nr == 1 ? epochs->members[first] : choose(epochs->rec, epochs->members + first, nr, time_ns);
}
