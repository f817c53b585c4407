// SPDX-License-Identifier: GPL-2.0-only
/* scenarios list | NAME SEED FOLDER: says "ready PID", waits for a line, acts, prints the oracle
 * and "done", and waits for another line, holding what it has. */
#include "scenario.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>

namespace
{

enum { SWAP = 1, DISK = 2, ROOT = 4, MEMCG = 8, CMD = 16, SLOW = 32, OPS = 64 };

const char *const need_names[] = {"swap", "disk", "root", "memcg", "cmd", "slow", "ops"};

const struct {
	const char *name;
	void (*run)();
	unsigned needs;
	const char *what;
} scenarios[] = {
#define TRUTH_SCENARIO(name, needs, what) {#name, scenario_##name, needs, what},
#include "scenario.def"
#undef TRUTH_SCENARIO
};

uint64_t state;

void list()
{
	for (const auto &s : scenarios) {
		const char *comma = "";

		printf("{\"name\":\"%s\",\"what\":\"%s\",\"needs\":[", s.name, s.what);
		for (unsigned i = 0; i < sizeof(need_names) / sizeof(need_names[0]); i++)
			if (s.needs >> i & 1) {
				printf("%s\"%s\"", comma, need_names[i]);
				comma = ",";
			}
		printf("]}\n");
	}
}

/* Byte by byte: a buffer of stdio would be mapped while it is watched. */
void await_line()
{
	char c;

	while (::read(0, &c, 1) == 1)
		if (c == '\n')
			return;
	_exit(0);
}

} // namespace

const char *folder;

size_t rnd(size_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % n;
}

size_t some(size_t least)
{
	return (least + rnd(least)) | 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	if (argc != 4) {
		fprintf(stderr, "usage: scenarios list | NAME SEED FOLDER\n");
		return 2;
	}
	folder = argv[3];
	state = strtoull(argv[2], nullptr, 10) * 2 + 1;
	for (const auto &s : scenarios) {
		if (strcmp(s.name, argv[1]))
			continue;
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
		book.start();
		if (s.needs & OPS)
			prepare_random();
		/* A program that the first one became is recorded already. */
		if (!getenv("TRUTH_STAGE")) {
			print("ready %d\n", (int)getpid());
			if (!(s.needs & CMD))
				await_line();
		}
		s.run();
		book.say();
		print("done\n");
		await_line();
		return 0;
	}
	fprintf(stderr, "scenarios: no scenario %s\n", argv[1]);
	return 2;
}
