/* The report for machines: JSON and comma-separated values (report.h). Values stand there as the profile has them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/json.h"
#include "launcher/output/report_impl.h"
#include "launcher/profile/lock_waits.h"
#include "launcher/profile/tree.h"

/* Whether a row says anything, by any type. */
static bool has_value(const struct csink_profile *p, const struct csink_row *row)
{
	uint32_t i;

	for (i = 0; i < p->nr_types && !row->extra[i]; i++)
		;
	return row->total || i < p->nr_types;
}

static const char *type_name(const struct csink_profile *p, uint32_t type)
{
	return csink_profile_text(p, p->types[type].name);
}

/* ---- JSON ---- */

static void json_head(struct csink_json *json, const struct csink_profile *p, const int64_t *sums)
{
	uint32_t i;

	csink_json_open(json, "types", '[');
	for (i = 0; i < p->nr_types; i++) {
		csink_json_open(json, NULL, '{');
		csink_json_text(json, "name", type_name(p, i));
		csink_json_text(json, "unit", csink_profile_text(p, p->types[i].unit));
		csink_json_number(json, "sum", sums[i]);
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
	csink_json_text(json, "by_type", type_name(p, p->default_type));
	if (p->duration_ns)
		csink_json_number(json, "wall_ns", p->duration_ns);
	csink_json_open(json, "facts", '[');
	for (i = 0; i < p->nr_comments; i++)
		csink_json_text(json, NULL, csink_profile_text(p, p->comments[i]));
	csink_json_close(json, ']');
}

/* The place in a source file, where that is known. */
static void json_place(struct csink_json *json, const char *file, int64_t line)
{
	if (*file)
		csink_json_text(json, "file", file);
	if (*file && line)
		csink_json_number(json, "line", line);
}

static void json_row(struct csink_json *json, const struct csink_profile *p, const struct csink_row *row,
		     const struct csink_derived *derived, uint32_t nr_derived)
{
	uint32_t i;

	csink_json_open(json, NULL, '{');
	csink_json_text(json, "name", row->name);
	csink_json_text(json, "module", row->module);
	json_place(json, row->file, row->line);
	csink_json_number(json, "self", row->self);
	csink_json_number(json, "total", row->total);
	csink_json_bool(json, "inlined", row->is_inlined);
	csink_json_bool(json, "pseudo", row->is_pseudo);
	csink_json_open(json, "values", '{');
	for (i = 0; i < p->nr_types; i++)
		csink_json_number(json, type_name(p, i), row->extra[i]);
	csink_json_close(json, '}');
	for (i = 0; i < nr_derived; i++)
		csink_json_real(json, derived[i].name, csink_derived_value(&derived[i], row->extra));
	csink_json_close(json, '}');
}

static void json_wall(struct csink_json *json, const struct csink_wall *wall)
{
	csink_json_open(json, "wall", '{');
	csink_json_number(json, "weights_ns", (int64_t)wall->weights_ns);
	csink_json_number(json, "ran_ns", (int64_t)wall->ran_ns);
	csink_json_number(json, "cpu_ns", (int64_t)wall->cpu_ns);
	csink_json_number(json, "critical_ns", (int64_t)wall->critical_ns);
	if (wall->nr_cpus)
		csink_json_number(json, "cpus", wall->nr_cpus);
	csink_json_real(json, "timed", wall->timed);
	csink_json_number(json, "steps", wall->nr_steps);
	csink_json_number(json, "ambiguous_steps", wall->nr_doubtful);
	csink_json_close(json, '}');
}

static int json_waits(struct csink_json *json, const struct csink_profile *p, uint32_t limit)
{
	CSINK_AUTO(csink_lock_waits_free) struct csink_lock_waits waits;
	int err = csink_lock_waits_build(&waits, p);

	if (err || !waits.nr)
		return err;
	csink_json_open(json, "lock_waits", '[');
	for (uint32_t i = 0; i < waits.nr && (!limit || i < limit); i++) {
		const struct csink_lock_wait *wait = &waits.all[i];

		csink_json_open(json, NULL, '{');
		csink_json_text(json, "lock", csink_profile_text(p, wait->lock));
		csink_json_text(json, "waiter", wait->waiter);
		csink_json_text(json, "holder", csink_profile_text(p, wait->holder));
		csink_json_number(json, "delay_ns", wait->delay_ns);
		csink_json_number(json, "contentions", wait->contentions);
		csink_json_close(json, '}');
	}
	csink_json_close(json, ']');
	return 0;
}

int csink_report_json(FILE *out, const struct csink_profile *p, const struct csink_report_options *o)
{
	CSINK_AUTO(csink_report_table_free) struct csink_report_table table;
	struct csink_derived derived[8];
	struct csink_json json;
	uint32_t i, nr = 0, nr_derived = csink_derived_find(p, derived, CSINK_ARRAY_SIZE(derived));
	int err = csink_report_table_build_by(&table, p, p->default_type, o->by);

	if (err)
		return err;
	if (o->wall)
		csink_report_table_sort(&table, o->wall->critical_type);
	errno = 0;
	csink_json_init(&json, out, '{');
	json_head(&json, p, table.sums);
	if (o->wall)
		json_wall(&json, o->wall);
	csink_json_text(&json, "by", csink_by_words[o->by]);
	csink_json_open(&json, "rows", '[');
	for (i = 0; i < table.nr_rows && (!o->limit || nr < o->limit); i++) {
		if (!has_value(p, &table.rows[i]))
			continue;
		json_row(&json, p, &table.rows[i], derived, nr_derived);
		nr++;
	}
	csink_json_close(&json, ']');
	err = json_waits(&json, p, o->limit);
	csink_json_close(&json, '}');
	return err ?: csink_report_flush(out);
}

int csink_report_tree_json(FILE *out, const struct csink_profile *p, const struct csink_rows *rows, const bool *callers)
{
	CSINK_AUTO(csink_report_table_free) struct csink_report_table table;
	CSINK_AUTO(csink_tree_free) struct csink_tree tree = {0};
	struct csink_json json;
	uint32_t i;
	int err = csink_report_table_build_by(&table, p, p->default_type, CSINK_BY_FUNCTION)
			  ?: csink_tree_build(&tree, p, rows, p->default_type, callers);

	if (err)
		return err;
	errno = 0;
	csink_json_init(&json, out, '{');
	json_head(&json, p, table.sums);
	csink_json_text(&json, "tree", callers ? "callers" : "calls");
	csink_json_open(&json, "nodes", '[');
	for (i = 1; i < tree.nr_nodes; i++) {
		csink_json_open(&json, NULL, '{');
		csink_json_number(&json, "id", i);
		csink_json_number(&json, "parent", tree.nodes[i].parent);
		csink_json_text(&json, "name", rows->keys[tree.nodes[i].row].name);
		csink_json_text(&json, "module", rows->keys[tree.nodes[i].row].short_module);
		json_place(&json, rows->keys[tree.nodes[i].row].file, rows->keys[tree.nodes[i].row].line);
		csink_json_number(&json, "self", tree.nodes[i].self);
		csink_json_number(&json, "total", tree.nodes[i].total);
		csink_json_close(&json, '}');
	}
	csink_json_close(&json, ']');
	csink_json_close(&json, '}');
	return csink_report_flush(out);
}

/* ---- CSV ---- */

/* The last two columns: a place in a source file, empty where it is not known. */
static void csv_place(FILE *out, const char *file, int64_t line)
{
	fputc(',', out);
	csink_text_put_csv(out, file);
	fputc(',', out);
	if (line)
		fprintf(out, "%" PRId64, line);
	fputc('\n', out);
}

int csink_report_csv(FILE *out, const struct csink_profile *p, const struct csink_report_options *o)
{
	CSINK_AUTO(csink_report_table_free) struct csink_report_table table;
	struct csink_derived derived[8];
	uint32_t i, k, nr = 0, nr_derived = csink_derived_find(p, derived, CSINK_ARRAY_SIZE(derived));
	int err = csink_report_table_build_by(&table, p, p->default_type, o->by);

	if (err)
		return err;
	if (o->wall)
		csink_report_table_sort(&table, o->wall->critical_type);
	errno = 0;
	fprintf(out, "%s,module,self,total", csink_by_words[o->by]);
	for (i = 0; i < p->nr_types; i++) {
		fputc(',', out);
		csink_text_put_csv(out, type_name(p, i));
	}
	for (i = 0; i < nr_derived; i++)
		fprintf(out, ",%s", derived[i].name);
	fputs(",file,line\n", out);
	for (k = 0; k < table.nr_rows && (!o->limit || nr < o->limit); k++) {
		const struct csink_row *row = &table.rows[k];

		if (!has_value(p, row))
			continue;
		nr++;
		csink_text_put_csv(out, row->name);
		fputc(',', out);
		csink_text_put_csv(out, row->module);
		fprintf(out, ",%" PRId64 ",%" PRId64, row->self, row->total);
		for (i = 0; i < p->nr_types; i++)
			fprintf(out, ",%" PRId64, row->extra[i]);
		for (i = 0; i < nr_derived; i++) {
			char text[64];

			csink_derived_format(&derived[i], row->extra, text, sizeof(text));
			fprintf(out, ",%s", strcmp(text, "-") ? text : "");
		}
		csv_place(out, row->file, row->line);
	}
	return csink_report_flush(out);
}

int csink_report_tree_csv(FILE *out, const struct csink_profile *p, const struct csink_rows *rows, const bool *callers)
{
	CSINK_AUTO(csink_tree_free) struct csink_tree tree = {0};
	uint32_t i;
	int err = p->nr_types ? csink_tree_build(&tree, p, rows, p->default_type, callers) : -EINVAL;

	if (err)
		return err;
	errno = 0;
	fputs("id,parent,function,module,self,total,file,line\n", out);
	for (i = 1; i < tree.nr_nodes; i++) {
		const struct csink_tree_node *node = &tree.nodes[i];

		fprintf(out, "%u,%u,", i, node->parent);
		csink_text_put_csv(out, rows->keys[node->row].name);
		fputc(',', out);
		csink_text_put_csv(out, rows->keys[node->row].short_module);
		fprintf(out, ",%" PRId64 ",%" PRId64, node->self, node->total);
		csv_place(out, rows->keys[node->row].file, rows->keys[node->row].line);
	}
	return csink_report_flush(out);
}
