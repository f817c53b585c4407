/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "lib/capture/picture.h"

FILE *proc_open(pid_t pid, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fopen(path, "re");
}

int proc_error(void)
{
	return errno == EACCES || errno == EPERM ? -EACCES : -ESRCH;
}

int picture_put(struct picture *p, u16 type, const void *body, size_t len)
{
	struct mp_hdr hdr = {
		.type = type,
		.size = (u16)(sizeof(hdr) + len),
		.space = p->space,
		.seq = p->seq_now,
		.time_ns = p->time_ns,
	};

	if (p->len + hdr.size > p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 65536;
		u8 *recs = realloc(p->recs, cap);

		if (!recs)
			return -ENOMEM;
		p->recs = recs;
		p->cap = cap;
	}
	memcpy(p->recs + p->len, &hdr, sizeof(hdr));
	memcpy(p->recs + p->len + sizeof(hdr), body, len);
	p->len += hdr.size;
	return 0;
}

int picture_chunk(struct picture *p, u64 seq_begin, u64 start)
{
	struct mp_ev_chunk c = {.start = start, .walk = p->walk};

	p->seq_now = seq_begin;
	p->chunk_at = p->len;
	return picture_put(p, MP_EV_CHUNK, &c, sizeof(c));
}

void picture_chunk_end(struct picture *p, u64 seq_end, u64 end, u32 tries)
{
	struct mp_ev_chunk c;
	u8 *at = p->recs + p->chunk_at + sizeof(struct mp_hdr);

	memcpy(&c, at, sizeof(c));
	c.end = end;
	c.seq_end = seq_end;
	c.tries = tries;
	memcpy(at, &c, sizeof(c));
}

s64 picture_vma(struct picture *p, const struct vma *v)
{
	struct mp_ev_vma ev = {
		.start = v->start,
		.end = v->end,
		.pgoff = v->pgoff,
		.ino = v->ino,
		.dev = v->dev,
		.name = v->name,
		.flags = v->flags,
		.walk = p->walk,
	};
	int err = picture_flush(p);
	s64 at = (s64)p->len;

	if (!err)
		err = picture_put(p, MP_EV_VMA, &ev, sizeof(ev));
	return err ? err : at;
}

void picture_object_swap(struct picture *p, s64 at, u64 bytes)
{
	struct mp_ev_vma ev;

	memcpy(&ev, p->recs + at + sizeof(struct mp_hdr), sizeof(ev));
	ev.shmem_swap = bytes;
	memcpy(p->recs + at + sizeof(struct mp_hdr), &ev, sizeof(ev));
}

/* PFNs do not leave the machine: a block of 512 gets a keyed number, pages keep their place in it,
 * so that runs and equality survive and nothing else does. */
static u64 pfn_hide(u64 pfn)
{
	static u64 key[2];
	u64 h;

	while (!key[0])
		if (getrandom(key, sizeof(key), 0) != sizeof(key))
			key[0] = (u64)(unsigned long)&key ^ pfn, key[1] = (u64)getpid();
	h = (pfn >> 9) ^ key[0];
	h = (h ^ (h >> 31)) * 0x9e3779b97f4a7c15ull;
	h = (h ^ (h >> 29) ^ key[1]) * 0xbf58476d1ce4e5b9ull;
	h ^= h >> 32;
	return (h << 9 | (pfn & 511)) | 1ull << 63;
}

int picture_flush(struct picture *p)
{
	struct mp_ev_run ev = {
		.start = p->run.start,
		.pages = p->run.pages,
		.flags = p->run.flags,
		.mapcount = p->run.mapcount,
		.node = p->run.node,
	};

	if (!p->run.pages)
		return 0;
	p->run.pages = 0;
	/* Only a page that others map too needs to be known again. */
	if (ev.mapcount > 1 && p->run.pfn)
		ev.pfn_id = pfn_hide(p->run.pfn);
	return picture_put(p, MP_EV_RUN, &ev, sizeof(ev));
}

