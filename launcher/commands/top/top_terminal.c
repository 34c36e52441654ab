/* The terminal: see top_terminal.h. */
#include "launcher/commands/top/top_terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/message.h"

/* The other screen, no line breaks of the terminal's own, no cursor; and back. */
#define BEGIN "\033[?1049h\033[?7l\033[?25l\033[H\033[2J"
#define END "\033[0m\033[?25h\033[?7h\033[?1049l"

enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 24 };

int csink_top_terminal_find(struct csink_top_terminal *terminal, char *why, size_t why_len)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	*terminal = (struct csink_top_terminal){.has_styles = !(no_color && *no_color)};
	if (!isatty(STDOUT_FILENO))
		return csink_why(-ENOTTY, why, why_len, "standard output is no terminal: use --once");
	if (!isatty(STDIN_FILENO))
		return csink_why(-ENOTTY, why, why_len,
				 "standard input is no terminal, so that no key can end it: use --once");
	if (!term || !*term || !strcmp(term, "dumb"))
		return csink_why(-ENOTTY, why, why_len, "the terminal cannot move its cursor (TERM is %s): use --once",
				 term && *term ? "dumb" : "not set");
	return 0;
}

void csink_top_terminal_measure(struct csink_top_terminal *terminal)
{
	struct winsize size;
	bool is_known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row;

	terminal->columns = is_known ? size.ws_col : DEFAULT_COLUMNS;
	terminal->rows = is_known ? size.ws_row : DEFAULT_ROWS;
}

void csink_top_terminal_enter(struct csink_top_terminal *terminal)
{
	struct termios raw;

	if (!terminal->is_open && tcgetattr(STDIN_FILENO, &terminal->before))
		return;
	raw = terminal->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN); /* ISIG stays: ^C and ^Z are signals */
	raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	terminal->is_open = !tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	csink_top_terminal_write(BEGIN, strlen(BEGIN));
	csink_top_terminal_measure(terminal);
}

void csink_top_terminal_leave(struct csink_top_terminal *terminal)
{
	if (!terminal->is_open)
		return;
	csink_top_terminal_write(END, strlen(END));
	tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
	terminal->is_open = false;
}

int csink_top_terminal_write(const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t done = write(STDOUT_FILENO, text, bytes);

		/* Another program may have made the terminal one that does not wait. */
		if (done < 0 && errno == EAGAIN)
			poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
		else if (done < 0 && errno != EINTR)
			return -errno;
		done = CSINK_MAX(done, 0);
		text += done;
		bytes -= (size_t)done;
	}
	return 0;
}

/* ---- keys ---- */

static int key_of(unsigned char last, int number)
{
	static const struct {
		unsigned char last;
		int number; /* 0: any */
		enum csink_top_key key;
	} keys[] = {
		{'A', 0, CSINK_KEY_UP},   {'B', 0, CSINK_KEY_DOWN},    {'C', 0, CSINK_KEY_RIGHT},
		{'D', 0, CSINK_KEY_LEFT}, {'H', 0, CSINK_KEY_HOME},    {'F', 0, CSINK_KEY_END},
		{'~', 1, CSINK_KEY_HOME}, {'~', 4, CSINK_KEY_END},     {'~', 7, CSINK_KEY_HOME},
		{'~', 8, CSINK_KEY_END},  {'~', 5, CSINK_KEY_PAGE_UP}, {'~', 6, CSINK_KEY_PAGE_DOWN},
	};

	for (size_t i = 0; i < CSINK_ARRAY_SIZE(keys); i++)
		if (keys[i].last == last && (!keys[i].number || keys[i].number == number))
			return keys[i].key;
	return CSINK_KEY_NONE;
}

int csink_top_keys_feed(struct csink_top_keys *keys, unsigned char byte)
{
	if (byte == '\033') {
		*keys = (struct csink_top_keys){.at = CSINK_KEYS_ESCAPE};
		return CSINK_KEY_NONE;
	}
	switch (keys->at) {
	case CSINK_KEYS_PLAIN:
		return byte == '\n' ? CSINK_KEY_ENTER : byte == '\b' ? CSINK_KEY_ERASE : byte;
	case CSINK_KEYS_ESCAPE:
		if (byte == '[' || byte == 'O') {
			*keys = (struct csink_top_keys){.at = CSINK_KEYS_SEQUENCE};
			return CSINK_KEY_NONE;
		}
		keys->at = CSINK_KEYS_PLAIN; /* the escape key, then another one */
		return byte;
	case CSINK_KEYS_SEQUENCE:
		keys->is_modified |= byte == ';'; /* then come Shift, Control, ... */
		if (byte >= '0' && byte <= '9' && !keys->is_modified)
			keys->number = CSINK_MIN(keys->number, 1000) * 10 + byte - '0';
		if (byte < 0x40)
			return CSINK_KEY_NONE;
		keys->at = CSINK_KEYS_PLAIN;
		return key_of(byte, keys->number);
	}
	return CSINK_KEY_NONE;
}
