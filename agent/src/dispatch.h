#ifndef DISPATCH_H
#define DISPATCH_H
#include <stddef.h>
#include <stdint.h>

/* A handler returns 0 for an empty OK, an errno for an ERROR, or ANSWERED when it has replied or will do so later.
   It changes nothing before it has seen that its payload is well formed. */
#define ANSWERED (-1)

/* One complete frame, without its length. */
void dispatch(uint8_t *frame, size_t size);
#endif
