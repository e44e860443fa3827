/* Frames from the host. */
#include "inbox.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "buffer.h"
#include "dispatch.h"
#include "heartbeat.h"
#include "outbox.h"
#include "protocol.h"
#include "report.h"
#include "resync.h"
#include "session.h"
#include "watch.h"

#define READ_SIZE 262144u
#define HEADER_SIZE 9u

#define POSTPONED_MAXIMUM 4194304u
#define KEPT 1048576u /* see the outbox */

static struct buffer arrived = {.keep = KEPT};
static struct buffer postponed; /* complete frames that arrived while quiesced and wait for RESUME */
static size_t skip_left;        /* bytes of an oversized frame that are still to come */
static size_t looked;           /* bytes of the incomplete frame in which there is no RESYNC */

static uint32_t peek_u32(const struct buffer *source, size_t at) {
    const uint8_t *bytes = source->data + source->head + at;
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* An oversized frame is answered from its header; its bytes are dropped. */
static bool skip(void) {
    size_t available = buffer_size(&arrived);
    size_t skipped = available < skip_left ? available : skip_left;
    if (resync_possible()) {
        size_t at = resync_find(arrived.data + arrived.head, available);
        if (at < available) {
            buffer_consume(&arrived, at);
            skip_left = 0;
            return true;
        }
        if (skipped == available) skipped -= resync_tail(available);
    }
    buffer_consume(&arrived, skipped);
    skip_left -= skipped;
    return skipped > 0;
}

static bool refuse_oversized(uint32_t length) {
    if (buffer_size(&arrived) < HEADER_SIZE) return false;
    uint32_t request = peek_u32(&arrived, 5);
    buffer_consume(&arrived, HEADER_SIZE);
    skip_left = length - (HEADER_SIZE - 4);
    heartbeat_frame();
    reply_error(request, EMSGSIZE, "frame too long");
    return true;
}

static bool postpone(const uint8_t *frame, size_t size) {
    if (!session_quiesced() || dispatch_while_quiesced(frame[4])) return false;
    if (buffer_size(&postponed) + size > POSTPONED_MAXIMUM) return false;
    buffer_append(&postponed, frame, size);
    return true;
}

/* A host that ended in the middle of a frame is followed by one that begins with RESYNC: earlier bytes are dropped. */
static bool resync_ahead(void) {
    if (!resync_possible()) return false;
    size_t available = buffer_size(&arrived);
    size_t at = looked + resync_find(arrived.data + arrived.head + looked, available - looked);
    looked = at < available ? 0 : available - resync_tail(available);
    if (at < available) buffer_consume(&arrived, at);
    return at < available;
}

/* Serves the frame at the head; false when it is not complete yet. */
static bool serve_one(struct buffer *source) {
    if (source == &arrived && skip_left > 0) return skip();
    size_t available = buffer_size(source);
    if (available < 4) return false;
    uint32_t length = peek_u32(source, 0);
    if (length < FRAME_MINIMUM) {
        report("a frame of %u bytes: the stream has lost its shape", length);
        if (!resync_possible() || source != &arrived) session_end(2);
        skip_left = SIZE_MAX;
        return true;
    }
    if (length > FRAME_MAXIMUM) return refuse_oversized(length);
    if (available - 4 < length) return source == &arrived && resync_ahead();
    looked = 0;
    if (source == &arrived) heartbeat_frame();
    uint8_t *frame = source->data + source->head;
    if (!postpone(frame, 4 + (size_t)length)) dispatch(frame + 4, length);
    arrived.keep = session_quiesced() ? 0 : KEPT;
    buffer_consume(source, 4 + (size_t)length);
    return true;
}

bool inbox_may_serve(void) { return outbox_size() < OUTBOX_REQUESTS; }

bool inbox_serve(void) {
    while (inbox_may_serve()) {
        bool resumed = !session_quiesced() && buffer_size(&postponed) > 0;
        if (!serve_one(resumed ? &postponed : &arrived)) return false;
    }
    return true;
}

void inbox_restart(void) { buffer_clear(&postponed); }

static void read_more(void *unused) {
    (void)unused;
    uint8_t *target = buffer_reserve(&arrived, READ_SIZE);
    ssize_t size = read(STDIN_FILENO, target, READ_SIZE);
    if (size == 0) session_end(0);
    if (size < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        report("reading requests failed with errno %d", errno);
        session_end(1);
    }
    arrived.tail += (size_t)size;
}

void inbox_watch(void) {
    if (inbox_may_serve()) watch_fd(STDIN_FILENO, POLLIN, read_more, NULL);
}
