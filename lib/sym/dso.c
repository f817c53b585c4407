/* SPDX-License-Identifier: GPL-2.0-only
 * One ELF file through libdw. Every file gets a Dwfl of its own with a single module at a made-up
 * base, so nothing here knows where the file was mapped. The files belong to the profiled program
 * and can be anything: headers are checked before libdw sees them, and only regular files are
 * opened. Separate debug files are looked up on disk only; the standard libdwfl callback would ask
 * debuginfod servers, which a profiler must not do behind its user's back. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf/shared/event.h"
#include "lib/sym/dso.h"
#include "lib/sym/file.h"
#include "lib/sym/scopes.h"

#define DSO_BASE	 0x10000000ULL /* arbitrary; not 0 so that a zero address is never valid */
#define DSO_MAX_SIZE	 (16ULL << 30)
#define DSO_MAX_MANGLED	 8192
#define DSO_MAX_BUILD_ID 64

struct dso {
	Dwfl *dwfl;
	Dwfl_Module *mod;
	Dwarf_Addr bias; /* module address - ELF vaddr */
	GElf_Phdr *loads;
	size_t nr_loads;
	int root;
	char *path;
	dev_t dev;
	ino_t ino;
	char build_id[2 * DSO_MAX_BUILD_ID + 1];
	struct scopes *scopes;
	void *names; /* tsearch tree of function names */
};

static int good_size(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size >= (off_t)sizeof(Elf32_Ehdr) &&
	       (u64)st->st_size <= DSO_MAX_SIZE;
}

static int open_elf(int root, const char *path, struct stat *st)
{
	int fd = file_open(root, path, st);

	if (fd >= 0 && !good_size(st)) {
		close(fd);
		return -ENOEXEC;
	}
	return fd;
}

static int in_file(u64 off, u64 len, u64 size)
{
	return off <= size && len <= size - off;
}

/* Tables and section contents must lie inside the file: libelf checks most of this itself, but a
 * truncated file would then yield half a symbol table and so wrong names instead of none. */
static int check_sections(Elf *elf, u64 size)
{
	GElf_Shdr shdr;
	GElf_Ehdr ehdr;
	Elf_Scn *scn = NULL;
	size_t nr;
	size_t strndx;

	if (!gelf_getehdr(elf, &ehdr) || (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN))
		return -ENOEXEC;
	if (elf_getshdrnum(elf, &nr))
		return -ENOEXEC;
	if (ehdr.e_shoff && !in_file(ehdr.e_shoff, (u64)nr * ehdr.e_shentsize, size))
		return -ENOEXEC;
	/* libelf forgives a table that is cut off by pretending there is none. */
	if (ehdr.e_shnum != nr && ehdr.e_shnum)
		return -ENOEXEC;
	if (nr && (elf_getshdrstrndx(elf, &strndx) || strndx >= nr))
		return -ENOEXEC;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr))
			return -ENOEXEC;
		if (shdr.sh_type == SHT_NOBITS || shdr.sh_type == SHT_NULL)
			continue;
		if (!in_file(shdr.sh_offset, shdr.sh_size, size) || shdr.sh_link >= nr)
			return -ENOEXEC;
		if ((shdr.sh_type == SHT_SYMTAB || shdr.sh_type == SHT_DYNSYM) &&
		    shdr.sh_entsize != gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT))
			return -ENOEXEC;
	}
	return 0;
}

static int read_loads(struct dso *d, Elf *elf, u64 size)
{
	GElf_Phdr phdr;
	GElf_Ehdr ehdr;
	size_t nr;
	size_t i;

	if (!gelf_getehdr(elf, &ehdr) || elf_getphdrnum(elf, &nr) || !nr)
		return -ENOEXEC;
	if (!in_file(ehdr.e_phoff, (u64)nr * ehdr.e_phentsize, size))
		return -ENOEXEC;
	d->loads = calloc(nr, sizeof(*d->loads));
	if (!d->loads)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, (int)i, &phdr))
			return -ENOEXEC;
		if (phdr.p_type != PT_LOAD)
			continue;
		if (!in_file(phdr.p_offset, phdr.p_filesz, size) || phdr.p_filesz > phdr.p_memsz ||
		    phdr.p_vaddr + phdr.p_memsz < phdr.p_vaddr)
			return -ENOEXEC;
		d->loads[d->nr_loads++] = phdr;
	}
	return d->nr_loads ? 0 : -ENOEXEC;
}

static void read_build_id(Elf *elf, char *ret)
{
	const unsigned char *bits;
	const void *id;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &id);
	ssize_t i;

	ret[0] = 0;
	if (n <= 0 || n > DSO_MAX_BUILD_ID)
		return;
	bits = id;
	for (i = 0; i < n; i++)
		sprintf(ret + 2 * i, "%02x", bits[i]);
}

