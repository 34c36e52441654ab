/* See send_todo.h. Runs in the one thread of countersink-send. */
#include "launcher/send/send_todo.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "include/internal/cleanup.h"
#include "include/internal/clock.h"
#include "launcher/base/path.h"
#include "launcher/base/text.h"

#define MAX_BYTES 262144 /* of a file: its texts come from variables of the environment */

/* The state: of the same length whatever it is. */
#define STATE_WRITE                                                                                                    \
	"countersink-todo 1\ntries %010" PRIu32 "\nfirst %020" PRId64 "\nnext %020" PRId64 "\nasked %d\nsending %d\n"  \
	"part %.*s%s\n"
#define STATE_READ                                                                                                     \
	"countersink-todo 1\ntries %10" SCNu32 "\nfirst %20" SCNd64 "\nnext %20" SCNd64 "\nasked %1d\nsending %1d\n"   \
	"part %8[01.]\n"
#define NO_PART "........" /* CSINK_SEND_HALVINGS of them */
#define STATE_BYTES 256    /* room for it */

_Static_assert(sizeof(NO_PART) == CSINK_SEND_HALVINGS + 1, "a part's name fits its field");

#define KEY(id, key) [CSINK_SEND_TODO_##id] = key,
static const char *const keys[CSINK_NR_SEND_TODO_TEXTS] = {CSINK_SEND_TODO_TEXTS(KEY)};
#undef KEY

/* ---- a profile's ---- */

int csink_send_todo_make(struct csink_send_todo *todo, const struct csink_send_settings *s, const char *path)
{
	char host[256] = "localhost";
	const char *const texts[CSINK_NR_SEND_TODO_TEXTS] = {
		[CSINK_SEND_TODO_SERVER] = s->identity,         [CSINK_SEND_TODO_TENANT] = s->tenant,
		[CSINK_SEND_TODO_NAME] = csink_base_name(path), [CSINK_SEND_TODO_HOST] = host,
		[CSINK_SEND_TODO_SERVICE] = s->wire.service,    [CSINK_SEND_TODO_SERIES] = s->labels,
		[CSINK_SEND_TODO_RESOURCE] = s->wire.resource,  [CSINK_SEND_TODO_LABELS] = s->wire.labels,
	};

	gethostname(host, sizeof(host) - 1);
	*todo = (struct csink_send_todo){.first_ns = (int64_t)csink_clock_ns(CLOCK_REALTIME)};
	for (uint32_t i = 0; i < CSINK_NR_SEND_TODO_TEXTS; i++) {
		todo->texts[i] = strdup(texts[i] ?: "");
		if (!todo->texts[i])
			return -ENOMEM;
	}
	return 0;
}

void csink_send_todo_free(struct csink_send_todo *todo)
{
	for (uint32_t i = 0; i < CSINK_NR_SEND_TODO_TEXTS; i++)
		free(todo->texts[i]);
}

struct csink_send_settings csink_send_todo_settings(const struct csink_send_todo *todo,
						    const struct csink_send_settings *s)
{
	struct csink_send_settings own = *s;

	own.name = todo->texts[CSINK_SEND_TODO_NAME];
	own.host = todo->texts[CSINK_SEND_TODO_HOST];
	own.labels = todo->texts[CSINK_SEND_TODO_SERIES];
	own.wire.service = todo->texts[CSINK_SEND_TODO_SERVICE];
	own.wire.resource = todo->texts[CSINK_SEND_TODO_RESOURCE];
	own.wire.labels = todo->texts[CSINK_SEND_TODO_LABELS];
	return own;
}

/* ---- files ---- */

static size_t print_state(char out[STATE_BYTES], const struct csink_send_todo *todo)
{
	const struct csink_send_state *state = &todo->state;

	return (size_t)snprintf(out, STATE_BYTES, STATE_WRITE, state->tries, todo->first_ns, state->next_ns,
				state->is_asked, state->is_under_way, CSINK_SEND_HALVINGS, state->part,
				NO_PART + strlen(state->part));
}

