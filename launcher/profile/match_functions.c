/*
 * Matches functions of source files between two versions: see match_functions.h. Runs on the caller's thread; all it
 * knows are paths, names and first lines.
 *
 * Files are matched first. A path that both versions have is one file. Among the other files, two whose paths end alike
 * and that share names of functions are evidence that a directory of one version is a directory of the other. The pair
 * of directories with the most evidence is applied to all files below them, then the next pair.
 * Then the functions of each file are matched by name. A name that occurs once in each version is one function. Of
 * several functions of one name, the order of lines is kept, and those are matched whose lines are closest, after the
 * shift of the nearest function before them whose name occurs once.
 */
#include "launcher/profile/match_functions.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/base/path.h"
#include "launcher/base/search.h"

#define TOP_LEVEL "<module>" /* every file of Python has this function: it is no evidence */
#define MAX_LINE (1LL << 32)
/* Bounds on the work for profiles of any origin. */
#define MAX_CHOICES (1U << 20) /* pairs of functions of one name in one file; of more, all are one function */
#define MAX_STEPS (1U << 24)   /* of comparing files to find evidence; the rest is not looked at */
#define PAIR_STEPS 16          /* of a pair of files, beside one for each name and for so many bytes of text: */
#define STEP_BYTES 64
#define MAX_PATH 4096  /* a longer one is no path of a file, and no evidence */
#define MAX_ROOTS 1024 /* pairs of directories, those with the most evidence */

/* A file of one version or of both. Its functions are order[first] and those after it, sorted by name and line. */
struct file {
	const char *path;
	uint32_t first, nr;
	uint64_t steps; /* of comparing it */
	bool sides[2];
	uint32_t other; /* of a file in one version: the same file in the other one; itself: none is known */
};

/* Two directories that are one: beginnings of paths, with the slash. */
struct root {
	const char *paths[2];
	size_t lens[2];
	uint32_t votes; /* names of functions that files below both share */
};

struct match {
	const struct csink_place *places;
	uint32_t *order, nr;
	struct file *files;
	uint32_t nr_files;
	struct root *roots;
	uint32_t nr_roots, cap_roots, steps;
	uint32_t *same, *file;
};

static int compare_places(const void *a, const void *b, void *context)
{
	const struct csink_place *places = context;
	const struct csink_place *left = &places[*(const uint32_t *)a], *right = &places[*(const uint32_t *)b];
	int by = strcmp(left->path, right->path) ?: strcmp(left->name, right->name);

	by = by ?: CSINK_COMPARE(left->line, right->line) ?: left->side - right->side;
	return by ?: CSINK_COMPARE(left, right);
}

static uint32_t class_of(struct match *m, uint32_t place)
{
	while (m->same[place] != place)
		place = m->same[place] = m->same[m->same[place]];
	return place;
}

static void join(struct match *m, uint32_t place, uint32_t other)
{
	uint32_t a = class_of(m, place), b = class_of(m, other);

	m->same[CSINK_MAX(a, b)] = CSINK_MIN(a, b);
}

/* ---- files ---- */

static int make_files(struct match *m)
{
	m->order = csink_sorted(m->nr, compare_places, (void *)m->places);
	m->files = calloc((size_t)m->nr + 1, sizeof(*m->files));
	if (!m->order || !m->files)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nr; i++) {
		const struct csink_place *place = &m->places[m->order[i]];
		struct file *file = &m->files[m->nr_files];

		if (!i || strcmp(place->path, file[-1].path))
			*file = (struct file){.path = place->path, .first = i, .other = m->nr_files++};
		else
			file--;
		file->nr++;
		file->steps += 1 + strlen(place->name) / STEP_BYTES;
		file->sides[place->side] = true;
		m->same[i] = i;
	}
	return 0;
}

static int compare_file(const void *path, const void *file)
{
	return strcmp(path, ((const struct file *)file)->path);
}

static struct file *find_file(const struct match *m, const char *path)
{
	return path ? bsearch(path, m->files, m->nr_files, sizeof(*m->files), compare_file) : NULL;
}

static bool is_of(const struct file *file, int side)
{
	return file->sides[side] && !file->sides[!side];
}

static void pair_files(struct match *m, struct file *old, struct file *new)
{
	if (&m->files[old->other] != old || &m->files[new->other] != new)
		return;
	old->other = (uint32_t)(new - m->files);
	new->other = (uint32_t)(old - m->files);
}

