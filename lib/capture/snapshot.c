/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "lib/capture/pagecg.h"
#include "lib/capture/privilege.h"
#include "lib/capture/snapshot.h"

/* include/uapi/linux/fs.h of 6.7+ (commit 52526ca7fdb9, "fs/proc/task_mmu: implement IOCTL to get
 * and optionally clear info about PTEs"); older headers lack it. */
struct pm_scan {
	u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct pm_region {
	u64 start, end, categories;
};
#define PM_SCAN	       _IOWR('f', 16, struct pm_scan)
#define PM_PRESENT     (1u << 3)
#define PM_SWAPPED     (1u << 4)
#define PM_ZERO	       (1u << 5)
#define PM_HUGE	       (1u << 6)

#define PM_BIT_PRESENT (1ull << 63)
#define PM_BIT_SWAP    (1ull << 62)
#define PM_BIT_FILE    (1ull << 61)
#define PM_BIT_GUARD   (1ull << 58)
#define PM_PFN_MASK    ((1ull << 55) - 1)
#define KPF_KSM	       21
#define KPF_ZERO_PAGE  24
#define KPF_NOPAGE     20

/* Types from here on are markers, device, migration and hwpoison entries, not swap: 32 types less
 * the most that any config takes away. */
#define FIRST_NON_SWAP_TYPE 23
#define TYPE_MARKER	    31

#define BLOCK_PAGES	    4096u

struct buf {
	u8 *data;
	size_t len, cap;
};

struct snapshot {
	struct buf recs;
	u64 begin_ns, end_ns, resident;
	u64 seq_begin, seq_end;
	u32 space, walk;
};

struct vma {
	u64 start, end, pgoff, ino, swap, thp;
	u32 dev, name, flags;
};

struct walker {
	struct snapshot *s;
	struct trace_writer *w;
	int pagemap, kflags, kcount;
	int no_frames; /* PFNs are hidden: presence is known, how often a page is mapped is not */
	struct pagecg *charged; /* NULL: no cgroup is recorded */
	int no_scan; /* PAGEMAP_SCAN is not there: read every entry */
	struct vma vma;
	struct mp_ev_run run; /* being grown; pages 0: none */
	u64 run_pfn; /* behind the last page of the run */
	u64 entries[BLOCK_PAGES];
	u64 anon_swap;
};

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

static int put(struct snapshot *s, u16 type, const void *body, size_t len, u64 seq)
{
	struct mp_hdr hdr = {
		.type = type,
		.size = (u16)(sizeof(hdr) + len),
		.space = s->space,
		.seq = seq,
		.time_ns = now_ns(),
	};
	struct buf *b = &s->recs;

	if (b->len + hdr.size > b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 65536;
		u8 *data = realloc(b->data, cap);

		if (!data)
			return -ENOMEM;
		b->data = data;
		b->cap = cap;
	}
	memcpy(b->data + b->len, &hdr, sizeof(hdr));
	memcpy(b->data + b->len + sizeof(hdr), body, len);
	b->len += hdr.size;
	return 0;
}

static FILE *proc_open(pid_t pid, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return fopen(path, "re");
}

static int put_check(struct snapshot *s, pid_t pid, u32 when)
{
	struct mp_ev_check c = {.walk = s->walk, .when = when};
	static const char *const thp[] = {"AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"};
	unsigned long long v;
	char line[256], key[64];
	FILE *f = proc_open(pid, "smaps_rollup");
	unsigned int i;

	if (!f)
		return -ESRCH;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[A-Za-z_]: %llu kB", key, &v) != 2)
			continue;
		v *= 1024;
		if (!strcmp(key, "Rss"))
			c.rss = v;
		else if (!strcmp(key, "Pss"))
			c.pss = v;
		else if (!strcmp(key, "Swap"))
			c.swap = v;
		else if (!strcmp(key, "Private_Hugetlb") || !strcmp(key, "Shared_Hugetlb"))
			c.hugetlb += v;
		for (i = 0; i < 3; i++)
			if (!strcmp(key, thp[i]))
				c.thp += v;
	}
	fclose(f);
	f = proc_open(pid, "status");
	if (!f)
		return -ESRCH;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmSize: %llu kB", &v) == 1)
			c.vmsize = v * 1024;
	fclose(f);
	return put(s, MP_EV_CHECK, &c, sizeof(c), when ? s->seq_end : s->seq_begin);
}

