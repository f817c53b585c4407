/* SPDX-License-Identifier: GPL-2.0-only
 * The adapter (lib/adapter), which this program carries inside: a file that a command preloads. It
 * lies where nobody but its owner could have put it, under a name of its contents, and stays there
 * until the machine is booted: children of the command may load it at any time. */
#ifndef MP_CAPTURE_PRELOAD_H
#define MP_CAPTURE_PRELOAD_H

#include <stddef.h>
#include "bpf/shared/types.h"

struct spawn_user;

#define PRELOAD_PATH 256

/* Writes the file, if it is not there. 0, or -errno: there is no place for it. */
int preload_file(char *ret_path, size_t len);
/* The environment that makes a command load it, after and with what is preloaded anyhow:
 * "NAME=VALUE" strings to be freed, a NULL behind the last. NULL: no memory. */
char **preload_env(const char *path, u64 interval);
void preload_env_free(char ***env);
/* Why this command would not load it, or should not; NULL: it will. */
const char *preload_refused(const char *command, const struct spawn_user *user);

#endif
