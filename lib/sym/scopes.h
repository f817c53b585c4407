/* SPDX-License-Identifier: GPL-2.0-only
 * Which function, and which functions inlined into it, the code at an address is of. libdw's own
 * dwarf_getscopes() does not look into namespaces and types, where Rust and clang put functions.
 * Internal to lib/sym. */
#ifndef MP_SYM_SCOPES_H
#define MP_SYM_SCOPES_H

#include <elfutils/libdw.h>

struct scopes; /* the functions of the units that were asked for */

void scopes_free(struct scopes **s);
/* The function that pc of this unit is in, then those inlined there, each in the one before. At
 * most max; 0 when none; -ENOMEM. *s is made when NULL. */
int scopes_at(struct scopes **s, Dwarf_Die *cu, Dwarf_Addr pc, Dwarf_Die *ret, int max);

#endif
