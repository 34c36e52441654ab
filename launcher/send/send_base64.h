/* Base64 (RFC 4648): Parca's JSON has a profile in it, and basic authentication a password. */
#ifndef CSINK_SEND_BASE64_H
#define CSINK_SEND_BASE64_H

#include <stddef.h>
#include <stdio.h>

/** Write bytes in base64, with padding. Context: any thread. */
void csink_send_base64(FILE *out, const void *bytes, size_t len);

#endif
