/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include "bpf/shared/python.h"
#include "lib/capture/ask.h"
#include "lib/capture/clock.h"
#include "lib/capture/modules.h"
#include "lib/capture/processes.h"
#include "lib/capture/pycode.h"
#include "lib/capture/python.h"
#include "lib/capture/session.h"
#include "lib/sym/elf.h"
#include "lib/sym/file.h"

/* THE table of versions, by the headers of each. Where a frame has no byte that says so, C code
 * that calls into Python has a frame of its own, of another owner. */
/* clang-format off */
static const struct {
	u32 version; /* major << 8 | minor */
	struct mp_python offsets;
} versions[] = {
	{0x30b, {.interpreters = 40, .next = 0, .threads = 16, .thread_next = 8, .thread_interp = 16,
		 .thread_id = 152, .thread_frame = 56, .is_cframe = 1, .cframe_frame = 8, .code = 32,
		 .previous = 48, .instr = 56, .flags = 68, .has_flags = 1, .owner = 69,
		 .firstlineno = 72, .filename = 112, .qualname = 128, .linetable = 136,
		 .bytecode = 184, .ascii = 48, .compact = 72}},
	{0x30c, {.interpreters = 40, .next = 0, .threads = 72, .thread_next = 8, .thread_interp = 16,
		 .thread_id = 136, .thread_frame = 56, .is_cframe = 1, .cframe_frame = 0, .code = 0,
		 .previous = 8, .instr = 56, .owner = 70,
		 .firstlineno = 68, .filename = 112, .qualname = 128, .linetable = 136,
		 .bytecode = 192, .ascii = 40, .compact = 56}},
	{0x30d, {.interpreters = 632, .next = 7264, .threads = 7344, .thread_next = 8,
		 .thread_interp = 16, .thread_id = 152, .thread_frame = 72, .code = 0,
		 .previous = 8, .instr = 56, .owner = 70,
		 .firstlineno = 68, .filename = 112, .qualname = 128, .linetable = 136,
		 .bytecode = 200, .ascii = 40, .compact = 56}},
};
/* clang-format on */

#define NR_VERSIONS (sizeof(versions) / sizeof(versions[0]))

/* What a file says: addresses as it was linked, 0: it has no such symbol. */
struct answer {
	u64 runtime, code_type;
	u64 exec_offset, exec_addr; /* where its code lies in the file, and was linked to */
	u32 version; /* Py_Version, 0 not there */
};

/* A file that was looked into: most are no Python. */
struct pyfile {
	struct file_version version;
	struct answer a;
};

#define FOUND 1 /* mark: its interpreter, whatever it is */

struct python {
	struct session *s;
	struct trace_writer *w;
	struct pycode *codes;
	struct pyfile *files;
	size_t nr_files;
	struct processes procs;
	u32 told[8]; /* versions that the trace speaks of */
};

/* ---- a file, in a jail ---- */

static void find_code(Elf *elf, struct answer *a)
{
	size_t n = 0, i;
	GElf_Phdr ph;

	elf_getphdrnum(elf, &n);
	for (i = 0; i < n && i < 512; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_X) {
			a->exec_offset = ph.p_offset;
			a->exec_addr = ph.p_vaddr;
			return;
		}
}

static void read_version(Elf *elf, u64 addr, struct answer *a)
{
	s64 offset = elf_file_offset(elf, addr, 0);
	size_t len = 0;
	const char *raw = elf_rawfile(elf, &len);

	if (offset >= 0 && raw && len >= 8 && (u64)offset <= len - 8)
		memcpy(&a->version, raw + offset, sizeof(a->version));
}

static void read_symbols(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, struct answer *a)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0, i;
	const char *name;
	GElf_Sym sym;

	for (i = 0; i < n && i < 1u << 22; i++) {
		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, sh->sh_link, sym.st_name);
		if (!name || (name[0] != '_' && name[0] != 'P'))
			continue;
		if (!strcmp(name, "_PyRuntime"))
			a->runtime = sym.st_value;
		else if (!strcmp(name, "PyCode_Type"))
			a->code_type = sym.st_value;
		else if (!strcmp(name, "Py_Version"))
			read_version(elf, sym.st_value, a);
	}
}

static void answer(const void *ctx, int fd, void *ret)
{
	Elf *elf = elf_open_native(fd);
	struct answer *a = ret;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	(void)ctx;
	if (!elf)
		return;
	find_code(elf, a);
	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM)
			read_symbols(elf, scn, &sh, a);
}

/* ---- files ---- */

