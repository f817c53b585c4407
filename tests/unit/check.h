/* SPDX-License-Identifier: GPL-2.0-only
 * What the unit tests have in common. A test returns 1, or 0 with why it failed. */
#ifndef MP_TESTS_CHECK_H
#define MP_TESTS_CHECK_H

#include <stdio.h>

static char why[256];

#define CHECK(cond)                                                                 \
	do {                                                                        \
		if (!(cond)) {                                                      \
			snprintf(why, sizeof(why), "line %d: %s", __LINE__, #cond); \
			return 0;                                                   \
		}                                                                   \
	} while (0)

struct test {
	const char *name;
	int (*run)(void);
};

/* clang-format off */
#define TEST(fn) {#fn, fn}
/* clang-format on */

/* Runs all of tests[], each between begin, which returns 0, and end; either may be NULL. The exit
 * status. */
#define RUN(tests, begin, end) run_tests(tests, sizeof(tests) / sizeof((tests)[0]), begin, end)

static inline int run_tests(const struct test *tests, size_t nr, int (*begin)(void),
			    void (*end)(void))
{
	int failed = 0, ok;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (begin && begin())
			return 1;
		ok = tests[i].run();
		printf("%-4s %s%s%s\n", ok ? "ok" : "FAIL", tests[i].name, ok ? "" : ": ",
		       ok ? "" : why);
		failed |= !ok;
		if (end)
			end();
	}
	return failed;
}

#endif
