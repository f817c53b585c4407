/* SPDX-License-Identifier: GPL-2.0-only
 * The BPF object: one subject per header, linked here into one skeleton. */
#include "emit.bpf.h"
#include "task.bpf.h"
#include "map.bpf.h"
#include "page.bpf.h"
#include "oom.bpf.h"

char LICENSE[] SEC("license") = "GPL";
