/* SPDX-License-Identifier: GPL-2.0-only
 * The flush is that of clear_refs 4, which resets soft-dirty bits: where the kernel keeps none it
 * changes nothing else, and ends in a flush of all of the space. That it does is seen on memprov's
 * own space first (the event of a flush is told on the processor that asks for it); of a target the
 * generation of its translations must have risen. Where soft-dirty bits are kept it would
 * write-protect every page and confuse who uses them: then nothing is flushed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "lib/capture/accessed.h"
#include "lib/capture/clock.h"
#include "lib/capture/picture.h"
#include "accessed.skel.h"

#define CLEAR_ACCESSED	 "1"
#define CLEAR_SOFT_DIRTY "4"
#define PM_SOFT_DIRTY	 (1ull << 55)

struct counters {
	u64 reclaim, migration;
};

struct lock { /* of one process, against another memprov */
	pid_t pid;
	int fd;
};

struct accessed {
	struct accessed_bpf *skel; /* NULL: no flush can be proven */
	char unproven[96]; /* why */
	struct counters before;
	int counted; /* before is read */
	u32 doubts;
	u64 cpu_ns;
	struct lock *locks;
	size_t nr_locks;
};

/* ---- who else ---- */

/* Pages that reclaim looked at: it clears the bits of those. Of any group, machine-wide. */
static void read_counters(struct counters *ret)
{
	static const char *const looks[] = {"pgscan_anon", "pgscan_file", "pgscan_khugepaged",
					    "pgrefill", "pgdeactivate"};
	unsigned long long v;
	char line[128], key[64];
	FILE *f = fopen("/proc/vmstat", "re");
	size_t i;

	memset(ret, 0, sizeof(*ret));
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %llu", key, &v) != 2)
			continue;
		for (i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
			if (!strcmp(key, looks[i]))
				ret->reclaim += v;
		if (!strcmp(key, "pgmigrate_success"))
			ret->migration = v;
	}
	if (f)
		fclose(f);
}

static int lru_gen_on(void)
{
	FILE *f = fopen("/sys/kernel/mm/lru_gen/enabled", "re");
	unsigned int on = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%x", &on) != 1)
		on = 1;
	fclose(f);
	return on & 1;
}

/* Of whatever interface started it; a user's program may bear the name, and only costs a grade. */
static int kdamond_runs(void)
{
	DIR *proc = opendir("/proc");
	char path[64], comm[32];
	struct dirent *d;
	int runs = 0;
	FILE *f;

	while (proc && !runs && (d = readdir(proc))) {
		if (d->d_name[0] < '0' || d->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/comm", d->d_name);
		f = fopen(path, "re");
		runs = f && fgets(comm, sizeof(comm), f) && !strncmp(comm, "kdamond.", 8);
		if (f)
			fclose(f);
	}
	if (proc)
		closedir(proc);
	return runs;
}

/* Its guest's accesses go by other tables. */
static int is_hypervisor(pid_t pid)
{
	char path[64], to[64];
	struct dirent *d;
	int found = 0;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		n = readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1);
		if (n < 0)
			continue;
		to[n] = 0;
		found = !strcmp(to, "anon_inode:kvm-vm");
	}
	if (dir)
		closedir(dir);
	return found;
}

u32 accessed_doubts(const struct accessed *a)
{
	struct counters now;
	u32 doubts = a->doubts;

	read_counters(&now);
	if (now.reclaim != a->before.reclaim)
		doubts |= MP_DOUBT_RECLAIM;
	if (now.migration != a->before.migration)
		doubts |= MP_DOUBT_MIGRATION;
	if (kdamond_runs())
		doubts |= MP_DOUBT_DAMON;
	return doubts;
}

/* ---- the flush ---- */

