/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/allocs.h"
#include "lib/capture/announced.h"
#include "lib/capture/preload.h"
#include "lib/capture/session.h"
#include "lib/capture/spawn.h"
#include "lib/capture/uprobes.h"

const char *const alloc_mode_names[ALLOC_MODES] = {
	[ALLOC_AUTO] = "auto",
	[ALLOC_ADAPTER] = "adapter",
	[ALLOC_UPROBE] = "uprobe",
	[ALLOC_MAP] = "map",
};

struct allocs {
	const struct allocs_opts *o;
	enum alloc_mode mode; /* never auto */
	struct uprobes *probes; /* NULL: none */
	char path[PRELOAD_PATH];
	char **env;
	char refused[320], reason[128];
};

static int load(struct allocs *a, struct session *s, int announced_ones, char *msg, size_t msg_len)
{
	const struct uprobes_opts o = {
		.announced = announced_ones,
		.min_bytes = a->o->min_bytes,
		.prefixes = a->o->prefixes,
		.ring_bytes = a->o->ring_bytes,
	};

	return uprobes_open(s, &o, msg, msg_len, &a->probes);
}

static int open_adapter(struct allocs *a, struct session *s, char *msg, size_t msg_len)
{
	int err = preload_file(a->path, sizeof(a->path));

	if (err) {
		snprintf(msg, msg_len,
			 "no place for the adapter: /run, /dev/shm and /var/tmp cannot be written "
			 "to, or nothing can be executed there; --alloc map does without");
		return err;
	}
	a->env = preload_env(a->path, a->o->sample_bytes);
	if (!a->env)
		return -ENOMEM;
	err = load(a, s, 1, msg, msg_len);
	if (!err)
		err = uprobes_everywhere(a->probes, a->path);
	if (err && !msg[0])
		snprintf(msg, msg_len, "%s cannot be probed: %s; --alloc map does without", a->path,
			 strerror(-err));
	return err;
}

/* Why there will be no adapter, NULL: there will. */
static const char *no_adapter(const struct allocs_opts *o)
{
	if (!o->argv)
		return "it is there for a command that record starts: -- CMD";
	return preload_refused(o->argv[0], o->user);
}

static int open_named_adapter(struct allocs *a, struct session *s, char *msg, size_t msg_len)
{
	const char *why = no_adapter(a->o);

	/* What carries the probes needs nothing of ours. */
	if (!a->o->argv && announced(a->o->pids, a->o->nr_pids))
		return load(a, s, 1, msg, msg_len);
	if (!why)
		return open_adapter(a, s, msg, msg_len);
	snprintf(msg, msg_len, "--alloc adapter: %s%s%s; --alloc uprobe or map do without",
		 a->o->argv ? a->o->argv[0] : "", a->o->argv ? ": " : "", why);
	return -ENOTSUP;
}

/* Nothing here is worth ending a recording for. */
static int open_auto(struct allocs *a, struct session *s, char *msg, size_t msg_len)
{
	const char *why = NULL;
	int err = 0;

	if (a->o->argv) {
		why = no_adapter(a->o);
		err = why ? 0 : open_adapter(a, s, msg, msg_len);
	} else if (announced(a->o->pids, a->o->nr_pids)) {
		err = load(a, s, 1, msg, msg_len);
	} else {
		a->mode = ALLOC_MAP;
		return 0;
	}
	if (err)
		why = msg;
	if (why)
		snprintf(a->refused, sizeof(a->refused), "%s%s%s: owners are mappings",
			 a->o->argv && !err ? a->o->argv[0] : "", a->o->argv && !err ? ": " : "",
			 why);
	if (why) {
		uprobes_free(&a->probes);
		preload_env_free(&a->env);
		a->mode = ALLOC_MAP;
		msg[0] = 0;
	}
	return 0;
}

int allocs_open(struct session *s, const struct allocs_opts *o, char *msg, size_t msg_len,
		struct allocs **ret_a)
{
	struct allocs *a = calloc(1, sizeof(*a));
	int err = 0;

	if (!a)
		return -ENOMEM;
	a->o = o;
	a->mode = o->mode;
	/* Blind: msg says already what is missing. */
	if (session_blind(s) && o->mode == ALLOC_AUTO)
		a->mode = ALLOC_MAP;
	else if (session_blind(s) && o->mode != ALLOC_MAP)
		err = -EPERM;
	else if (o->mode == ALLOC_UPROBE)
		err = load(a, s, 0, msg, msg_len);
	else if (o->mode == ALLOC_ADAPTER)
		err = open_named_adapter(a, s, msg, msg_len);
	else if (o->mode == ALLOC_AUTO)
		err = open_auto(a, s, msg, msg_len);
	if (a->mode == ALLOC_AUTO)
		a->mode = ALLOC_ADAPTER;
	if (err)
		allocs_free(&a);
	else
		*ret_a = a;
	return err;
}

int allocs_start(struct allocs *a, pid_t child)
{
	if (!a->probes || a->path[0])
		return 0;
	return child ? uprobes_expect(a->probes, child, a->o->argv[0], a->o->user)
		     : uprobes_turn(a->probes);
}

int allocs_turn(struct allocs *a)
{
	return a->probes ? uprobes_turn(a->probes) : 0;
}

void allocs_detach(struct allocs *a)
{
	if (a->probes)
		uprobes_detach(a->probes);
}

void allocs_free(struct allocs **a)
{
	if (!*a)
		return;
	uprobes_free(&(*a)->probes);
	preload_env_free(&(*a)->env);
	free(*a);
	*a = NULL;
}

const char *allocs_file(const struct allocs *a)
{
	return a->env ? a->path : NULL;
}

char *const *allocs_env(const struct allocs *a)
{
	return a->env;
}

const char *allocs_provider(const struct allocs *a, const char **ret_stability,
			    const char **ret_reason)
{
	char *reason = ((struct allocs *)a)->reason;

	*ret_stability = "library symbol or USDT";
	*ret_reason = NULL;
	if (a->mode == ALLOC_UPROBE) {
		if (a->o->min_bytes > 1)
			snprintf(reason, sizeof(a->reason),
				 "allocations below %llu bytes are not recorded",
				 (unsigned long long)a->o->min_bytes);
		*ret_stability = "library symbol";
		*ret_reason = reason[0] ? reason : NULL;
		return "uprobes";
	}
	if (a->mode == ALLOC_ADAPTER) {
		*ret_reason = a->env && a->o->sample_bytes == 1
				      ? "mappings of allocators are not told from others"
				      : "sampled: numbers of allocations are estimates";
		return a->env ? "adapter" : "otel_memory probes";
	}
	*ret_stability = NULL;
	*ret_reason = "no allocator probe: owners are mappings";
	return NULL;
}

u64 allocs_silent(const struct allocs *a, u64 *ret_programs)
{
	*ret_programs = 0;
	return a->probes ? uprobes_silent(a->probes, ret_programs) : 0;
}

const char *allocs_refused(const struct allocs *a)
{
	if (a->refused[0])
		return a->refused;
	return a->probes ? uprobes_refused(a->probes) : NULL;
}
