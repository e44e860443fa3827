#ifndef OUTBOX_H
#define OUTBOX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

/* Above this no OUTPUT and no CONNECTION_DATA is added. */
#define OUTBOX_EVENTS 262144u
/* Above this no request is read, so a host that does not read cannot make the agent grow. */
#define OUTBOX_REQUESTS 524288u

/* A frame is built between begin and end, in the buffer that begin returns. */
struct buffer *frame_begin(uint8_t type, uint32_t request);
void frame_end(void);
void reply_ok(uint32_t request);
void reply_error(uint32_t request, int error, const char *about);

size_t outbox_size(void);
bool outbox_has_room_for_events(void);
/* Holding keeps replies back; its end sends them, or drops them when their host has disconnected. */
void outbox_hold(void);
void outbox_release(bool send);
void outbox_watch(void);
/* Writes what the pipe takes; false when the host has closed its end. */
bool outbox_flush(void);
#endif
