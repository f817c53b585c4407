/* SPDX-License-Identifier: GPL-2.0-only
 * lib/unwind against libdw, which reads the same sections in its own way: for each file given, and
 * for this program, its C library and its loader, the rule of every row and of addresses in
 * between. Damaged copies give a table that may be used, or none. */
#define _GNU_SOURCE
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/unwind/table.h"

static int failed;

static void check(const char *name, const char *file, int good)
{
	printf("%s %s: %s\n", good ? "ok" : "FAIL", name, file);
	failed |= !good;
}

/* Where a register is saved. 1: at CFA + *ret_off, 0: nowhere, -1: something we do not follow. */
static int saved(Dwarf_Frame *frame, int reg, s64 *ret_off)
{
	Dwarf_Op *ops, mem[3];
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n))
		return -1;
	if (!n && !ops)
		return 0; /* same value */
	if (n < 1 || n > 2 || ops[0].atom != DW_OP_call_frame_cfa ||
	    (n == 2 && ops[1].atom != DW_OP_plus_uconst))
		return -1;
	*ret_off = n == 2 ? (s64)ops[1].number : 0;
	return 1;
}

/* What libdw says in our words. 0: something we do not follow. */
static int rule_of(Dwarf_Frame *frame, struct mp_rule *ret)
{
	Dwarf_Op *ops, mem[3];
	s64 off = 0;
	size_t n;
	int is_saved;

	*ret = (struct mp_rule){0};
	if (dwarf_frame_register(frame, MP_DW_RA, mem, &ops, &n))
		return 0;
	if (!n && ops == mem) {
		ret->cfa = MP_CFA_LAST;
		return 1;
	}
	if (n < 1 || n > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return 0;
	ret->ra_off = (s16)(n == 2 ? (s64)ops[1].number : 0);
	if (dwarf_frame_cfa(frame, &ops, &n) || n != 1 || ops[0].atom != DW_OP_bregx)
		return 0;
	ret->cfa = ops[0].number == MP_DW_SP   ? MP_CFA_SP
		   : ops[0].number == MP_DW_BP ? MP_CFA_BP
					       : MP_CFA_REG;
	ret->reg = (u8)ops[0].number;
	ret->cfa_off = (s32)ops[0].number2;
	is_saved = saved(frame, MP_DW_BX, &off);
	ret->flags = is_saved > 0 ? MP_RULE_BX_SAVED : is_saved ? MP_RULE_BX_GONE : 0;
	ret->bx_off = (s16)(is_saved > 0 ? off : 0);
	is_saved = saved(frame, MP_DW_BP, &off);
	ret->bp = is_saved > 0 ? MP_BP_CFA : MP_BP_SAME;
	ret->bp_off = (s16)(is_saved > 0 ? off : 0);
	return is_saved >= 0;
}

/* libdw has one word for a register that is gone and for one that nothing is said of. */
static int same_bx(const struct mp_rule *a, const struct mp_rule *b)
{
	if (b->flags & MP_RULE_BX_GONE)
		return !(a->flags & MP_RULE_BX_SAVED);
	return a->flags == b->flags && a->bx_off == b->bx_off;
}

static int same(const struct mp_rule *a, const struct mp_rule *b)
{
	if (a->cfa != b->cfa)
		return 0;
	return a->cfa == MP_CFA_LAST ||
	       (a->reg == b->reg && a->cfa_off == b->cfa_off && a->bp == b->bp &&
		a->bp_off == b->bp_off && a->ra_off == b->ra_off && same_bx(a, b));
}

/* The executable segment that offset lies in: what is to be added for an address. */
static int to_vaddr(Elf *elf, u64 offset, u64 *ret)
{
	GElf_Phdr p;
	size_t nr, i;

	elf_getphdrnum(elf, &nr);
	for (i = 0; i < nr; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_flags & PF_X &&
		    offset >= p.p_offset && offset < p.p_offset + p.p_filesz) {
			*ret = offset - p.p_offset + p.p_vaddr;
			return 1;
		}
	return 0;
}

static void compare(const char *path)
{
	struct unwind_table t = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = unwind_table_read(fd, &t);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	const u64 *rows = t.cells + (size_t)t.nr_rules * MP_RULE_CELLS;
	u32 i, wrong = 0, equal = 0, other = 0;
	u64 step, offset, vaddr;

	check("a table", path, !err && unwind_table_good(&t) && t.nr_rows && cfi);
	for (i = 0; !err && cfi && i + 1 < t.nr_rows; i++) {
		u64 end = (u32)rows[i + 1];

		step = (end - (u32)rows[i]) / 3 + 1;
		for (offset = (u32)rows[i]; offset < end; offset += step) {
			const struct mp_rule *mine = unwind_table_find(&t, offset);
			struct mp_rule theirs;
			Dwarf_Frame *frame;

			if (!to_vaddr(elf, offset, &vaddr))
				continue;
			if (dwarf_cfi_addrframe(cfi, vaddr, &frame)) {
				wrong += mine != NULL;
				equal += mine == NULL;
				continue;
			}
			if (!rule_of(frame, &theirs))
				other++;
			else if (mine && same(mine, &theirs))
				equal++;
			else if (wrong++ < 3)
				printf("  %#llx: cfa %d %d bp %d %d ra %d, libdw %d %d %d %d %d\n",
				       (unsigned long long)vaddr, mine ? mine->cfa : -1,
				       mine ? mine->cfa_off : 0, mine ? mine->bp : 0,
				       mine ? mine->bp_off : 0, mine ? mine->ra_off : 0, theirs.cfa,
				       theirs.cfa_off, theirs.bp, theirs.bp_off, theirs.ra_off);
			free(frame);
		}
	}
	printf("  %u addresses equal, %u different, %u by expressions\n", equal, wrong, other);
	check("libdw's rules", path, !wrong && equal > 50 && other * 50 < equal);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	unwind_table_release(&t);
	close(fd);
}

static unsigned long long seed = 1;

static unsigned int rnd(unsigned int below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(seed >> 33) % below;
}

/* The same file with some bytes changed, or cut off: all that counts is that it is survived and
 * what comes out could be searched. */
static void damage(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), copy, i, j, good = 1, err;
	struct unwind_table t;
	struct stat st;
	char *bytes;
	size_t len;

	if (fd < 0 || fstat(fd, &st))
		exit(1);
	bytes = malloc((size_t)st.st_size);
	for (i = 0; i < 200; i++) {
		len = (size_t)st.st_size;
		if (pread(fd, bytes, len, 0) != (ssize_t)len)
			exit(1);
		for (j = 0; j < 1 << rnd(12); j++)
			bytes[i % 2 ? rnd((unsigned int)len) : rnd(8192) % len] = (char)rnd(256);
		if (i % 4 == 3)
			len = rnd((unsigned int)len);
		copy = memfd_create("damaged", MFD_CLOEXEC);
		if (copy < 0 || write(copy, bytes, len) != (ssize_t)len)
			exit(1);
		memset(&t, 0, sizeof(t));
		err = unwind_table_read(copy, &t);
		good &= err ? !t.cells : unwind_table_good(&t);
		unwind_table_release(&t);
		close(copy);
	}
	free(bytes);
	close(fd);
	check("200 damaged copies", path, good);
}

