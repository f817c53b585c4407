/* SPDX-License-Identifier: GPL-2.0-only
 * A cgroup by its names and its figures, on folders made here: both versions, and files that are
 * not as the kernel writes them. */
#define _GNU_SOURCE
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/capture/cgroup.h"
#include "lib/capture/memcg.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[] = "/tmp/memprov-cgroup.XXXXXX";
static int failed;

static void report(const char *name, int ok)
{
	printf("%s %s\n", ok ? "ok" : "FAIL", name);
	failed |= !ok;
}

static const char *at(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *at(const char *fmt, ...)
{
	static char path[4][1024];
	static unsigned int turn;
	char *p = path[turn++ & 3];
	int n = snprintf(p, sizeof(path[0]), "%s/", dir);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p + n, sizeof(path[0]) - (size_t)n, fmt, ap);
	va_end(ap);
	return p;
}

static void put_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) == EOF || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void make_group(const char *folder)
{
	if (mkdir(at("%s", folder), 0755) && errno != EEXIST)
		perror(folder);
	put_text(at("%s/cgroup.procs", folder), "");
	put_text(at("%s/memory.stat", folder), "anon 4096\nfile 8192\n");
	put_text(at("%s/memory.current", folder), "12288\n");
}

static int drop_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

/* ---- names ---- */

static void the_hierarchy_with_memory_is_found(void)
{
	struct cgroup_mount m;
	char info[4096];

	snprintf(info, sizeof(info),
		 "30 1 0:26 / /sys rw - sysfs sysfs rw\n"
		 "31 30 0:27 / %s/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
		 "32 30 0:28 /docker/x %s/with\\040blank rw - cgroup cgroup rw,memory\n"
		 "33 30 0:29 / %s/unified rw - cgroup2 cgroup2 rw\n",
		 dir, dir, dir);
	put_text(at("mountinfo"), info);
	report("v1 with the memory controller is taken",
	       !cgroup_mount_find(at("mountinfo"), &m) && m.version == 1 &&
		       !strcmp(m.point, at("with blank")) && !strcmp(m.root, "/docker/x"));

	snprintf(info, sizeof(info),
		 "31 30 0:27 / %s/cpu rw - cgroup cgroup rw,cpu,memoryless\n"
		 "33 30 0:29 / %s/unified rw - cgroup2 cgroup2 rw\n",
		 dir, dir);
	put_text(at("mountinfo"), info);
	mkdir(at("unified"), 0755);
	put_text(at("unified/cgroup.controllers"), "cpuset cpu io pids\n");
	report("v2 without the controller is not taken",
	       cgroup_mount_find(at("mountinfo"), &m) == -ENOENT);
	put_text(at("unified/cgroup.controllers"), "cpuset cpu io memory pids\n");
	report("v2 with the controller is taken", !cgroup_mount_find(at("mountinfo"), &m) &&
							  m.version == 2 &&
							  !strcmp(m.point, at("unified")));
	put_text(at("mountinfo"), "33 30\n - cgroup\n31 30 0:1 / / rw - cgroup2\n\n- - - - -\n");
	report("a malformed mountinfo has none", cgroup_mount_find(at("mountinfo"), &m) == -ENOENT);
}

static int find(const char *spec, struct cgroup *c, char *msg)
{
	struct cgroup_mount m = {.version = 2, .root = "/"};

	snprintf(m.point, sizeof(m.point), "%s/tree", dir);
	memset(c, 0, sizeof(*c));
	msg[0] = 0;
	return cgroup_find(spec, &m, c, msg, 4096);
}

static void a_group_is_found_by_its_names(void)
{
	static struct cgroup c;
	char msg[4096];

	make_group("tree");
	unlink(at("tree/memory.current"));
	make_group("tree/a");
	make_group("tree/docker-" ID ".scope");
	make_group("tree/crio-conmon-" ID ".scope");
	mkdir(at("tree/plain"), 0755);
	report("by folder", !find(at("tree/a"), &c, msg) && !strcmp(c.path, "/a") && !c.root);
	report("by a name below the mount", !find("a", &c, msg) && !strcmp(c.path, "/a"));
	report("as a container engine writes it", !find("/a", &c, msg) && !strcmp(c.path, "/a"));
	report("the whole hierarchy", !find(at("tree"), &c, msg) && c.root && !strcmp(c.path, "/"));
	report("by a short id, not its monitor",
	       !find("0123456789ab", &c, msg) && strstr(c.path, "/docker-"));
	report("by a whole id", !find(ID, &c, msg) && strstr(c.path, "/docker-"));
	report("11 digits are no id", find("0123456789a", &c, msg) == -ENOENT);
	report("upper case is no id", find("0123456789AB", &c, msg) == -ENOENT);
	report("a folder that is no group",
	       find(at("tree/plain"), &c, msg) == -EINVAL && strstr(msg, "no memory cgroup"));
	report("nothing", find("", &c, msg) == -EINVAL && msg[0]);
	make_group("tree/a/cri-containerd-" ID ".scope");
	report("an id of two groups is refused and both are named",
	       find(ID, &c, msg) == -EEXIST && strstr(msg, "docker-") && strstr(msg, "cri-"));
	report("not a process",
	       find("of:", &c, msg) == -EINVAL && find("of:1x", &c, msg) == -EINVAL &&
		       find("of:-1", &c, msg) == -EINVAL && find("of:0", &c, msg) == -EINVAL);
}