/* PFNs do not leave the machine: a block of 512 gets a keyed number, pages keep their place in it,
 * so that runs and equality survive and nothing else does. */
static u64 pfn_hide(u64 pfn)
{
	static u64 key[2];
	u64 h;

	while (!key[0])
		if (getrandom(key, sizeof(key), 0) != sizeof(key))
			key[0] = now_ns(), key[1] = (u64)getpid();
	h = (pfn >> 9) ^ key[0];
	h = (h ^ (h >> 31)) * 0x9e3779b97f4a7c15ull;
	h = (h ^ (h >> 29) ^ key[1]) * 0xbf58476d1ce4e5b9ull;
	h ^= h >> 32;
	return (h << 9 | (pfn & 511)) | 1ull << 63;
}

static int flush_run(struct walker *k)
{
	int err = 0;

	if (k->run.pages)
		err = put(k->s, MP_EV_RUN, &k->run, sizeof(k->run), k->s->seq_begin);
	k->run.pages = 0;
	return err;
}

static int add_page(struct walker *k, u64 addr, u32 flags, u32 mapcount, u64 pfn)
{
	struct mp_ev_run *r = &k->run;
	int err;

	if (flags & MP_PAGE_RESIDENT)
		k->s->resident += MP_PAGE_SIZE;
	if (r->pages && r->start + r->pages * MP_PAGE_SIZE == addr && r->flags == flags &&
	    r->mapcount == mapcount && (pfn ? k->run_pfn == pfn : !r->pfn_id) &&
	    r->pages < (1u << 20)) {
		r->pages++;
		k->run_pfn = pfn ? pfn + 1 : 0;
		return 0;
	}
	err = flush_run(k);
	r->start = addr;
	r->pages = 1;
	r->flags = flags;
	r->mapcount = mapcount;
	r->node = ~0u;
	r->pfn_id = pfn;
	k->run_pfn = pfn ? pfn + 1 : 0;
	return err;
}

/* State of one page from its pagemap entry. 0: nothing there. */
static u32 decode(const struct vma *v, u64 e, u64 kflags)
{
	u32 file = e & PM_BIT_FILE ? MP_PAGE_FILE : 0, type = e & 31;

	if (e & PM_BIT_PRESENT) {
		if (v->flags & MP_VMA_PFNMAP)
			return 0;
		if (kflags & (1ull << KPF_ZERO_PAGE))
			return MP_PAGE_ZERO;
		if (kflags & (1ull << KPF_NOPAGE))
			return 0;
		return MP_PAGE_RESIDENT | file | (kflags & (1ull << KPF_KSM) ? MP_PAGE_KSM : 0);
	}
	if (!(e & PM_BIT_SWAP) || e & PM_BIT_GUARD || type == TYPE_MARKER)
		return 0;
	if (type < FIRST_NON_SWAP_TYPE)
		return MP_PAGE_SWAPPED;
	/* Migration and device entries are Rss; hwpoison (the first behind swap) is not, but no
	 * test here has met one: the residual would show it. */
	return MP_PAGE_RESIDENT | MP_PAGE_MIGRATING | file;
}

/* One word of /proc/kpage* for n consecutive PFNs. */
static int kpage_read(int fd, u64 pfn, u64 *ret, u32 n)
{
	ssize_t len = pread(fd, ret, n * 8ul, (off_t)(pfn * 8));

	return len == (ssize_t)(n * 8ul) ? 0 : -EIO;
}

/* Of a page without a known frame: PAGEMAP_SCAN told the zero page apart. */
static u32 decode_blind(const struct walker *k, u64 e, int zero)
{
	u32 flags = decode(&k->vma, e, 0);

	return flags & MP_PAGE_RESIDENT && zero ? MP_PAGE_ZERO : flags;
}

