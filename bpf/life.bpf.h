/* SPDX-License-Identifier: GPL-2.0-only
 * The life of a page after its first fault: swapped out and in again, moved, made part of a huge
 * page. Whoever does it - kswapd, khugepaged, another process - the page is a target's: whose and
 * where is read from the reverse map of anonymous memory. Of pages that a fork shares the first
 * mapping found gives the address, which is the same in all that did not move theirs.
 *
 * A kernel without one of these tracepoints is not followed there: see lib/capture/life.c. */
#ifndef MP_LIFE_BPF_H
#define MP_LIFE_BPF_H

#include "stack.bpf.h"

#define MAPPING_KIND	  3ull
#define MAPPING_ANON	  1ull
#define RMAP_DEPTH	  24 /* of a tree with some thousand mappings */
#define HUGE_PAGES	  512
#define HUGE_BYTES	  (HUGE_PAGES * MP_PAGE_SIZE)
#define SCAN_SUCCEED	  1
#define ADVICE_PAGEOUT	  21
#define NR_CALL_MADVISE	  28
#define NR_CALL_MADVISE_P 440 /* process_madvise */
#define RECLAIM_SPACES	  4

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct vm_area_struct___life {
	unsigned long vm_start, vm_end, vm_pgoff;
	struct mm_struct *vm_mm;
};

struct anon_vma_chain {
	struct vm_area_struct___life *vma;
	struct rb_node rb;
	unsigned long rb_subtree_last;
};

/* Also of its first page: the two begin alike. */
struct folio___life {
	void *mapping;
	unsigned long index, _flags_1;
	unsigned char _folio_order; /* before Linux 6.6; then in _flags_1 */
};

#pragma clang attribute pop

enum pageflags___life { PG_head = 0 };

u64 mp_vmemmap = 0; /* struct page of frame 0; 0: not known */
u64 mp_frame_mask = 0; /* of a page table entry */

/* What a thread, of whatever process, has taken pages from and not yet written. */
struct reclaimer {
	u32 spaces[RECLAIM_SPACES];
	u32 n, pages;
	u64 collapsing; /* address of the huge page that it makes */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct reclaimer);
} reclaimers SEC(".maps");

