/* SPDX-License-Identifier: GPL-2.0-only
 * Text that reaches terminals and JSON. */
#ifndef MP_CAPTURE_UTF8_H
#define MP_CAPTURE_UTF8_H

#include <stddef.h>
#include "bpf/shared/types.h"

/* Length of the UTF-8 character at p, of which len > 0 bytes are there; 0 when it is none or a
 * control character. */
size_t utf8_len(const u8 *p, size_t len);

#endif