/* NULL: memory is short. */
static const struct answer *ask(struct python *p, int fd)
{
	struct file_version version = file_version_of(fd);
	struct pyfile *f;
	size_t i;

	for (i = 0; i < p->nr_files; i++)
		if (file_version_equal(&p->files[i].version, &version))
			return &p->files[i].a;
	f = reallocarray(p->files, p->nr_files + 1, sizeof(*f));
	if (!f)
		return NULL;
	p->files = f;
	f += p->nr_files++;
	*f = (struct pyfile){.version = version};
	if (ask_file(fd, answer, NULL, &f->a, sizeof(f->a)))
		memset(&f->a, 0, sizeof(f->a));
	return &f->a;
}

/* A line of the trace for each version met: how its frames are read, or why not. */
static int tell(struct python *p, u32 version, int known)
{
	char provider[64], reason[128];
	struct {
		struct mp_hdr hdr;
		struct mp_ev_hook ev;
	} rec = {.hdr = {.type = MP_EV_HOOK,
			 .size = sizeof(rec),
			 .seq = session_seq(p->s),
			 .time_ns = now_ns()}};
	size_t i;

	for (i = 0; i < sizeof(p->told) / sizeof(p->told[0]); i++)
		if (!p->told[i] || p->told[i] == version + 1)
			break;
	if (i == sizeof(p->told) / sizeof(p->told[0]) || p->told[i])
		return 0;
	p->told[i] = version + 1;
	snprintf(provider, sizeof(provider), "CPython %u.%u frames", version >> 8, version & 255);
	if (version)
		snprintf(reason, sizeof(reason),
			 "CPython %u.%u: where it keeps its frames is not known (3.11 to 3.13 are)",
			 version >> 8, version & 255);
	else
		snprintf(reason, sizeof(reason), "CPython before 3.11: its frames are not read");
	rec.ev.capability = (u32)trace_string(p->w, "python");
	if (known) {
		rec.ev.provider = (u32)trace_string(p->w, provider);
		rec.ev.stability = (u32)trace_string(p->w, "library internals");
	} else {
		rec.ev.reason = (u32)trace_string(p->w, reason);
	}
	return trace_write(p->w, &rec.hdr);
}

struct scanned {
	struct python *p;
	struct process *proc;
};

static int look(void *ctx, int fd, const struct mp_ev_vma *v, const char *path)
{
	struct scanned *s = ctx;
	const struct answer *a = ask(s->p, fd);
	u64 bias = 0;
	size_t i;
	int err;

	(void)path;
	if (!a)
		return -ENOMEM;
	if (!a->runtime || s->proc->mark == FOUND)
		return 0;
	for (i = 0; i < NR_VERSIONS && versions[i].version != a->version >> 16; i++)
		;
	s->proc->mark = FOUND;
	err = tell(s->p, a->version >> 16, i < NR_VERSIONS);
	if (err || i == NR_VERSIONS)
		return err;
	bias = v->start - v->pgoff + a->exec_offset - a->exec_addr;
	struct mp_python here = versions[i].offsets;

	here.runtime = a->runtime + bias;
	here.code_type = a->code_type ? a->code_type + bias : 0;
	return session_set_python(s->p->s, s->proc->space, &here);
}

/* ---- processes ---- */

static int feed(void *ctx, const struct mp_hdr *rec)
{
	struct python *p = ctx;
	int err = processes_feed(&p->procs, rec);

	return err ? err : pycode_feed(p->codes, rec);
}

/* The memory that it shares is another's, who is looked into. */
static int scan(void *ctx, struct process *proc)
{
	struct scanned s = {ctx, proc};

	proc->to_scan = 0;
	return proc->joined || proc->mark == FOUND ? 0 : modules_each_code(proc->pid, look, &s);
}

int python_turn(struct python *p)
{
	return processes_turn(&p->procs, scan, p);
}

/* pycode_new(): of a process that is still there. */
static int read_memory(void *ctx, u32 space, u64 addr, void *to, size_t len)
{
	const struct iovec there = {.iov_base = (void *)(unsigned long)addr, .iov_len = len};
	const struct iovec here = {.iov_base = to, .iov_len = len};
	const struct python *p = ctx;
	size_t i;

	for (i = 0; i < p->procs.nr; i++)
		if (p->procs.all[i].space == space)
			return process_vm_readv(p->procs.all[i].pid, &here, 1, &there, 1, 0) !=
			       (ssize_t)len;
	return 1;
}

int python_open(struct session *s, struct trace_writer *w, struct python **ret_p)
{
	struct python *p = calloc(1, sizeof(*p));
	int err = p ? pycode_new(w, read_memory, p, &p->codes) : -ENOMEM;

	if (err) {
		free(p);
		return err;
	}
	p->s = s;
	p->w = w;
	session_watch(s, feed, p);
	*ret_p = p;
	return 0;
}

void python_free(struct python **p)
{
	if (!p || !*p)
		return;
	pycode_free(&(*p)->codes);
	free((*p)->files);
	processes_free(&(*p)->procs);
	free(*p);
	*p = NULL;
}