/* How many names of functions two files share. */
static uint32_t count_shared(const struct match *m, const struct file *a, const struct file *b)
{
	uint32_t i = 0, k = 0, shared = 0;

	while (i < a->nr && k < b->nr) {
		const char *name = m->places[m->order[a->first + i]].name;
		int by = strcmp(name, m->places[m->order[b->first + k]].name);

		shared += !by && strcmp(name, TOP_LEVEL);
		i += by <= 0;
		k += by >= 0;
	}
	return shared;
}

/* Where the last components that two paths share begin. */
static struct root root_of_pair(const char *old, const char *new, uint32_t votes)
{
	size_t a = strlen(old), b = strlen(new);
	struct root root = {{old, new}, {a, b}, votes};

	while (a && b && old[a - 1] == new[b - 1]) {
		a--;
		b--;
		if ((!a || old[a - 1] == '/') && (!b || new[b - 1] == '/')) {
			root.lens[0] = a;
			root.lens[1] = b;
		}
	}
	return root;
}

/* Files of one name are neighbours, the old version's first. */
static int compare_base_names(const void *a, const void *b, void *context)
{
	const struct file *files = context, *left = &files[*(const uint32_t *)a], *right = &files[*(const uint32_t *)b];

	return strcmp(csink_base_name(left->path), csink_base_name(right->path)) ?: left->sides[1] - right->sides[1];
}

static int compare_roots(const void *a, const void *b)
{
	const struct root *left = a, *right = b;
	int by = 0;

	for (int side = 0; side < 2 && !by; side++) {
		by = strncmp(left->paths[side], right->paths[side], CSINK_MIN(left->lens[side], right->lens[side]));
		by = by ?: CSINK_COMPARE(left->lens[side], right->lens[side]);
	}
	return by;
}

/* Sorts pairs of directories: the most evidence first. */
static int compare_votes(const void *a, const void *b)
{
	const struct root *left = a, *right = b;

	return CSINK_COMPARE(right->votes, left->votes) ?: compare_roots(a, b);
}

static void add_votes(struct match *m)
{
	uint32_t nr = 0;

	if (!m->nr_roots)
		return;
	qsort(m->roots, m->nr_roots, sizeof(*m->roots), compare_roots);
	for (uint32_t i = 1; i < m->nr_roots; i++) {
		if (compare_roots(&m->roots[nr], &m->roots[i]))
			m->roots[++nr] = m->roots[i];
		else
			m->roots[nr].votes += m->roots[i].votes;
	}
	qsort(m->roots, nr + 1, sizeof(*m->roots), compare_votes);
	m->nr_roots = CSINK_MIN(nr + 1, (uint32_t)MAX_ROOTS);
}

static int vote(struct match *m, const struct file *old, const struct file *new)
{
	uint64_t steps = PAIR_STEPS + old->steps + new->steps + (strlen(old->path) + strlen(new->path)) / STEP_BYTES;
	uint32_t votes;

	m->steps = steps < m->steps ? m->steps - (uint32_t)steps : 0;
	votes = count_shared(m, old, new);
	if (!votes)
		return 0;
	return CSINK_APPEND(m->roots, m->nr_roots, m->cap_roots, root_of_pair(old->path, new->path, votes)) ? 0
													    : -ENOMEM;
}

static int find_roots(struct match *m)
{
	CSINK_AUTO_FREE uint32_t *files = calloc((size_t)m->nr_files + 1, sizeof(*files));
	uint32_t nr = 0, first_new = 0;
	int err = files ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < m->nr_files; i++) {
		if (m->files[i].other == i && m->files[i].sides[0] != m->files[i].sides[1] &&
		    strnlen(m->files[i].path, MAX_PATH) < MAX_PATH)
			files[nr++] = i;
	}
	if (!err)
		qsort_r(files, nr, sizeof(*files), compare_base_names, m->files);
	for (uint32_t i = 0; i < nr && m->steps && !err; i++) {
		const struct file *old = &m->files[files[i]];

		while (first_new < nr && (first_new < i || is_of(&m->files[files[first_new]], 0)))
			first_new++;
		for (uint32_t k = first_new; is_of(old, 0) && k < nr && m->steps && !err; k++) {
			const struct file *new = &m->files[files[k]];

			if (strcmp(csink_base_name(old->path), csink_base_name(new->path)))
				break;
			err = vote(m, old, new);
		}
	}
	add_votes(m);
	return err;
}

