/* From the host into the stdin of a process. */
#include "input.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "outbox.h"
#include "dispatch.h"
#include "interrupt.h"
#include "session.h"
#include "terminal.h"
#include "watch.h"

/* The limit of all processes together, so that a confused host cannot fill the sandbox's memory. */
#define WAITING_MAXIMUM 33554432u

static size_t waiting_in_all(void) {
    size_t total = 0;
    struct process *process;
    for (size_t index = 0; (process = process_at(index)) != NULL; index++) total += buffer_size(&process->input_queue);
    return total;
}

static void close_input(struct process *process) {
    if (process->input >= 0) close(process->input);
    process->input = -1;
}

static void finish(struct process *process, int error) {
    buffer_free(&process->input_queue);
    process->input_busy = false;
    if (error == 0) reply_ok(process->input_request);
    else reply_error(process->input_request, error, "writing to stdin");
}

/* Ends stdin now. A terminal stays open: its reader takes the character as an end of file. */
static void end_input(struct process *process) {
    process->input_close_after = false;
    if (!process->terminal) {
        close_input(process);
        return;
    }
    uint8_t character = terminal_end_of_file(process->input);
    if (write(process->input, &character, 1) == 1) interrupt_note_end(process);
}

static ssize_t write_some(struct process *process, const uint8_t *bytes, size_t size) {
    return process->terminal ? interrupt_write(process, bytes, size) : write(process->input, bytes, size);
}

static void write_more(void *object) {
    struct process *process = object;
    struct buffer *queue = &process->input_queue;
    if (!process->input_busy || process->input < 0) return;
    while (buffer_size(queue) > 0) {
        ssize_t size = write_some(process, queue->data + queue->head, buffer_size(queue));
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) return;
        if (size < 0) {
            int error = errno == EIO ? EPIPE : errno;
            process->input_close_after = false;
            close_input(process);
            finish(process, error);
            return;
        }
        buffer_consume(queue, (size_t)size);
        /* The rest follows in the next turn: a terminal may take long for each signal. */
        if (process->terminal && buffer_size(queue) > 0) return;
    }
    finish(process, 0);
    if (process->input_close_after) end_input(process);
}

void input_watch(void) {
    struct process *process;
    for (size_t index = 0; (process = process_at(index)) != NULL; index++) {
        if (process->state != RUNNING) {
            close_input(process);
            if (process->input_busy) finish(process, EPIPE);
        } else if (process->input_busy && !session_quiesced()) {
            watch_fd(process->input, POLLOUT, write_more, process);
        }
    }
}

void input_restart(void) {
    struct process *process;
    for (size_t index = 0; (process = process_at(index)) != NULL; index++) process->input_request = 0;
}

int handle_stdin(uint32_t request, struct cursor *payload) {
    struct process *process = process_find(take_u32(payload));
    bool malformed = payload->bad;
    size_t size;
    const uint8_t *bytes = take_bytes(payload, &size);
    if (malformed) return EBADMSG;
    if (process == NULL) return ESRCH;
    if (process->input < 0 || process->state != RUNNING) return EPIPE;
    if (process->input_busy) return EBUSY;
    if (waiting_in_all() + size > WAITING_MAXIMUM) return EAGAIN;
    buffer_append(&process->input_queue, bytes, size);
    process->input_request = request;
    process->input_busy = true;
    write_more(process);
    return ANSWERED;
}

int handle_stdin_close(uint32_t request, struct cursor *payload) {
    (void)request;
    struct process *process = process_find(take_u32(payload));
    if (!cursor_done(payload)) return EBADMSG;
    if (process == NULL) return ESRCH;
    if (process->input < 0 || process->state != RUNNING) return 0;
    if (process->input_busy) process->input_close_after = true;
    else end_input(process);
    return 0;
}