/* d NULL: a separate debug file, whose PT_LOADs describe contents it does not have. */
static int inspect(int fd, u64 size, struct dso *d, char *build_id)
{
	Elf *elf;
	int err = -ENOEXEC;

	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf)
		return -ENOEXEC;
	if (elf_kind(elf) == ELF_K_ELF)
		err = check_sections(elf, size);
	if (!err && d)
		err = read_loads(d, elf, size);
	if (!err)
		read_build_id(elf, build_id);
	elf_end(elf);
	return err;
}

/* The CRC of .gnu_debuglink, for files without build id. */
static int file_crc(int fd, u32 *ret)
{
	unsigned char buf[16384];
	u32 crc = ~0U;
	off_t at = 0;
	ssize_t n;
	ssize_t i;
	int bit;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		for (i = 0; i < n; i++) {
			crc ^= buf[i];
			for (bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
		}
		at += n;
	}
	*ret = ~crc;
	return n < 0 ? -errno : 0;
}

/* Takes path over. The fd of the debug file of d, with its name in *ret_name, or -1. */
static int try_debug(const struct dso *d, int root, char *path, u32 want_crc, char **ret_name)
{
	char build_id[2 * DSO_MAX_BUILD_ID + 1];
	struct stat st;
	int good = 0;
	u32 crc;
	int fd;

	if (!path)
		return -1;
	fd = open_elf(root, path, &st);
	if (fd < 0)
		goto out_free;
	if (st.st_dev == d->dev && st.st_ino == d->ino)
		goto out_close;
	if (inspect(fd, (u64)st.st_size, NULL, build_id))
		goto out_close;
	if (d->build_id[0])
		good = !strcmp(build_id, d->build_id);
	else
		good = !file_crc(fd, &crc) && crc == want_crc;
	if (good) {
		*ret_name = path;
		return fd;
	}
out_close:
	close(fd);
out_free:
	free(path);
	return -1;
}

__attribute__((format(printf, 1, 2))) static char *format(const char *fmt, ...)
{
	va_list ap;
	char *ret;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&ret, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : ret;
}

static int debug_by_build_id(const struct dso *d, int root, char **ret_name)
{
	if (strlen(d->build_id) < 4)
		return -1;
	return try_debug(
		d, root,
		format("/usr/lib/debug/.build-id/%.2s/%s.debug", d->build_id, d->build_id + 2), 0,
		ret_name);
}

static int debug_by_link(const struct dso *d, const char *link, u32 crc, char **ret_name)
{
	const char *slash = strrchr(d->path, '/');
	int len = slash ? (int)(slash - d->path) : 0;
	int fd;

	/* A name with directories is no debuglink (libdwfl also asks for dwz files here, which
	 * libdw finds by itself). */
	if (!slash || strchr(link, '/'))
		return -1;
	fd = try_debug(d, d->root, format("%.*s/%s", len, d->path, link), crc, ret_name);
	if (fd < 0)
		fd = try_debug(d, d->root, format("%.*s/.debug/%s", len, d->path, link), crc,
			       ret_name);
	if (fd < 0)
		fd = try_debug(d, d->root, format("/usr/lib/debug%.*s/%s", len, d->path, link), crc,
			       ret_name);
	if (fd < 0 && d->root >= 0)
		fd = try_debug(d, -1, format("/usr/lib/debug%.*s/%s", len, d->path, link), crc,
			       ret_name);
	return fd;
}

static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	const struct dso *d = *userdata;
	int fd;

	(void)mod;
	(void)name;
	(void)base;
	(void)file;
	if (!d)
		return -1;
	fd = debug_by_build_id(d, d->root, ret_name);
	if (fd < 0 && d->root >= 0)
		fd = debug_by_build_id(d, -1, ret_name);
	if (fd < 0 && link)
		fd = debug_by_link(d, link, crc, ret_name);
	return fd;
}

