/* SPDX-License-Identifier: GPL-2.0-only
 * Where an ELF file has its code and its call frame information, through libelf. A file without
 * section headers still has the program header by which exceptions find .eh_frame. */
#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include "lib/unwind/build.h"
#include "lib/unwind/code.h"
#include "lib/unwind/reader.h"

#define MAX_OFFSET 0xffffffffull

struct file {
	Elf *elf;
	const u8 *raw; /* the whole file */
	size_t len;
	struct builder b;
	u64 hdr_vaddr, hdr_offset, hdr_len; /* PT_GNU_EH_FRAME */
};

static int in_file(const struct file *f, u64 off, u64 len)
{
	return off <= f->len && len <= f->len - off;
}

static int add_segment(struct file *f, const GElf_Phdr *p)
{
	struct builder *b = &f->b;

	if (!(p->p_flags & PF_X) || b->nr_segments == MAX_SEGMENTS ||
	    !in_file(f, p->p_offset, p->p_filesz) || p->p_offset + p->p_filesz > MAX_OFFSET ||
	    p->p_vaddr + p->p_filesz < p->p_vaddr)
		return 0;
	b->segments[b->nr_segments].vaddr = p->p_vaddr;
	b->segments[b->nr_segments].offset = p->p_offset;
	b->segments[b->nr_segments++].len = p->p_filesz;
	return 0;
}

static int read_segments(struct file *f)
{
	GElf_Ehdr ehdr;
	GElf_Phdr phdr;
	size_t nr, i;

	if (elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &ehdr) ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    ehdr.e_machine != EM_X86_64 || elf_getphdrnum(f->elf, &nr))
		return -ENOEXEC;
	for (i = 0; i < nr; i++) {
		if (!gelf_getphdr(f->elf, (int)i, &phdr))
			return -ENOEXEC;
		if (phdr.p_type == PT_LOAD)
			add_segment(f, &phdr);
		if (phdr.p_type == PT_GNU_EH_FRAME && in_file(f, phdr.p_offset, phdr.p_filesz)) {
			f->hdr_vaddr = phdr.p_vaddr;
			f->hdr_offset = phdr.p_offset;
			f->hdr_len = phdr.p_filesz;
		}
	}
	return 0;
}

static Elf_Scn *find_section(struct file *f, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	const char *have;
	size_t strndx;

	if (elf_getshdrstrndx(f->elf, &strndx))
		return NULL;
	while ((scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, shdr) || shdr->sh_type == SHT_NOBITS)
			continue;
		have = elf_strptr(f->elf, strndx, shdr->sh_name);
		if (have && !strcmp(have, name))
			return scn;
	}
	return NULL;
}