static int count_pid(void *ctx, pid_t pid)
{
	*(int *)ctx += (int)pid;
	return 0;
}

static void a_group_has_the_processes_below_it(void)
{
	static struct cgroup c;
	char msg[4096];
	int sum = 0, n;
	u64 *inos = NULL;

	find("a", &c, msg);
	put_text(at("tree/a/cgroup.procs"), "3\n5\n0\n");
	put_text(at("tree/a/cri-containerd-" ID ".scope/cgroup.procs"), "7\n");
	report("processes of the tree, none of another namespace",
	       !cgroup_each_pid(&c, count_pid, &sum) && sum == 15);
	n = cgroup_inodes(&c, &inos);
	report("two groups", n == 2 && inos[0] != inos[1]);
	free(inos);
}

/* ---- figures ---- */

static const struct memcg_value *value_of(const struct memcg_reading *r, const char *source,
					  const char *name)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->values[i].name, name) && !strcmp(r->values[i].source, source))
			return &r->values[i];
	return NULL;
}

static int has(const struct memcg_reading *r, const char *source, const char *name, u64 value,
	       u32 unit, u32 state)
{
	const struct memcg_value *v = value_of(r, source, name);

	return v && v->value == value && v->unit == unit && v->state == state;
}

static void a_v2_group_is_read(void)
{
	static struct cgroup c = {.version = 2};
	struct memcg_reading r = {0};
	char msg[4096] = "";

	make_group("v2");
	snprintf(c.folder, sizeof(c.folder), "%s", at("v2"));
	put_text(at("v2/memory.max"), "max\n");
	put_text(at("v2/memory.high"), "18446744073709551615\n");
	put_text(at("v2/memory.events"), "low 0\nhigh 3\nmax 23\noom 2\noom_kill 1\n");
	put_text(at("v2/memory.pressure"), "some avg10=0.10 avg60=0.00 avg300=0.00 total=1009\n"
					   "full avg10=0.00 avg60=0.00 avg300=0.00 total=211\n");
	put_text(at("v2/memory.stat"), "anon 4096\npgfault 77\nslab 99\nnew_key 5\n");
	report("it is read", !memcg_read(&c, &r, msg, sizeof(msg)));
	report("current", has(&r, "memory.current", "current", 12288, MP_UNIT_BYTES, 0));
	report("no limit is a state, not a number",
	       has(&r, "memory.max", "limit", 0, MP_UNIT_BYTES, MP_STAT_UNLIMITED));
	report("a number as large as it gets stays one",
	       has(&r, "memory.high", "high", ~0ull, MP_UNIT_BYTES, MP_STAT_VALUE));
	report("events", has(&r, "memory.events", "oom", 2, MP_UNIT_NUMBER, 0) &&
				 has(&r, "memory.events", "oom_kill", 1, MP_UNIT_NUMBER, 0) &&
				 has(&r, "memory.events", "limit_hits", 23, MP_UNIT_NUMBER, 0));
	report("pressure", has(&r, "memory.pressure", "psi_some", 1009, MP_UNIT_US, 0) &&
				   has(&r, "memory.pressure", "psi_full", 211, MP_UNIT_US, 0));
	report("keys of memory.stat with their unit",
	       has(&r, "memory.stat", "anon", 4096, MP_UNIT_BYTES, 0) &&
		       has(&r, "memory.stat", "pgfault", 77, MP_UNIT_NUMBER, 0));
	report("a key nobody knows is not called bytes",
	       has(&r, "memory.stat", "new_key", 5, MP_UNIT_NUMBER, 0));
	report("a file that is not there gives no figure",
	       !value_of(&r, "memory.swap.current", "swap"));
	memcg_release(&r);
}