/* Never needed, the file is reported open; the standard one would ask debuginfod. */
static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **ret_name, Elf **ret_elf)
{
	(void)mod;
	(void)userdata;
	(void)name;
	(void)base;
	(void)ret_name;
	(void)ret_elf;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* Takes fd over, also when it fails. */
static int report(struct dso *d, int fd)
{
	void **userdata;

	d->dwfl = dwfl_begin(&callbacks);
	if (!d->dwfl) {
		close(fd);
		return -ENOMEM;
	}
	dwfl_report_begin(d->dwfl);
	d->mod = dwfl_report_elf(d->dwfl, d->path, d->path, fd, DSO_BASE, false);
	if (!d->mod)
		close(fd);
	if (dwfl_report_end(d->dwfl, NULL, NULL) || !d->mod)
		return -ENOEXEC;
	if (!dwfl_module_info(d->mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL))
		return -ENOEXEC;
	*userdata = d;
	if (!dwfl_module_getelf(d->mod, &d->bias))
		return -ENOEXEC;
	return 0;
}

static int load(struct dso *d, int fd)
{
	struct stat st;
	int err;

	if (fd < 0) {
		fd = open_elf(d->root, d->path, &st);
		if (fd < 0)
			return fd;
	} else {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return -errno;
		if (fstat(fd, &st) || !good_size(&st)) {
			close(fd);
			return -ENOEXEC;
		}
	}
	d->dev = st.st_dev;
	d->ino = st.st_ino;
	err = inspect(fd, (u64)st.st_size, d, d->build_id);
	if (err)
		close(fd);
	else
		err = report(d, fd);
	return err;
}

int dso_open(struct dso **ret_d, int root, int fd, const char *path)
{
	struct dso *d;
	int err;

	elf_version(EV_CURRENT);
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->root = root;
	d->path = strdup(path);
	err = d->path ? load(d, fd) : -ENOMEM;
	if (err)
		dso_close(&d);
	*ret_d = d;
	return err;
}

void dso_close(struct dso **d)
{
	if (!*d)
		return;
	if ((*d)->dwfl)
		dwfl_end((*d)->dwfl);
	scopes_free(&(*d)->scopes);
	tdestroy((*d)->names, free);
	free((*d)->loads);
	free((*d)->path);
	free(*d);
	*d = NULL;
}

const char *dso_build_id(const struct dso *d)
{
	return d->build_id[0] ? d->build_id : NULL;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Demangles and keeps one copy of each name. raw NULL gives NULL. */
static int keep_name(struct dso *d, const char *raw, const char **ret)
{
	const char *at;
	char *full;
	char *plain = NULL;
	void *node;

	*ret = NULL;
	if (!raw || !raw[0])
		return 0;
	/* A .symtab may carry the version in the name: memcpy@@GLIBC_2.14 */
	at = strchr(raw, '@');
	full = at && at != raw ? strndup(raw, (size_t)(at - raw)) : strdup(raw);
	if (!full)
		return -ENOMEM;
	if ((!strncmp(full, "_Z", 2) || !strncmp(full, "_R", 2)) && strlen(full) <= DSO_MAX_MANGLED)
		plain = cplus_demangle(full, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (plain) {
		free(full);
		full = plain;
	}
	node = tsearch(full, &d->names, compare_names);
	if (!node) {
		free(full);
		return -ENOMEM;
	}
	*ret = *(char **)node;
	if (*ret != full)
		free(full);
	return 0;
}

static int to_vaddr(const struct dso *d, u64 offset, u64 *ret)
{
	const GElf_Phdr *p;
	int exec;
	size_t i;

	/* Segments may share file pages; the executable one is what was running. */
	for (exec = 1; exec >= 0; exec--) {
		for (i = 0; i < d->nr_loads; i++) {
			p = &d->loads[i];
			if (!!(p->p_flags & PF_X) != exec || offset < p->p_offset ||
			    offset - p->p_offset >= p->p_filesz)
				continue;
			*ret = p->p_vaddr + (offset - p->p_offset);
			return 1;
		}
	}
	return 0;
}

static const char *symbol_name(struct dso *d, Dwarf_Addr addr)
{
	const char *name;
	GElf_Off off;
	GElf_Sym sym;
	int type;

	name = dwfl_module_addrinfo(d->mod, addr, &off, &sym, NULL, NULL, NULL);
	if (!name || !name[0] || name[0] == '$')
		return NULL;
	type = GELF_ST_TYPE(sym.st_info);
	if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC)
		return NULL;
	/* libdwfl takes a sizeless symbol from the same section only; a sized one must cover. */
	if (sym.st_size && off >= sym.st_size)
		return NULL;
	return name;
}

static Dwarf_Die *find_unit(struct dso *d, Dwarf_Addr addr, Dwarf_Addr *ret_bias)
{
	Dwarf_Die *cu = dwfl_module_addrdie(d->mod, addr, ret_bias);

	if (cu)
		return cu;
	/* clang writes no .debug_aranges, which is all that libdwfl looks at. */
	while ((cu = dwfl_module_nextcu(d->mod, cu, ret_bias))) {
		if (dwarf_haspc(cu, addr - *ret_bias) > 0)
			return cu;
	}
	return NULL;
}

static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	return name ? name : dwarf_diename(die);
}

static void source_line(Dwarf_Die *cu, Dwarf_Addr pc, struct dso_frame *f)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, pc);
	int nr;

	if (!line)
		return;
	f->file = dwarf_linesrc(line, NULL, NULL);
	if (f->file && !dwarf_lineno(line, &nr) && nr > 0)
		f->line = (u32)nr;
}

