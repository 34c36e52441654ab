/*
 * Matches functions of source files between two versions: see match_functions.h. Runs on the caller's thread; all it
 * knows are paths, names and first lines.
 *
 * Files first. One path in both versions is one file. Of the others, two whose last parts are equal and that share
 * names of functions are evidence that the one directory is the other: the pair of directories with the most evidence
 * is applied to all files below, then the next. Then, in each file, functions of one name: one in each version is the
 * same one. Of several, the order of their lines is kept, and those are matched whose lines are closest after both were
 * moved as the last function before them that has its name for itself.
 */
#include "launcher/profile/match_functions.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/profile/rows.h"

#define TOP_LEVEL "<module>" /* every file of Python has this function: it is no evidence */
#define MAX_LINE (1LL << 32)
#define MAX_CHOICES                                                                                                    \
	(1U << 20) /* more pairs of functions of one name in one file are not compared: they are one function */

/* A file of one version or of both. Its functions are order[first] and those after it, sorted by name and line. */
struct file {
	const char *path;
	uint32_t first, nr;
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
	uint32_t nr_roots, cap_roots;
	uint32_t *same, *file;
};

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_places(const void *a, const void *b, void *context)
{
	const struct csink_place *places = context;
	const struct csink_place *left = &places[*(const uint32_t *)a], *right = &places[*(const uint32_t *)b];
	int by = strcmp(left->path, right->path);

	by = by ? by : strcmp(left->name, right->name);
	by = by ? by : compare_numbers(left->line, right->line);
	by = by ? by : left->side - right->side;
	return by ? by : compare_numbers(*(const uint32_t *)a, *(const uint32_t *)b);
}

static void join(struct match *m, uint32_t place, uint32_t other)
{
	while (m->same[place] != place)
		place = m->same[place];
	while (m->same[other] != other)
		other = m->same[other];
	m->same[CSINK_MAX(place, other)] = CSINK_MIN(place, other);
}

/* ---- files ---- */

static int make_files(struct match *m)
{
	m->order = calloc((size_t)m->nr + 1, sizeof(*m->order));
	m->files = calloc((size_t)m->nr + 1, sizeof(*m->files));
	if (!m->order || !m->files)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->nr; i++)
		m->order[i] = m->same[i] = i;
	qsort_r(m->order, m->nr, sizeof(*m->order), compare_places, (void *)m->places);
	for (uint32_t i = 0; i < m->nr; i++) {
		const struct csink_place *place = &m->places[m->order[i]];
		struct file *file = &m->files[m->nr_files];

		if (!i || strcmp(place->path, file[-1].path))
			*file = (struct file){.path = place->path, .first = i, .other = m->nr_files++};
		else
			file--;
		file->nr++;
		file->sides[place->side] = true;
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

/* Before the last parts that two paths share. */
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

static int compare_base_names(const void *a, const void *b, void *context)
{
	const struct file *files = context;

	return strcmp(csink_base_name(files[*(const uint32_t *)a].path),
		      csink_base_name(files[*(const uint32_t *)b].path));
}

static int compare_roots(const void *a, const void *b)
{
	const struct root *left = a, *right = b;
	int by = 0;

	for (int side = 0; side < 2 && !by; side++) {
		by = strncmp(left->paths[side], right->paths[side], CSINK_MIN(left->lens[side], right->lens[side]));
		by = by ? by : compare_numbers((int64_t)left->lens[side], (int64_t)right->lens[side]);
	}
	return by;
}

/* The most evidence first. */
static int compare_votes(const void *a, const void *b)
{
	const struct root *left = a, *right = b;

	return left->votes != right->votes ? (left->votes > right->votes ? -1 : 1) : compare_roots(a, b);
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
	m->nr_roots = nr + 1;
	qsort(m->roots, m->nr_roots, sizeof(*m->roots), compare_votes);
}

static int find_roots(struct match *m)
{
	uint32_t *files = calloc((size_t)m->nr_files + 1, sizeof(*files)), nr = 0, votes;
	int err = files ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < m->nr_files; i++) {
		if (m->files[i].other == i && m->files[i].sides[0] != m->files[i].sides[1])
			files[nr++] = i;
	}
	if (!err)
		qsort_r(files, nr, sizeof(*files), compare_base_names, m->files);
	for (uint32_t i = 0; i < nr; i++) {
		for (uint32_t k = i + 1; k < nr && !compare_base_names(&files[i], &files[k], m->files) && !err; k++) {
			const struct file *old = &m->files[files[i]], *new = &m->files[files[k]];

			votes = old->sides[0] != new->sides[0] ? count_shared(m, old, new) : 0;
			if (!votes)
				continue;
			err = CSINK_GROW(m->roots, m->nr_roots, m->cap_roots);
			if (!err)
				m->roots[m->nr_roots++] = old->sides[0] ? root_of_pair(old->path, new->path, votes)
									: root_of_pair(new->path, old->path, votes);
		}
	}
	free(files);
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
		const struct root *root = is_of(old, 0) ? root_of(m, old->path, 0) : NULL;
		char *path;

		if (!root)
			continue;
		path = malloc(root->lens[1] + strlen(old->path) + 1);
		if (!path)
			return -ENOMEM;
		memcpy(path, root->paths[1], root->lens[1]);
		strcpy(path + root->lens[1], old->path + root->lens[0]);
		new = find_file(m, path);
		if (new &&is_of(new, 1) && root_of(m, path, 1) == root)
			pair_files(m, old, new);
		free(path);
	}
	return 0;
}

