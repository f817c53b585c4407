/* SPDX-License-Identifier: GPL-2.0-only
 * Expansions of event.def and loss.def: enums and wire structs, used by BPF and C alike. */
#ifndef MP_SHARED_EVENT_H
#define MP_SHARED_EVENT_H

#include "types.h"

/* In front of every record, in the ring and on disk. size counts this header, the body and the
 * tail, and is a multiple of 8. seq is one counter for the whole recording, taken before the
 * ring is asked for room: it gives one causal order across spaces and rings. */
struct mp_hdr {
	u16 type;
	u16 size;
	u32 space;
	u64 seq;
	u64 time_ns; /* CLOCK_MONOTONIC */
};

enum mp_event_type {
#define MP_EVENT(NAME, num, name, doc) MP_EV_##NAME = num,
#define MP_FIELD(ev, type, field, unit, doc)
#define MP_END(ev)
#include "event.def"
#undef MP_EVENT
#undef MP_FIELD
#undef MP_END
	MP_EV_MAX = 96
};

#define MP_EVENT(NAME, num, name, doc)	     struct mp_ev_##name {
#define MP_FIELD(ev, type, field, unit, doc) type field;
#define MP_END(ev) \
	}          \
	;
#include "event.def"
#undef MP_EVENT
#undef MP_FIELD
#undef MP_END

/* A sum that differs from sizeof() means padding; padding means leaked bytes and a format that
 * depends on the compiler. */
