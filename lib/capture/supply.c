/* SPDX-License-Identifier: GPL-2.0-only */
#include "lib/capture/clock.h"
#include "lib/capture/libs.h"
#include "lib/capture/session.h"
#include "lib/capture/supply.h"
#include "lib/capture/unwinder.h"

#define SETTLE_NS 5000000000ull

static int watch(void *unwinder, const struct mp_hdr *rec)
{
	return unwinder_feed(unwinder, rec);
}

int supply_open(struct session *s, struct unwinder **ret_u)
{
	const struct bank_fds fds = session_banks(s);
	int err = unwinder_new(&fds, ret_u);

	if (!err)
		session_watch(s, watch, *ret_u);
	return err;
}

int supply_turn(struct session *s, struct unwinder *u)
{
	u64 left_out = unwinder_left_out(u);
	int err = unwinder_turn(u);

	session_count(s, MP_LOSS_TABLES, unwinder_left_out(u) - left_out);
	session_wake_by(s, unwinder_fd(u));
	return err;
}

static int expect(void *unwinder, const char *path)
{
	unwinder_expect(unwinder, path);
	return 0;
}

int supply_settle(struct session *s, struct unwinder *u, char *const *argv,
		  const struct spawn_user *user)
{
	u64 until = now_ns() + SETTLE_NS;
	/* CMD runs within a millisecond of its exec: what it will surely execute is read before. */
	int err = argv ? libs_of(argv[0], user, expect, u) : 0;

	if (!err)
		err = supply_turn(s, u);
	while (!err && unwinder_busy(u) && now_ns() < until) {
		err = session_poll(s, 20);
		if (!err)
			err = supply_turn(s, u);
	}
	return err;
}
