/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include "lib/capture/ask.h"
#include "lib/capture/sites.h"
#include "lib/sym/elf.h"

/* THE table of functions. Operators count only in a file that has a malloc of its own: elsewhere
 * they call it. Out of some an exception may be thrown, and a return probe would end the program
 * that unwinds past it: that they are called is all that can be seen. */
/* clang-format off */
static const struct {
	const char *name;
	enum mp_alloc_args args;
	int operator;
} family[] = {
	{"malloc", MP_ARGS_SIZE, 0},
	{"calloc", MP_ARGS_COUNT_SIZE, 0},
	{"realloc", MP_ARGS_OLD_SIZE, 0},
	{"reallocarray", MP_ARGS_OLD_COUNT_SIZE, 0},
	{"memalign", MP_ARGS_ALIGN_SIZE, 0},
	{"aligned_alloc", MP_ARGS_ALIGN_SIZE, 0},
	{"valloc", MP_ARGS_SIZE, 0},
	{"pvalloc", MP_ARGS_SIZE, 0},
	{"posix_memalign", MP_ARGS_OUT_ALIGN_SIZE, 0},
	{"free", MP_ARGS_OLD, 0},
	{"cfree", MP_ARGS_OLD, 0},
	{"free_sized", MP_ARGS_OLD, 0},
	{"free_aligned_sized", MP_ARGS_OLD, 0},
	{"_Znwm", MP_ARGS_UNSEEN, 1},
	{"_Znam", MP_ARGS_UNSEEN, 1},
	{"_ZnwmRKSt9nothrow_t", MP_ARGS_SIZE, 1},
	{"_ZnamRKSt9nothrow_t", MP_ARGS_SIZE, 1},
	{"_ZnwmSt11align_val_t", MP_ARGS_UNSEEN, 1},
	{"_ZnamSt11align_val_t", MP_ARGS_UNSEEN, 1},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", MP_ARGS_SIZE, 1},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", MP_ARGS_SIZE, 1},
	{"_ZdlPv", MP_ARGS_OLD, 1},
	{"_ZdaPv", MP_ARGS_OLD, 1},
	{"_ZdlPvm", MP_ARGS_OLD, 1},
	{"_ZdaPvm", MP_ARGS_OLD, 1},
	{"_ZdlPvRKSt9nothrow_t", MP_ARGS_OLD, 1},
	{"_ZdaPvRKSt9nothrow_t", MP_ARGS_OLD, 1},
	{"_ZdlPvSt11align_val_t", MP_ARGS_OLD, 1},
	{"_ZdaPvSt11align_val_t", MP_ARGS_OLD, 1},
	{"_ZdlPvmSt11align_val_t", MP_ARGS_OLD, 1},
	{"_ZdaPvmSt11align_val_t", MP_ARGS_OLD, 1},
	{"_ZdlPvSt11align_val_tRKSt9nothrow_t", MP_ARGS_OLD, 1},
	{"_ZdaPvSt11align_val_tRKSt9nothrow_t", MP_ARGS_OLD, 1},
};
/* clang-format on */

#define NR_FAMILY (sizeof(family) / sizeof(family[0]))

struct found {
	s64 nr; /* or -errno */
	struct site sites[SITES_MAX];
};

struct reading {
	Elf *elf;
	const char *prefixes;
	int has_malloc;
	struct found f;
};

/* ---- the child ---- */

/* Only what is executed can be probed. */
static void add(struct reading *r, u64 value, u32 args, u32 whose)
{
	s64 offset = elf_file_offset(r->elf, value, PF_X), i;

	for (i = 0; i < r->f.nr; i++)
		if (r->f.sites[i].offset == (u64)offset)
			return;
	if (offset >= 0 && r->f.nr < SITES_MAX)
		r->f.sites[r->f.nr++] = (struct site){.offset = (u64)offset,
						      .cookie = MP_ALLOC_COOKIE(args, whose),
						      .args = args,
						      .family = whose};
}

