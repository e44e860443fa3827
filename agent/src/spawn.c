/* SPAWN: a new process with pipes or a terminal, under a key that makes a repeated request harmless. */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch.h"
#include "freeze.h"
#include "launch.h"
#include "outbox.h"
#include "process.h"
#include "protocol.h"
#include "terminal.h"

#define FLAG_TERMINAL 1u
#define FLAG_NO_INPUT 2u
#define FLAG_GROUPS 4u
#define FLAG_GAINS 8u
#define FLAGS (FLAG_TERMINAL | FLAG_NO_INPUT | FLAG_GROUPS | FLAG_GAINS)
#define KEY_MAXIMUM 256u

struct spawn {
    uint8_t flags;
    uint16_t rows, columns;
    const char *key;
    struct launch launch;
    int ours[3], theirs[3]; /* input, output, error; -1: not used */
};

static char **take_list(struct cursor *payload) {
    uint32_t count = take_u32(payload);
    if (count > payload->left / 4) payload->bad = true;
    if (payload->bad) count = 0;
    char **list = must_allocate(((size_t)count + 1) * sizeof *list);
    for (uint32_t index = 0; index < count; index++) list[index] = take_str(payload);
    return list;
}

static void take_spawn(struct cursor *payload, struct spawn *spawn) {
    spawn->flags = take_u8(payload);
    spawn->rows = take_u16(payload);
    spawn->columns = take_u16(payload);
    spawn->launch.identity.uid = take_u32(payload);
    spawn->launch.identity.gid = take_u32(payload);
    spawn->key = take_str(payload);
    spawn->launch.folder = take_str(payload);
    spawn->launch.arguments = take_list(payload);
    spawn->launch.environment = take_list(payload);
    if ((spawn->flags & FLAG_GROUPS) != 0) take_groups(payload, &spawn->launch.identity);
    spawn->launch.gains = (spawn->flags & FLAG_GAINS) != 0;
    spawn->launch.terminal = (spawn->flags & FLAG_TERMINAL) != 0;
}

static int check(const struct spawn *spawn) {
    if ((spawn->flags & ~FLAGS) != 0 || spawn->launch.arguments[0] == NULL) return EINVAL;
    if (strlen(spawn->key) > KEY_MAXIMUM) return ENAMETOOLONG;
    for (char **variable = spawn->launch.environment; *variable != NULL; variable++) {
        const char *equals = strchr(*variable, '=');
        if (equals == NULL || equals == *variable) return EINVAL;
    }
    /* Root inside the sandbox can end the agent. A host that accepts this names its groups. */
    if (getpid() == 1 && spawn->launch.identity.uid == 0 && (spawn->flags & FLAG_GROUPS) == 0) return EPERM;
    return frozen() ? EBUSY : 0;
}

/* `reading`: the process reads from it. */
static int open_pipe(struct spawn *spawn, int number, bool reading) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    spawn->ours[number] = ends[reading ? 1 : 0];
    spawn->theirs[number] = ends[reading ? 0 : 1];
    fcntl(spawn->ours[number], F_SETFL, O_NONBLOCK);
    /* Lets the process open /dev/stdout and the like. If the kernel refuses, only that does not work. */
    if (getuid() == 0 && fchown(spawn->theirs[number], spawn->launch.identity.uid, spawn->launch.identity.gid) != 0) return 0;
    return 0;
}

static int open_terminal(struct spawn *spawn) {
    int error = terminal_open(&spawn->ours[1], &spawn->theirs[1], spawn->launch.identity.uid, spawn->launch.identity.gid, spawn->rows, spawn->columns);
    if (error != 0) return error;
    /* Input has a descriptor of its own, so that ending it is the same as with a pipe. */
    if ((spawn->flags & FLAG_NO_INPUT) == 0) spawn->ours[0] = fcntl(spawn->ours[1], F_DUPFD_CLOEXEC, 3);
    spawn->launch.input = spawn->launch.output = spawn->launch.error = spawn->theirs[1];
    return 0;
}

static int open_pipes(struct spawn *spawn) {
    int error = 0;
    if ((spawn->flags & FLAG_NO_INPUT) == 0) error = open_pipe(spawn, 0, true);
    else if ((spawn->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) error = errno;
    if (error == 0) error = open_pipe(spawn, 1, false);
    if (error == 0) error = open_pipe(spawn, 2, false);
    spawn->launch.input = spawn->theirs[0];
    spawn->launch.output = spawn->theirs[1];
    spawn->launch.error = spawn->theirs[2];
    return error;
}

static void close_all(int *fds) {
    for (int index = 0; index < 3; index++) {
        if (fds[index] >= 0) close(fds[index]);
        fds[index] = -1;
    }
}

static void reply_process(uint32_t request, const struct process *process, bool existed) {
    struct buffer *reply = frame_begin(REPLY_OK, request);
    put_u32(reply, process->id);
    put_u32(reply, (uint32_t)process->pid);
    put_u8(reply, existed);
    frame_end();
}

static void adopt(struct process *process, struct spawn *spawn, pid_t pid) {
    process->pid = pid;
    process->key = strcpy(must_allocate(strlen(spawn->key) + 1), spawn->key);
    process->terminal = spawn->launch.terminal;
    process->input = spawn->ours[0];
    process->streams[0].fd = spawn->ours[1];
    process->streams[1].fd = spawn->ours[2];
    if (!process->terminal) return;
    process->slave = spawn->theirs[1];
    spawn->theirs[1] = -1;
}

static int start(uint32_t request, struct spawn *spawn) {
    if (!process_make_room()) return EAGAIN;
    int error = spawn->launch.terminal ? open_terminal(spawn) : open_pipes(spawn);
    spawn->launch.failed_step = "opening pipes";
    pid_t pid = 0;
    if (error == 0) error = launch(&spawn->launch, &pid);
    if (error == 0) {
        struct process *process = process_create();
        adopt(process, spawn, pid);
        reply_process(request, process, false);
    } else {
        close_all(spawn->ours);
        char about[400];
        snprintf(about, sizeof about, "%s (%.200s)", spawn->launch.failed_step, spawn->launch.arguments[0]);
        reply_error(request, error, about);
    }
    close_all(spawn->theirs);
    return ANSWERED;
}

int handle_spawn(uint32_t request, struct cursor *payload) {
    struct spawn spawn = {.ours = {-1, -1, -1}, .theirs = {-1, -1, -1}};
    take_spawn(payload, &spawn);
    int result = EBADMSG;
    if (cursor_done(payload)) {
        const struct process *known = process_find_key(spawn.key);
        result = ANSWERED;
        if (known != NULL) reply_process(request, known, true);
        else if ((result = check(&spawn)) == 0) result = start(request, &spawn);
    }
    free(spawn.launch.arguments);
    free(spawn.launch.environment);
    free(spawn.launch.identity.groups);
    return result;
}
