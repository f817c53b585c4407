/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of names: the ledger's named ranges against a model that knows every 16 bytes, rules
 * files, and the probes of this very program, whole and damaged.
 * ./resource [seed]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/api/memprov-usdt.h"
#include "lib/capture/notes.h"
#include "lib/ledger/ledger.h"
#include "lib/trace/rules.h"
#include "tests/unit/check.h"

#define PG     MP_PAGE_SIZE
#define BASE   0x7f0000000000ull
#define GRAIN  16u
#define WINDOW 4096u /* grains: 16 pages */

static struct ledger *l;
static u64 random_state = 88172645463325252ull;

static u64 below(u64 n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static int called(u64 at, u32 name, u64 end)
{
	u64 until = BASE + 16 * PG;

	return ledger_named(l, 1, at, &until) == name && until == end;
}

static int a_later_name_is_on_top_and_ends_alone(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 16 * PG, 7));
	CHECK(!ledger_name(l, 1, BASE + 10, BASE + 1000, 3));
	CHECK(!ledger_name(l, 1, BASE + 100, BASE + 200, 4));
	CHECK(called(BASE, 0, BASE + 10) && called(BASE + 10, 3, BASE + 100));
	CHECK(called(BASE + 100, 4, BASE + 200) && called(BASE + 200, 3, BASE + 1000));
	CHECK(!ledger_unname(l, 1, BASE, BASE + 500, 3));
	CHECK(called(BASE, 0, BASE + 100) && called(BASE + 150, 4, BASE + 200));
	CHECK(called(BASE + 200, 0, BASE + 500) && called(BASE + 500, 3, BASE + 1000));
	return 1;
}

static int a_name_ends_with_its_mapping(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 16 * PG, 7));
	CHECK(!ledger_name(l, 1, BASE, BASE + 16 * PG, 3));
	CHECK(!ledger_unmap(l, 1, BASE + PG, BASE + 2 * PG));
	CHECK(called(BASE, 3, BASE + PG) && called(BASE + PG, 0, BASE + 2 * PG));
	CHECK(!ledger_map(l, 1, BASE + 4 * PG, BASE + 5 * PG, 8));
	CHECK(called(BASE + 4 * PG, 0, BASE + 5 * PG));
	CHECK(!ledger_remap(l, 1, BASE + 8 * PG, PG, BASE + 64 * PG, PG, 0, 7));
	CHECK(called(BASE + 8 * PG, 0, BASE + 9 * PG));
	return 1;
}

static int a_child_has_its_parents_names_and_changes_its_own(void)
{
	u64 end = BASE + PG;

	CHECK(!ledger_map(l, 1, BASE, BASE + PG, 7));
	CHECK(!ledger_name(l, 1, BASE, BASE + 100, 3));
	CHECK(!ledger_space_new(l, 2, 1));
	CHECK(!ledger_name(l, 2, BASE + 50, BASE + 100, 4));
	CHECK(called(BASE, 3, BASE + 100));
	CHECK(ledger_named(l, 2, BASE, &end) == 3 && end == BASE + 50);
	return 1;
}

static int bad_ranges_are_refused(void)
{
	u64 end = BASE + PG;

	CHECK(ledger_name(l, 1, BASE + 1, BASE + 1, 3) == -EINVAL);
	CHECK(ledger_name(l, 1, 1, ~0ull, 3) == -EINVAL);
	CHECK(ledger_name(l, 9, BASE, BASE + 1, 3) == -ENOENT);
	CHECK(ledger_unname(l, 9, BASE, BASE + 1, 3) == -ENOENT);
	CHECK(!ledger_unname(l, 1, BASE, BASE, 3) && !ledger_named(l, 9, BASE, &end));
	return 1;
}

static u8 model[WINDOW];

static int is_model(void)
{
	u64 at = 0, end;
	u32 name;

	while (at < WINDOW) {
		end = BASE + WINDOW * GRAIN;
		name = ledger_named(l, 1, BASE + at * GRAIN, &end);
		for (; at < (end - BASE) / GRAIN; at++)
			if (model[at] != name)
				return 0;
	}
	return 1;
}

static int random_names_match_the_model(void)
{
	u64 from, len, i, op;

	CHECK(!ledger_map(l, 1, BASE, BASE + 16 * PG, 7));
	memset(model, 0, sizeof(model));
	for (i = 0; i < 20000; i++) {
		from = below(WINDOW);
		len = 1 + below(WINDOW - from);
		op = below(8);
		if (op < 4) {
			u32 name = (u32)(1 + below(5));

			CHECK(!ledger_name(l, 1, BASE + from * GRAIN, BASE + (from + len) * GRAIN,
					   name));
			memset(model + from, (int)name, len);
		} else if (op < 7) {
			u32 name = (u32)(1 + below(5));

			CHECK(!ledger_unname(l, 1, BASE + from * GRAIN, BASE + (from + len) * GRAIN,
					     name));
			for (; len--; from++)
				model[from] = model[from] == name ? 0 : model[from];
		} else {
			from = from * GRAIN / PG;

			CHECK(!ledger_map(l, 1, BASE + from * PG, BASE + (from + 1) * PG, 8));
			memset(model + from * PG / GRAIN, 0, PG / GRAIN);
		}
		CHECK(i % 50 || is_model());
	}
	return is_model();
}

