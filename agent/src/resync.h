#ifndef RESYNC_H
#define RESYNC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cursor.h"

/* Whether a host has sent the token; until then there is no resync. */
bool resync_possible(void);
/* The place of a whole RESYNC frame with the right token; `size` when there is none. */
size_t resync_find(const uint8_t *bytes, size_t size);
/* Bytes at the end that may be the beginning of one. */
size_t resync_tail(size_t size);

int handle_resync_token(uint32_t request, struct cursor *payload);
int handle_resync(uint32_t request, struct cursor *payload);
#endif