static int decode_block(struct walker *k, u64 addr, u32 n, int huge, int zero)
{
	u64 kf[512], kc[512];
	u8 first[512] = {0};
	u32 i = 0, j, len;
	int err = 0;

	while (i < n && !err) {
		u64 e = k->entries[i], pfn = e & PM_PFN_MASK;

		if (!(e & PM_BIT_PRESENT) || !pfn) {
			u32 flags = decode_blind(k, e, zero);

			if (flags & MP_PAGE_RESIDENT && huge)
				flags |= MP_PAGE_THP;
			if (flags)
				err = add_page(k, addr + i * MP_PAGE_SIZE, flags, !k->no_frames, 0);
			if (flags & MP_PAGE_SWAPPED)
				k->anon_swap += MP_PAGE_SIZE;
			i++;
			continue;
		}
		for (len = 1; i + len < n && len < 512; len++)
			if (!(k->entries[i + len] & PM_BIT_PRESENT) ||
			    (k->entries[i + len] & PM_PFN_MASK) != pfn + len)
				break;
		/* A PFN without a struct page (device memory) reads as nothing: no flags known. */
		if (kpage_read(k->kflags, pfn, kf, len))
			memset(kf, 0xff, sizeof(kf));
		if (kpage_read(k->kcount, pfn, kc, len))
			memset(kc, 0, sizeof(kc));
		if (k->charged)
			err = pagecg_mark(k->charged, pfn, len, first);
		for (j = 0; j < len && !err; j++) {
			u32 flags = decode(&k->vma, k->entries[i + j], kf[j]);

			if (flags && huge)
				flags |= MP_PAGE_THP;
			if (flags & MP_PAGE_RESIDENT && first[j])
				flags |= MP_PAGE_CHARGED;
			if (flags)
				err = add_page(k, addr + (i + j) * MP_PAGE_SIZE, flags,
					       kc[j] ? (u32)kc[j] : 1,
					       kc[j] > 1 ? pfn_hide(pfn + j) : 0);
		}
		i += len;
	}
	return err;
}

static int walk_range(struct walker *k, u64 start, u64 end, int huge, int zero)
{
	while (start < end) {
		u64 left = (end - start) / MP_PAGE_SIZE;
		u32 n = left < BLOCK_PAGES ? (u32)left : BLOCK_PAGES;
		ssize_t len =
			pread(k->pagemap, k->entries, n * 8ul, (off_t)(start / MP_PAGE_SIZE * 8));
		int err;

		if (len <= 0) /* 0: the process let its mm go */
			return len ? -errno : -ESRCH;
		n = (u32)(len / 8);
		err = decode_block(k, start, n, huge, zero);
		if (err)
			return err;
		start += n * MP_PAGE_SIZE;
	}
	return 0;
}

/* Only ranges that hold something: 64 GiB of untouched reservation costs one call. */
static int walk_vma(struct walker *k)
{
	struct pm_region regs[256];
	u64 at = k->vma.start;
	int err, n, i;

	if (k->vma.flags & (MP_VMA_HUGETLB | MP_VMA_GATE))
		return 0;
	while (!k->no_scan && at < k->vma.end) {
		struct pm_scan arg = {
			.size = sizeof(arg),
			.start = at,
			.end = k->vma.end,
			.vec = (u64)(unsigned long)regs,
			.vec_len = 256,
			.category_anyof_mask = PM_PRESENT | PM_SWAPPED,
			.return_mask = PM_PRESENT | PM_SWAPPED | PM_HUGE | PM_ZERO,
		};

		n = ioctl(k->pagemap, PM_SCAN, &arg);
		if (n < 0) {
			k->no_scan = errno == ENOTTY || errno == EINVAL;
			if (!k->no_scan)
				return -errno;
			break;
		}
		for (i = 0; i < n; i++) {
			err = walk_range(k, regs[i].start, regs[i].end,
					 !!(regs[i].categories & PM_HUGE),
					 !!(regs[i].categories & PM_ZERO));
			if (err)
				return err;
		}
		if (arg.walk_end <= at)
			break;
		at = arg.walk_end;
	}
	return k->no_scan ? walk_range(k, k->vma.start, k->vma.end, 0, 0) : 0;
}

