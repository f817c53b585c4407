/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "bpf/shared/config.h"
#include "lib/capture/banks.h"
#include "lib/capture/clock.h"

#define MAX_BYTES (128ull << 20) /* of all tables */
#define UNIT	  16u /* ranges are given out in blocks of so many */
#define NR_UNITS  (MP_MAX_RANGES / UNIT)
#define REST_NS	  200000000ull

/* A block that was given back may still be searched by a program that is running: it rests until
 * the second look at the clock. */
enum unit { UNIT_FREE, UNIT_USED, UNIT_OLD, UNIT_OLDER };

struct banks {
	struct bank_fds fd;
	struct mp_range *ranges;
	u8 units[NR_UNITS];
	u64 rested_ns;
	u32 nr_banks;
	int bank_fd; /* of the last one, -1: none */
	u32 cells, used; /* of the last one */
	u64 bytes;
};

int banks_open(const struct bank_fds *fds, struct banks **ret_b)
{
	struct banks *b = calloc(1, sizeof(*b));
	size_t len = MP_MAX_RANGES * sizeof(*b->ranges);
	void *p;

	if (!b)
		return -ENOMEM;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fds->ranges, 0);
	if (p == MAP_FAILED) {
		free(b);
		return -errno;
	}
	/* A child that reads tables must not reach the ranges. */
	madvise(p, len, MADV_DONTFORK);
	b->fd = *fds;
	b->ranges = p;
	b->bank_fd = -1;
	*ret_b = b;
	return 0;
}

void banks_free(struct banks **b)
{
	if (!*b)
		return;
	if ((*b)->bank_fd >= 0)
		close((*b)->bank_fd);
	munmap((*b)->ranges, MP_MAX_RANGES * sizeof(*(*b)->ranges));
	free(*b);
	*b = NULL;
}

u64 banks_bytes(const struct banks *b)
{
	return b ? b->bytes : 0;
}

/* ---- tables ---- */

static int add_bank(struct banks *b, u32 cells)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	u32 key = b->nr_banks;
	int fd, err = 0;

	if (cells < MP_BANK_CELLS)
		cells = MP_BANK_CELLS;
	if (key == MP_MAX_BANKS || b->bytes + cells * sizeof(u64) > MAX_BYTES)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "mp_bank", sizeof(u32), sizeof(u64), cells, &opts);
	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(b->fd.banks, &key, &fd, BPF_ANY))
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	if (b->bank_fd >= 0)
		close(b->bank_fd); /* the map of banks holds it */
	b->bank_fd = fd;
	b->nr_banks++;
	b->cells = cells;
	b->used = 0;
	b->bytes += cells * sizeof(u64);
	return 0;
}

int banks_add(struct banks *b, const struct unwind_table *t, struct table_at *ret)
{
	u32 rules = t->nr_rules * MP_RULE_CELLS, cells = rules + t->nr_rows;
	u64 *to;
	int err;

	if (b->bank_fd < 0 || b->cells - b->used < cells) {
		err = add_bank(b, cells);
		if (err)
			return err;
	}
	to = mmap(NULL, b->cells * sizeof(u64), PROT_READ | PROT_WRITE, MAP_SHARED, b->bank_fd, 0);
	if (to == MAP_FAILED)
		return -errno;
	memcpy(to + b->used, t->cells, cells * sizeof(u64));
	munmap(to, b->cells * sizeof(u64));
	*ret = (struct table_at){b->nr_banks - 1, b->used, b->used + rules, t->nr_rows};
	b->used += cells;
	return 0;
}

/* ---- ranges ---- */

static void rest(struct banks *b)
{
	u64 now = now_ns();
	u32 i;

	if (now - b->rested_ns < REST_NS)
		return;
	b->rested_ns = now;
	for (i = 0; i < NR_UNITS; i++)
		if (b->units[i] == UNIT_OLDER)
			b->units[i] = UNIT_FREE;
		else if (b->units[i] == UNIT_OLD)
			b->units[i] = UNIT_OLDER;
}

static u32 units_of(size_t nr)
{
	return (u32)((nr + UNIT - 1) / UNIT);
}

static void set_units(struct banks *b, const struct mp_span *at, enum unit to)
{
	memset(&b->units[at->first / UNIT], to, units_of(at->nr));
}

/* First fit. */
static int find_room(struct banks *b, size_t nr, struct mp_span *ret)
{
	u32 want = units_of(nr), i, run = 0;

	rest(b);
	for (i = 0; i < NR_UNITS; i++) {
		run = b->units[i] == UNIT_FREE ? run + 1 : 0;
		if (run < want)
			continue;
		*ret = (struct mp_span){.first = (i + 1 - want) * UNIT, .nr = (u32)nr};
		return 0;
	}
	return -ENOSPC;
}

void banks_withdraw(struct banks *b, u32 space, struct mp_span *at)
{
	bpf_map_delete_elem(b->fd.spans, &space);
	set_units(b, at, UNIT_OLD);
	*at = (struct mp_span){0};
}

u32 banks_code(const struct banks *b, u32 space)
{
	struct mp_space_loss loss;

	return bpf_map_lookup_elem(b->fd.losses, &space, &loss) ? 0 : (u32)loss.code;
}

int banks_publish(struct banks *b, u32 space, const struct mp_range *r, size_t nr, u32 code,
		  struct mp_span *at)
{
	struct mp_span to;
	int err = nr ? find_room(b, nr, &to) : -ENODATA;

	if (!err) {
		to.code = code;
		memcpy(&b->ranges[to.first], r, nr * sizeof(*r));
		if (bpf_map_update_elem(b->fd.spans, &space, &to, BPF_ANY))
			err = errno == E2BIG ? -ENOSPC : -errno;
	}
	if (err) {
		banks_withdraw(b, space, at);
	} else {
		set_units(b, at, UNIT_OLD);
		set_units(b, &to, UNIT_USED);
		*at = to;
	}
	__atomic_fetch_add(b->fd.generation, 1, __ATOMIC_SEQ_CST);
	return err == -ENODATA ? 0 : err;
}
