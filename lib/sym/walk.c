/* SPDX-License-Identifier: GPL-2.0-only
 * A process made for libdwfl of nothing but mappings and a copied stack: what is not in the copy
 * cannot be read. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/sym/dso.h"
#include "lib/sym/walk.h"

#define THREAD 1 /* any number but 0 */
enum { DW_BP = 6, DW_SP = 7 };

struct module {
	int fd;
	u64 bias;
};

struct sym_walker {
	Dwfl *dwfl;
	struct module *modules; /* reported */
	size_t nr;
	const struct sym_copy *copy; /* at hand */
	u64 *pc;
	u32 n, max;
	int unreadable; /* something was asked for that is not in the copy */
	int is_first; /* the frame at hand has no frame pointer: nobody called it */
};

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

/* Unwinding needs none, and the standard one would ask servers. */
static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	(void)mod;
	(void)userdata;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	(void)ret_name;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return THREAD;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	struct sym_walker *w = arg;
	const struct sym_copy *c = w->copy;
	u64 off = addr - c->regs[DW_SP];

	(void)dwfl;
	if (c->len < 8 || off > c->len - 8) {
		w->unreadable = 1;
		return false;
	}
	memcpy(ret, c->stack + off, 8);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct sym_walker *w = arg;
	Dwarf_Word regs[SYM_WALK_REGS];
	int i;

	for (i = 0; i < SYM_WALK_REGS; i++)
		regs[i] = w->copy->regs[i];
	return dwfl_thread_state_registers(thread, 0, SYM_WALK_REGS, regs);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* Files are checked as those that are read for names: a broken one is left out. */
static int add_module(void *ctx, u64 start, u64 pgoff, int fd, const char *path)
{
	struct sym_walker *w = ctx;
	struct module *more;
	u64 bias;
	size_t i;
	int own;

	if (fd < 0 || dso_bias(fd, pgoff, start, &bias))
		return 0;
	for (i = 0; i < w->nr; i++)
		if (w->modules[i].fd == fd && w->modules[i].bias == bias)
			return 0;
	more = reallocarray(w->modules, w->nr + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->modules = more;
	more[w->nr++] = (struct module){fd, bias};
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own >= 0 && !dwfl_report_elf(w->dwfl, path, path, own, bias, true))
		close(own);
	return 0;
}

int sym_walker_new(const struct sym_space *s, struct sym_walker **ret_w)
{
	struct sym_walker *w = calloc(1, sizeof(*w));
	int err = w ? 0 : -ENOMEM;

	if (!err) {
		w->dwfl = dwfl_begin(&callbacks);
		err = w->dwfl ? 0 : -ENOMEM;
	}
	if (!err) {
		dwfl_report_begin(w->dwfl);
		err = sym_space_each(s, add_module, w);
		if (dwfl_report_end(w->dwfl, NULL, NULL) && !err)
			err = -ENOEXEC;
	}
	if (!err && !dwfl_attach_state(w->dwfl, NULL, THREAD, &thread_callbacks, w))
		err = -ENOEXEC;
	if (err)
		sym_walker_free(&w);
	else
		*ret_w = w;
	return err;
}

void sym_walker_free(struct sym_walker **w)
{
	if (!*w)
		return;
	if ((*w)->dwfl)
		dwfl_end((*w)->dwfl);
	free((*w)->modules);
	free(*w);
	*w = NULL;
}

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct sym_walker *w = arg;
	Dwarf_Addr pc;
	Dwarf_Word bp;

	if (w->n == w->max || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	w->pc[w->n++] = pc;
	w->is_first = !dwfl_frame_reg(frame, DW_BP, &bp) && !bp;
	return DWARF_CB_OK;
}

u32 sym_walk(struct sym_walker *w, const struct sym_copy *c, u64 *ret, u32 max, u32 *ret_end)
{
	int end;

	w->copy = c;
	w->pc = ret;
	w->n = 0;
	w->max = max;
	w->unreadable = w->is_first = 0;
	end = dwfl_getthread_frames(w->dwfl, THREAD, add_frame, w);
	/* libdw calls it an end when a return address could not be read, and none when a program
	 * starts in code without tables. */
	if (end > 0 && w->n == max)
		*ret_end = MP_STACK_DEEP;
	else
		*ret_end = !w->unreadable && (!end || w->is_first) ? MP_STACK_WHOLE : MP_STACK_CUT;
	return w->n;
}
