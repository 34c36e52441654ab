/* A share of the time as people write it, "1%" or "0.5%": the option --budget, for launcher and library. */
#ifndef CSINK_SHARE_H
#define CSINK_SHARE_H

#include <stdint.h>

#define CSINK_SHARE_WHOLE 100000 /* 100 % */

/** In parts of CSINK_SHARE_WHOLE, up to three decimals; 0: it is none, or not above 0 and below 100 %. Context: any. */
static inline uint32_t csink_share_parse(const char *text)
{
	uint32_t share = 0, unit = CSINK_SHARE_WHOLE / 100;

	if (*text < '0' || *text > '9')
		return 0;
	for (; *text >= '0' && *text <= '9' && share < CSINK_SHARE_WHOLE; text++)
		share = share * 10 + (uint32_t)(*text - '0') * unit;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9' && unit > 1; text++)
			share += (uint32_t)(*text - '0') * (unit /= 10);
	if (*text == '%')
		text++;
	return *text || share >= CSINK_SHARE_WHOLE ? 0 : share;
}

#endif
