/* Options of the launcher's commands: see options.h. The texts for people (help, config) are in options_print.c. */
#include "launcher/base/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "include/internal/base.h"
#include "include/internal/nearest.h"
#include "include/internal/share.h"
#include "launcher/base/message.h"

const struct csink_request_option csink_request_options[CSINK_NR_REQUESTS] = {
	[CSINK_REQUEST_HELP] = {"help", 'h', "print this help"},
	[CSINK_REQUEST_VERSION] = {"version", 'V', "print the version"},
	[CSINK_REQUEST_CONFIG] = {"print-config", 0, "print each value and its source"},
};

void csink_option_name(const struct csink_option *opt, char *out)
{
	const char *id = opt->id;

	for (; *id; id++)
		*out++ = *id == '_' ? '-' : (char)tolower((unsigned char)*id);
	*out = '\0';
}

void csink_option_variable(const struct csink_option *opt, char *out)
{
	snprintf(out, CSINK_OPTION_NAME, "%s%s", CSINK_ENV_PREFIX, opt->id);
}

int csink_bool_parse(const char *text)
{
	static const char *const words[][2] = {{"0", "1"}, {"no", "yes"}, {"false", "true"}, {"off", "on"}};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(words); i++) {
		for (int value = 0; value < 2; value++) {
			if (!strcasecmp(text, words[i][value]))
				return value;
		}
	}
	return -EINVAL;
}

