/* Pages (html.h): the fixed parts, and between them the title and the data. */
#include "launcher/output/html.h"

#include <errno.h>
#include <string.h>

#include "include/internal/base.h"
#include "launcher/base/text.h"
#include "launcher/output/html_impl.h"
#include "launcher/profile/facts.h"
#include "launcher/profile/profile.h"

static const char *type_name(const struct csink_profile *p, uint32_t type)
{
	return csink_profile_text(p, p->types[type].name);
}

/* The types that all sides have. A profile has one type of a name. */
static void find_types(struct csink_html_page *page, const char *first)
{
	const struct csink_profile *p = page->sides[0].profile;
	struct csink_html_type *type;
	int other = 0;

	for (uint32_t i = 0; i < p->nr_types && page->nr_types < CSINK_HTML_MAX_TYPES; i++) {
		if (page->nr_sides > 1)
			other = csink_profile_type_find(page->sides[1].profile, type_name(p, i));
		if (other < 0)
			continue;
		if (first ? !strcmp(first, type_name(p, i)) : i == p->default_type)
			page->type = page->nr_types;
		type = &page->types[page->nr_types++];
		type->name = type_name(p, i);
		type->unit = csink_profile_text(p, p->types[i].unit);
		type->of_side[0] = i;
		type->of_side[1] = other;
	}
}

/* The title goes between "<title>" and "</title>", which end and begin the head's two parts: see html/assemble. */
static int write_page(FILE *out, const struct csink_html_page *page)
{
	const char *mark = "@TITLE@", *at = strstr(csink_html_head, mark);
	int err;

	fwrite(csink_html_head, 1, at - csink_html_head, out);
	csink_text_put(out, CSINK_TEXT_XML, page->title);
	at += strlen(mark);
	fwrite(at, 1, csink_html_head_end - at, out);
	err = csink_html_write_data(out, page);
	fwrite(csink_html_tail, 1, csink_html_tail_end - csink_html_tail, out);
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	return err;
}

static const char *title_of(const struct csink_profile *p, const struct csink_html_options *options)
{
	const char *command = csink_profile_fact(p, CSINK_FACT_COMMAND, 0);

	if (options && options->title)
		return options->title;
	return command ? command : "countersink";
}

int csink_html_write(FILE *out, const struct csink_profile *p, const struct csink_html_options *options)
{
	const struct csink_html_side side = {.profile = p, .name = ""};
	struct csink_html_page page = {.sides = &side, .nr_sides = 1, .title = title_of(p, options)};

	find_types(&page, options ? options->type : NULL);
	return write_page(out, &page);
}

int csink_html_write_diff(FILE *out, const struct csink_html_side *base, const struct csink_html_side *now,
			  const struct csink_html_options *options)
{
	const struct csink_html_side sides[2] = {*base, *now};
	struct csink_html_page page = {.sides = sides, .nr_sides = 2, .title = title_of(now->profile, options)};

	find_types(&page, options ? options->type : NULL);
	return page.nr_types ? write_page(out, &page) : -ENOENT;
}
