/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "lib/capture/modules.h"
#include "lib/capture/picture.h"
#include "lib/capture/snapshot.h"
#include "lib/sym/file.h"
#include "lib/sym/sym.h"

static int keep_fd(struct modules *m, int fd)
{
	int *fds = realloc(m->fds, (m->nr_fds + 1) * sizeof(*fds));

	if (!fds) {
		close(fd);
		return -ENOMEM;
	}
	m->fds = fds;
	m->fds[m->nr_fds++] = fd;
	return fd;
}

int modules_root(struct modules *m, pid_t pid)
{
	struct stat st, have;
	char path[64];
	size_t i;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	for (i = 0; !fstat(fd, &st) && i < m->nr_fds; i++) {
		if (fstat(m->fds[i], &have) || have.st_dev != st.st_dev || have.st_ino != st.st_ino)
			continue;
		close(fd);
		return m->fds[i];
	}
	fd = keep_fd(m, fd);
	return fd < 0 ? -1 : fd;
}

/* The inode in the words of /proc/PID/maps. stat(2) of btrfs and overlayfs names other devices, so
 * the file is mapped, without access, and looked up. */
static int is_mapped_as(int fd, u32 dev, u64 ino)
{
	unsigned long long start, at;
	unsigned int maj, min;
	char line[4300];
	int same = 0;
	void *p;
	FILE *f;

	p = mmap(NULL, MP_PAGE_SIZE, PROT_NONE, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return 0;
	f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%*x %*s %*x %x:%x %llu", &start, &maj, &min, &at) != 4 ||
		    start != (unsigned long)p)
			continue;
		same = (maj << 20 | min) == dev && at == ino;
		break;
	}
	if (f)
		fclose(f);
	munmap(p, MP_PAGE_SIZE);
	return same;
}

static int check(int fd, const struct stat *st, const struct mp_ev_vma *v)
{
	u32 dev = major(st->st_dev) << 20 | minor(st->st_dev);

	if (fd < 0)
		return fd;
	if ((dev == v->dev && st->st_ino == v->ino) || is_mapped_as(fd, v->dev, v->ino))
		return fd;
	close(fd);
	return -ESTALE;
}

/* The link to the mapped inode itself is right even when the name is gone; it needs privilege and a
 * living process. */
static int open_mapped(pid_t pid, int root, const struct mp_ev_vma *v, const char *path)
{
	struct stat st;
	char link[96];
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)v->start, (unsigned long long)v->end);
	fd = file_open(-1, link, &st);
	fd = check(fd, &st, v);
	if (fd < 0 && root >= 0) {
		fd = file_open(root, path, &st);
		fd = check(fd, &st, v);
	}
	/* Of a process in a chroot, maps shows the path as we would say it. */
	if (fd < 0) {
		fd = file_open(-1, path, &st);
		fd = check(fd, &st, v);
	}
	return fd;
}

int modules_open_mapped(pid_t pid, const struct mp_ev_vma *v, const char *path)
{
	char link[64];
	int root, fd;

	snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
	root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = open_mapped(pid, root, v, path);
	if (root >= 0)
		close(root);
	return fd;
}

/* The kernel's own code is the same in every process: ours becomes a file. */
static int vdso_file(struct modules *m)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	unsigned long long start, end;
	char line[256];
	size_t len = 0;
	FILE *f;
	int fd, reading;

	if (m->vdso)
		return m->vdso;
	m->vdso = SYM_NO_FILE;
	f = fopen("/proc/self/maps", "re");
	while (f && image && !len && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx", &start, &end) == 2 && start == (unsigned long)image)
			len = end - start;
	if (f)
		fclose(f);
	fd = len ? memfd_create("vdso", MFD_CLOEXEC) : -1;
	if (fd >= 0 && write(fd, image, len) == (ssize_t)len) {
		/* Whoever reads it must not be able to write. */
		snprintf(line, sizeof(line), "/proc/self/fd/%d", fd);
		reading = open(line, O_RDONLY | O_CLOEXEC);
		reading = reading < 0 ? reading : keep_fd(m, reading);
		m->vdso = reading < 0 ? SYM_NO_FILE : reading;
	}
	if (fd >= 0)
		close(fd);
	return m->vdso;
}

