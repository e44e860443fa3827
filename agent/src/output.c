/* From the pipes of a process into its log, and from there to the host. */
#include "output.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatch.h"
#include "drain.h"
#include "input.h"
#include "outbox.h"
#include "protocol.h"
#include "utf8.h"
#include "watch.h"

/* More than the kernel buffers for a terminal; bounds the reads for a leader whose children keep writing. */
#define TERMINAL_DRAIN 262144u

static uint8_t stream_number(const struct process *process, const struct stream *stream) {
    return stream == &process->streams[0] ? 1 : 2;
}

static void append_partial(struct process *process, struct stream *stream) {
    log_append(&process->log, stream_number(process, stream), stream->partial, stream->partial_size);
    stream->partial_size = 0;
}

static void stream_ended(struct process *process, struct stream *stream) {
    append_partial(process, stream);
    close(stream->fd);
    stream->fd = -1;
}

static size_t room_for(const struct process *process) {
    size_t room = log_room(&process->log);
    size_t reserved = process->streams[0].partial_size + process->streams[1].partial_size;
    return room > reserved ? room - reserved : 0;
}

/* One read. Returns what read(2) returned; 0 also stands for a terminal that has hung up. */
static ssize_t read_stream(struct process *process, struct stream *stream, size_t limit) {
    static uint8_t bytes[CHUNK_MAXIMUM];
    size_t before = stream->partial_size;
    if (limit > sizeof bytes - before) limit = sizeof bytes - before;
    memcpy(bytes, stream->partial, before);
    ssize_t size = read(stream->fd, bytes + before, limit);
    if (size < 0 && errno == EIO) size = 0;
    if (size <= 0) return size;
    size_t total = before + (size_t)size;
    size_t tail = utf8_incomplete_tail(bytes, total);
    log_append(&process->log, stream_number(process, stream), bytes, total - tail);
    memcpy(stream->partial, bytes + total - tail, tail);
    stream->partial_size = tail;
    return size;
}

static bool drain_stream(struct process *process, struct stream *stream) {
    while (stream->fd >= 0 && stream->drain_left > 0) {
        size_t room = room_for(process);
        if (room == 0) return false;
        ssize_t size = read_stream(process, stream, stream->drain_left < room ? (size_t)stream->drain_left : room);
        if (size < 0 && errno == EINTR) continue;
        if (size == 0) stream_ended(process, stream);
        if (size <= 0) break;
        stream->drain_left -= (uint64_t)size;
    }
    return true;
}

static void drain_process(struct process *process) {
    for (int index = 0; index < 2; index++) {
        if (!drain_stream(process, &process->streams[index])) return;
    }
    for (int index = 0; index < 2; index++) {
        struct stream *stream = &process->streams[index];
        append_partial(process, stream);
        if (stream->fd >= 0) drain_adopt(stream->fd);
        stream->fd = -1;
    }
    process->state = EXITED;
}

void output_leader_exited(struct process *process, int status) {
    process->state = DRAINING;
    process->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    process->exit_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    for (int index = 0; index < 2; index++) {
        struct stream *stream = &process->streams[index];
        int available = 0;
        if (stream->fd < 0) continue;
        if (process->terminal) stream->drain_left = TERMINAL_DRAIN;
        else if (ioctl(stream->fd, FIONREAD, &available) == 0 && available > 0) stream->drain_left = (uint64_t)available;
    }
    if (process->slave >= 0) close(process->slave);
    process->slave = -1;
    drain_process(process);
}

static void stdout_ready(void *object);
static void stderr_ready(void *object);

static void stream_ready(struct process *process, struct stream *stream) {
    size_t room = room_for(process);
    if (process->state != RUNNING || stream->fd < 0 || room == 0) return;
    if (read_stream(process, stream, room) == 0) stream_ended(process, stream);
}

static void stdout_ready(void *object) { stream_ready(object, &((struct process *)object)->streams[0]); }
static void stderr_ready(void *object) { stream_ready(object, &((struct process *)object)->streams[1]); }

void output_watch(void) {
    struct process *process;
    for (size_t index = 0; (process = process_at(index)) != NULL; index++) {
        if (process->state == DRAINING) drain_process(process);
        if (process->state != RUNNING || room_for(process) == 0) continue;
        if (process->streams[0].fd >= 0) watch_fd(process->streams[0].fd, POLLIN, stdout_ready, process);
        if (process->streams[1].fd >= 0) watch_fd(process->streams[1].fd, POLLIN, stderr_ready, process);
    }
}

static void send_piece(struct process *process, const struct piece *piece) {
    struct buffer *event = frame_begin(EVENT_OUTPUT, 0);
    put_u32(event, process->id);
    put_u8(event, piece->stream);
    put_u64(event, piece->offset);
    buffer_append(event, piece->bytes, piece->size);
    frame_end();
    log_sent(&process->log, piece->size);
}

static void send_exit(struct process *process) {
    struct buffer *event = frame_begin(EVENT_EXIT, 0);
    put_u32(event, process->id);
    put_u32(event, (uint32_t)process->exit_code);
    put_u32(event, (uint32_t)process->exit_signal);
    put_u64(event, process->log.end);
    frame_end();
    process->exit_sent = true;
}

bool output_push(void) {
    static size_t turn; /* the order rotates, so that one loud process cannot starve the others */
    size_t count = process_count();
    turn++;
    for (bool sent = true; sent;) {
        sent = false;
        for (size_t step = 0; step < count; step++) {
            struct process *process = process_at((turn + step) % count);
            struct piece piece;
            if (!log_peek(&process->log, &piece)) continue;
            if (!outbox_has_room_for_events()) return true;
            send_piece(process, &piece);
            sent = true;
        }
    }
    for (size_t index = 0; index < count; index++) {
        struct process *process = process_at(index);
        if (process->state == EXITED && !process->exit_sent) send_exit(process);
    }
    return false;
}

void output_restart(void) {
    struct process *process;
    for (size_t index = 0; (process = process_at(index)) != NULL; index++) log_restart(&process->log);
}

int handle_window(uint32_t request, struct cursor *payload) {
    (void)request;
    struct process *process = process_find(take_u32(payload));
    uint8_t flags = take_u8(payload);
    uint64_t from = take_u64(payload), acknowledged = take_u64(payload), limit = take_u64(payload);
    if (!cursor_done(payload)) return EBADMSG;
    if (process == NULL) return ESRCH;
    if (flags > 1) return EINVAL;
    return log_window(&process->log, flags == 1, from, acknowledged, limit) ? 0 : EINVAL;
}