#define MP_EVENT(NAME, num, name, doc) _Static_assert(sizeof(struct mp_ev_##name) == 0
#define MP_FIELD(ev, type, field, unit, doc) +sizeof(type)
#define MP_END(ev) , "padding in " #ev); \
	_Static_assert(sizeof(struct mp_ev_##ev) % 8 == 0, #ev " is not a multiple of 8");
#include "event.def"
#undef MP_EVENT
#undef MP_FIELD
#undef MP_END

enum mp_loss_cause {
#define MP_LOSS(NAME, num, name, what, doc) MP_LOSS_##NAME = num,
#include "loss.def"
#undef MP_LOSS
	MP_LOSS_BY_CLASS = 16, /* the cause is in a record of its own */
	MP_LOSS_MAX = 24
};

/* A bit for each cause of which events are missing. */
#define EVENTS 1u
#define NAMES  0u
enum {
	MP_LOSSES_OF_EVENTS = 0
#define MP_LOSS(NAME, num, name, what, doc) | what << num
#include "loss.def"
#undef MP_LOSS
};
#undef EVENTS
#undef NAMES

enum mp_class {
	MP_CLASS_SPACE = 0,
	MP_CLASS_MAP = 1,
	MP_CLASS_PAGE = 2,
	MP_CLASS_ALLOC = 3,
	MP_CLASS_MAX = 4, /* of no class: no number is weaker for it */
};
enum mp_unwind {
	MP_UNWIND_NONE = 0,
	MP_UNWIND_FP = 1,
	MP_UNWIND_TABLE = 2,
	MP_UNWIND_MIXED = 3, /* tables, and where there were none frame pointers or the code */
	MP_UNWIND_KERNEL = 4, /* the kernel's own walk, by frame pointers */
	MP_UNWIND_COPY = 5, /* afterwards, from a copy of the stack */
};
enum mp_stack_end {
	MP_STACK_WHOLE =
		0, /* the start of the program or thread, or of the chain of frame pointers */
	MP_STACK_DEEP = 1, /* MP_STACK_DEPTH */
	MP_STACK_CUT = 2, /* a caller could not be found */
	MP_STACK_GOES_ON = 3, /* in no record */
};
/* How the caller of a pc is found by the module's unwind tables. A chain of frame pointers is whole
 * only across MP_FRAME_POINTER; anywhere else it may have skipped callers. */
enum mp_frame {
	MP_FRAME_UNKNOWN = 0, /* no tables */
	MP_FRAME_POINTER = 1, /* the frame lies at the frame pointer */
	MP_FRAME_TOP = 2, /* the return address is the word at the stack pointer */
	MP_FRAME_HIDDEN = 3, /* elsewhere on the stack */
	MP_FRAME_LAST = 4, /* nobody called it: program or thread start */
};
enum mp_space_cause {
	MP_SPACE_ATTACH = 0,
	MP_SPACE_FORK = 1,
	MP_SPACE_EXEC = 2,
	MP_SPACE_JOIN =
		3, /* CLONE_VM without CLONE_THREAD, or vfork: same space, one member more */
};
enum mp_map_kind { MP_MAP_MMAP = 0, MP_MAP_BRK = 1, MP_MAP_SHMAT = 2 };
enum mp_inside { MP_INSIDE_NONE = 0, MP_INSIDE_ALLOC = 1 };
/* Blocks of a pool lie in blocks of malloc, or in mappings of their own. */
enum mp_family { MP_FAMILY_MALLOC = 0, MP_FAMILY_POOL = 1, MP_FAMILY_MAX = 2 };
/* What the pattern of a NAME_RULE is compared with. */
enum mp_named_by {
	MP_BY_FUNCTION = 0,
	MP_BY_MAPPING = 1,
	MP_BY_FILE = 2,
	MP_BY_MAX = 3,
};
enum mp_walk_provider { MP_WALK_BPF = 0, MP_WALK_PAGEMAP = 1, MP_WALK_SMAPS = 2 };
enum mp_end {
	MP_END_DURATION = 0,
	MP_END_SIGNAL = 1,
	MP_END_TARGET = 2,
	MP_END_SIZE = 3,
	MP_END_OOM = 4, /* a process was killed; the last picture is from before that */
};

/* Why a flight recorder has written its file. */
enum mp_trigger {
	MP_TRIGGER_END = 0, /* the recording ended */
	MP_TRIGGER_SIGNAL = 1, /* it was asked to, and goes on */
	MP_TRIGGER_PSI = 2,
	MP_TRIGGER_RSS = 3,
	MP_TRIGGER_CGROUP = 4,
	MP_TRIGGER_REFAULT = 5,
	MP_TRIGGER_OOM = 6,
	MP_TRIGGER_MAX = 7,
};

enum mp_fault_flags {
	MP_FAULT_MAJOR = 1, /* the rss swap member went down inside the fault */
	MP_FAULT_AMBIGUOUS = 2, /* more than one candidate allocation */
	MP_FAULT_ALLOC = 4, /* inside a call of an allocator */
};

enum mp_edge {
	MP_EDGE_RECLAIMED = 1, /* taken out of the page table and written to swap */
	MP_EDGE_REFAULTED = 2, /* brought back from swap by a fault */
	MP_EDGE_MIGRATED = 3, /* moved to another frame */
	MP_EDGE_COLLAPSED = 4, /* small pages became a huge one */
	MP_EDGE_MAJOR = 5, /* a fault that waited for a page to be read */
};

enum mp_vma_flags {
	MP_VMA_READ = 1,
	MP_VMA_WRITE = 2,
	MP_VMA_EXEC = 4,
	MP_VMA_SHARED = 8,
	MP_VMA_HUGETLB = 16,
	MP_VMA_SHMEM = 32,
	MP_VMA_PFNMAP = 64,
	MP_VMA_STACK = 128,
	MP_VMA_GATE = 256, /* [vsyscall]: not in the mm */
	MP_VMA_NORESERVE = 512, /* MAP_NORESERVE */
	MP_VMA_NOHUGE = 1024, /* MADV_NOHUGEPAGE, or MAP_STACK since Linux 6.7 */
};

enum mp_page_flags {
	MP_PAGE_RESIDENT = 1, /* counted in Rss */
	MP_PAGE_SWAPPED = 2, /* a swap entry in the page table */
	MP_PAGE_THP = 4, /* PMD-mapped */
	MP_PAGE_FILE = 8, /* file or shmem page */
	MP_PAGE_ZERO = 16, /* zero page: mapped, in nobody's Rss */
	MP_PAGE_MIGRATING = 32,
	MP_PAGE_YOUNG = 64,
	MP_PAGE_DIRTY = 128,
	MP_PAGE_KSM = 256,
	MP_PAGE_RACING = 512, /* its page table changed while it was read */
	MP_PAGE_HUGETLB = 1024, /* mapped from the hugetlb pool: not in Rss */
	MP_PAGE_CHARGED = 4096, /* to the recorded cgroup, and in no picture of this round before */
};

/* Why an accessed bit may be gone though the page was accessed, or be there though it was not. */
enum mp_doubt {
	MP_DOUBT_FLUSH = 1, /* a processor may have kept a translation from before */
	MP_DOUBT_RECLAIM = 2, /* reclaim looked for pages */
	MP_DOUBT_AGING = 4, /* the multi-generational LRU is on */
	MP_DOUBT_DAMON = 8, /* a kdamond runs */
	MP_DOUBT_MIGRATION = 16, /* pages moved */
	MP_DOUBT_GUEST = 32, /* a virtual machine, whose accesses leave no bit */
	MP_DOUBT_OTHER = 64, /* somebody else reads and clears them */
	MP_DOUBT_GAP =
		256, /* pages were touched between being read and cleared, in a later cycle */
	MP_DOUBT_UNKNOWN = 128, /* the recording ended before it was known */
};

/* What a CHECK was read from. The counters of status are behind by a batch a cpu (Linux 6.2
 * to 6.15), and cost nothing. */
enum mp_check_source { MP_CHECK_SMAPS = 0, MP_CHECK_STATUS = 1 };

/* NOW: of a recording that is shown as it goes on, at any time; in no file. */
enum mp_cgroup_when {
	MP_CGROUP_START = 0,
	MP_CGROUP_BEFORE = 1,
	MP_CGROUP_AFTER = 2,
	MP_CGROUP_NOW = 3,
};
enum mp_cgroup_flags {
	MP_CGROUP_ROOT = 1, /* the whole hierarchy: no counter, the kernel adds up memory.stat */
	MP_CGROUP_PAGES = 2, /* every page of the machine was asked whose it is */
	MP_CGROUP_ASKED = 4, /* the pages of pictures are */
};
enum mp_stat_unit { MP_UNIT_NUMBER = 0, MP_UNIT_BYTES = 1, MP_UNIT_US = 2 };
enum mp_stat_state { MP_STAT_VALUE = 0, MP_STAT_UNLIMITED = 1 };

#define MP_STACK_DEPTH 127
/* A copy behind the frames of a STACK: the registers as ptrace(2) has them in the first 21 words of
 * struct user_regs_struct, then the stack from the stack pointer up. */
#define MP_COPY_REGS	 168u
#define MP_COPY_STACK	 8192u
#define MP_STRING_MAX	 4096
#define MP_PAGE_SIZE	 4096ull
#define MP_RESOURCE_NAME 124 /* bytes of a resource's name and the zero behind it */

#endif
