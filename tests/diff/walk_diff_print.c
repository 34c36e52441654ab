/*
 * walk_diff_print FILE...: sums what walk_diff.so left, and shows each difference. Status 1 if one has no reason. Where
 * the program is at code that no table covers (a just-in-time compiler's, assembly), callers are guessed: that may go
 * wrong in one of fifty walks, whether both agree or not.
 */
#include "tests/diff/walk_diff.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALKS_PER_WRONG_GUESS 50

static const char *const class_names[DIFF_NR_CLASSES] = {"same",
							 "same, both incomplete",
							 "ours longer",
							 "ours shorter",
							 "same, ends differ",
							 "frames differ",
							 "no tables",
							 "no tables at the leaf",
							 "same without libunwind's cache",
							 "same once libunwind knew of a new object",
							 "ours longer without libunwind's cache",
							 "libunwind astray in its last frame",
							 "ours differs from itself"};
static const char *const verdict_names[NR_VERDICTS] = {"undecided", "ours is right", "libunwind is right",
						       "ours is cut short and says so", "neither is right"};

/* The file that an address is in, and where: false if it is nowhere. */
static bool find_file(const char *maps, uint64_t address, char path[512], uint64_t *in_file)
{
	uint64_t start, end, offset;

	for (const char *line = maps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		path[0] = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %511[^\n]", &start, &end, &offset,
			   path) < 3)
			continue;
		*in_file = address - start + offset;
		if (address >= start && address < end)
			return true;
	}
	return false;
}

/* Prints an address as file+offset. */
static void print_address(const char *maps, uint64_t address)
{
	uint64_t plain = address & ~(1ULL << 63), offset;
	char path[512];

	printf("%s0x%-14" PRIx64, plain != address ? "*" : " ", plain);
	if (find_file(maps, plain, path, &offset))
		printf(" %s+0x%" PRIx64, path[0] ? path + strspn(path, " ") : "[anonymous]", offset);
}

static void print_record(const struct walk_diff *diff, const struct walk_diff_record *r)
{
	uint32_t from = r->at > 4 ? r->at - 4 : 0;

	printf("# ");
	for (int v = 0; v < NR_VERDICTS; v++)
		if (r->verdicts[v])
			printf("%s %" PRIu64 ", ", verdict_names[v], r->verdicts[v]);
	printf("%s, %" PRIu64 " times, at frame %u; ours %u frames, end %u; libunwind %u frames, end %u\n#   pc ",
	       class_names[r->class], r->times, r->at, r->nr[0], r->end[0], r->nr[1], r->end[1]);
	print_address(diff->maps, r->pc);
	for (uint32_t i = from; i < from + 12 && (i < r->nr[0] || i < r->nr[1]); i++)
		for (int w = 0; w < 2; w++) {
			if (i >= r->nr[w] || (w && i < r->nr[0] && r->frames[0][i - from] == r->frames[1][i - from]))
				continue;
			printf("\n#   %s %3u ", w ? "libunwind" : "ours     ", i);
			print_address(diff->maps, r->frames[w][i - from]);
		}
	printf("\n");
}

/* Of these classes each walk needs a verdict. */
static bool is_judged(enum walk_diff_class class)
{
	return class != DIFF_SAME && class != DIFF_SAME_SHORT && class != DIFF_CACHE && class != DIFF_OBJECT &&
	       class != DIFF_KEPT;
}

struct sums {
	uint64_t walks, differ, decided, guessed_wrong;
	uint64_t counts[DIFF_NR_CLASSES], verdicts[NR_VERDICTS];
	uint64_t untabled_steps, complex_steps, ahead;
};

static void add_class(struct sums *sums, const struct walk_diff *diff, enum walk_diff_class class)
{
	bool guessed = class == DIFF_SAME || class == DIFF_GUESS;

	sums->walks += diff->counts[class];
	sums->counts[class] += diff->counts[class];
	sums->differ += is_judged(class) ? diff->counts[class] : 0;
	for (int v = VERDICT_NONE + 1; v < NR_VERDICTS; v++) {
		uint64_t nr = diff->verdicts[class][v];

		sums->decided += is_judged(class) ? nr : 0;
		if (guessed && (v == VERDICT_LIBUNWIND || v == VERDICT_NEITHER))
			sums->guessed_wrong += nr;
		else if (is_judged(class))
			sums->verdicts[v] += nr;
	}
}

static void add(struct sums *sums, const struct walk_diff *diff)
{
	for (int c = 0; c < DIFF_NR_CLASSES; c++)
		add_class(sums, diff, c);
	sums->untabled_steps += diff->untabled_steps;
	sums->complex_steps += diff->complex_steps;
	sums->ahead += diff->nr_ahead;
}

/* Returns how many have no reason. */
static uint64_t print_sums(struct sums *sums)
{
	uint64_t unexplained;

	sums->verdicts[VERDICT_NONE] = sums->differ - sums->decided;
	unexplained = sums->counts[DIFF_KEPT] + sums->verdicts[VERDICT_NONE] + sums->verdicts[VERDICT_LIBUNWIND] +
		      sums->verdicts[VERDICT_NEITHER];
	if (sums->guessed_wrong * WALKS_PER_WRONG_GUESS > sums->walks)
		unexplained += sums->guessed_wrong;
	for (int c = 0; c < DIFF_NR_CLASSES; c++)
		printf("%s%s %" PRIu64, c ? "; " : "", class_names[c], sums->counts[c]);
	printf("; untabled steps %" PRIu64 "; complex steps %" PRIu64, sums->untabled_steps, sums->complex_steps);
	for (int v = 0; v < NR_VERDICTS; v++)
		printf("; %s %" PRIu64, verdict_names[v], sums->verdicts[v]);
	printf("; wrong guesses at the leaf %" PRIu64 "; left out %" PRIu64, sums->guessed_wrong, sums->ahead);
	printf("; unexplained %" PRIu64 "\n", unexplained);
	return unexplained;
}

int main(int argc, char **argv)
{
	struct walk_diff *diff = malloc(sizeof(*diff));
	struct sums sums = {0};

	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "r");

		if (!file || fread(diff, sizeof(*diff), 1, file) != 1) {
			fprintf(stderr, "walk_diff_print: %s is not what walk_diff.so writes\n", argv[i]);
			return 2;
		}
		fclose(file);
		add(&sums, diff);
		if (diff->nr_records)
			printf("# %s\n", diff->command);
		for (uint32_t r = 0; r < diff->nr_records; r++)
			print_record(diff, &diff->records[r]);
	}
	free(diff);
	return print_sums(&sums) != 0;
}
