/* SPDX-License-Identifier: GPL-2.0-only
 * A memory cgroup by what people call it: its folder, a container's id or one of its processes.
 * Knows both hierarchies; on a machine with both, the one that has the memory controller. Reads
 * folders and names only: what the group is charged is memcg.c's, which page is, pagecg.c's. */
#ifndef MP_CAPTURE_CGROUP_H
#define MP_CAPTURE_CGROUP_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/types.h"

#define CGROUP_PATH 4096

/* Where the hierarchy with the memory controller is mounted. */
struct cgroup_mount {
	int version; /* 1 or 2 */
	char point[CGROUP_PATH]; /* folder */
	char root[CGROUP_PATH]; /* the group that folder shows, as in /proc/PID/cgroup */
};

struct cgroup {
	int version;
	int root; /* the whole hierarchy: the kernel has no counter for it */
	char folder[CGROUP_PATH];
	char path[CGROUP_PATH]; /* below the mount, from "/": what it is called */
};

/* The memory hierarchy of a mountinfo file. 0, -ENOENT when none is mounted, -errno. */
int cgroup_mount_find(const char *mountinfo, struct cgroup_mount *ret_m);
/* The group SPEC names: an absolute folder, one below the mount, of:PID, or at least 12 hex digits
 * that are part of one folder's name. On failure -errno and one line with object, reason and
 * remedy in msg. */
int cgroup_find(const char *spec, const struct cgroup_mount *m, struct cgroup *ret_c, char *msg,
		size_t len);
/* The group whose folder has this inode. 0 or -ENOENT. */
int cgroup_of_inode(const struct cgroup_mount *m, u64 ino, struct cgroup *ret_c);
/* The group above, as long as there is one below the mount. 0 or -ENOENT. */
int cgroup_parent(const struct cgroup_mount *m, struct cgroup *c);
/* Calls fn for every process of the group and of the groups below it. 0, the first non-zero return
 * of fn, or -errno. */
int cgroup_each_pid(const struct cgroup *c, int (*fn)(void *ctx, pid_t pid), void *ctx);
/* Inode numbers of the group and of the groups below it; the caller frees *ret_inos. Returns how
 * many, or -errno. */
int cgroup_inodes(const struct cgroup *c, u64 **ret_inos);

#endif
