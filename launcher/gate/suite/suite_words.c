/* Lists of words: see suite_words.h. */
#include "launcher/gate/suite/suite_words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/internal/cleanup.h"
#include "include/internal/grow.h"
#include "launcher/gate/gate_command.h"

/* Of the placeholders while a line is split, where braces would ask for a shell. */
#define OPENING '\001'
#define CLOSING '\002'

void csink_suite_put_own(struct csink_suite_words *words, char *word)
{
	/* One more for the NULL at the end. */
	if (!word || CSINK_GROW_TO(words->all, words->cap, (uint64_t)words->nr + 2)) {
		words->lacked_memory = true;
		free(word);
		return;
	}
	words->all[words->nr++] = word;
	words->all[words->nr] = NULL;
}

void csink_suite_put(struct csink_suite_words *words, const char *fmt, ...)
{
	va_list ap;
	char *word;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&word, fmt, ap);
	va_end(ap);
	csink_suite_put_own(words, len < 0 ? NULL : word);
}

void csink_suite_put_bytes(struct csink_suite_words *words, const char *text, size_t len)
{
	csink_suite_put_own(words, strndup(text, len));
}

void csink_suite_put_all(struct csink_suite_words *words, char *const *all)
{
	for (; all && *all; all++)
		csink_suite_put_bytes(words, *all, strlen(*all));
}

void csink_suite_put_shell(struct csink_suite_words *words, const char *line)
{
	csink_suite_put(words, "/bin/sh");
	csink_suite_put(words, "-c");
	csink_suite_put(words, "%s", line);
}

void csink_suite_words_free(struct csink_suite_words *words)
{
	for (uint32_t i = 0; i < words->nr; i++)
		free(words->all[i]);
	free(words->all);
	memset(words, 0, sizeof(*words));
}

char *csink_suite_escape(const char *text, const char *special)
{
	char *escaped = malloc(2 * strlen(text) + 1), *out = escaped;

	for (; escaped && *text; text++) {
		if (strchr(special, *text))
			*out++ = '\\';
		*out++ = *text;
	}
	if (escaped)
		*out = '\0';
	return escaped;
}

char *csink_suite_fill_in(const char *word, const char *name, uint64_t n)
{
	char number[24], *text;
	size_t bytes = 1, len = 0;

	snprintf(number, sizeof(number), "%" PRIu64, n);
	for (const char *at = word; *at; at++)
		bytes += *at == '{' ? strlen(name) + sizeof(number) : 1;
	text = malloc(bytes);
	while (text && *word) {
		const char *put = !strncmp(word, "{case}", 6) ? name : !strncmp(word, "{n}", 3) ? number : NULL;

		if (!put) {
			text[len++] = *word++;
			continue;
		}
		memcpy(text + len, put, strlen(put));
		len += strlen(put);
		word += put == name ? 6 : 3;
	}
	if (text)
		text[len] = '\0';
	return text;
}

static void swap_braces(char *text, char opening, char closing, char to_opening, char to_closing)
{
	static const char *const names[] = {"case", "n"};

	for (; *text; text++) {
		for (size_t i = 0; *text == opening && i < CSINK_ARRAY_SIZE(names); i++) {
			size_t len = strlen(names[i]);

			if (strncmp(text + 1, names[i], len) != 0 || text[len + 1] != closing)
				continue;
			*text = to_opening;
			text[len + 1] = to_closing;
		}
	}
}

char **csink_suite_split(const char *line, bool *shell)
{
	CSINK_AUTO_FREE char *copy = strdup(line);
	char **words;

	if (!copy)
		return NULL;
	swap_braces(copy, '{', '}', OPENING, CLOSING);
	words = csink_gate_command_split(copy, shell);
	if (words && *shell) {
		free(words);
		return NULL;
	}
	for (char **word = words; word && *word; word++)
		swap_braces(*word, OPENING, CLOSING, '{', '}');
	return words;
}

const char *csink_suite_line(const char **at, size_t *len)
{
	const char *line = *at;

	if (!*line)
		return NULL;
	*len = strcspn(line, "\n");
	*at = line + *len + (line[*len] == '\n');
	if (*len && line[*len - 1] == '\r')
		--*len;
	return line;
}