static int write_clear(pid_t pid, const char *what)
{
	char path[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return proc_error();
	if (write(fd, what, 1) != 1)
		err = -errno;
	close(fd);
	return err;
}

static u64 generation(struct accessed *a, pid_t tid)
{
	union bpf_iter_link_info info = {.task.tid = (__u32)tid};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(a->skel->progs.read_generation, &opts);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	char buf[64];

	a->skel->bss->flush_generation = 0;
	while (fd >= 0 && read(fd, buf, sizeof(buf)) < 0 && errno == EINTR)
		;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return a->skel->bss->flush_generation;
}

/* A page just written is soft-dirty where that is kept. */
static int keeps_soft_dirty(void)
{
	volatile u8 *page = mmap(NULL, MP_PAGE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 entry;

	if (page == MAP_FAILED)
		return 1;
	page[0] = 1;
	entry = own_entry((const void *)page);
	munmap((void *)page, MP_PAGE_SIZE);
	return !entry || entry & PM_SOFT_DIRTY;
}

/* On memprov's own space, which this processor has: is all of it flushed? */
static const char *try_flush(struct accessed *a)
{
	struct bpf_link *link;
	u64 before;
	int err;

	if (keeps_soft_dirty())
		return "the kernel keeps soft-dirty bits, and a flush would reset them";
	a->skel = accessed_bpf__open_and_load();
	link = a->skel ? bpf_program__attach(a->skel->progs.on_flush) : NULL;
	if (!link)
		return "flushes cannot be seen";
	before = generation(a, getpid());
	a->skel->bss->flush_tid = (u32)gettid();
	a->skel->bss->flush_whole = 0;
	err = write_clear(getpid(), CLEAR_SOFT_DIRTY);
	bpf_link__destroy(link);
	if (err)
		return "the kernel refuses the flush";
	if (!a->skel->bss->flush_whole || !before || generation(a, getpid()) == before)
		return "clear_refs was seen not to flush";
	return NULL;
}

/* Is every translation from before gone, or will be before it is used? */
static int flush(struct accessed *a, pid_t pid)
{
	u64 before;
	pid_t tid;

	if (!a->skel)
		return 0;
	tid = snapshot_thread(pid);
	before = generation(a, tid);
	if (!before || write_clear(pid, CLEAR_SOFT_DIRTY))
		return 0;
	return generation(a, tid) > before;
}

/* ---- one reader for each process ---- */

/* A name in the abstract namespace goes with its owner, however that ends. */
static int lock(struct accessed *a, pid_t pid)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct lock *more;
	socklen_t len;
	size_t i;
	int fd;

	for (i = 0; i < a->nr_locks; i++)
		if (a->locks[i].pid == pid)
			return 0;
	more = realloc(a->locks, (a->nr_locks + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	a->locks = more;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	      (socklen_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
				  "memprov-accessed/%d", (int)pid);
	if (bind(fd, (struct sockaddr *)&name, len)) {
		close(fd);
		return -EBUSY;
	}
	a->locks[a->nr_locks++] = (struct lock){pid, fd};
	return 0;
}

/* ---- */

int accessed_open(char *msg, size_t msg_len, struct accessed **ret_a)
{
	struct accessed *a = calloc(1, sizeof(*a));
	const char *why;

	if (!a)
		return -ENOMEM;
	if (access("/proc/self/clear_refs", W_OK)) {
		snprintf(msg, msg_len, "the kernel has no /proc/PID/clear_refs");
		free(a);
		return -ENOENT;
	}
	why = try_flush(a);
	if (why) {
		snprintf(a->unproven, sizeof(a->unproven), "%s", why);
		accessed_bpf__destroy(a->skel);
		a->skel = NULL;
	}
	*ret_a = a;
	return 0;
}

const char *accessed_unproven(const struct accessed *a)
{
	return a->unproven[0] ? a->unproven : NULL;
}

int accessed_limits(const struct accessed *a, char *buf, size_t len)
{
	return snprintf(buf, len, "%s%s%s", a->unproven,
			kdamond_runs() ? &"; a kdamond runs"[a->unproven[0] ? 0 : 2] : "",
			lru_gen_on() ? "; the multi-generational LRU is on" : "");
}

int accessed_clear(struct accessed *a, pid_t pid, struct mp_ev_clear *ret_c)
{
	int err = lock(a, pid);
	u64 began, ran;

	if (err)
		return err;
	if (!a->counted)
		read_counters(&a->before);
	a->counted = 1;
	began = now_ns();
	ran = thread_ns();
	err = write_clear(pid, CLEAR_ACCESSED);
	ran = thread_ns() - ran;
	ret_c->took = now_ns() - began;
	if (err)
		return err;
	if (ran > a->cpu_ns)
		a->cpu_ns = ran;
	if (!flush(a, pid))
		ret_c->doubts |= MP_DOUBT_FLUSH;
	if (is_hypervisor(pid))
		ret_c->doubts |= MP_DOUBT_GUEST;
	if (lru_gen_on())
		ret_c->doubts |= MP_DOUBT_AGING;
	if (kdamond_runs())
		a->doubts |= MP_DOUBT_DAMON; /* it may be gone at the end */
	return 0;
}

u64 accessed_cpu_ns(const struct accessed *a)
{
	return a->cpu_ns;
}

void accessed_free(struct accessed **pa)
{
	struct accessed *a = *pa;
	size_t i;

	if (!a)
		return;
	for (i = 0; i < a->nr_locks; i++)
		close(a->locks[i].fd);
	accessed_bpf__destroy(a->skel);
	free(a->locks);
	free(a);
	*pa = NULL;
}