/* ---- functions ---- */

/* Functions of a file in one version, by name and line, each once. */
struct list {
	uint32_t *places, nr;
};

/* The two versions of a file; moves: lines of functions that alone have their name, by the old one. */
struct versions {
	const struct match *m;
	struct list lists[2];
	struct move {
		int64_t from, to;
	} * moves;
	uint32_t nr_moves;
};

/* Profiles come from anywhere: a line that no file has is none. */
static int64_t line_of(const struct match *m, uint32_t place)
{
	int64_t line = m->places[place].line;

	return line > 0 && line < MAX_LINE ? line : 0;
}

static void fill_list(struct match *m, const struct file *file, int side, struct list *list)
{
	for (uint32_t i = file->first; i < file->first + file->nr; i++) {
		const struct csink_place *place = &m->places[m->order[i]], *last;

		if (place->side != side)
			continue;
		last = list->nr ? &m->places[list->places[list->nr - 1]] : NULL;
		if (last && !strcmp(last->name, place->name) && last->line == place->line)
			join(m, list->places[list->nr - 1], m->order[i]);
		else
			list->places[list->nr++] = m->order[i];
	}
}

static int compare_moves(const void *a, const void *b)
{
	return compare_numbers(((const struct move *)a)->from, ((const struct move *)b)->from);
}

/* Where a line of the old version is expected in the new one. */
static int64_t moved(const struct versions *v, int64_t line)
{
	uint32_t i = 0;

	while (i + 1 < v->nr_moves && v->moves[i + 1].from <= line)
		i++;
	return v->nr_moves ? line + v->moves[i].to - v->moves[i].from : line;
}

static uint64_t distance(const struct versions *v, uint32_t old, uint32_t new)
{
	int64_t expected = moved(v, line_of(v->m, old)), line = line_of(v->m, new);

	return (uint64_t)(expected > line ? expected - line : line - expected);
}

/*
 * Match all of the fewer to some of the more, in order, so that the sum of distances is least. costs[i][k]: of the
 * first i of the fewer to some of the first k of the more.
 */
