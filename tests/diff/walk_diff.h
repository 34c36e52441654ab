/* What walk_diff.so leaves in a file for walk_diff_print: how often the walkers agreed, and how they did not. */
#ifndef CSINK_TESTS_WALK_DIFF_H
#define CSINK_TESTS_WALK_DIFF_H

#include <stdint.h>

enum walk_diff_class {
	DIFF_SAME,         /* the same frames, both complete */
	DIFF_SAME_SHORT,   /* the same frames, both incomplete */
	DIFF_OURS_LONGER,  /* libunwind gave up; ours has its frames and goes on */
	DIFF_OURS_SHORTER, /* ours gave up */
	DIFF_END,          /* the same frames, but only one says that they are all */
	DIFF_FRAMES,       /* different frames */
	DIFF_UNTABLED,     /* any difference in a stack with code that has no tables: both had to guess ... */
	DIFF_GUESS,        /* ... where the program was at such code, too: from the first frame on */
	/* Any difference is looked at again, once libunwind has forgotten what it had cached: */
	DIFF_CACHE,        /* then the same */
	DIFF_OBJECT,       /* then the same, and it had not known an object that was just loaded */
	DIFF_CACHE_LONGER, /* then libunwind gives up, and ours has its frames and goes on */
	DIFF_ASTRAY,       /* only libunwind's last frame differs, from which it gets no further; ours is complete */
	DIFF_KEPT,         /* ours differs from itself, with and without what its last walk left */
	DIFF_NR_CLASSES
};

/* By verdict.h and appeal.h. */
enum walk_diff_verdict {
	VERDICT_NONE, /* not known (yet) */
	VERDICT_OURS,
	VERDICT_LIBUNWIND,
	VERDICT_CUT, /* ours does not say that it is complete; what frames it has are true, and in their order */
	VERDICT_NEITHER,
	NR_VERDICTS
};

#define DIFF_RECORDS 8192
#define DIFF_FRAMES_KEPT 32
#define DIFF_MAPS_BYTES (128 << 10)

struct walk_diff_record {
	uint64_t pc, times;
	uint64_t verdicts[NR_VERDICTS];
	uint32_t class, at; /* index of the first frame that differs */
	uint32_t nr[2], end[2];
	uint64_t frames[2][DIFF_FRAMES_KEPT]; /* from `at` - 4 on, or from the first */
};

struct walk_diff {
	uint64_t counts[DIFF_NR_CLASSES];
	uint64_t verdicts[DIFF_NR_CLASSES][NR_VERDICTS];
	uint64_t nr_ahead; /* left out: ahead of a burst in code without tables, or between two stacks (judge.h) */
	uint64_t untabled_steps, complex_steps;
	uint32_t nr_records;
	char command[200];
	struct walk_diff_record records[DIFF_RECORDS];
	char maps[DIFF_MAPS_BYTES];
};

#endif
