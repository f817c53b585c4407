/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/btf.h>
#include "bpf/shared/types.h"
#include "lib/capture/privilege.h"
#include "lib/capture/refusal.h"

const char *refusal_lacks(enum refusal_of of)
{
	static const struct {
		enum refusal_of of;
		u32 kind;
		const char *name;
	} needs[] = {
		{REFUSAL_PROGRAMS, BTF_KIND_FUNC, "bpf_ringbuf_output"}, /* Linux 5.8 */
		{REFUSAL_ALLOC, BTF_KIND_FUNC, "bpf_get_attach_cookie"}, /* 5.15 */
		{REFUSAL_WALK, BTF_KIND_STRUCT, "bpf_iter__task_vma"}, /* 5.13 */
		{REFUSAL_WALK, BTF_KIND_FUNC, "bpf_loop"}, /* 5.17 */
	};
	struct btf *btf = btf__load_vmlinux_btf();
	const char *lacks = NULL;
	size_t i;

	for (i = 0; btf && !lacks && i < sizeof(needs) / sizeof(needs[0]); i++)
		if (needs[i].of == of &&
		    btf__find_by_name_kind(btf, needs[i].name, needs[i].kind) < 0)
			lacks = needs[i].name;
	btf__free(btf);
	return lacks;
}

/* Asked only after the kernel refused: the file alone proves nothing. */
static int locked_down(void)
{
	char line[128] = "";
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");

	if (!f)
		return 0;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	fclose(f);
	return strstr(line, "[confidentiality]") != NULL;
}

void refusal_explain(int err, char *msg, size_t len)
{
	int missing = privilege_missing(NEED_BPF | NEED_PERFMON);
	const char *lacks = refusal_lacks(REFUSAL_PROGRAMS);
	char names[64];

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		snprintf(msg, len,
			 "the kernel has no BTF (/sys/kernel/btf/vmlinux): boot one with "
			 "CONFIG_DEBUG_INFO_BTF");
	else if (lacks)
		snprintf(msg, len,
			 "the kernel is too old for these BPF programs, it has no %s: boot a newer "
			 "one",
			 lacks);
	else if (missing)
		snprintf(msg, len,
			 "no privilege to load BPF programs: %s missing: run as root or grant it",
			 privilege_names(missing, names, sizeof(names)));
	else if (locked_down())
		snprintf(msg, len,
			 "the kernel is locked down (confidentiality), so BPF may not read its "
			 "memory: boot with lockdown=integrity or none");
	else if (err == -EPERM || err == -EACCES)
		snprintf(msg, len,
			 "the kernel refused BPF (%s) to a process that has the capabilities: a "
			 "security policy; see its log, dmesg or ausearch",
			 strerror(-err));
	else if (err == -ENOMEM)
		snprintf(msg, len, "no memory for BPF maps: try a smaller --buffer");
	else
		snprintf(msg, len,
			 "cannot load or attach BPF programs: %s; -vv shows libbpf's words",
			 strerror(-err));
}
