/* The table of processes that the host has started. */
#include "process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch.h"
#include "outbox.h"
#include "protocol.h"

static struct process *table[PROCESS_MAXIMUM]; /* ordered by id, so the oldest comes first */
static size_t count;
static uint32_t last_id;

struct process *process_at(size_t index) { return index < count ? table[index] : NULL; }
size_t process_count(void) { return count; }

struct process *process_find(uint32_t id) {
    for (size_t index = 0; index < count; index++) {
        if (table[index]->id == id) return table[index];
    }
    return NULL;
}

struct process *process_find_key(const char *key) {
    for (size_t index = 0; *key != 0 && index < count; index++) {
        if (strcmp(table[index]->key, key) == 0) return table[index];
    }
    return NULL;
}

struct process *process_find_pid(pid_t pid) {
    for (size_t index = 0; index < count; index++) {
        if (table[index]->pid == pid && table[index]->state == RUNNING) return table[index];
    }
    return NULL;
}

bool process_make_room(void) {
    for (size_t index = 0; count == PROCESS_MAXIMUM && index < count; index++) {
        struct process *process = table[index];
        if (process->state == EXITED && process->exit_sent && process->log.acknowledged == process->log.end) {
            process_forget(process);
        }
    }
    return count < PROCESS_MAXIMUM;
}

struct process *process_create(void) {
    struct process *process = must_allocate(sizeof *process);
    process->id = ++last_id;
    process->slave = process->input = process->streams[0].fd = process->streams[1].fd = -1;
    table[count++] = process;
    return process;
}

/* Its descriptors were already passed on when it exited. */
void process_forget(struct process *process) {
    size_t index = 0;
    while (table[index] != process) index++;
    memmove(table + index, table + index + 1, (count - index - 1) * sizeof *table);
    count--;
    log_free(&process->log);
    buffer_free(&process->input_queue);
    free(process->key);
    free(process);
}

int handle_processes(uint32_t request, struct cursor *payload) {
    if (!cursor_done(payload)) return EBADMSG;
    struct buffer *reply = frame_begin(REPLY_OK, request);
    put_u32(reply, (uint32_t)count);
    for (size_t index = 0; index < count; index++) {
        const struct process *process = table[index];
        put_u32(reply, process->id);
        put_u32(reply, (uint32_t)process->pid);
        put_u8(reply, process->state == EXITED);
        put_u8(reply, process->terminal);
        put_u32(reply, process->state == EXITED ? (uint32_t)process->exit_code : 0);
        put_u32(reply, process->state == EXITED ? (uint32_t)process->exit_signal : 0);
        put_u64(reply, process->log.start);
        put_u64(reply, process->log.acknowledged);
        put_u64(reply, process->log.end);
        put_str(reply, process->key, strlen(process->key));
    }
    frame_end();
    return ANSWERED;
}

int handle_forget(uint32_t request, struct cursor *payload) {
    (void)request;
    struct process *process = process_find(take_u32(payload));
    if (!cursor_done(payload)) return EBADMSG;
    if (process == NULL) return ESRCH;
    if (process->state != EXITED) return EBUSY;
    process_forget(process);
    return 0;
}
