/* Frames on their way to the host. */
#include "outbox.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol.h"
#include "watch.h"

#define HELD_MAXIMUM 262144u
/* Enough for a stream of large replies: allocating and freeing memory for each one costs more than everything else. */
#define KEPT 1048576u

static struct buffer queue = {.keep = KEPT};
static struct buffer held;
static struct buffer frame = {.keep = KEPT};
static bool holding;
static bool wanted;

struct buffer *frame_begin(uint8_t type, uint32_t request) {
    buffer_clear(&frame);
    /* Request 0 asks for no reply; only events carry it. */
    wanted = request != 0 || (type != REPLY_OK && type != REPLY_ERROR);
    put_u32(&frame, 0);
    put_u8(&frame, type);
    put_u32(&frame, request);
    return &frame;
}

void frame_end(void) {
    if (!wanted) return;
    size_t size = buffer_size(&frame);
    patch_u32(&frame, 0, (uint32_t)size - 4);
    if (holding && buffer_size(&held) + size > HELD_MAXIMUM) return;
    if (!holding && buffer_size(&queue) == 0) {
        struct buffer empty = queue;
        queue = frame;
        frame = empty;
        return;
    }
    buffer_append(holding ? &held : &queue, frame.data + frame.head, size);
}

void reply_ok(uint32_t request) {
    frame_begin(REPLY_OK, request);
    frame_end();
}

void reply_error(uint32_t request, int error, const char *about) {
    char message[600];
    int size = snprintf(message, sizeof message, "%.500s%s%s", about, *about ? ": " : "", strerror(error));
    struct buffer *reply = frame_begin(REPLY_ERROR, request);
    put_u32(reply, (uint32_t)error);
    put_str(reply, message, (size_t)size);
    frame_end();
}

size_t outbox_size(void) { return buffer_size(&queue); }
bool outbox_has_room_for_events(void) { return !holding && outbox_size() < OUTBOX_EVENTS; }

/* Memory of sent replies must not be part of an image. */
static void keep(size_t size) {
    queue.keep = frame.keep = size;
    if (buffer_size(&queue) == 0) buffer_clear(&queue);
    buffer_clear(&frame);
}

void outbox_hold(void) {
    holding = true;
    keep(0);
}

void outbox_release(bool send) {
    if (send) buffer_append(&queue, held.data + held.head, buffer_size(&held));
    buffer_clear(&held);
    holding = false;
    keep(KEPT);
}

void outbox_watch(void) {
    /* The flush that every turn of the loop ends with does the work. */
    if (outbox_size() > 0) watch_fd(STDOUT_FILENO, POLLOUT, NULL, NULL);
}

bool outbox_flush(void) {
    while (outbox_size() > 0) {
        ssize_t written = write(STDOUT_FILENO, queue.data + queue.head, outbox_size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno == EAGAIN;
        buffer_consume(&queue, (size_t)written);
    }
    return true;
}
