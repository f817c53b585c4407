/* SPDX-License-Identifier: GPL-2.0-only
 * What becomes of a page after its first fault: which of the hooks for it this kernel has, and why
 * not the others. A recording without one of them lacks the columns it feeds, and says so. */
#ifndef MP_CAPTURE_LIFE_H
#define MP_CAPTURE_LIFE_H

struct life;
struct memprov_bpf;

enum life_hook {
	LIFE_RECLAIM,
	LIFE_SWAP_IN,
	LIFE_MIGRATE,
	LIFE_COLLAPSE,
	LIFE_MAJOR,
	LIFE_STALL,
	LIFE_HOOKS
};

/* Tried in this order: looking into the kernel's types takes as long as loading. */
enum life_choice {
	LIFE_ALL,
	LIFE_KNOWN, /* those that this kernel has, as far as its types say */
	LIFE_NONE,
};

/* Programs of an opened object that are not chosen will not be loaded. 0 or -ENOMEM. */
int life_choose(struct memprov_bpf *skel, enum life_choice choice, struct life **ret_l);
/* Once the object is loaded, what it does not attach itself. 0 or -errno. */
int life_attach(struct life *l, struct memprov_bpf *skel);
void life_detach(struct life *l);
/* Capability, provider and stability; returns why it is absent, NULL: it is there. */
const char *life_hook(const struct life *l, enum life_hook i, const char **ret_capability,
		      const char **ret_provider, const char **ret_stability);
/* Counters of swap entries come in batches: they tell nothing of the fault. */
void life_no_swap_in(struct life *l);
/* One that works here shows to see nothing after all. */
void life_drop(struct life *l, enum life_hook i, const char *why);
void life_free(struct life **l);

#endif