int csink_number_parse(const char *text, uint64_t *out)
{
	uint64_t value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		if (value > (INT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	if (!value)
		return -EINVAL;
	*out = value;
	return 0;
}

#define MAX_SECONDS (100ULL * 24 * 3600)

/* How many seconds a unit has; 0: it is none. */
static uint64_t unit_seconds(char unit)
{
	return unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 24 * 3600 : 0;
}

/* A time in seconds above 0, as "2" or "0.25", or with a unit, in ns. Returns 0 or -EINVAL, -ERANGE (over 100 days). */
static int parse_seconds(const char *text, unsigned int flags, uint64_t *out_ns)
{
	const uint64_t max_s = MAX_SECONDS;
	uint64_t s = 0, ns = 0, digit_ns = CSINK_NS_PER_S / 10, unit = 1;
	bool any = false;

	for (; isdigit((unsigned char)*text); text++, any = true) {
		s = s * 10 + (uint64_t)(*text - '0');
		if (s > max_s)
			return -ERANGE;
	}
	if (*text == '.') {
		/* What is less than a nanosecond is dropped. */
		for (text++; isdigit((unsigned char)*text); text++, any = true, digit_ns /= 10)
			ns += (uint64_t)(*text - '0') * digit_ns;
	}
	ns += s * CSINK_NS_PER_S;
	if (*text && flags & CSINK_OPT_UNITS)
		unit = unit_seconds(*text++);
	if (*text || !any || !ns || !unit)
		return -EINVAL;
	if (ns > max_s * CSINK_NS_PER_S / unit)
		return -ERANGE;
	*out_ns = ns * unit;
	return 0;
}

/* "64M", "512K", "4096". */
int csink_bytes_parse(const char *text, uint64_t *out)
{
	static const char units[] = "KMG";
	size_t len = strlen(text);
	const char *unit = len ? strchr(units, text[len - 1]) : NULL;
	char digits[32];
	int shift = unit ? 10 * (int)(unit - units + 1) : 0, err;

	if (len >= sizeof(digits))
		return -ERANGE;
	snprintf(digits, sizeof(digits), "%.*s", (int)(len - (shift > 0)), text);
	err = csink_number_parse(digits, out);
	if (err)
		return err;
	if (*out > UINT64_MAX >> shift)
		return -ERANGE;
	*out <<= shift;
	return 0;
}

/* Is text one of the words of "a|b|c"? If not, offer them all to near. */
static bool is_choice(const char *choices, const char *text, struct csink_nearest *near)
{
	size_t len = strlen(text);
	const char *word = choices;
	char name[CSINK_NEAREST_NAME];

	csink_nearest_init(near, text, len);
	while (word) {
		const char *bar = strchr(word, '|');
		size_t word_len = bar ? (size_t)(bar - word) : strlen(word);

		if (word_len == len && !memcmp(word, text, len))
			return true;
		snprintf(name, sizeof(name), "%.*s", (int)word_len, word);
		csink_nearest_offer(near, name);
		word = bar ? bar + 1 : NULL;
	}
	return false;
}

bool csink_option_takes(const struct csink_option *opt, const char *id, const char *text)
{
	struct csink_nearest near;

	return !strcmp(opt->id, id) && strchr(opt->arg, '|') && is_choice(opt->arg, text, &near);
}

/* Write the values "a|b|c" as "a, b, c". */
static void print_choices(const char *choices, char *out, size_t size)
{
	size_t n = 0;

	for (; *choices && n + 3 < size; choices++) {
		out[n++] = *choices == '|' ? ',' : *choices;
		if (*choices == '|')
			out[n++] = ' ';
	}
	out[n] = '\0';
}

void csink_options_where(const struct csink_options *o, uint32_t index, char *out, size_t size)
{
	char name[CSINK_OPTION_NAME];

	if (o->values[index].source == CSINK_FROM_ENVIRONMENT) {
		csink_option_variable(&o->table[index], name);
		snprintf(out, size, "%s in the environment", name);
	} else {
		csink_option_name(&o->table[index], name);
		snprintf(out, size, "option --%s", name);
	}
}

/* Returns NULL for a number of the option's kind, else what it is instead. */
static const char *why_no_number(unsigned int flags, const char *text)
{
	uint64_t number;
	int err;

	if (flags & CSINK_OPT_SECONDS) {
		err = parse_seconds(text, flags, &number);
		return !err                      ? NULL
		       : err == -ERANGE          ? "too long"
		       : flags & CSINK_OPT_UNITS ? "not a time above 0 (as 60s, 5m, 1h; without a unit, seconds)"
						 : "not a time in seconds above 0";
	}
	if (flags & CSINK_OPT_PERCENT)
		return csink_share_parse(text) ? NULL : "not a share above 0 and below 100 (as 1% or 0.5%)";
	if (flags & CSINK_OPT_ZERO && !strcmp(text, "0"))
		return NULL;
	err = flags & (CSINK_OPT_BYTES | CSINK_OPT_SUFFIX) ? csink_bytes_parse(text, &number)
							   : csink_number_parse(text, &number);
	return !err                      ? NULL
	       : err == -ERANGE          ? "too large"
	       : flags & CSINK_OPT_BYTES ? "not a number of bytes above 0 (as 4096, 512K, 64M, 2G)"
					 : "not a whole number above 0";
}

/* Judge a value that was set. */
static int check_value(struct csink_options *o, uint32_t index)
{
	const struct csink_option *opt = &o->table[index];
	const char *text = o->values[index].text;
	char hint[256], list[128], where[64];
	struct csink_nearest near;
	const char *why;

	csink_options_where(o, index, where, sizeof(where));
	if (opt->flags & CSINK_OPT_BOOL) {
		if (csink_bool_parse(text) >= 0)
			return 0;
		snprintf(o->error, sizeof(o->error), "%s: '%.64s' is neither yes nor no: use 1 or 0", where, text);
	} else if (opt->flags & (CSINK_OPT_NUMBER | CSINK_OPT_SECONDS | CSINK_OPT_BYTES | CSINK_OPT_PERCENT)) {
		why = why_no_number(opt->flags, text);
		if (!why)
			return 0;
		snprintf(o->error, sizeof(o->error), "%s: '%.64s' is %s", where, text, why);
	} else if (strchr(opt->arg, '|')) {
		if (is_choice(opt->arg, text, &near))
			return 0;
		o->unknown = &o->values[index];
		o->unknown_id = opt->id;
		csink_nearest_print(&near, hint, sizeof(hint));
		print_choices(opt->arg, list, sizeof(list));
		snprintf(o->error, sizeof(o->error), "%s: '%.64s' is unknown%s (one of: %s)", where, text, hint, list);
	} else {
		if (*text)
			return 0;
		snprintf(o->error, sizeof(o->error), "%s: the value is empty", where);
	}
	return -EINVAL;
}

static int set_value(struct csink_options *o, uint32_t index, const char *text)
{
	o->values[index].text = text;
	o->values[index].source = CSINK_FROM_OPTION;
	o->values[index].rank = ++o->last_rank;
	return o->request ? 0 : check_value(o, index);
}

/* Is it a request, by its long name or by its letter (len 0)? The first one counts. */
static bool take_request(struct csink_options *o, const char *name, size_t len)
{
	for (int i = 1; i < CSINK_NR_REQUESTS; i++) {
		const struct csink_request_option *r = &csink_request_options[i];

		if (len ? strlen(r->name) != len || memcmp(r->name, name, len) : r->short_name != *name)
			continue;
		o->request = o->request ?: (enum csink_request)i;
		return true;
	}
	return false;
}

/* The value of an option: attached to its name, or the next word. Returns how many words it took, 0 if there is none,
 * or -EINVAL. */
static int take_value(struct csink_options *o, uint32_t index, const char *attached, int left, char **argv)
{
	if (!attached && left < 2)
		return o->request ? 1 : 0;
	return set_value(o, index, attached ?: argv[1]) ? -EINVAL : attached ? 1 : 2;
}

/* It is not on the command line: the environment, else the default. */
static int set_rest(struct csink_options *o)
{
	char variable[CSINK_OPTION_NAME];

	for (uint32_t i = 0; i < o->nr; i++) {
		const char *text;

		if (o->values[i].source == CSINK_FROM_OPTION)
			continue;
		csink_option_variable(&o->table[i], variable);
		text = o->table[i].flags & CSINK_OPT_NO_ENV ? NULL : getenv(variable);
		if (!text || !*text) {
			o->values[i].text = o->table[i].def;
			continue;
		}
		o->values[i].text = text;
		o->values[i].source = CSINK_FROM_ENVIRONMENT;
		if (o->request == CSINK_REQUEST_HELP || o->request == CSINK_REQUEST_VERSION)
			continue;
		if (check_value(o, i))
			return -EINVAL;
	}
	return 0;
}

/* word is the whole one, of which the first len bytes are the name with its "--". */
static int unknown_long(struct csink_options *o, const char *word, size_t len)
{
	char name[2 + CSINK_OPTION_NAME] = "--", hint[256];
	struct csink_nearest near;

	csink_nearest_init(&near, word, len);
	for (uint32_t i = 0; i < o->nr; i++) {
		if (o->table[i].flags & CSINK_OPT_ENV_ONLY)
			continue;
		csink_option_name(&o->table[i], name + 2);
		csink_nearest_offer(&near, name);
	}
	for (int i = 1; i < CSINK_NR_REQUESTS; i++) {
		strcpy(name + 2, csink_request_options[i].name);
		csink_nearest_offer(&near, name);
	}
	csink_nearest_print(&near, hint, sizeof(hint));
	return csink_why(-EINVAL, o->error, sizeof(o->error), "unknown option '%.*s'%s",
			 (int)CSINK_MIN(len, (size_t)64), word, hint);
}

/* One "--name", "--name=value" or "--name value". Returns how many words it took, or -EINVAL. */
static int parse_long(struct csink_options *o, int left, char **argv)
{
	const char *word = argv[0] + 2;
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	char name[CSINK_OPTION_NAME];
	int took;

	if (len && take_request(o, word, len))
		return 1;
	for (uint32_t i = 0; i < o->nr; i++) {
		csink_option_name(&o->table[i], name);
		if (o->table[i].flags & CSINK_OPT_ENV_ONLY || strlen(name) != len || memcmp(name, word, len))
			continue;
		if (!equals && o->table[i].flags & CSINK_OPT_BOOL)
			return set_value(o, i, "1") ? -EINVAL : 1;
		if (!equals && o->table[i].flags & CSINK_OPT_OPTIONAL)
			return set_value(o, i, "auto") ? -EINVAL : 1;
		took = take_value(o, i, equals ? equals + 1 : NULL, left, argv);
		if (!took)
			csink_why(0, o->error, sizeof(o->error), "option --%s needs a value: --%s=%s", name, name,
				  o->table[i].arg);
		return took ?: -EINVAL;
	}
	return unknown_long(o, argv[0], len + 2);
}

/* "-ovalue", "-o value", or several flags in one word. Returns how many words it took, or -EINVAL. */
static int parse_short(struct csink_options *o, int left, char **argv)
{
	for (const char *c = argv[0] + 1; *c; c++) {
		uint32_t i = 0;
		int took;

		if (take_request(o, c, 0))
			continue;
		while (i < o->nr && o->table[i].short_name != *c)
			i++;
		if (i == o->nr)
			return csink_why(-EINVAL, o->error, sizeof(o->error), "unknown option '-%c'%s%.64s%s", *c,
					 argv[0][2] ? " in '" : "", argv[0][2] ? argv[0] : "", argv[0][2] ? "'" : "");
		if (o->table[i].flags & CSINK_OPT_BOOL) {
			set_value(o, i, "1");
			continue;
		}
		took = take_value(o, i, c[1] ? c + 1 : NULL, left, argv);
		if (!took)
			csink_why(0, o->error, sizeof(o->error), "option -%c needs a value: -%c %s", *c, *c,
				  o->table[i].arg);
		return took ?: -EINVAL;
	}
	return 1;
}

/* Move nr words at `from` to `to`, before it; what was between follows them. */
static void move_words(char **argv, int to, int from, int nr)
{
	for (; nr && to < from; nr--, to++, from++) {
		char *word = argv[from];

		memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
		argv[to] = word;
	}
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1];
}

static int parse(struct csink_options *o, int argc, char **argv, bool mixed)
{
	int at = 1, first = 1; /* first: the first operand so far */

	while (at < argc && (mixed || is_option(argv[at]))) {
		int took;

		if (!is_option(argv[at])) {
			at++;
			continue;
		}
		if (!strcmp(argv[at], "--")) {
			move_words(argv, first++, at, 1);
			break;
		}
		took = argv[at][1] == '-' ? parse_long(o, argc - at, argv + at) : parse_short(o, argc - at, argv + at);
		if (took < 0)
			return took;
		move_words(argv, first, at, took);
		first += took;
		at += took;
	}
	return set_rest(o) ? -EINVAL : first;
}

int csink_options_parse(struct csink_options *o, const struct csink_option *table, uint32_t nr, int argc, char **argv)
{
	*o = (struct csink_options){.table = table, .nr = nr};
	return parse(o, argc, argv, false);
}

int csink_options_parse_mixed(struct csink_options *o, const struct csink_option *table, uint32_t nr, int argc,
			      char **argv)
{
	*o = (struct csink_options){.table = table, .nr = nr};
	return parse(o, argc, argv, true);
}

const char *csink_options_text(const struct csink_options *o, uint32_t index)
{
	return o->values[index].text;
}

bool csink_options_bool(const struct csink_options *o, uint32_t index)
{
	return csink_bool_parse(o->values[index].text) == 1;
}

uint64_t csink_options_number(const struct csink_options *o, uint32_t index)
{
	uint64_t value = 0;

	if (o->table[index].flags & CSINK_OPT_SUFFIX)
		csink_bytes_parse(o->values[index].text, &value);
	else
		csink_number_parse(o->values[index].text, &value);
	return value;
}

uint64_t csink_options_bytes(const struct csink_options *o, uint32_t index)
{
	uint64_t value = 0;

	csink_bytes_parse(o->values[index].text, &value);
	return value;
}

uint64_t csink_options_seconds(const struct csink_options *o, uint32_t index)
{
	uint64_t ns = 0;

	parse_seconds(o->values[index].text, o->table[index].flags, &ns);
	return ns;
}