static void name_is(struct reading *r, const char *name, u64 value, int operators, u32 whose)
{
	size_t i;

	for (i = 0; i < NR_FAMILY; i++)
		if (family[i].operator== operators && !strcmp(family[i].name, name)) {
			r->has_malloc |= !i && whose == MP_FAMILY_MALLOC;
			add(r, value, family[i].args, whose);
		}
}

static void pool_is(struct reading *r, const char *name, u64 value)
{
	const char *p = r->prefixes;
	size_t len;

	for (; p && *p; p += len + !!p[len]) {
		len = strcspn(p, ",");
		if (len && !strncmp(name, p, len))
			name_is(r, name + len, value, 0, MP_FAMILY_POOL);
	}
}

static void read_table(struct reading *r, Elf_Scn *scn, const GElf_Shdr *sh, int operators)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0, i;
	const char *name;
	GElf_Sym sym;

	for (i = 0; i < n && i < 1u << 24; i++) {
		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(r->elf, sh->sh_link, sym.st_name);
		if (!name)
			continue;
		name_is(r, name, sym.st_value, operators, MP_FAMILY_MALLOC);
		if (!operators)
			pool_is(r, name, sym.st_value);
	}
}

static int is_go(Elf *elf, Elf_Scn *scn)
{
	size_t names;
	const char *name;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names) || !gelf_getshdr(scn, &sh))
		return 0;
	name = elf_strptr(elf, names, sh.sh_name);
	return name && (!strcmp(name, ".gopclntab") || !strcmp(name, ".go.buildinfo"));
}

static void read_tables(struct reading *r, u32 type, int operators)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(r->elf, scn))) {
		if (is_go(r->elf, scn)) {
			r->f.nr = -ENOTSUP;
			return;
		}
		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			read_table(r, scn, &sh, operators);
	}
}

static void read_file(struct reading *r, int fd)
{
	GElf_Ehdr eh;

	elf_version(EV_CURRENT);
	r->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!r->elf || elf_kind(r->elf) != ELF_K_ELF || !gelf_getehdr(r->elf, &eh) ||
	    eh.e_machine != EM_X86_64) {
		r->f.nr = -ENOEXEC;
		return;
	}
	/* First by what others may call, then by what only a file with all its symbols tells. */
	read_tables(r, SHT_DYNSYM, 0);
	if (r->f.nr >= 0)
		read_tables(r, SHT_SYMTAB, 0);
	if (r->f.nr >= 0 && r->has_malloc) {
		read_tables(r, SHT_DYNSYM, 1);
		read_tables(r, SHT_SYMTAB, 1);
	}
}

static void answer(const void *prefixes, int fd, void *found)
{
	struct reading r = {.prefixes = prefixes};

	read_file(&r, fd);
	memcpy(found, &r.f, sizeof(r.f));
}

/* ---- the parent ---- */

/* What an attacker's file makes of its reader is no site: a probe in the middle of an instruction
 * would break it. The kernel refuses what is not the start of one only in part; who can map the
 * file can break it anyhow. */
static int check(const struct found *f)
{
	s64 i;

	if (f->nr < 0)
		return f->nr == -ENOTSUP ? -ENOTSUP : -ENOEXEC;
	for (i = 0; i < f->nr && f->nr <= SITES_MAX; i++)
		if (f->sites[i].args >= MP_ARGS_MAX || f->sites[i].family >= MP_FAMILY_MAX)
			return -EBADMSG;
	return f->nr <= SITES_MAX ? (int)f->nr : -EBADMSG;
}

int sites_read(int fd, const char *prefixes, struct site *ret)
{
	static struct found f;
	int n = ask_file(fd, answer, prefixes, &f, sizeof(f));

	if (!n)
		n = check(&f);
	if (n > 0)
		memcpy(ret, f.sites, (size_t)n * sizeof(*ret));
	return n;
}