struct place {
	u64 addr; /* 0: not found */
	struct mm_struct *mm;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___counters {
	struct {
		int events;
	} rss_stat;
};
#pragma clang attribute pop

u32 mp_counters_late = 0; /* said to user space: rss_stat comes too late, see below */

/* Before Linux 6.2 a thread keeps its counters to itself for 64 faults, so that rss_stat says
 * nothing of the fault it comes in. Then the allocation is the only sign of any fault, and one that
 * maps pages of a file from the cache shows none. */
static __always_inline int counters_late(void)
{
#ifdef MP_BASIC
	return 1;
#else
	return bpf_core_field_exists(struct task_struct___counters, rss_stat);
#endif
}

/* ---- whose ---- */

/* Space of an address space, 0 when we do not follow it. */
static __always_inline u32 space_of(struct mm_struct *mm)
{
	u32 tgid, *space;

	if (!mm)
		return 0;
	tgid = BPF_CORE_READ(mm, owner, tgid);
	if (!maybe_followed(tgid))
		return 0;
	space = bpf_map_lookup_elem(&targets, &tgid);
	return space ? *space & ~MP_TARGET_JOINED : 0;
}

static __always_inline struct anon_vma_chain *chain_of(struct rb_node *node)
{
	return (void *)node - bpf_core_field_offset(struct anon_vma_chain, rb);
}

/* Where an anonymous page is mapped. */
static __always_inline void find_place(struct folio___life *folio, struct place *ret)
{
	u64 mapping = (u64)BPF_CORE_READ(folio, mapping), index = BPF_CORE_READ(folio, index);
	struct anon_vma *anon = (void *)(mapping & ~MAPPING_KIND);
	struct vm_area_struct___life *vma;
	struct rb_node *node, *left;
	u64 start, end, first;
	int i;

	ret->addr = 0;
	ret->mm = NULL;
	if ((mapping & MAPPING_KIND) != MAPPING_ANON)
		return;
	node = BPF_CORE_READ(anon, rb_root.rb_root.rb_node);
	for (i = 0; i < RMAP_DEPTH && node; i++) {
		vma = BPF_CORE_READ(chain_of(node), vma);
		start = BPF_CORE_READ(vma, vm_start);
		end = BPF_CORE_READ(vma, vm_end);
		first = BPF_CORE_READ(vma, vm_pgoff);
		if (index >= first && index - first < (end - start) / MP_PAGE_SIZE) {
			ret->addr = start + (index - first) * MP_PAGE_SIZE;
			ret->mm = BPF_CORE_READ(vma, vm_mm);
			return;
		}
		left = BPF_CORE_READ(node, rb_left);
		if (left && BPF_CORE_READ(chain_of(left), rb_subtree_last) >= index)
			node = left;
		else
			node = BPF_CORE_READ(node, rb_right);
	}
}

static __always_inline u32 pages_of(struct folio___life *folio)
{
	u64 flags = 0;

	if (!bpf_core_field_exists(folio->_flags_1) ||
	    bpf_probe_read_kernel(&flags, sizeof(flags), folio))
		return 1;
	if (!(flags >> bpf_core_enum_value(enum pageflags___life, PG_head) & 1))
		return 1;
	if (bpf_core_field_exists(folio->_folio_order))
		return 1u << (BPF_CORE_READ(folio, _folio_order) & 15);
	return 1u << (BPF_CORE_READ(folio, _flags_1) & 15);
}

/* ---- events ---- */

static __always_inline void send_detail(void *rec, u32 size)
{
	struct mp_hdr *hdr = rec;

	if (lose(cfg_lose_detail, hdr->seq) ||
	    bpf_ringbuf_output(&detail_ring, rec, size, DETAIL_WAKE))
		count_loss(MP_LOSS_DETAIL_RING, MP_CLASS_PAGE, hdr->space);
}

static __always_inline void send_edge(u32 space, u64 addr, u32 pages, u32 kind)
{
	MP_RECORD(edge) r = {};

	fill_hdr(&r.hdr, MP_EV_EDGE, sizeof(r), space);
	r.ev.addr = addr / MP_PAGE_SIZE * MP_PAGE_SIZE;
	r.ev.pages = pages;
	r.ev.kind = kind;
	send_detail(&r, sizeof(r));
}

/* Does the thread show the registers of its latest fault? */
static __always_inline int at_fault(const struct thread *t)
{
#ifdef MP_BASIC
	/* They lie where those of a fault or call of the thread always do. */
	struct pt_regs *regs = (struct pt_regs *)t->fault.regs;

	return BPF_CORE_READ(regs, ip) == t->fault.ip && BPF_CORE_READ(regs, sp) == t->fault.sp &&
	       BPF_CORE_READ(regs, orig_ax) == (unsigned long)-1;
#else
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	return regs->ip == t->fault.ip && regs->sp == t->fault.sp &&
	       regs->orig_ax == (unsigned long)-1;
#endif
}

/* ---- swap ---- */

static __always_inline struct reclaimer *this_reclaimer(int make)
{
#ifdef MP_BASIC
	return NULL;
#else
	return bpf_task_storage_get(&reclaimers, bpf_get_current_task_btf(), NULL,
				    make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
#endif
}

/* Of its own memory a thread reclaims inside the bracket, or by advice; all else that changes the
 * number of its swap entries makes none. */
static __always_inline int may_reclaim(const struct thread *t, struct mm_struct *mm)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 call;

	if (task->mm != mm || (t && t->fault.reclaim))
		return 1;
	call = ((struct pt_regs *)bpf_task_pt_regs(task))->orig_ax;
	if (t && t->call.nr == NR_CALL_MADVISE)
		return call == NR_CALL_MADVISE && t->call.args[2] == ADVICE_PAGEOUT;
	return call == NR_CALL_MADVISE_P;
}

static __always_inline void note_reclaimed(struct mm_struct *mm)
{
	u32 space = space_of(mm);
	struct reclaimer *r = space ? this_reclaimer(1) : NULL;
	u32 n;

	if (!space)
		return;
	if (!r) {
		count_loss(MP_LOSS_INFLIGHT, MP_CLASS_PAGE, space);
		return;
	}
	n = r->n;
	r->pages++;
	if (n && n <= RECLAIM_SPACES && r->spaces[n - 1] == space)
		return;
	/* So many, and nothing was written: entries went, as swapoff makes them go. */
	if (n >= RECLAIM_SPACES) {
		n = 0;
		r->pages = 1;
	}
	r->spaces[n] = space;
	r->n = n + 1;
}

/* The number of swap entries of a space went up or down: it is not said which. In a fault that has
 * got its page it went down. */
static __always_inline void swap_entry_changed(struct thread *t, struct mm_struct *mm)
{
	if (t && t->fault.done && !t->fault.reclaim && at_fault(t)) {
		t->fault.done = 0;
		send_edge(t->space, t->fault.addr, 1u << (t->fault.order & 15), MP_EDGE_REFAULTED);
	} else if (may_reclaim(t, mm)) {
		note_reclaimed(mm);
	}
}

/* The page that the thread has just taken from them is in swap. What it took beyond it was there
 * already, unchanged: which pages those are is not told. */
SEC("tp_btf/mm_vmscan_write_folio")
int BPF_PROG(on_write_folio, struct folio___life *folio)
{
	struct reclaimer *r = this_reclaimer(0);
	u32 i, n, pages, space;
	struct place at;

	if (!(r && r->n) && !counters_late())
		return 0;
	pages = pages_of(folio);
	find_place(folio, &at);
	if (counters_late() || !r) {
		space = space_of(at.mm);
		if (space)
			send_edge(space, at.addr, pages, MP_EDGE_RECLAIMED);
		return 0;
	}
	n = r->n;
	for (i = 0; i < n && i < RECLAIM_SPACES; i++)
		send_edge(r->spaces[i], at.addr, pages, MP_EDGE_RECLAIMED);
	if (n == 1 && r->pages > pages)
		send_edge(r->spaces[0], 0, r->pages - pages, MP_EDGE_RECLAIMED);
	r->n = r->pages = 0;
	return 0;
}

/* ---- time spent on it ---- */

static __always_inline void reclaim_begins(void)
{
	struct reclaimer *r = this_reclaimer(0);
	struct thread *t = current_thread(MP_CLASS_PAGE);

	if (r)
		r->n = r->pages = 0;
	if (!t)
		return;
	t->fault.reclaim = 1;
	t->fault.reclaim_ns = bpf_ktime_get_ns();
}

static __always_inline void reclaim_ends(void *ctx)
{
	struct thread *t = known_thread();
	MP_RECORD(reclaim) r = {};

	if (!t || !t->fault.reclaim)
		return;
	t->fault.reclaim = 0;
	if (!t->space)
		return;
	r.ev.stack = user_stack(ctx, t, 0);
	fill_hdr(&r.hdr, MP_EV_RECLAIM, sizeof(r), t->space);
	r.ev.addr = t->fault.open && at_fault(t) ? t->fault.addr : 0;
	r.ev.stall = r.hdr.time_ns - t->fault.reclaim_ns;
	r.ev.tid = bpf_get_current_pid_tgid();
	send_detail(&r, sizeof(r));
}

/* struct bpf_perf_event_data of x86-64. */
struct fault_sample {
	u64 regs[21], period, addr;
};

/* perf's software event of a fault that had to wait for a page: it comes when the fault is over. */
SEC("perf_event")
int on_major_fault(struct fault_sample *ctx)
{
	struct thread *t = known_thread();

	if (t && t->space)
		send_edge(t->space, ctx->addr, 1, MP_EDGE_MAJOR);
	return 0;
}

/* ---- frames ---- */

/* A page has been copied, and is mapped again where it was. */
SEC("tp_btf/remove_migration_pte")
int BPF_PROG(on_moved, unsigned long addr, unsigned long pte, int order)
{
	u64 frame = (pte & mp_frame_mask) / MP_PAGE_SIZE;
	struct folio___life *folio = (void *)(mp_vmemmap + frame * bpf_core_type_size(struct page));
	struct place at;
	u32 space;

	/* A large folio's mapping is in its first page, which this need not be. */
	if (!mp_vmemmap || order)
		return 0;
	find_place(folio, &at);
	space = at.mm ? space_of(at.mm) : 0;
	if (space)
		send_edge(space, addr, 1, MP_EDGE_MIGRATED);
	return 0;
}

SEC("tp_btf/mm_collapse_huge_page_isolate")
int BPF_PROG(on_isolated, struct folio___life *folio)
{
	struct reclaimer *r;
	struct place at;

	if (!folio)
		return 0;
	find_place(folio, &at);
	if (!at.mm || !space_of(at.mm))
		return 0;
	r = this_reclaimer(1);
	if (r)
		r->collapsing = at.addr / HUGE_BYTES * HUGE_BYTES;
	return 0;
}

SEC("tp_btf/mm_collapse_huge_page")
int BPF_PROG(on_collapsed, struct mm_struct *mm, int isolated, int status)
{
	struct reclaimer *r = this_reclaimer(0);
	u32 space = status == SCAN_SUCCEED ? space_of(mm) : 0;

	if (space)
		send_edge(space, r ? r->collapsing : 0, HUGE_PAGES, MP_EDGE_COLLAPSED);
	if (r)
		r->collapsing = 0;
	return 0;
}

#endif