static u32 vm_flag(const char *two)
{
	static const struct {
		char name[3];
		u32 flag;
	} map[] = {{"rd", MP_VMA_READ},	  {"wr", MP_VMA_WRITE},	  {"ex", MP_VMA_EXEC},
		   {"sh", MP_VMA_SHARED}, {"ht", MP_VMA_HUGETLB}, {"pf", MP_VMA_PFNMAP},
		   {"io", MP_VMA_PFNMAP}, {"gd", MP_VMA_STACK},	  {"nr", MP_VMA_NORESERVE},
		   {"nh", MP_VMA_NOHUGE}};
	unsigned int i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (!strncmp(two, map[i].name, 2))
			return map[i].flag;
	return 0;
}

static void vma_name(struct vma *v, struct trace_writer *w, char *name)
{
	s64 id;

	name[strcspn(name, "\n")] = 0;
	if (!strncmp(name, "/memfd:", 7) || !strncmp(name, "/SYSV", 5) ||
	    !strncmp(name, "/dev/zero", 9) || !strncmp(name, "/dev/shm/", 9))
		v->flags |= MP_VMA_SHMEM;
	if (!strcmp(name, "[vsyscall]"))
		v->flags |= MP_VMA_GATE;
	if (!strcmp(name, "[stack]"))
		v->flags |= MP_VMA_STACK;
	id = trace_string(w, name);
	v->name = id > 0 ? (u32)id : 0;
}

static int finish_vma(struct walker *k)
{
	struct vma *v = &k->vma;
	struct mp_ev_vma ev = {
		.start = v->start,
		.end = v->end,
		.pgoff = v->pgoff,
		.ino = v->ino,
		.dev = v->dev,
		.name = v->name,
		.walk = k->s->walk,
	};
	size_t at;
	int err;

	if (!v->end)
		return 0;
	ev.flags = v->flags;
	at = k->s->recs.len;
	err = put(k->s, MP_EV_VMA, &ev, sizeof(ev), k->s->seq_begin);
	k->anon_swap = 0;
	if (!err)
		err = walk_vma(k);
	if (!err)
		err = flush_run(k);
	if (err)
		return err;
	/* What smaps calls Swap and no page table shows lies in the object (shmem). */
	if (v->swap > k->anon_swap) {
		ev.shmem_swap = v->swap - k->anon_swap;
		memcpy(k->s->recs.data + at + sizeof(struct mp_hdr), &ev, sizeof(ev));
	}
	return 0;
}

static int walk_smaps(struct walker *k, FILE *f)
{
	unsigned long long start, end, pgoff, ino, v;
	unsigned int maj, min;
	char line[4300], perms[8];
	int n, err = 0;

	while (!err && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perms, &pgoff,
			   &maj, &min, &ino, &n) >= 7) {
			err = finish_vma(k);
			memset(&k->vma, 0, sizeof(k->vma));
			k->vma.start = start;
			k->vma.end = end;
			k->vma.pgoff = pgoff;
			k->vma.ino = ino;
			k->vma.dev = maj << 20 | min;
			vma_name(&k->vma, k->w, line + n);
		} else if (sscanf(line, "Swap: %llu kB", &v) == 1) {
			k->vma.swap = v * 1024;
		} else if (!strncmp(line, "VmFlags:", 8)) {
			char *p = line + 8;

			for (; p[0] && p[1] && p[2]; p += 3)
				k->vma.flags |= vm_flag(p + 1);
		}
	}
	if (!err)
		err = finish_vma(k);
	return err;
}

static int thread_has_memory(pid_t tid)
{
	FILE *f = proc_open(tid, "status");
	char line[256];
	int mm = 0;

	if (!f)
		return 0;
	while (!mm && fgets(line, sizeof(line), f))
		mm = !strncmp(line, "VmSize:", 7);
	fclose(f);
	return mm;
}

pid_t snapshot_thread(pid_t pid)
{
	struct dirent *d;
	char path[64];
	pid_t found = 0;
	DIR *dir;

	if (thread_has_memory(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while (!found && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]) &&
		    thread_has_memory((pid_t)atol(d->d_name)))
			found = (pid_t)atol(d->d_name);
	closedir(dir);
	return found;
}