static int match_in_order(struct match *m, const struct versions *v, const uint32_t *fewer, uint32_t nr_fewer,
			  const uint32_t *more, uint32_t nr_more, bool fewer_is_old)
{
	size_t width = (size_t)nr_more + 1;
	uint64_t *costs = calloc((nr_fewer + 1) * width, sizeof(*costs));

	if (!costs)
		return -ENOMEM;
	for (uint32_t i = 1; i <= nr_fewer; i++) {
		for (uint32_t k = 0; k <= nr_more; k++) {
			uint64_t *cost = &costs[i * width + k], with;

			*cost = k > i ? cost[-1] : UINT64_MAX;
			if (k < i)
				continue;
			with = costs[(i - 1) * width + k - 1] + distance(v, fewer_is_old ? fewer[i - 1] : more[k - 1],
									 fewer_is_old ? more[k - 1] : fewer[i - 1]);
			*cost = CSINK_MIN(*cost, with);
		}
	}
	for (uint32_t i = nr_fewer, k = nr_more; i; k--) {
		if (k > i && costs[i * width + k] == costs[i * width + k - 1])
			continue;
		join(m, fewer[--i], more[k - 1]);
	}
	free(costs);
	return 0;
}

static int match_name(struct match *m, const struct versions *v, const uint32_t *old, uint32_t nr_old,
		      const uint32_t *new, uint32_t nr_new)
{
	if ((uint64_t)nr_old * nr_new <= MAX_CHOICES)
		return nr_old <= nr_new ? match_in_order(m, v, old, nr_old, new, nr_new, true)
					: match_in_order(m, v, new, nr_new, old, nr_old, false);
	for (uint32_t i = 1; i < nr_old; i++)
		join(m, old[0], old[i]);
	for (uint32_t i = 0; i < nr_new; i++)
		join(m, old[0], new[i]);
	return 0;
}

/* How many places from the i-th on have its name. */
static uint32_t same_names(const struct match *m, const struct list *list, uint32_t i)
{
	uint32_t k = i + 1;

	while (k < list->nr && !strcmp(m->places[list->places[k]].name, m->places[list->places[i]].name))
		k++;
	return k - i;
}

/* Go through the names that both versions have: learn the moves from those that are alone, or match the others. */
static int walk_names(struct match *m, struct versions *v, bool learn)
{
	const struct list *old = &v->lists[0], *new = &v->lists[1];
	uint32_t i = 0, k = 0;
	int err = 0;

	while (i < old->nr && k < new->nr && !err) {
		uint32_t nr_old = same_names(m, old, i), nr_new = same_names(m, new, k);
		int by = strcmp(m->places[old->places[i]].name, m->places[new->places[k]].name);

		if (!by && learn && nr_old == 1 && nr_new == 1)
			v->moves[v->nr_moves++] = (struct move){line_of(m, old->places[i]), line_of(m, new->places[k])};
		else if (!by && !learn)
			err = match_name(m, v, old->places + i, nr_old, new->places + k, nr_new);
		i += by <= 0 ? nr_old : 0;
		k += by >= 0 ? nr_new : 0;
	}
	return err;
}

/* Two files are one, or a file is in both versions. */
static int match_file(struct match *m, const struct file *old, const struct file *new)
{
	struct versions v = {.m = m};
	int err = -ENOMEM;

	v.lists[0].places = calloc(old->nr, sizeof(uint32_t));
	v.lists[1].places = calloc(new->nr, sizeof(uint32_t));
	v.moves = calloc(old->nr, sizeof(*v.moves));
	if (v.lists[0].places && v.lists[1].places && v.moves) {
		fill_list(m, old, 0, &v.lists[0]);
		fill_list(m, new, 1, &v.lists[1]);
		err = walk_names(m, &v, true);
		qsort(v.moves, v.nr_moves, sizeof(*v.moves), compare_moves);
		err = err ? err : walk_names(m, &v, false);
	}
	free(v.lists[0].places);
	free(v.lists[1].places);
	free(v.moves);
	return err;
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
	struct match m = {.places = places, .nr = nr, .same = same, .file = file};
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
	for (uint32_t i = 0; !err && i < nr; i++) {
		while (same[i] != same[same[i]])
			same[i] = same[same[i]];
	}
	free(m.order);
	free(m.files);
	free(m.roots);
	return err;
}