/* The first pair of directories that a file is below on that side. */
static const struct root *root_of(const struct match *m, const char *path, int side)
{
	for (uint32_t i = 0; i < m->nr_roots; i++) {
		const struct root *root = &m->roots[i];

		if (root->lens[side] ? !strncmp(path, root->paths[side], root->lens[side]) : *path != '/')
			return root;
	}
	return NULL;
}

static int apply_roots(struct match *m)
{
	for (uint32_t i = 0; i < m->nr_files; i++) {
		struct file *old = &m->files[i], *new;
		CSINK_AUTO_FREE char *path = NULL;
		const struct root *root;

		root = is_of(old, 0) && strnlen(old->path, MAX_PATH) < MAX_PATH ? root_of(m, old->path, 0) : NULL;
		if (!root)
			continue;
		if (asprintf(&path, "%.*s%s", (int)root->lens[1], root->paths[1], old->path + root->lens[0]) < 0)
			return -ENOMEM;
		new = find_file(m, path);
		if (new &&is_of(new, 1) && root_of(m, path, 1) == root)
			pair_files(m, old, new);
	}
	return 0;
}

/* ---- functions ---- */

/* Functions of a file in one version, by name and line, each once. */
struct list {
	struct item {
		uint32_t place;
		int64_t line; /* in the new version, where it is known or expected; else in its own */
	} * items;
	uint32_t nr;
};

/* The two versions of a file; moves: lines of functions that alone have their name, by the old one. */
struct versions {
	struct list lists[2];
	struct move {
		int64_t from, to; /* from is never negative */
	} * moves;
	uint32_t nr_moves;
};

/* Profiles are untrusted: a line beyond that of any file counts as unknown. */
static int64_t line_of(const struct csink_place *place)
{
	return place->line > 0 && place->line < MAX_LINE ? place->line : 0;
}

/* The number of places from the i-th on that have the name of the i-th. */
static uint32_t same_names(const struct match *m, const struct list *list, uint32_t i)
{
	uint32_t k = i + 1;

	while (k < list->nr && !strcmp(m->places[list->items[k].place].name, m->places[list->items[i].place].name))
		k++;
	return k - i;
}

/* A place without a line is the only other one of its name: a profile may lack lines of some of its processes. */
static void join_unknown(struct match *m, struct list *list)
{
	uint32_t nr = 0, nr_same;

	for (uint32_t i = 0; i < list->nr; i += nr_same) {
		uint32_t from = i;

		nr_same = same_names(m, list, i);
		if (nr_same == 2 && !list->items[i].line && list->items[i + 1].line)
			join(m, list->items[from++].place, list->items[i + 1].place);
		for (; from < i + nr_same; from++)
			list->items[nr++] = list->items[from];
	}
	list->nr = nr;
}

static void fill_list(struct match *m, const struct file *file, int side, struct list *list)
{
	for (uint32_t i = file->first; i < file->first + file->nr; i++) {
		const struct csink_place *place = &m->places[m->order[i]], *last;

		if (place->side != side)
			continue;
		last = list->nr ? &m->places[list->items[list->nr - 1].place] : NULL;
		if (last && !strcmp(last->name, place->name) && last->line == place->line)
			join(m, list->items[list->nr - 1].place, m->order[i]);
		else
			list->items[list->nr++] = (struct item){m->order[i], line_of(place)};
	}
	join_unknown(m, list);
}

/* Where a line of the old version is expected in the new one: moved as the last move before it, or else the first. */
static int64_t moved(const struct versions *v, int64_t line)
{
	uint32_t behind = CSINK_LOWER(v->nr_moves, i, v->moves[i].from <= line);
	const struct move *move = &v->moves[behind ? behind - 1 : 0];

	return v->nr_moves ? line + move->to - move->from : line;
}

/*
 * Match all of the fewer to some of the more, in order, so that the sum of distances is least. costs[i][k]: of the
 * first i of the fewer to some of the first k of the more.
 */
