/* Lines on standard error: see message.h. */
#include "launcher/base/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "include/internal/base.h"
#include "launcher/base/outfile.h"
#include "launcher/base/text.h"

static void say(const char *fmt, va_list ap)
{
	CSINK_KEEP_ERRNO;
	char line[2048] = "countersink: ";
	size_t len = strlen(line);

	len += csink_text_vformat(line + len, sizeof(line) - len - 1, fmt, ap);
	line[len++] = '\n';
	/* Nowhere is left to complain to where stderr does not take it. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

void csink_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

int csink_fail(int result, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	return result;
}

int csink_why(int result, char *why, size_t why_bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, why_bytes, fmt, ap);
	va_end(ap);
	return result;
}

void csink_say_unwritten(const char *what, int err, const char *kept)
{
	const char *remedy = "choose another output file";

	if (kept)
		remedy = kept;
	else if (err == ENOSPC || err == EDQUOT)
		remedy = "make room, or choose another output file";
	/* main() put something unwritable where a stream was closed. */
	csink_say("%s: %s%s%s", what, err == EBADF ? "it is closed" : csink_outfile_error(err ? err : EIO),
		  err == ENOMEM && !kept ? "" : "; ", err == ENOMEM && !kept ? "" : remedy);
}
