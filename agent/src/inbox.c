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
#include "session.h"
#include "watch.h"

#define READ_SIZE 65536u
#define HEADER_SIZE 9u

static struct buffer arrived;
static size_t skip_left; /* bytes of an oversized frame that are still to come */

static uint32_t peek_u32(size_t at) {
    const uint8_t *bytes = arrived.data + arrived.head + at;
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Serves the frame at the head; false when it is not complete yet. */
static bool serve_one(void) {
    size_t available = buffer_size(&arrived);
    if (skip_left > 0) {
        size_t skipped = available < skip_left ? available : skip_left;
        buffer_consume(&arrived, skipped);
        skip_left -= skipped;
        return skipped > 0;
    }
    if (available < 4) return false;
    uint32_t length = peek_u32(0);
    if (length < FRAME_MINIMUM) {
        report("a frame of %u bytes: the stream has lost its shape", length);
        session_end(2);
    }
    if (length > FRAME_MAXIMUM) {
        if (available < HEADER_SIZE) return false;
        uint32_t request = peek_u32(5);
        buffer_consume(&arrived, HEADER_SIZE);
        skip_left = length - (HEADER_SIZE - 4);
        heartbeat_frame();
        reply_error(request, EMSGSIZE, "frame too long");
        return true;
    }
    if (available - 4 < length) return false;
    heartbeat_frame();
    dispatch(arrived.data + arrived.head + 4, length);
    buffer_consume(&arrived, 4 + (size_t)length);
    return true;
}

bool inbox_may_serve(void) { return outbox_size() < OUTBOX_REQUESTS; }

bool inbox_serve(void) {
    while (inbox_may_serve()) {
        if (!serve_one()) return false;
    }
    return true;
}

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
