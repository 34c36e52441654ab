/* The report as a tree of calls, for people (report.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/base.h"
#include "include/internal/grow.h"
#include "launcher/output/report_impl.h"
#include "launcher/profile/tree.h"

#define MIN_NAME 24

/* How a line begins below branches: of each level whether more follows there. */
struct guides {
	bool *more; /* by depth */
	uint32_t depth, cap;
};

struct tree_printer {
	struct printer *r;
	const struct csink_rows *rows;
	const struct csink_tree *tree;
	struct csink_scale scale;
	int64_t whole, threshold;
	struct guides guides;
	bool is_callers;
};

static bool is_shown(const struct tree_printer *t, uint32_t node)
{
	int64_t total = t->tree->nodes[node].total;

	return (total < 0 ? -total : total) >= t->threshold && total;
}

/* Of the children of a node, how many are shown; the rest of them, added up. */
static uint32_t count_shown(const struct tree_printer *t, uint32_t node, uint32_t *nr_rest, int64_t *rest)
{
	uint32_t shown = 0, child;

	*nr_rest = 0;
	*rest = 0;
	for (child = t->tree->nodes[node].first; child; child = t->tree->nodes[child].next) {
		if (is_shown(t, child)) {
			shown++;
			continue;
		}
		(*nr_rest)++;
		*rest = csink_add(*rest, t->tree->nodes[child].total);
	}
	return shown;
}

static uint32_t print_guides(const struct tree_printer *t, bool is_branch, bool is_last)
{
	bool utf8 = t->r->o->utf8;
	uint32_t i, room = t->r->o->width > 100 ? t->r->o->width / 2 : 40,
		    from = t->guides.depth * 2 > room ? t->guides.depth - room / 2 : 0;

	csink_report_style(t->r, STYLE_DIM);
	if (from)
		fputs(utf8 ? "… " : "> ", t->r->out);
	for (i = from; i < t->guides.depth; i++)
		fputs(!t->guides.more[i] ? "  " : utf8 ? "│ " : "| ", t->r->out);
	if (is_branch)
		fputs(!is_last ? utf8 ? "├─" : "|-" : utf8 ? "└─" : "`-", t->r->out);
	csink_report_style(t->r, STYLE_NONE);
	return 2 * (t->guides.depth - from) + (is_branch ? 2 : 0) + (from ? 2 : 0);
}

static void print_figures(const struct tree_printer *t, int64_t total, int64_t self)
{
	double share = csink_report_percent(total, t->whole);

	csink_report_style(t->r, share >= 10 ? STYLE_HOT : STYLE_NONE);
	csink_text_print(t->r->out, "%8.2f%13s", share, csink_amount_at(total, &t->scale).text);
	if (self)
		csink_text_print(t->r->out, "%8.2f  ", csink_report_percent(self, t->whole));
	else
		csink_text_print(t->r->out, "%8s  ", "");
	csink_report_style(t->r, STYLE_NONE);
}

static uint32_t room_for(const struct tree_printer *t, uint32_t used)
{
	uint32_t before = 8 + 13 + 8 + 2 + used;

	if (!t->r->o->width)
		return 120;
	return t->r->o->width > before + MIN_NAME ? t->r->o->width - before : MIN_NAME;
}

static void print_node(const struct tree_printer *t, uint32_t id, bool is_branch, bool is_last)
{
	const struct csink_tree_node *node = &t->tree->nodes[id];
	const struct csink_row_key *key = &t->rows->keys[node->row];
	char name[MAX_TEXT], text[MAX_TEXT], module[128];
	uint32_t used, room;

	print_figures(t, node->total, node->self);
	used = print_guides(t, is_branch, is_last);
	room = room_for(t, used);
	csink_format_text(module, sizeof(module), key->short_module, 20);
	used = csink_format_function(name, sizeof(name), key->name, room);
	snprintf(text, sizeof(text), "  %s", module);
	fputs(name, t->r->out);
	if (*module && used + strlen(text) <= room) { /* the name needs the room more */
		csink_report_style(t->r, STYLE_DIM);
		fputs(text, t->r->out);
		csink_report_style(t->r, STYLE_NONE);
	}
	fputc('\n', t->r->out);
}

