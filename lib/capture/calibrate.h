/* SPDX-License-Identifier: GPL-2.0-only
 * What the page-table walk must know of this kernel, measured on memprov's own pages, and the proof
 * that it decodes them right. */
#ifndef MP_CAPTURE_CALIBRATE_H
#define MP_CAPTURE_CALIBRATE_H

#include <stddef.h>
#include "bpf/shared/types.h"

struct pagewalk;

struct calibration {
	u64 direct; /* kernel address of physical page 0 */
	u64 vmemmap; /* struct page of frame 0 */
	u64 frame_mask; /* bits of a table entry that hold the frame */
	u32 levels; /* 4 or 5 */
};

/* 0, or -errno with the reason in msg. */
int calibrate(struct calibration *ret_c, char *msg, size_t len);
/* Walks prepared pages of every state that can be made here (untouched, written, read only, without
 * access, guard, shared twice, huge, swapped) by the tables and by pagemap: both must agree, and
 * with what was prepared. 0, or -EBADMSG with the first difference in msg. */
int calibration_prove(struct pagewalk *w, char *msg, size_t len);

#endif
