/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/capture/clock.h"
#include "lib/capture/modules.h"
#include "lib/capture/picture.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/tables.h"
#include "lib/capture/unwinder.h"
#include "lib/sym/file.h"

#define MAX_FILES 4096 /* of one building */
#define QUIET_NS  1000000000ull
#define VDSO	  0 /* module number */

enum state { HAS_NONE, WAITS, IS_BUILT, HAS_TABLE };

struct umodule {
	struct file_version version;
	enum state state;
	int fd; /* -1 once it is read */
	struct table_at at;
};

/* An executable mapping of a file. */
struct code {
	u64 start, end, pgoff;
	u32 module;
};

struct uspace {
	pid_t pid;
	u32 members; /* 0: gone */
	u8 to_scan, to_publish;
	u64 next_scan_ns;
	u32 scans; /* since it was quiet */
	u32 changes; /* of its code, when it was scanned */
	struct code *code;
	size_t nr, cap;
	struct mp_span at;
};

struct unwinder {
	struct banks *banks;
	struct uspace *spaces; /* by id */
	u32 nr_spaces, due; /* due: some are to be scanned or published */
	u32 *alive; /* ids, room for nr_spaces */
	u32 nr_alive;
	struct umodule *modules;
	size_t nr_modules, cap_modules;
	struct tables *tables; /* NULL: none are built */
	u32 *building; /* numbers of the modules they are of */
	u64 left_out;
};

/* ---- modules ---- */

static struct umodule *new_module(struct unwinder *u)
{
	struct umodule *m = u->modules;
	size_t cap = u->cap_modules ? u->cap_modules * 2 : 64;

	if (u->nr_modules == u->cap_modules) {
		m = reallocarray(u->modules, cap, sizeof(*m));
		if (!m)
			return NULL;
		u->modules = m;
		u->cap_modules = cap;
	}
	m += u->nr_modules++;
	memset(m, 0, sizeof(*m));
	m->fd = -1;
	return m;
}

static void install(struct unwinder *u, struct umodule *m, const struct unwind_table *t)
{
	int err = t && t->nr_rows ? banks_add(u->banks, t, &m->at) : -ENODATA;

	m->state = err ? HAS_NONE : HAS_TABLE;
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	u->left_out += err && err != -ENODATA;
}

/* The vdso is the kernel's, and the same in every process. */
static int add_vdso(struct unwinder *u)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct umodule *m = new_module(u);
	struct unwind_table t = {0};
	char line[256];
	unsigned long long start, end;
	FILE *f;

	if (!m)
		return -ENOMEM;
	f = fopen("/proc/self/maps", "re");
	while (f && image && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx", &start, &end) == 2 && start == (unsigned long)image)
			unwind_table_of_image(image, end - start, &t);
	if (f)
		fclose(f);
	install(u, m, t.cells ? &t : NULL);
	unwind_table_release(&t);
	return 0;
}

/* Takes fd over. The number of its module, or -ENOMEM. */
static s64 module_of(struct unwinder *u, int fd)
{
	struct file_version version = file_version_of(fd);
	struct umodule *m;
	size_t i;

	for (i = 1; i < u->nr_modules; i++) {
		if (file_version_equal(&u->modules[i].version, &version)) {
			close(fd);
			return (s64)i;
		}
	}
	m = new_module(u);
	if (!m) {
		close(fd);
		return -ENOMEM;
	}
	m->version = version;
	m->fd = fd;
	m->state = WAITS;
	return (s64)u->nr_modules - 1;
}

void unwinder_expect(struct unwinder *u, const char *path)
{
	struct stat st;
	int fd = file_open(-1, path, &st);

	if (fd >= 0)
		module_of(u, fd);
}

static int built(void *ctx, size_t i, const struct unwind_table *t)
{
	struct unwinder *u = ctx;
	u32 number = u->building[i], a;
	struct uspace *s;
	size_t c;

	install(u, &u->modules[number], t);
	for (a = 0; a < u->nr_alive; a++) {
		s = &u->spaces[u->alive[a]];
		for (c = 0; c < s->nr; c++)
			if (s->code[c].module == number)
				s->to_publish = 1;
	}
	u->due = 1;
	return 0;
}

static int build(struct unwinder *u)
{
	int *fds = NULL, err = 0;
	size_t i, nr = 0;

	if (!u->tables) {
		fds = malloc(MAX_FILES * sizeof(*fds));
		u->building = malloc(MAX_FILES * sizeof(*u->building));
		if (!fds || !u->building)
			err = -ENOMEM;
		for (i = 0; i < u->nr_modules && nr < MAX_FILES && !err; i++) {
			if (u->modules[i].state != WAITS)
				continue;
			u->modules[i].state = IS_BUILT;
			u->building[nr] = (u32)i;
			fds[nr++] = u->modules[i].fd;
		}
		if (nr && !err)
			err = tables_start(fds, nr, &u->tables);
		free(fds);
	}
	if (u->tables && !err)
		err = tables_read(u->tables, built, u);
	if (err == 1)
		return 0;
	tables_free(&u->tables);
	free(u->building);
	u->building = NULL;
	return err;
}

