/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd/touch.h"
#include "lib/capture/accessed.h"

#define PMUS "/sys/bus/event_source/devices/"

static int is_there(const char *path)
{
	return !access(path, F_OK);
}

static struct feature by_bits(int walk)
{
	static char reason[256];
	struct feature f = {"touch", "accessed bits", "BTF field", "absent", "-", reason, ""};
	struct accessed *a = NULL;

	if (!walk) {
		snprintf(reason, sizeof(reason), "needs the page-table walk");
		return f;
	}
	if (accessed_open(reason, sizeof(reason), &a))
		return f;
	f.status = "usable";
	f.grade = accessed_limits(a, reason, sizeof(reason)) ? "inferred" : "exact";
	if (!reason[0])
		snprintf(reason, sizeof(reason), "the flush behind a clear is proven");
	f.remedy = "record --access ptwalk, which clears them";
	accessed_free(&a);
	return f;
}

/* Its context says which operations the kernel was built with; only where somebody made one. */
static const char *damon_reason(void)
{
	static char reason[128];
	char ops[128] = "";
	FILE *f;

	if (!is_there("/sys/kernel/mm/damon/admin"))
		return "the kernel has no DAMON with a sysfs interface";
	f = fopen("/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/avail_operations", "re");
	if (!f)
		return "not used by this version";
	while (!strstr(ops, "vaddr") && fgets(ops, sizeof(ops), f))
		if (!strncmp(ops, "fvaddr", 6))
			ops[0] = 0;
	fclose(f);
	snprintf(reason, sizeof(reason), "%s",
		 strncmp(ops, "vaddr", 5)
			 ? "the kernel's DAMON watches physical addresses only, and is "
			   "another user's"
			 : "another user's DAMON is set up");
	return reason;
}

static const char *pmu(void)
{
	static const char *const events[] = {
		PMUS "cpu/events/mem-loads",
		PMUS "cpu_core/events/mem-loads",
		PMUS "ibs_op",
		PMUS "arm_spe_0",
	};
	size_t i;

	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (is_there(events[i]))
			return events[i] + strlen(PMUS);
	return NULL;
}

void touch_features(int walk, const char *fault, struct feature ret[TOUCH_ROWS])
{
	const int idle = is_there("/sys/kernel/mm/page_idle/bitmap");
	const char *damon = damon_reason(), *counter = pmu();

	ret[0] = by_bits(walk);
	ret[1] = (struct feature){"touch",
				  "idle page bitmap",
				  "documented ABI",
				  idle ? "untested" : "absent",
				  "-",
				  idle ? "not read by this version"
				       : "the kernel has no idle page tracking",
				  ""};
	ret[2] = (struct feature){"touch",
				  "DAMON",
				  "documented ABI",
				  strcmp(damon, "not used by this version") ? "absent" : "untested",
				  "-",
				  damon,
				  ""};
	ret[3] = (struct feature){"touch", "smaps Referenced",
				  "UAPI",  "untested",
				  "-",	   "by mapping only, not read by this version",
				  ""};
	ret[4] = (struct feature){"touch", "first-touch faults", "tracepoint",
				  fault,   "inferred",		 "a lower bound",
				  ""};
	ret[5] = (struct feature){"access cost",
				  "PMU memory samples",
				  "UAPI",
				  counter ? "untested" : "absent",
				  "-",
				  counter ? counter : "no PMU counts memory accesses here",
				  ""};
}