/* 1: read. */
static int read_section(struct file *f, const char *name, int is_eh, int *ret_err)
{
	struct cfi_section sec = {.is_eh = is_eh};
	GElf_Shdr shdr;
	Elf_Scn *scn = find_section(f, name, &shdr);
	Elf_Data *data;

	*ret_err = 0;
	if (!scn)
		return 0;
	if (shdr.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
		return 0;
	if (!strncmp(name, ".zdebug", 7) && elf_compress_gnu(scn, 0, 0) < 0)
		return 0;
	data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return 0;
	sec.data = data->d_buf;
	sec.len = data->d_size;
	sec.vaddr = shdr.sh_addr;
	*ret_err = builder_read(&f->b, &sec);
	return 1;
}

/* Only the first field is of interest here: where .eh_frame is, in the words of a program header
 * that linkers write in one way. Where it ends nobody says: its end mark does. */
static int read_by_header(struct file *f)
{
	struct reader r = {f->raw + f->hdr_offset, f->raw + f->hdr_offset + f->hdr_len, 0};
	struct cfi_section sec = {.is_eh = 1};
	u64 at;

	if (f->hdr_len < 8 || read_uint(&r, 1) != 1 ||
	    read_uint(&r, 1) != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
		return 0;
	read_uint(&r, 2);
	sec.vaddr = f->hdr_vaddr + 4 + (u64)read_sint(&r, 4);
	/* Both lie in one segment. */
	at = sec.vaddr - f->hdr_vaddr + f->hdr_offset;
	if (at >= f->len)
		return 0;
	sec.data = f->raw + at;
	sec.len = f->len - at;
	sec.ends_at_mark = 1;
	return builder_read(&f->b, &sec);
}

static int read_frames(struct file *f)
{
	int err, found = read_section(f, ".eh_frame", 1, &err);

	if (!found && !err)
		err = read_by_header(f);
	if (!err && !read_section(f, ".debug_frame", 0, &err) && !err)
		read_section(f, ".zdebug_frame", 0, &err);
	return err;
}

static int add_symbols(struct file *f, struct code *c, u32 type)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;
	GElf_Sym sym;
	int err = 0;
	size_t i;

	while (!err && (scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type || !shdr.sh_entsize)
			continue;
		data = elf_getdata(scn, NULL);
		for (i = 0; data && i < shdr.sh_size / shdr.sh_entsize && !err; i++)
			if (gelf_getsym(data, (int)i, &sym) && sym.st_shndx != SHN_UNDEF &&
			    GELF_ST_TYPE(sym.st_info) == STT_FUNC)
				err = code_add_function(c, sym.st_value, 0);
	}
	return err;
}

/* Where compilers wrote tables at all, the little that has none is not worth a search. */
static int needs_code(const struct file *f, const struct segment *s)
{
	return !f->b.is_go &&
	       builder_covered(&f->b, s->offset, s->offset + s->len) < s->len / 10 * 9;
}

static int read_code(struct file *f)
{
	GElf_Ehdr ehdr;
	int err = gelf_getehdr(f->elf, &ehdr) ? 0 : -ENOEXEC;
	size_t i;

	for (i = 0; i < f->b.nr_segments && !err; i++) {
		const struct segment *s = &f->b.segments[i];
		struct code *c;

		if (!needs_code(f, s))
			continue;
		err = code_open(&f->b, s, f->raw + s->offset, ehdr.e_type == ET_EXEC, &c);
		if (!err && ehdr.e_entry)
			err = code_add_function(c, ehdr.e_entry, 1);
		if (!err)
			err = add_symbols(f, c, SHT_SYMTAB);
		if (!err)
			err = add_symbols(f, c, SHT_DYNSYM);
		if (!err)
			err = code_read(c);
		code_close(&c);
	}
	return err;
}

/* Takes the Elf over. */
static int read_elf(Elf *elf, int by_code, struct unwind_table *ret)
{
	struct file *f = calloc(1, sizeof(*f));
	int err = f ? 0 : -ENOMEM;
	GElf_Shdr shdr;

	if (!err) {
		f->elf = elf;
		f->raw = (const u8 *)elf_rawfile(elf, &f->len);
		err = f->raw ? read_segments(f) : -ENOEXEC;
	}
	if (!err) {
		f->b.is_go = find_section(f, ".gopclntab", &shdr) != NULL;
		err = builder_start(&f->b);
	}
	if (!err && !by_code)
		err = read_frames(f);
	if (!err)
		err = read_code(f);
	if (!err)
		err = builder_finish(&f->b, ret);
	if (f)
		builder_release(&f->b);
	free(f);
	elf_end(elf);
	return err;
}

int unwind_table_read(int fd, struct unwind_table *ret)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	return elf ? read_elf(elf, 0, ret) : -ENOEXEC;
}

int unwind_table_by_code(int fd, struct unwind_table *ret)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	return elf ? read_elf(elf, 1, ret) : -ENOEXEC;
}

int unwind_table_of_image(const void *image, size_t len, struct unwind_table *ret)
{
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)(unsigned long)image, len);
	return elf ? read_elf(elf, 0, ret) : -ENOEXEC;
}
