/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/lose.h"

static int parse_rate(const char *text, const char **ret_end, u32 *ret_rate)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || *end != '%' || !(percent >= 0 && percent <= 100))
		return -EINVAL;
	*ret_rate = (u32)(percent / 100 * 65536);
	*ret_end = end + 1;
	return 0;
}

static int parse_number(const char *text, const char **ret_end, u32 *ret_n)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *text == '-' || n >> 32)
		return -EINVAL;
	*ret_n = (u32)n;
	*ret_end = end;
	return 0;
}

int lose_parse(const char *text, struct lose *ret_lose)
{
	struct lose lose = {0};
	u32 together = 1;
	int err;

	while (text && *text) {
		if (!strncmp(text, "topology=", 9))
			err = parse_rate(text + 9, &text, &lose.topology);
		else if (!strncmp(text, "detail=", 7))
			err = parse_rate(text + 7, &text, &lose.detail);
		else if (!strncmp(text, "burst=", 6))
			err = parse_number(text + 6, &text, &together);
		else if (!strncmp(text, "seed=", 5))
			err = parse_number(text + 5, &text, &lose.seed);
		else
			err = -EINVAL;
		if (err || (*text && *text++ != ','))
			return -EINVAL;
	}
	while (lose.burst < 31 && 1u << lose.burst < together)
		lose.burst++;
	*ret_lose = lose;
	return 0;
}
