/*
 * Change points of a history: each series is scanned at each of its points (stats/change_points.h), and what changed in
 * one case at one commit is put together. A change point is a question; runs in pairs answer it.
 */
#ifndef CSINK_HISTORY_CHANGES_H
#define CSINK_HISTORY_CHANGES_H

#include "launcher/gate/history_read.h"

/* A series whose level changed. */
struct csink_history_shift {
	uint32_t series;
	uint32_t first;  /* index of its first point at the new level, as it is estimated */
	uint32_t found;  /* index of the point at which it was found */
	double z, ratio; /* new level / old level */
};

struct csink_history_change {
	uint32_t of_case;
	uint32_t line;          /* the first one at the new level, as it is estimated: index */
	uint32_t before, after; /* lines that surround it, so that an estimate that is one off is between them */
	uint32_t found;         /* line at which the first of the shifts was found */
	bool is_slower;         /* of the shift that is the clearest */
	struct csink_history_shift *shifts; /* malloc'ed: the clearest one first */
	uint32_t nr_shifts;
};

struct csink_history_changes {
	struct csink_history_change *all; /* in the order of commits */
	uint32_t nr;
};

/**
 * Find them, and mark them in the series.
 * @figures  also of figures of the whole command that are not its CPU time or instructions.
 * Returns 0 (csink_history_changes_free them) or -ENOMEM.
 */
int csink_history_changes_find(struct csink_history *history, bool figures, struct csink_history_changes *out);
void csink_history_changes_free(struct csink_history_changes *changes);

/** The change in the series' last points to one anchor (at most CSINK_SCAN_WINDOW), as a ratio: the second half of them
 * to the first one, by Hodges-Lehmann. NAN of fewer than six. */
double csink_history_trend(const struct csink_history *history, const struct csink_history_series *series);

#endif