static void call_site(Dwarf_Die *cu, Dwarf_Die *die, struct dso_frame *f)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word val;
	size_t nr;

	f->file = NULL;
	f->line = 0;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &val) ||
	    dwarf_getsrcfiles(cu, &files, &nr) || val >= nr)
		return;
	f->file = dwarf_filesrc(files, val, NULL, NULL);
	if (f->file && !dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &val))
		f->line = (u32)val;
}

/* Fills ret with the frames that DWARF knows to be inlined at pc and leaves the frame of the real
 * function in ret[returned number]; its name only if it has none yet. */
static int walk_scopes(struct dso *d, Dwarf_Die *cu, Dwarf_Addr pc, struct dso_frame *ret)
{
	struct dso_frame f = {0};
	Dwarf_Die scopes[DSO_MAX_FRAMES];
	int nr = scopes_at(&d->scopes, cu, pc, scopes, DSO_MAX_FRAMES);
	int err = nr < 0 ? nr : 0;
	int n = 0;

	source_line(cu, pc, &f);
	while (nr-- > 0 && !err) {
		err = keep_name(d, die_name(&scopes[nr]), &f.function);
		if (!nr)
			break;
		f.inlined = 1;
		ret[n++] = f;
		f = (struct dso_frame){0};
		call_site(cu, &scopes[nr], &f);
	}
	ret[n] = f;
	return err ? err : n;
}

int dso_lookup(struct dso *d, u64 offset, struct dso_frame *ret)
{
	const char *symbol;
	Dwarf_Addr bias;
	Dwarf_Die *cu;
	u64 addr;
	int n = 0;
	int err;

	ret[0] = (struct dso_frame){0};
	if (!to_vaddr(d, offset, &addr))
		return 1;
	addr += d->bias;
	err = keep_name(d, symbol_name(d, addr), &symbol);
	if (err)
		return err;
	cu = find_unit(d, addr, &bias);
	if (cu)
		n = walk_scopes(d, cu, addr - bias, ret);
	if (n < 0)
		return n;
	/* The symbol says which clone (.cold, .part.0) it is and what the linker called it. */
	if (symbol)
		ret[n].function = symbol;
	return n + 1;
}

/* DWARF numbers of x86-64 registers: 6 rbp, 7 rsp, 16 the return address. */
static int classify(Dwarf_Frame *frame)
{
	Dwarf_Op ops_mem[3];
	Dwarf_Op *ops;
	size_t nops;

	if (!dwarf_frame_register(frame, 16, ops_mem, &ops, &nops) && !nops && ops == ops_mem)
		return MP_FRAME_LAST; /* the return address is undefined */
	if (dwarf_frame_cfa(frame, &ops, &nops) || nops != 1)
		return MP_FRAME_HIDDEN;
	if (ops[0].atom == DW_OP_breg6 || (ops[0].atom == DW_OP_bregx && ops[0].number == 6))
		return MP_FRAME_POINTER;
	if ((ops[0].atom == DW_OP_breg7 && ops[0].number == 8) ||
	    (ops[0].atom == DW_OP_bregx && ops[0].number == 7 && ops[0].number2 == 8))
		return MP_FRAME_TOP;
	return MP_FRAME_HIDDEN;
}

int dso_unwind(struct dso *d, u64 offset)
{
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;
	u64 addr;
	int kind;

	if (!to_vaddr(d, offset, &addr))
		return MP_FRAME_UNKNOWN;
	cfi = dwfl_module_eh_cfi(d->mod, &bias);
	if (!cfi || dwarf_cfi_addrframe(cfi, addr + d->bias - bias, &frame))
		return MP_FRAME_UNKNOWN;
	kind = classify(frame);
	free(frame);
	return kind;
}

int dso_bias(int fd, u64 pgoff, u64 start, u64 *ret)
{
	struct dso d = {0};
	struct stat st;
	size_t i;
	int err = fstat(fd, &st) || !good_size(&st) ? -ENOEXEC : 0;

	elf_version(EV_CURRENT);
	if (!err)
		err = inspect(fd, (u64)st.st_size, &d, d.build_id);
	for (i = 0; i < d.nr_loads && !err; i++) {
		const GElf_Phdr *p = &d.loads[i];

		if (!(p->p_flags & PF_X) || pgoff + MP_PAGE_SIZE <= p->p_offset ||
		    pgoff >= p->p_offset + p->p_filesz)
			continue;
		*ret = start - pgoff - (p->p_vaddr - p->p_offset);
		break;
	}
	if (!err && i == d.nr_loads)
		err = -ENOEXEC;
	free(d.loads);
	return err;
}