/* What rules_read says of a file with this text. */
static int rules_of(const char *text, struct rules *ret, char *msg, size_t len)
{
	int fd = memfd_create("rules", 0), err;
	char path[64];

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = rules_read(path, ret, msg, len);
	close(fd);
	return err;
}

static int rules_are_read_in_order(void)
{
	struct rules r;
	char msg[256];

	CHECK(!rules_of("# none\n\n a b =  function  x y*  \r\nc=file /z\n", &r, msg, sizeof(msg)));
	CHECK(r.nr == 2 && r.rules[0].by == MP_BY_FUNCTION && r.rules[1].by == MP_BY_FILE);
	CHECK(!strcmp(r.rules[0].name, "a b") && !strcmp(r.rules[0].pattern, "x y*"));
	CHECK(!strcmp(r.rules[1].name, "c") && !strcmp(r.rules[1].pattern, "/z"));
	rules_release(&r);
	CHECK(!rules_of("", &r, msg, sizeof(msg)) && !r.nr);
	rules_release(&r);
	CHECK(rules_of("a = mapping x\nb = mappings y", &r, msg, sizeof(msg)) == -EINVAL);
	CHECK(strstr(msg, ":2: "));
	return 1;
}

static int count(const struct note *notes, int nr, const char *name, const char *args)
{
	int n = 0;

	while (nr--)
		n += !strcmp(notes[nr].name, name) && !strcmp(notes[nr].args, args);
	return n;
}

static int the_probes_of_this_program_are_found(void)
{
	static struct note notes[NOTES_MAX];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), n, i;
	u8 code;

	memprov_resource_begin("a", &fd, sizeof(fd));
	memprov_resource_end("a", &fd, sizeof(fd));
	memprov_use("a");
	memprov_use("b");
	memprov_thread(NULL);
	n = notes_read(fd, "memprov", notes);
	CHECK(n == 5);
	CHECK(count(notes, n, "resource_begin", "8@%rdi 8@%rsi 8@%rdx") == 1);
	CHECK(count(notes, n, "resource_end", "8@%rdi 8@%rsi 8@%rdx") == 1);
	CHECK(count(notes, n, "use", "8@%rdi") == 2 && count(notes, n, "thread", "8@%rdi") == 1);
	for (i = 0; i < n; i++) {
		CHECK(pread(fd, &code, 1, (off_t)notes[i].offset) == 1 && code == 0x90);
		CHECK(!notes[i].semaphore && !notes_unsafe(fd, &notes[i]));
	}
	CHECK(notes_read(fd, "nobody", notes) == 0);
	close(fd);
	return 1;
}

/* Some bytes of the file are others: whatever is said of it lies in it, and nothing crashes. */
static int a_damaged_file_gives_fewer_probes(void)
{
	static struct note notes[NOTES_MAX];
	static u8 file[1 << 24];
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd, n, round;
	ssize_t len = read(in, file, sizeof(file)), i;
	u8 *note = memmem(file, (size_t)len, "stapsdt\0", 9);

	close(in);
	CHECK(len > 4096 && note);
	for (round = 0; round < 60; round++) {
		size_t cut = round % 3 ? (size_t)len : below((u64)len);
		u8 *at = round & 1 ? note - 16 + below(96) : file + below(512);
		u8 was = *at;

		*at = (u8)below(256);
		fd = memfd_create("damaged", 0);
		CHECK(fd >= 0 && write(fd, file, cut) == (ssize_t)cut);
		n = notes_read(fd, "memprov", notes);
		CHECK(n >= -EBADMSG - 200 && n <= NOTES_MAX);
		for (i = 0; i < n; i++)
			CHECK(strlen(notes[i].name) < NOTE_NAME_LEN &&
			      strlen(notes[i].args) < NOTE_ARGS_LEN);
		close(fd);
		*at = was;
	}
	return 1;
}

static const struct test tests[] = {
	TEST(a_later_name_is_on_top_and_ends_alone),
	TEST(a_name_ends_with_its_mapping),
	TEST(a_child_has_its_parents_names_and_changes_its_own),
	TEST(bad_ranges_are_refused),
	TEST(random_names_match_the_model),
	TEST(rules_are_read_in_order),
	TEST(the_probes_of_this_program_are_found),
	TEST(a_damaged_file_gives_fewer_probes),
};

static int new_ledger(void)
{
	return ledger_new(&l) || ledger_space_new(l, 1, 0);
}

static void free_ledger(void)
{
	ledger_free(&l);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		random_state += strtoull(argv[1], NULL, 0) * 2654435761u;
	return RUN(tests, new_ledger, free_ledger);
}