static void a_v1_group_is_read(void)
{
	static struct cgroup c = {.version = 1};
	struct memcg_reading r = {0};
	char msg[4096] = "";

	make_group("v1");
	snprintf(c.folder, sizeof(c.folder), "%s", at("v1"));
	put_text(at("v1/memory.usage_in_bytes"), "40960\n");
	put_text(at("v1/memory.limit_in_bytes"), "9223372036854771712\n");
	put_text(at("v1/memory.soft_limit_in_bytes"), "65536\n");
	put_text(at("v1/memory.failcnt"), "13\n");
	put_text(at("v1/memory.kmem.usage_in_bytes"), "8192\n");
	put_text(at("v1/memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	put_text(at("v1/memory.stat"), "cache 0\nhierarchical_memory_limit 9223372036854771712\n"
				       "total_cache 4096\ntotal_pgfault 5\n");
	report("it is read", !memcg_read(&c, &r, msg, sizeof(msg)));
	report("no limit is a state",
	       has(&r, "memory.limit_in_bytes", "limit", 0, MP_UNIT_BYTES, MP_STAT_UNLIMITED) &&
		       has(&r, "memory.stat", "hierarchical_memory_limit", 0, MP_UNIT_BYTES,
			   MP_STAT_UNLIMITED));
	report("soft limit", has(&r, "memory.soft_limit_in_bytes", "high", 65536, 1, 0));
	report("kernel memory", has(&r, "memory.kmem.usage_in_bytes", "kmem", 8192, 1, 0));
	report("oom kills and limit hits",
	       has(&r, "memory.oom_control", "oom_kill", 3, 0, 0) &&
		       has(&r, "memory.failcnt", "limit_hits", 13, 0, 0));
	report("keys of the tree", has(&r, "memory.stat", "total_cache", 4096, 1, 0) &&
					   has(&r, "memory.stat", "total_pgfault", 5, 0, 0));
	report("v1 has no pressure", !value_of(&r, "memory.pressure", "psi_some"));
	memcg_release(&r);
}

static void what_the_kernel_does_not_write_is_an_error(void)
{
	static const struct {
		const char *file, *text;
	} bad[] = {
		{"memory.stat", ""},
		{"memory.stat", "anon"},
		{"memory.stat", "anon 4096"}, /* cut: the number may be longer */
		{"memory.stat", "anon \n"},
		{"memory.stat", "anon 40 96\n"},
		{"memory.stat", "anon -1\n"},
		{"memory.stat", "anon +1\n"},
		{"memory.stat", "anon 0x10\n"},
		{"memory.stat", "anon 1\n\nfile 2\n"},
		{"memory.stat", " 1\n"},
		{"memory.stat", "an\ton 1\n"},
		{"memory.stat", "anon 18446744073709551616\n"},
		{"memory.stat", "anon 99999999999999999999999999\n"},
		{"memory.stat", "a_key_that_is_longer_than_any_that_a_kernel_ever_had 1\n"},
		{"memory.current", ""},
		{"memory.current", "12288"},
		{"memory.current", "max\n"}, /* a charge has no such value */
		{"memory.current", "12288\n1\n"},
		{"memory.max", "maximal\n"},
		{"memory.events", "oom two\n"},
		{"memory.pressure", "some avg10=0.10 avg60=0.00\n"},
		{"memory.pressure", "some avg10=0.10 total=\n"},
	};
	static struct cgroup c = {.version = 2};
	struct memcg_reading r = {0};
	char msg[4096], name[64];
	size_t i;
	int err;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make_group("bad");
		put_text(at("bad/memory.max"), "max\n");
		put_text(at("bad/memory.events"), "oom 0\n");
		put_text(at("bad/memory.pressure"), "");
		put_text(at("bad/%s", bad[i].file), bad[i].text);
		snprintf(c.folder, sizeof(c.folder), "%s", at("bad"));
		msg[0] = 0;
		err = memcg_read(&c, &r, msg, sizeof(msg));
		snprintf(name, sizeof(name), "malformed %s, %zu", bad[i].file, i);
		report(name, err == -EBADMSG && strstr(msg, bad[i].file) && !r.n);
	}
	make_group("bad");
	put_text(at("bad/memory.pressure"), "");
	unlink(at("bad/memory.stat"));
	report("a group that is gone", memcg_read(&c, &r, msg, sizeof(msg)) == -ENOENT);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	the_hierarchy_with_memory_is_found();
	a_group_is_found_by_its_names();
	a_group_has_the_processes_below_it();
	a_v2_group_is_read();
	a_v1_group_is_read();
	what_the_kernel_does_not_write_is_an_error();
	nftw(dir, drop_one, 16, FTW_DEPTH | FTW_PHYS);
	return failed;
}
