/* PID 1 of a sandbox: one loop around poll(2). PROTOCOL.md says what it does. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes.h"
#include "connection.h"
#include "divert.h"
#include "drain.h"
#include "heartbeat.h"
#include "hostfiles.h"
#include "inbox.h"
#include "input.h"
#include "listener.h"
#include "outbox.h"
#include "output.h"
#include "protocol.h"
#include "readonly.h"
#include "reaper.h"
#include "restored.h"
#include "session.h"
#include "watch.h"

static void prepare_descriptors(void) {
    /* Pipes must never land on 0, 1 or 2. */
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) exit(1);
    }
    for (int fd = 3; fd < 1024; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
}

/* Large buffers go back to the system when they are freed, each time: by itself glibc keeps them from the second one on. */
static void prepare_memory(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 131072);
#endif
}

static void prepare(void) {
    prepare_memory();
    prepare_descriptors();
    /* Signals that the parent process ignored must not be ignored in programs. */
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    /* A closed pipe and a file size limit are errors of one operation, not the end of the sandbox. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    umask(0); /* modes come from the host */
#ifndef __SANITIZE_ADDRESS__ /* its leak check traces its own process */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
    /* PID 1 inherits every orphan; elsewhere that has to be asked for. */
    if (getpid() != 1) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    reaper_start();
    restored_prepare();
    put_u32(frame_begin(EVENT_READY, 0), PROTOCOL_VERSION);
    frame_end();
}

/* Queues pending output; true when the outbox has no room for all of it. */
static bool speak(void) {
    if (session_quiesced() || heartbeat_lost()) return false;
    return output_push();
}

/* On the host: gives the pipes on stdin and stdout more room, which Node cannot. */
static int grow_pipes(void) {
    bool grown = fcntl(STDIN_FILENO, F_SETPIPE_SZ, 1 << 20) >= 0;
    return fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20) >= 0 && grown ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "grow-pipe") == 0) return grow_pipes();
    if (count > 2 && strcmp(arguments[1], "read-only") == 0) return run_read_only(arguments + 2);
    if (count == 3 && strcmp(arguments[1], "send-files") == 0) return run_send_files(arguments[2]);
    if (count == 3 && strcmp(arguments[1], "fill-file") == 0) return run_fill_file(arguments[2]);
    /* The second argument says whose it is. */
    if (count == 3 && strcmp(arguments[1], "divert") == 0) return run_divert();
    prepare();
    for (;;) {
        bool more_requests = inbox_serve();
        bool more_events = speak();
        if (!outbox_flush()) session_end(1);
        watch_clear();
        output_watch();
        drain_watch();
        input_watch();
        connection_watch();
        listener_watch();
        changes_watch();
        /* After the pipes, whose state it changes. */
        reaper_watch();
        outbox_watch();
        inbox_watch();
        int timeout_ms = heartbeat_timeout_ms();
        bool at_once = (more_requests && inbox_may_serve()) || (more_events && outbox_has_room_for_events());
        watch_wait(at_once ? 0 : timeout_ms);
        watch_dispatch();
        heartbeat_check();
    }
}
