/* Lines on standard error: see message.h. */
#include "launcher/base/message.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/outfile.h"
#include "launcher/base/text.h"

void csink_say(const char *fmt, ...)
{
	int saved_errno = errno;
	char line[2048] = "countersink: ";
	size_t len = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	len += csink_text_vformat(line + len, sizeof(line) - len - 1, fmt, ap);
	va_end(ap);
	line[len++] = '\n';
	/* Nowhere is left to complain to where stderr does not take it. */
	if (write(STDERR_FILENO, line, len) < 0)
		errno = saved_errno;
	errno = saved_errno;
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