int modules_file(struct modules *m, pid_t pid, int root, const struct mp_ev_vma *v,
		 const char *path)
{
	struct module *files;
	size_t i;
	int fd;

	if (!strcmp(path, "[vdso]"))
		return vdso_file(m);
	if (path[0] != '/' || !v->ino)
		return SYM_NO_FILE;
	for (i = 0; i < m->nr_files; i++)
		if (m->files[i].dev == v->dev && m->files[i].ino == v->ino)
			return m->files[i].fd;
	fd = open_mapped(pid, root, v, path);
	if (fd < 0)
		return SYM_NO_FILE; /* another space may know it by another name */
	files = realloc(m->files, (m->nr_files + 1) * sizeof(*files));
	if (!files) {
		close(fd);
		return SYM_NO_FILE;
	}
	m->files = files;
	fd = keep_fd(m, fd);
	if (fd < 0)
		return SYM_NO_FILE;
	m->files[m->nr_files].dev = v->dev;
	m->files[m->nr_files].ino = v->ino;
	m->files[m->nr_files++].fd = fd;
	return fd;
}

typedef int (*code_fn)(void *ctx, int fd, const struct mp_ev_vma *v, const char *path);

static int code_line(pid_t tid, char *line, code_fn fn, void *ctx)
{
	unsigned long long start, end, pgoff, ino;
	unsigned int maj, min;
	struct mp_ev_vma v;
	char perm[8];
	int at = 0, fd, err;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perm, &pgoff, &maj, &min,
		   &ino, &at) < 7 ||
	    perm[2] != 'x' || !at || line[at] != '/' || !ino)
		return 0;
	v = (struct mp_ev_vma){
		.start = start, .end = end, .pgoff = pgoff, .ino = ino, .dev = maj << 20 | min};
	fd = modules_open_mapped(tid, &v, line + at);
	if (fd < 0)
		return 0;
	err = fn(ctx, fd, &v, line + at);
	close(fd);
	return err;
}

int modules_each_code(pid_t pid, code_fn fn, void *ctx)
{
	pid_t tid = snapshot_thread(pid);
	FILE *f = tid > 0 ? proc_open(tid, "maps") : NULL;
	char line[4300];
	int err = 0;

	while (f && !err && fgets(line, sizeof(line), f))
		err = code_line(tid, line, fn, ctx);
	if (f)
		fclose(f);
	return err;
}

/* The process as its own namespace numbers it, and its user. */
static int who_is(pid_t pid, unsigned int *ret_pid, unsigned int *ret_uid)
{
	char path[64], line[256], *last;
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "NSpid:", 6) && (last = strrchr(line, '\t')))
			found |= sscanf(last, "%u", ret_pid) == 1 ? 1 : 0;
		if (sscanf(line, "Uid: %*u %u", ret_uid) == 1)
			found |= 2;
	}
	if (f)
		fclose(f);
	return found == 3;
}

int modules_perf_map(struct modules *m, pid_t pid, int root)
{
	unsigned int inner, uid;
	struct stat st;
	char path[64];
	int fd;

	if (root < 0 || !who_is(pid, &inner, &uid))
		return SYM_NO_FILE;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", inner);
	fd = file_open(root, path, &st);
	if (fd >= 0 && st.st_uid != uid) {
		close(fd);
		fd = -EPERM;
	}
	fd = fd < 0 ? fd : keep_fd(m, fd);
	return fd < 0 ? SYM_NO_FILE : fd;
}

void modules_release(struct modules *m)
{
	size_t i;

	for (i = 0; i < m->nr_fds; i++)
		close(m->fds[i]);
	free(m->fds);
	free(m->files);
	memset(m, 0, sizeof(*m));
}
