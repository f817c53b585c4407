/* SPDX-License-Identifier: GPL-2.0-only
 * --dry-run: what a recording would cost these targets. */
#ifndef MP_CMD_DRYRUN_H
#define MP_CMD_DRYRUN_H

#include <stdio.h>

struct target;

/* On stdout. probes: on the allocator, too. Returns the exit status. */
int dry_run(const struct target *t, int probes);
/* What those take of a program that allocates a lot. */
void say_probes(FILE *f, const char *who);

#endif