static void print_folded(const struct tree_printer *t, uint32_t nr, int64_t rest, bool is_branch)
{
	print_figures(t, rest, 0);
	print_guides(t, is_branch, true);
	csink_text_print(t->r->out, "(%u more below %g %%)\n", nr, t->r->o->fold);
}

/* A node whose children are being printed. Stacks are deep: this one is on the heap. */
struct level {
	uint32_t node, next; /* next child to look at */
	uint32_t left;       /* shown ones that are still to come */
	uint32_t nr_rest;
	int64_t rest;
	bool branches; /* its children are marked, and what is below them indented */
};

struct levels {
	struct level *all;
	uint32_t nr, cap;
};

static int enter(struct tree_printer *t, struct levels *l, uint32_t node)
{
	struct level *level;

	if (CSINK_GROW(l->all, l->nr, l->cap))
		return -ENOMEM;
	level = &l->all[l->nr++];
	*level = (struct level){.node = node, .next = t->tree->nodes[node].first};
	level->left = count_shown(t, node, &level->nr_rest, &level->rest);
	/* A chain of single calls stays in its column, so that depth is left for where ways part. */
	level->branches = node && level->left + (level->nr_rest != 0) > 1;
	return 0;
}

static int print_levels(struct tree_printer *t, struct levels *l)
{
	int err = enter(t, l, 0);

	while (l->nr && !err) {
		struct level *level = &l->all[l->nr - 1];
		uint32_t child = level->next;

		while (child && !is_shown(t, child))
			child = t->tree->nodes[child].next;
		if (child) {
			bool last = !--level->left && !level->nr_rest, branches = level->branches;

			level->next = t->tree->nodes[child].next;
			print_node(t, child, branches, last);
			if (branches && !CSINK_APPEND(t->guides.more, t->guides.depth, t->guides.cap, !last))
				return -ENOMEM;
			err = enter(t, l, child);
			continue;
		}
		if (level->nr_rest && level->rest)
			print_folded(t, level->nr_rest, level->rest, level->branches);
		l->nr--;
		if (l->nr && l->all[l->nr - 1].branches)
			t->guides.depth--;
	}
	return err;
}

static int print_tree(struct tree_printer *t)
{
	struct levels levels = {0};
	int err;

	csink_report_style(t->r, STYLE_BOLD);
	csink_text_print(t->r->out, "%8s%13s%8s  %s\n", "total %", "total", t->is_callers ? "begins" : "self %",
			 t->is_callers ? "function, and its callers" : "function");
	csink_report_style(t->r, STYLE_NONE);
	err = print_levels(t, &levels);
	free(levels.all);
	free(t->guides.more);
	return err;
}

int csink_report_tree_print(FILE *out, const struct csink_profile *p, const struct csink_report_options *o,
			    const struct csink_rows *rows, const bool *callers)
{
	CSINK_AUTO(csink_report_done) struct printer r = {.out = out, .p = p, .o = o};
	CSINK_AUTO(csink_tree_free) struct csink_tree tree = {0};
	struct tree_printer t = {.r = &r, .rows = rows, .tree = &tree, .is_callers = callers != NULL};
	int err = csink_report_table_build_by(&r.table, p, p->default_type, CSINK_BY_FUNCTION)
			  ?: csink_tree_build(&tree, p, rows, p->default_type, callers);

	if (err)
		return err;
	errno = 0;
	csink_report_head(&r);
	t.whole = r.table.sums[p->default_type];
	t.threshold = (int64_t)fabs((double)t.whole * o->fold / 100);
	t.scale = csink_scale_for(t.whole, csink_profile_text(p, p->types[p->default_type].unit));
	fputc('\n', out);
	return print_tree(&t) ?: csink_report_flush(out);
}