/* ---- spaces ---- */

static struct uspace *space_of(struct unwinder *u, u32 id)
{
	return id < u->nr_spaces && u->spaces[id].members ? &u->spaces[id] : NULL;
}

static struct uspace *new_space(struct unwinder *u, u32 id, pid_t pid)
{
	struct uspace *s = u->spaces;
	u32 nr = id + 64, *alive;

	if (id >= u->nr_spaces) {
		s = reallocarray(u->spaces, nr, sizeof(*s));
		if (!s)
			return NULL;
		u->spaces = s;
		alive = reallocarray(u->alive, nr, sizeof(*alive));
		if (!alive)
			return NULL;
		u->alive = alive;
		memset(s + u->nr_spaces, 0, (nr - u->nr_spaces) * sizeof(*s));
		u->nr_spaces = nr;
	}
	s = &u->spaces[id];
	if (!s->members)
		u->alive[u->nr_alive++] = id;
	s->pid = pid;
	s->members = 1;
	return s;
}

static int add(struct unwinder *u, pid_t pid, u32 space)
{
	struct uspace *s = new_space(u, space, pid);

	if (!s)
		return -ENOMEM;
	s->to_scan = u->due = 1;
	return 0;
}

static int add_code(struct uspace *s, const struct code *c)
{
	struct code *code = s->code;
	size_t cap = s->cap ? s->cap * 2 : 32;

	if (s->nr == s->cap) {
		code = reallocarray(s->code, cap, sizeof(*code));
		if (!code)
			return -ENOMEM;
		s->code = code;
		s->cap = cap;
	}
	code[s->nr++] = *c;
	return 0;
}

/* A line of maps. */
static int scan_line(struct unwinder *u, struct uspace *s, pid_t tid, char *line)
{
	unsigned long long start, end, pgoff, ino;
	unsigned int maj, min;
	struct code c = {0};
	char perm[8];
	int at = 0, fd;
	s64 module;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perm, &pgoff, &maj, &min,
		   &ino, &at) < 7 ||
	    perm[2] != 'x' || !at)
		return 0;
	c.start = start;
	c.end = end;
	c.pgoff = pgoff;
	if (!strcmp(line + at, "[vdso]"))
		return add_code(s, &c);
	if (line[at] != '/' || !ino)
		return 0;
	fd = modules_open_mapped(
		tid,
		&(struct mp_ev_vma){.start = start, .end = end, .ino = ino, .dev = maj << 20 | min},
		line + at);
	if (fd < 0)
		return 0;
	module = module_of(u, fd);
	if (module < 0)
		return (int)module;
	c.module = (u32)module;
	return add_code(s, &c);
}

static int scan(struct unwinder *u, struct uspace *s)
{
	u64 began = now_ns();
	pid_t tid = snapshot_thread(s->pid);
	FILE *f = tid > 0 ? proc_open(tid, "maps") : NULL;
	char line[4300];
	int err = 0;

	s->to_scan = 0;
	if (!f)
		return 0;
	s->nr = 0;
	s->changes = banks_code(u->banks, (u32)(s - u->spaces));
	while (!err && fgets(line, sizeof(line), f))
		err = scan_line(u, s, tid, line);
	fclose(f);
	s->to_publish = 1;
	/* A program that maps code all the time costs a twentieth of a core in the end; one that
	 * starts up is looked at as often as it takes. */
	if (began - s->next_scan_ns > QUIET_NS)
		s->scans = 0;
	s->scans += s->scans < 20;
	s->next_scan_ns = began + (now_ns() - began) * s->scans;
	return err;
}

static int publish(struct unwinder *u, struct uspace *s, u32 id)
{
	struct mp_range *r = malloc((s->nr + 1) * sizeof(*r));
	u32 changes = s->changes;
	size_t i, nr = 0;
	int err;

	if (!r)
		return -ENOMEM;
	for (i = 0; i < s->nr; i++) {
		const struct code *c = &s->code[i];
		const struct umodule *m = &u->modules[c->module];

		if (m->state == WAITS || m->state == IS_BUILT)
			changes = MP_CODE_UNKNOWN;
		if (m->state != HAS_TABLE)
			continue;
		r[nr++] = (struct mp_range){
			.start = c->start,
			.end = c->end,
			.bias = c->start - c->pgoff,
			.bank = m->at.bank,
			.rules = m->at.rules,
			.rows = m->at.rows,
			.nr_rows = m->at.nr_rows,
		};
	}
	s->to_publish = 0;
	err = banks_publish(u->banks, id, r, nr, changes, &s->at);
	free(r);
	if (err == -ENOSPC)
		u->left_out++;
	return err == -ENOSPC ? 0 : err;
}

