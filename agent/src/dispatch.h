#ifndef DISPATCH_H
#define DISPATCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A handler returns 0 for an empty OK, an errno for an ERROR, or ANSWERED when it has replied or will do so later.
   It changes nothing before it has seen that its payload is well formed. */
#define ANSWERED (-1)

/* Whether this type is served between QUIESCE and RESUME; others have to wait. */
bool dispatch_while_quiesced(uint8_t type);
/* One complete frame, without its length. */
void dispatch(uint8_t *frame, size_t size);
#endif
