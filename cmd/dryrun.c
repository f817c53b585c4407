/* SPDX-License-Identifier: GPL-2.0-only
 * What a recording would cost, before it does. The figures are those of scripts/bench; check.docs
 * sees to it that README.md and the page give the same ones. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>
#include "cmd/dryrun.h"
#include "cmd/target.h"

#define COST_FAULT   "0.7 us"
#define COST_SYSCALL "0.1 us"
#define COST_PICTURE "35 ms"
#define COST_EVENT   "3 to 7 bytes"
#define COST_ALLOC   "6.5 us"

/* Bytes by /proc/PID/statm; a process that is gone has none. */
static double resident(pid_t pid)
{
	unsigned long long size, pages = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &size, &pages) != 2)
		pages = 0;
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void say_probes(FILE *f, const char *who)
{
	double us = 0;

	sscanf(COST_ALLOC, "%lf", &us);
	fprintf(f,
		"memprov: probes on the allocator of %s: an allocation and its free take "
		"about " COST_ALLOC " more;\n"
		"  of 10,000 a second that is %.0f%% of a core, of 100,000 %.0f%%\n",
		who, us, us * 10);
}

int dry_run(const struct target *t, int probes)
{
	double bytes = 0, ms_per_gib = 0;
	char who[256];
	int i;

	for (i = 0; i < t->nr_pids; i++)
		bytes += resident(t->pids[i]);
	target_name(t, who, sizeof(who));
	sscanf(COST_PICTURE, "%lf", &ms_per_gib);
	if (t->argv)
		printf("%s: not started, so what a picture of it takes is not known\n", who);
	else
		printf("%s: %.1f MiB resident now: a picture would take about %.1f ms\n", who,
		       bytes / (1 << 20), bytes / (1 << 30) * ms_per_gib);
	if (probes)
		say_probes(stdout, who);
	else
		puts("  no probe on the allocator");
	puts("  the target is never stopped\n"
	     "  each page fault of it     " COST_FAULT " more\n"
	     "  each system call, of any  " COST_SYSCALL " more\n"
	     "  each picture              " COST_PICTURE
	     " a GiB resident; one at the start, one at "
	     "the end,\n"
	     "                            between them one a second and at most 2% of a core\n"
	     "  the trace                 " COST_EVENT " an event: a fault or a mapping call\n"
	     "measured by scripts/bench on a virtual machine with 2 CPUs: yours may differ");
	return 0;
}
