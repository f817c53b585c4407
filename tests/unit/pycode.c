/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of the lines of Python's code: each kind of entry, tables cut short, and garbage. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/capture/pycode.h"

#define CHECK(cond)                                                    \
	do {                                                           \
		if (!(cond)) {                                         \
			printf("FAIL line %d: %s\n", __LINE__, #cond); \
			failed = 1;                                    \
		}                                                      \
	} while (0)

int main(void)
{
	/* Entries of 1, 2, 3, 1, 8, 2 units: no location; a short form; one line further; a number
	 * of lines back and forth with and without columns. */
	static const u8 table[] = {
		0x80 | 15 << 3 | 0,
		0x80 | 2 << 3 | 1,
		0x12,
		0x80 | 11 << 3 | 2,
		4,
		9,
		0x80 | 13 << 3 | 0,
		5, /* -2 */
		0x80 | 14 << 3 | 7,
		0x40 | 20,
		3,
		0,
		1,
		1, /* +106 */
		0x80 | 12 << 3 | 1,
		0,
		0,
	};
	static const u32 lines[] = {0,	 100, 100, 101, 101, 101, 99,  205, 205,
				    205, 205, 205, 205, 205, 205, 207, 207, 0};
	u8 garbage[64];
	int failed = 0;
	u32 i, k, n;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CHECK(pycode_line(table, sizeof(table), 100, i) == lines[i]);
	for (n = 0; n < sizeof(table); n++)
		for (i = 0; i < 20; i++)
			CHECK(pycode_line(table, n, 100, i) <= 207);
	srand(1);
	for (k = 0; k < 20000; k++) {
		n = (u32)rand() % sizeof(garbage);
		for (i = 0; i < n; i++)
			garbage[i] = (u8)rand();
		for (i = 0; i < 200; i += 7)
			pycode_line(garbage, n, (u32)rand(), i);
	}
	puts(failed ? "failed" : "ok   lines");
	return failed;
}