/* Up to 1 << 20 pages a record, and no shared run across a block whose number is hidden as one. */
static u32 room(const struct picture *p, u32 mapcount, u64 pfn)
{
	if (mapcount > 1 && pfn)
		return 512 - (u32)(p->run.pages ? p->run.pfn + p->run.pages : pfn) % 512;
	return (1u << 20) - p->run.pages;
}

static int continues(const struct picture *p, u64 start, u32 flags, u32 mapcount, u32 node, u64 pfn)
{
	return p->run.pages && p->run.start + p->run.pages * MP_PAGE_SIZE == start &&
	       p->run.flags == flags && p->run.mapcount == mapcount && p->run.node == node &&
	       (mapcount <= 1 || (!pfn && !p->run.pfn) ||
		(pfn && p->run.pfn + p->run.pages == pfn && pfn % 512));
}

int picture_run(struct picture *p, u64 start, u32 pages, u32 flags, u32 mapcount, u32 node, u64 pfn)
{
	int err = 0;
	u32 n;

	if (flags & MP_PAGE_RESIDENT)
		p->resident += pages * MP_PAGE_SIZE;
	while (pages && !err) {
		if (!continues(p, start, flags, mapcount, node, pfn) || !room(p, mapcount, pfn)) {
			err = picture_flush(p);
			p->run.start = start;
			p->run.pfn = pfn;
			p->run.flags = flags;
			p->run.mapcount = mapcount;
			p->run.node = node;
		}
		n = room(p, mapcount, pfn);
		if (n > pages)
			n = pages;
		p->run.pages += n;
		start += n * MP_PAGE_SIZE;
		pages -= n;
		pfn += pfn ? n : 0;
	}
	return err;
}

static int is_deleted(const char *name)
{
	size_t len = strlen(name);

	return len > 10 && !strcmp(name + len - 10, " (deleted)");
}

static void vma_name(struct picture *p, struct vma *v, char *name)
{
	s64 id;

	name[strcspn(name, "\n")] = 0;
	if (strlen(name) > MP_STRING_MAX)
		name[MP_STRING_MAX] = 0;
	/* On a filesystem without a device, as tmpfs is, and gone from it: a file on disk may be
	 * called so too. */
	if (!(v->dev >> 20) && (((!strncmp(name, "/memfd:", 7) || !strncmp(name, "/SYSV", 5) ||
				  !strncmp(name, "/dev/zero (", 11)) &&
				 is_deleted(name)) ||
				!strncmp(name, "/dev/shm/", 9)))
		v->flags |= MP_VMA_SHMEM;
	if (!strcmp(name, "[vsyscall]"))
		v->flags |= MP_VMA_GATE;
	if (!strcmp(name, "[stack]"))
		v->flags |= MP_VMA_STACK;
	id = p->env->w ? trace_string(p->env->w, name) : 0;
	v->name = id > 0 ? (u32)id : 0;
}

int vma_line(struct picture *p, char *line, struct vma *ret_v)
{
	unsigned long long start, end, pgoff, ino;
	unsigned int maj, min;
	char perms[8];
	int n;

	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perms, &pgoff, &maj,
		   &min, &ino, &n) < 7)
		return 0;
	memset(ret_v, 0, sizeof(*ret_v));
	ret_v->start = start;
	ret_v->end = end;
	ret_v->pgoff = pgoff;
	ret_v->ino = ino;
	ret_v->dev = maj << 20 | min;
	ret_v->flags = (perms[0] == 'r' ? MP_VMA_READ : 0) | (perms[1] == 'w' ? MP_VMA_WRITE : 0) |
		       (perms[2] == 'x' ? MP_VMA_EXEC : 0);
	vma_name(p, ret_v, line + n);
	return 1;
}

u64 kpage_flags(u64 pfn)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	u64 flags = ~0ull;

	if (fd < 0)
		return flags;
	if (pread(fd, &flags, 8, (off_t)(pfn * 8)) != 8)
		flags = ~0ull;
	close(fd);
	return flags;
}

u64 own_entry(const void *addr)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	u64 e = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &e, 8, (off_t)((unsigned long)addr / MP_PAGE_SIZE * 8)) != 8)
		e = 0;
	close(fd);
	return e;
}
