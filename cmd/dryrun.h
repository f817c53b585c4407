/* SPDX-License-Identifier: GPL-2.0-only
 * --dry-run: what a recording would cost these targets. */
#ifndef MP_CMD_DRYRUN_H
#define MP_CMD_DRYRUN_H

struct target;

/* On stdout. Returns the exit status. */
int dry_run(const struct target *t);

#endif
