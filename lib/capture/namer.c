/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/inmate.h"
#include "lib/capture/namer.h"
#include "lib/text/text.h"

#define MAX_TEXT     4095
#define MAX_CHILDREN 16 /* one more for each file that brought one down */
#define SPOT_MS	     10000 /* the first of a file included */
#define ALL_MS	     300000

/* The pipe: for each spot in order one head, then nr times a frame with its three texts. */
struct head {
	u32 spot, nr, frame, size;
};
struct frame {
	u32 line, inlined;
	u16 len[3]; /* function, file, build id; 0 unknown */
	u16 reserved;
};
#define MAX_PAYLOAD (NAMER_MAX_INLINE * (sizeof(struct frame) + 3ul * MAX_TEXT))

struct namer {
	struct sym_files *files;
	const struct sym_spot *spots;
	size_t nr;
	const int *fds;
	size_t nr_fds;
	u64 deadline_ms;
	struct inmate child;
	size_t at; /* where it begins */
	u8 payload[MAX_PAYLOAD];
	char text[MAX_PAYLOAD + 3 * NAMER_MAX_INLINE];
};

static u8 *put_text(u8 *p, u16 *ret_len, const char *s)
{
	size_t len = s ? strnlen(s, MAX_TEXT) : 0;

	memcpy(p, s ? s : "", len);
	*ret_len = (u16)len;
	return p + len;
}

/* The child. Sends each answer before it looks at the next spot: the parent knows by that which
 * file was being read when the answers stop. */
static int answer(void *ctx, int out)
{
	struct namer *k = ctx;
	size_t at = k->at;
	static struct sym_frame f[NAMER_MAX_INLINE];
	int i, n;

	for (; at < k->nr; at++) {
		struct head head = {.spot = (u32)at};
		u8 *p = k->payload;

		n = sym_resolve(k->files, &k->spots[at], f, NAMER_MAX_INLINE);
		if (n < 0)
			return 1;
		head.nr = (u32)n;
		head.frame = (u32)sym_unwind(k->files, &k->spots[at]);
		for (i = 0; i < n; i++) {
			struct frame fr = {.line = f[i].line, .inlined = (u32)f[i].inlined};
			u8 *q = p + sizeof(fr);

			q = put_text(q, &fr.len[0], f[i].function);
			q = put_text(q, &fr.len[1], f[i].file);
			q = put_text(q, &fr.len[2], f[i].build_id);
			memcpy(p, &fr, sizeof(fr));
			p = q;
		}
		head.size = (u32)(p - k->payload);
		if (inmate_write(out, &head, sizeof(head)) ||
		    inmate_write(out, k->payload, head.size))
			return 1;
	}
	return 0;
}

static int read_full(struct namer *k, void *buf, size_t len)
{
	u64 until = now_ms() + SPOT_MS;

	return inmate_read(&k->child, buf, len, until < k->deadline_ms ? until : k->deadline_ms);
}

static const char *get_text(char **out, const u8 *p, size_t len)
{
	char *text = *out, *q = text;
	size_t n;

	if (!len)
		return NULL;
	while (len) {
		n = text_char(p, len);
		if (n)
			memcpy(q, p, n);
		else
			*q = '?';
		q += n ? n : 1;
		p += n ? n : 1;
		len -= n ? n : 1;
	}
	*q++ = 0;
	*out = q;
	return text;
}

static int parse(struct namer *k, const struct head *head, const struct sym_frame *where,
		 struct sym_frame *ret)
{
	const u8 *p = k->payload, *end = p + head->size;
	char *text = k->text;
	struct frame fr;
	u32 i, t;

	for (i = 0; i < head->nr; i++) {
		const char *s[3];

		if ((size_t)(end - p) < sizeof(fr))
			return -EBADMSG;
		memcpy(&fr, p, sizeof(fr));
		p += sizeof(fr);
		for (t = 0; t < 3; t++) {
			if (fr.len[t] > MAX_TEXT || fr.len[t] > end - p)
				return -EBADMSG;
			s[t] = get_text(&text, p, fr.len[t]);
			p += fr.len[t];
		}
		ret[i] = *where;
		ret[i].function = s[0];
		ret[i].file = s[1];
		ret[i].build_id = s[2];
		ret[i].line = fr.line;
		ret[i].inlined = !!fr.inlined;
	}
	return p == end ? 0 : -EBADMSG;
}

static int next_answer(struct namer *k, size_t at, const struct sym_frame *where,
		       struct sym_frame *ret, u32 *ret_nr, u32 *ret_frame)
{
	struct head head;
	int err = read_full(k, &head, sizeof(head));

	if (err)
		return err;
	if (head.spot != at || head.nr > NAMER_MAX_INLINE || !head.nr ||
	    head.frame > MP_FRAME_LAST || head.size > MAX_PAYLOAD)
		return -EBADMSG;
	err = read_full(k, k->payload, head.size);
	if (!err)
		err = parse(k, &head, where, ret);
	*ret_nr = head.nr;
	*ret_frame = head.frame;
	return err;
}

/* One child from spot at on; where it got to. */
static size_t run_child(struct namer *k, size_t at, name_fn fn, void *ctx, const u8 *readable,
			int *ret_err)
{
	struct sym_frame where, frames[NAMER_MAX_INLINE];
	u32 nr, frame;
	int err = 0;

	for (; at < k->nr && !err; at++) {
		where = sym_place(k->files, &k->spots[at]);
		if (next_answer(k, at, &where, frames, &nr, &frame))
			break;
		err = fn(ctx, at, frames, (int)nr, frame,
			 readable[at] && !sym_has_file(k->files, k->spots[at].file));
	}
	*ret_err = err;
	return at;
}

static int name_from(struct namer *k, const u8 *readable, name_fn fn, void *ctx)
{
	struct sym_frame where;
	int children = 0, err = 0;
	size_t at = 0;

	while (at < k->nr && !err && children++ < MAX_CHILDREN && now_ms() < k->deadline_ms) {
		k->at = at;
		if (inmate_start(&k->child, "memprov-names", k->fds, k->nr_fds, answer, k))
			break;
		at = run_child(k, at, fn, ctx, readable, &err);
		inmate_end(&k->child);
		if (at == k->nr || err)
			break;
		if (!sym_has_file(k->files, k->spots[at].file))
			break; /* no file is to blame: there is no point in another child */
		sym_forget(k->files, k->spots[at].file);
	}
	for (; at < k->nr && !err; at++) {
		where = sym_place(k->files, &k->spots[at]);
		err = fn(ctx, at, &where, 1, MP_FRAME_UNKNOWN, readable[at]);
	}
	return err;
}

int name_all(struct sym_files *files, const struct sym_spot *spots, size_t nr, const int *fds,
	     size_t nr_fds, name_fn fn, void *ctx)
{
	struct namer *k;
	u8 *readable;
	size_t i;
	int err = -ENOMEM;

	if (!nr)
		return 0;
	k = malloc(sizeof(*k));
	readable = malloc(nr);
	if (!k || !readable)
		goto out;
	k->files = files;
	k->spots = spots;
	k->nr = nr;
	k->fds = fds;
	k->nr_fds = nr_fds;
	k->deadline_ms = now_ms() + ALL_MS;
	for (i = 0; i < nr; i++)
		readable[i] = (u8)sym_has_file(files, spots[i].file);
	err = name_from(k, readable, fn, ctx);
out:
	free(readable);
	free(k);
	return err;
}