static void end_space(struct unwinder *u, u32 id)
{
	struct uspace *s = &u->spaces[id];
	u32 i;

	banks_withdraw(u->banks, id, &s->at);
	free(s->code);
	memset(s, 0, sizeof(*s));
	for (i = 0; u->alive[i] != id; i++)
		;
	u->alive[i] = u->alive[--u->nr_alive];
}

/* The child has the code of its parent; until now it was looked for where the parent's is. */
static int inherit(struct unwinder *u, u32 id, const struct mp_ev_space *ev)
{
	struct uspace *s = new_space(u, id, (pid_t)ev->tgid);
	const struct uspace *parent = space_of(u, ev->parent);
	size_t i;
	int err = s ? 0 : -ENOMEM;

	if (!s || !parent)
		return err;
	for (i = 0; i < parent->nr && !err; i++)
		err = add_code(s, &parent->code[i]);
	s->to_publish = 1;
	s->to_scan = parent->to_scan;
	if (parent->to_scan)
		s->changes = MP_CODE_UNKNOWN;
	return err;
}

static int feed_space(struct unwinder *u, u32 id, const struct mp_ev_space *ev)
{
	struct uspace *s;

	u->due = 1;
	switch (ev->cause) {
	case MP_SPACE_FORK:
		return inherit(u, id, ev);
	case MP_SPACE_JOIN:
		s = space_of(u, id);
		if (s)
			s->members++;
		return 0;
	default:
		return add(u, (pid_t)ev->tgid, id);
	}
}

/* Does a change there concern code that we know? */
static int concerns(const struct uspace *s, u64 start, u64 end)
{
	size_t i;

	for (i = 0; i < s->nr; i++)
		if (start < s->code[i].end && end > s->code[i].start)
			return 1;
	return 0;
}

static int maps_code(const struct mp_ev_map *ev)
{
	return ev->kind == MP_MAP_MMAP && ev->prot & PROT_EXEC && !(ev->flags & MAP_ANONYMOUS);
}

int unwinder_feed(struct unwinder *u, const struct mp_hdr *rec)
{
	const struct mp_ev_map *map = (const struct mp_ev_map *)(rec + 1);
	const struct mp_ev_unmap *unmap = (const struct mp_ev_unmap *)(rec + 1);
	struct uspace *s = space_of(u, rec->space);

	if (rec->type == MP_EV_SPACE)
		return feed_space(u, rec->space, (const struct mp_ev_space *)(rec + 1));
	if (!s)
		return 0;
	if (rec->type == MP_EV_SPACE_END && !--s->members)
		end_space(u, rec->space);
	else if ((rec->type == MP_EV_MAP &&
		  (maps_code(map) || concerns(s, map->start, map->end))) ||
		 (rec->type == MP_EV_UNMAP && concerns(s, unmap->start, unmap->end)))
		s->to_scan = u->due = 1;
	return 0;
}

int unwinder_turn(struct unwinder *u)
{
	u64 now = now_ns();
	struct uspace *s;
	int err = 0;
	u32 i;

	for (i = 0; u->due && i < u->nr_alive && !err; i++) {
		s = &u->spaces[u->alive[i]];
		if (s->to_scan && now >= s->next_scan_ns)
			err = scan(u, s);
	}
	if (!err)
		err = build(u);
	for (i = 0; u->due && i < u->nr_alive && !err; i++) {
		s = &u->spaces[u->alive[i]];
		if (s->to_publish)
			err = publish(u, s, u->alive[i]);
	}
	u->due = 0;
	for (i = 0; i < u->nr_alive; i++)
		u->due |= u->spaces[u->alive[i]].to_scan;
	return err;
}

int unwinder_busy(const struct unwinder *u)
{
	return u->tables != NULL;
}

int unwinder_fd(const struct unwinder *u)
{
	return u->tables ? tables_fd(u->tables) : -1;
}

u64 unwinder_left_out(const struct unwinder *u)
{
	return u->left_out;
}

u64 unwinder_bytes(const struct unwinder *u)
{
	return banks_bytes(u->banks);
}

int unwinder_new(const struct bank_fds *fds, struct unwinder **ret_u)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	int err = u ? banks_open(fds, &u->banks) : -ENOMEM;

	if (!err)
		err = add_vdso(u);
	if (err) {
		unwinder_free(&u);
		return err;
	}
	*ret_u = u;
	return 0;
}

void unwinder_free(struct unwinder **u)
{
	size_t i;

	if (!*u)
		return;
	tables_free(&(*u)->tables);
	for (i = 0; i < (*u)->nr_modules; i++)
		if ((*u)->modules[i].fd >= 0)
			close((*u)->modules[i].fd);
	for (i = 0; i < (*u)->nr_spaces; i++)
		free((*u)->spaces[i].code);
	banks_free(&(*u)->banks);
	free((*u)->spaces);
	free((*u)->alive);
	free((*u)->modules);
	free((*u)->building);
	free(*u);
	*u = NULL;
}