static int all_stopped(pid_t pid)
{
	char path[64], buf[512], *p;
	struct dirent *d;
	int stopped = 1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (stopped && (d = readdir(dir))) {
		FILE *f;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "task/%.20s/stat", d->d_name);
		f = proc_open(pid, path);
		if (!f)
			continue;
		p = fgets(buf, sizeof(buf), f) ? strrchr(buf, ')') : NULL;
		stopped = p && p[1] == ' ' && (p[2] == 'T' || p[2] == 't');
		fclose(f);
	}
	closedir(dir);
	return stopped;
}

static int take_once(struct walker *k, pid_t pid)
{
	struct mp_ev_walk mark = {.id = k->s->walk, .provider = MP_WALK_PAGEMAP};
	FILE *f = proc_open(pid, "smaps");
	int err;

	if (!f)
		return -ESRCH;
	err = put(k->s, MP_EV_WALK, &mark, sizeof(mark), k->s->seq_begin);
	if (!err)
		err = put_check(k->s, pid, 0);
	if (!err)
		err = walk_smaps(k, f);
	fclose(f);
	return err;
}

static int kpage_open(struct walker *k, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	k->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (k->pagemap < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (privilege_missing(NEED_ADMIN)) {
		k->no_frames = 1;
		return 0;
	}
	k->kflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	k->kcount = open("/proc/kpagecount", O_RDONLY | O_CLOEXEC);
	k->no_frames = k->kflags < 0 || k->kcount < 0;
	return 0;
}

int snapshot_take(pid_t pid, u32 space, u32 walk_id, struct trace_writer *w, snapshot_seq_fn seq,
		  void *seq_ctx, struct pagecg *charged, struct snapshot **ret_s)
{
	struct mp_ev_walk mark = {.id = walk_id, .end = 1, .provider = MP_WALK_PAGEMAP};
	struct walker *k = calloc(1, sizeof(*k));
	struct snapshot *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!k || !s)
		goto out;
	k->pagemap = k->kflags = k->kcount = -1;
	pid = snapshot_thread(pid);
	if (pid <= 0) {
		err = -ESRCH;
		goto out;
	}
	s->space = space;
	s->walk = walk_id;
	k->s = s;
	k->w = w;
	k->charged = charged;
	err = kpage_open(k, pid);
	if (err)
		goto out;
	s->begin_ns = now_ns();
	s->seq_begin = seq(seq_ctx);
	err = take_once(k, pid);
	if (err)
		goto out;
	s->end_ns = now_ns();
	s->seq_end = seq(seq_ctx);
	err = put_check(s, pid, 1);
	mark.stable = !err && all_stopped(pid) && s->seq_begin == s->seq_end;
	if (!err)
		err = put(s, MP_EV_WALK, &mark, sizeof(mark), s->seq_end);
out:
	if (k) {
		if (k->pagemap >= 0)
			close(k->pagemap);
		if (k->kflags >= 0)
			close(k->kflags);
		if (k->kcount >= 0)
			close(k->kcount);
	}
	free(k);
	if (err)
		snapshot_free(&s);
	else
		*ret_s = s;
	return err;
}

u64 snapshot_cost_ns(const struct snapshot *s)
{
	return s->end_ns - s->begin_ns;
}

u64 snapshot_time_ns(const struct snapshot *s)
{
	return s->end_ns;
}

u64 snapshot_resident(const struct snapshot *s)
{
	return s->resident;
}

int snapshot_write(const struct snapshot *s, struct trace_writer *w)
{
	size_t at = 0;
	int err = 0;

	while (at < s->recs.len && !err) {
		struct mp_hdr hdr;
		union {
			struct mp_hdr hdr;
			u8 bytes[256];
		} rec;

		memcpy(&hdr, s->recs.data + at, sizeof(hdr));
		memcpy(rec.bytes, s->recs.data + at, hdr.size);
		err = trace_write(w, &rec.hdr);
		at += hdr.size;
	}
	return err;
}

void snapshot_free(struct snapshot **s)
{
	if (!s || !*s)
		return;
	free((*s)->recs.data);
	free(*s);
	*s = NULL;
}
