/* See send_base64.h. */
#include "launcher/send/send_base64.h"

#include <stdint.h>

void csink_send_base64(FILE *out, const void *from, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *bytes = from;

	for (size_t at = 0; at < len; at += 3) {
		uint32_t three = (uint32_t)bytes[at] << 16 | (at + 1 < len ? (uint32_t)bytes[at + 1] << 8 : 0) |
				 (at + 2 < len ? bytes[at + 2] : 0);

		putc(digits[three >> 18], out);
		putc(digits[three >> 12 & 63], out);
		putc(at + 1 < len ? digits[three >> 6 & 63] : '=', out);
		putc(at + 2 < len ? digits[three & 63] : '=', out);
	}
}