static int match_in_order(struct match *m, const struct item *fewer, uint32_t nr_fewer, const struct item *more,
			  uint32_t nr_more)
{
	size_t width = (size_t)nr_more + 1;
	CSINK_AUTO_FREE uint64_t *costs = calloc((nr_fewer + 1) * width, sizeof(*costs));

	if (!costs)
		return -ENOMEM;
	for (uint32_t i = 1; i <= nr_fewer; i++) {
		for (uint32_t k = 0; k <= nr_more; k++) {
			uint64_t *cost = &costs[i * width + k], with;

			*cost = k > i ? cost[-1] : UINT64_MAX;
			if (k < i)
				continue;
			with = costs[(i - 1) * width + k - 1] + (uint64_t)llabs(fewer[i - 1].line - more[k - 1].line);
			*cost = CSINK_MIN(*cost, with);
		}
	}
	for (uint32_t i = nr_fewer, k = nr_more; i; k--) {
		if (k > i && costs[i * width + k] == costs[i * width + k - 1])
			continue;
		join(m, fewer[--i].place, more[k - 1].place);
	}
	return 0;
}

static int match_name(struct match *m, const struct item *old, uint32_t nr_old, const struct item *new, uint32_t nr_new)
{
	if ((uint64_t)nr_old * nr_new <= MAX_CHOICES)
		return nr_old <= nr_new ? match_in_order(m, old, nr_old, new, nr_new)
					: match_in_order(m, new, nr_new, old, nr_old);
	for (uint32_t i = 1; i < nr_old; i++)
		join(m, old[0].place, old[i].place);
	for (uint32_t i = 0; i < nr_new; i++)
		join(m, old[0].place, new[i].place);
	return 0;
}

/* Go through the names that both versions have: learn the moves from those that are alone, or match the others. */
static int walk_names(struct match *m, struct versions *v, bool learn)
{
	const struct list *old = &v->lists[0], *new = &v->lists[1];
	uint32_t i = 0, k = 0;
	int err = 0;

	while (i < old->nr && k < new->nr && !err) {
		int by = strcmp(m->places[old->items[i].place].name, m->places[new->items[k].place].name);
		uint32_t nr_old = by <= 0 ? same_names(m, old, i) : 0, nr_new = by >= 0 ? same_names(m, new, k) : 0;

		if (!by && learn && nr_old == 1 && nr_new == 1)
			v->moves[v->nr_moves++] = (struct move){old->items[i].line, new->items[k].line};
		else if (!by && !learn)
			err = match_name(m, old->items + i, nr_old, new->items + k, nr_new);
		i += nr_old;
		k += nr_new;
	}
	return err;
}

/* Two files are one, or a file is in both versions. */
static int match_file(struct match *m, const struct file *old, const struct file *new)
{
	CSINK_AUTO_FREE struct item *items = calloc((size_t)old->nr + new->nr, sizeof(*items));
	CSINK_AUTO_FREE struct move *moves = calloc(old->nr, sizeof(*moves));
	struct versions v = {.lists = {{.items = items}, {.items = items + old->nr}}, .moves = moves};
	int err;

	if (!items || !moves)
		return -ENOMEM;
	fill_list(m, old, 0, &v.lists[0]);
	fill_list(m, new, 1, &v.lists[1]);
	err = walk_names(m, &v, true);
	qsort(v.moves, v.nr_moves, sizeof(*v.moves), csink_compare_u64);
	for (uint32_t i = 0; i < v.lists[0].nr; i++)
		v.lists[0].items[i].line = moved(&v, v.lists[0].items[i].line);
	return err ?: walk_names(m, &v, false);
}

static int match_files(struct match *m, const char *const scripts[2])
{
	struct file *script[2] = {find_file(m, scripts[0]), find_file(m, scripts[1])};
	int err;

	if (script[0] && script[1] && is_of(script[0], 0) && is_of(script[1], 1))
		pair_files(m, script[0], script[1]);
	err = find_roots(m);
	return err ? err : apply_roots(m);
}

int csink_match_places(const struct csink_place *places, uint32_t nr, const char *const scripts[2], uint32_t *same,
		       uint32_t *file)
{
	struct match m = {.places = places, .nr = nr, .steps = MAX_STEPS, .same = same, .file = file};
	int err = make_files(&m);

	if (!err)
		err = match_files(&m, scripts);
	for (uint32_t i = 0; !err && i < m.nr_files; i++) {
		/* A file that is in one version only is its own other one: then places that are equal are joined. */
		const struct file *at = &m.files[i], *other = &m.files[at->other];

		err = is_of(at, 1) && other != at ? 0 : match_file(&m, at, other);
		for (uint32_t k = 0; k < at->nr; k++)
			file[m.order[at->first + k]] = m.order[is_of(at, 0) ? other->first : at->first];
	}
	for (uint32_t i = 0; !err && i < nr; i++)
		same[i] = class_of(&m, i);
	free(m.order);
	free(m.files);
	free(m.roots);
	return err;
}
