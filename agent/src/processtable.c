/* PROCESS_TABLE: the processes in the sandbox, for people. */
#include "processtable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch.h"
#include "outbox.h"
#include "proc.h"
#include "protocol.h"

#define COMMAND_MAXIMUM 512u
#define REPLY_MAXIMUM (FRAME_MAXIMUM - 4096u)

static uint32_t read_uid(pid_t pid) {
    char text[2048];
    size_t size = proc_read(pid, "status", text, sizeof text - 1);
    text[size] = 0;
    const char *line = strstr(text, "\nUid:");
    return line == NULL ? 0 : (uint32_t)strtoul(line + 5, NULL, 10);
}

static size_t read_command(const struct proc *proc, char *text, size_t size) {
    size_t length = proc_read(proc->pid, "cmdline", text, size);
    while (length > 0 && text[length - 1] == 0) length--;
    for (size_t index = 0; index < length; index++) {
        if (text[index] == 0) text[index] = ' ';
    }
    if (length > 0) return length;
    return (size_t)snprintf(text, size, "[%s]", proc->name);
}

int handle_process_table(uint32_t request, struct cursor *payload) {
    if (!cursor_done(payload)) return EBADMSG;
    struct proc_list list = proc_scan();
    uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE), ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    struct buffer *reply = frame_begin(REPLY_OK, request);
    size_t count_at = buffer_size(reply);
    uint32_t count = 0;
    put_u32(reply, 0);
    for (size_t index = 0; index < list.count && buffer_size(reply) < REPLY_MAXIMUM; index++, count++) {
        const struct proc *proc = &list.entries[index];
        char command[COMMAND_MAXIMUM];
        size_t length = read_command(proc, command, sizeof command);
        put_u32(reply, (uint32_t)proc->pid);
        put_u32(reply, (uint32_t)proc->parent);
        put_u32(reply, read_uid(proc->pid));
        put_u8(reply, (uint8_t)proc->state);
        put_u64(reply, proc->resident_pages * page_size);
        put_u64(reply, proc->cpu_ticks * 1000 / ticks);
        put_str(reply, command, length);
    }
    patch_u32(reply, count_at, count);
    frame_end();
    proc_free(&list);
    return ANSWERED;
}