static int put_at_once(int fd, const char *bytes, size_t len)
{
	ssize_t nr;

	do
		nr = pwrite(fd, bytes, len, 0);
	while (nr < 0 && errno == EINTR);
	return nr < 0 ? -errno : (size_t)nr < len ? -ENOSPC : 0;
}

int csink_send_todo_update(int fd, const struct csink_send_todo *todo)
{
	char state[STATE_BYTES];
	int err = put_at_once(fd, state, print_state(state, todo));

	/* Before a request goes out: after a power failure it is known that the server may have it. */
	if (!err && todo->state.is_under_way && fdatasync(fd) && errno != EINVAL && errno != ENOSYS)
		err = -errno;
	return err;
}

int csink_send_todo_write(int fd, const struct csink_send_todo *todo)
{
	CSINK_AUTO_FREE char *text = NULL;
	char state[STATE_BYTES];
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return -ENOMEM;
	print_state(state, todo);
	fputs(state, out);
	for (uint32_t i = 0; i < CSINK_NR_SEND_TODO_TEXTS; i++) {
		fputs(keys[i], out);
		putc(' ', out);
		for (const char *c = todo->texts[i]; *c; c++)
			fprintf(out, iscntrl((unsigned char)*c) || *c == '%' ? "%%%02x" : "%c", (unsigned char)*c);
		putc('\n', out);
	}
	if (fclose(out))
		return -ENOMEM;
	return bytes > MAX_BYTES ? -E2BIG : put_at_once(fd, text, bytes);
}

/* Whole, with a NUL behind it. */
static int read_text(int fd, char **text)
{
	struct stat st;
	ssize_t nr;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_BYTES)
		return -EBADMSG;
	*text = calloc(1, (size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	do
		nr = pread(fd, *text, (size_t)st.st_size, 0);
	while (nr < 0 && errno == EINTR);
	if (nr < 0)
		return -errno;
	return nr == st.st_size && strlen(*text) == (size_t)nr ? 0 : -EBADMSG;
}

/* What would not be written so is damaged. Returns the state's length, or 0. */
static size_t read_state(const char *text, struct csink_send_todo *todo)
{
	char part[CSINK_SEND_HALVINGS + 1] = "", again[STATE_BYTES];
	int is_asked, is_under_way;
	size_t len;

	if (sscanf(text, STATE_READ, &todo->state.tries, &todo->first_ns, &todo->state.next_ns, &is_asked,
		   &is_under_way, part) != 6 ||
	    todo->first_ns < 0 || todo->state.next_ns < 0)
		return 0;
	todo->state.is_asked = is_asked;
	todo->state.is_under_way = is_under_way;
	part[strspn(part, "01")] = 0;
	strcpy(todo->state.part, part);
	len = print_state(again, todo);
	return strncmp(text, again, len) ? 0 : len;
}

static int read_texts(char *at, struct csink_send_todo *todo)
{
	for (uint32_t i = 0; i < CSINK_NR_SEND_TODO_TEXTS; i++) {
		size_t len = strlen(keys[i]);
		char *end = strchr(at, '\n');

		if (!end || strncmp(at, keys[i], len) || at[len] != ' ')
			return -EBADMSG;
		*end = 0;
		csink_text_undo_percent(at + len + 1);
		todo->texts[i] = strdup(at + len + 1);
		if (!todo->texts[i])
			return -ENOMEM;
		at = end + 1;
	}
	return *at ? -EBADMSG : 0;
}

int csink_send_todo_read(int fd, struct csink_send_todo *todo)
{
	CSINK_AUTO_FREE char *text = NULL;
	size_t len;
	int err = read_text(fd, &text);

	*todo = (struct csink_send_todo){.first_ns = 0};
	if (err)
		return err;
	len = read_state(text, todo);
	return len ? read_texts(text + len, todo) : -EBADMSG;
}
