/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "lib/capture/ask.h"
#include "lib/capture/notes.h"
#include "lib/sym/elf.h"

#define STAPSDT_TYPE 3

struct found {
	s64 nr; /* or -errno */
	struct note notes[NOTES_MAX];
};

struct reading {
	Elf *elf;
	const char *provider;
	u64 base; /* where .stapsdt.base lies: prelink moves code, and not what notes say of it */
	struct found *f;
};

/* ---- the child ---- */

/* The next of the strings of a description, NULL when there is none. */
static const char *next_text(const char **at, const char *end)
{
	const char *text = *at, *zero = memchr(text, 0, (size_t)(end - text));

	*at = zero ? zero + 1 : end;
	return zero ? text : NULL;
}

static void add(struct reading *r, const char *desc, size_t len)
{
	const char *end = desc + len, *at = desc + 3 * sizeof(u64), *provider, *name, *args;
	s64 offset, semaphore = 0;
	struct note *n;
	u64 addr[3]; /* of the probe, of the base, of the semaphore */

	if (len < sizeof(addr) || r->f->nr == NOTES_MAX)
		return;
	memcpy(addr, desc, sizeof(addr));
	provider = next_text(&at, end);
	name = next_text(&at, end);
	args = next_text(&at, end);
	if (!args || strcmp(provider, r->provider) || strlen(name) >= NOTE_NAME_LEN ||
	    strlen(args) >= NOTE_ARGS_LEN)
		return;
	offset = elf_file_offset(r->elf, addr[0] + (r->base ? r->base - addr[1] : 0), PF_X);
	if (addr[2])
		semaphore =
			elf_file_offset(r->elf, addr[2] + (r->base ? r->base - addr[1] : 0), PF_W);
	if (offset < 0 || semaphore < 0)
		return;
	n = &r->f->notes[r->f->nr++];
	n->offset = (u64)offset;
	n->semaphore = (u64)semaphore;
	memcpy(n->name, name, strlen(name) + 1);
	memcpy(n->args, args, strlen(args) + 1);
}

static void read_notes(struct reading *r, Elf_Scn *scn)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t at = 0, next, name, desc;
	GElf_Nhdr nh;

	while (data && (next = gelf_getnote(data, at, &nh, &name, &desc))) {
		const char *text = data->d_buf;

		if (nh.n_type == STAPSDT_TYPE && nh.n_namesz == 8 &&
		    !memcmp(text + name, "stapsdt", 8))
			add(r, text + desc, nh.n_descsz);
		at = next;
	}
}

static void each_section(struct reading *r, const char *called,
			 void (*fn)(struct reading *r, Elf_Scn *scn))
{
	Elf_Scn *scn = NULL;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(r->elf, &names))
		return;
	while ((scn = elf_nextscn(r->elf, scn))) {
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(r->elf, names, sh.sh_name) : NULL;

		if (name && !strcmp(name, called))
			fn(r, scn);
	}
}

static void is_base(struct reading *r, Elf_Scn *scn)
{
	GElf_Shdr sh;

	if (gelf_getshdr(scn, &sh))
		r->base = sh.sh_addr;
}

static void answer(const void *provider, int fd, void *found)
{
	struct reading r = {.elf = elf_open_native(fd), .provider = provider, .f = found};

	if (!r.elf) {
		r.f->nr = -ENOEXEC;
		return;
	}
	each_section(&r, ".stapsdt.base", is_base);
	each_section(&r, ".note.stapsdt", read_notes);
}

/* ---- the parent ---- */

int notes_read(int fd, const char *provider, struct note *ret)
{
	static struct found f;
	int err = ask_file(fd, answer, provider, &f, sizeof(f));
	s64 i;

	if (err || f.nr < 0)
		return err ? err : -ENOEXEC;
	if (f.nr > NOTES_MAX)
		return -EBADMSG;
	for (i = 0; i < f.nr; i++)
		f.notes[i].name[NOTE_NAME_LEN - 1] = f.notes[i].args[NOTE_ARGS_LEN - 1] = 0;
	memcpy(ret, f.notes, (size_t)f.nr * sizeof(*ret));
	return (int)f.nr;
}

int notes_unsafe(int fd, const struct note *n)
{
	static const u8 nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	u8 there[sizeof(nop5)];

	return pread(fd, there, sizeof(there), (off_t)n->offset) != sizeof(there) ||
	       !memcmp(there, nop5, sizeof(nop5));
}