/* What is made of code alone is right or is not said: the tables of the same file are the judge. Of
 * bp they may go on saying where it was saved when it has been restored. */
static void by_code(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_table t = {0}, code = {0};
	int err = unwind_table_read(fd, &t) || unwind_table_by_code(fd, &code);
	const u64 *rows = t.cells + (size_t)t.nr_rules * MP_RULE_CELLS;
	u32 i, equal = 0, wrong = 0, none = 0, offset;

	for (i = 0; !err && i + 1 < t.nr_rows; i++)
		for (offset = (u32)rows[i]; offset < (u32)rows[i + 1]; offset++) {
			const struct mp_rule *a = unwind_table_find(&t, offset);
			const struct mp_rule *b = unwind_table_find(&code, offset);

			if (!a || a->cfa == MP_CFA_PLT)
				continue;
			if (!b)
				none++;
			else if (a->cfa == b->cfa && a->cfa_off == b->cfa_off)
				equal++;
			else if (a->cfa == MP_CFA_BP && b->cfa == MP_CFA_SP)
				none++; /* not to be compared */
			else if (wrong++ < 3)
				printf("  %#x: cfa %d %d, by code %d %d\n", offset, a->cfa,
				       a->cfa_off, b->cfa, b->cfa_off);
		}
	printf("  %u bytes of code equal, %u different, %u not said\n", equal, wrong, none);
	check("rules by code alone", path, !err && !wrong && equal > 100);
	unwind_table_release(&t);
	unwind_table_release(&code);
	close(fd);
}

static void whole(void)
{
	u64 cells[MP_RULE_CELLS * 2 + 2] = {0};
	struct unwind_table t = {cells, 2, 2};

	cells[4] = MP_ROW(16, 1);
	cells[5] = MP_ROW(32, 0);
	check("a table in order", "", unwind_table_good(&t));
	check("found at its start", "", unwind_table_find(&t, 16) == (const void *)(cells + 2));
	check("found at its last byte", "", unwind_table_find(&t, 31) == (const void *)(cells + 2));
	check("none before it", "", !unwind_table_find(&t, 15));
	check("none behind it", "", !unwind_table_find(&t, 32));
	cells[5] = MP_ROW(16, 0);
	check("rows out of order are refused", "", !unwind_table_good(&t));
	cells[5] = MP_ROW(32, 2);
	check("a rule that is not there is refused", "", !unwind_table_good(&t));
	t.nr_rules = MP_MAX_RULES + 1;
	check("too many rules are refused", "", !unwind_table_good(&t));
}

/* The file that a function of this process is in. */
static void file_of(const void *function, char *ret, size_t len)
{
	unsigned long start, end, at = (unsigned long)function;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4300], *slash;

	ret[0] = 0;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		slash = strchr(line, '/');
		if (slash && sscanf(line, "%lx-%lx", &start, &end) == 2 && at >= start && at < end)
			snprintf(ret, len, "%s", slash);
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	char libc[4300];
	int i;

	elf_version(EV_CURRENT);
	whole();
	file_of((const void *)(unsigned long)qsort, libc, sizeof(libc));
	compare("/proc/self/exe");
	compare(libc);
	for (i = 1; i < argc; i++)
		compare(argv[i]);
	by_code("/proc/self/exe");
	damage("/proc/self/exe");
	damage(libc);
	return failed;
}
