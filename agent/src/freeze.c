/* Stopping every process, and continuing exactly those. */
#include "freeze.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "buffer.h"
#include "dispatch.h"
#include "heartbeat.h"
#include "outbox.h"
#include "proc.h"
#include "protocol.h"
#include "report.h"

#define SETTLE_MS 50 /* how long a level may take to stop; only what hangs in the kernel takes longer */
#define ROUNDS 50 /* a fork bomb may outrun a few scans, but each stops some of its parents */

static unsigned reasons;
static pid_t *stopped;
static size_t stopped_count, stopped_capacity;

static bool is_stopped_by_us(pid_t pid) {
    for (size_t index = 0; index < stopped_count; index++) {
        if (stopped[index] == pid) return true;
    }
    return false;
}

static void stop(pid_t pid) {
    if (kill(pid, SIGSTOP) != 0) return;
    if (stopped_count == stopped_capacity) {
        stopped_capacity = stopped_capacity == 0 ? 64 : stopped_capacity * 2;
        stopped = must_reallocate(stopped, stopped_capacity * sizeof *stopped);
    }
    stopped[stopped_count++] = pid;
}

static int by_depth(const void *left, const void *right) {
    return ((const struct proc *)left)->depth - ((const struct proc *)right)->depth;
}

/* A signal that was sent is not yet a process that has stopped. */
static void settle(size_t from) {
    int64_t deadline = monotonic_ms() + SETTLE_MS;
    for (size_t index = from; index < stopped_count; index++) {
        for (char state; (state = proc_state(stopped[index])) != 'T' && state != 0 && state != 'Z' && monotonic_ms() < deadline;) {
            usleep(200);
        }
    }
}

/* Parents before children, so that no shell sees its job stop and takes the terminal away from it. */
static size_t stop_round(void) {
    struct proc_list list = proc_scan();
    size_t before = stopped_count, settled = before;
    int depth = 0;
    if (list.count > 0) qsort(list.entries, list.count, sizeof *list.entries, by_depth);
    for (size_t index = 0; index < list.count; index++) {
        const struct proc *proc = &list.entries[index];
        if (proc->depth > depth) {
            settle(settled);
            settled = stopped_count;
            depth = proc->depth;
        }
        /* What its user has stopped stays stopped afterwards, so it is left alone. */
        bool idle = proc->state == 'T' || proc->state == 't' || proc->state == 'Z' || proc->state == 'X';
        if (!idle && !is_stopped_by_us(proc->pid)) stop(proc->pid);
    }
    settle(settled);
    proc_free(&list);
    return stopped_count - before;
}

void freeze_hold(enum freeze_reason reason) {
    reasons |= reason;
    for (int round = 0; round < ROUNDS; round++) {
        if (stop_round() == 0) return;
    }
    report("new processes kept appearing while all were being stopped");
}

void freeze_release(enum freeze_reason reason) {
    reasons &= ~(unsigned)reason;
    if (reasons != 0) return;
    /* Children first: a parent that looks at them finds them running. */
    while (stopped_count > 0) kill(stopped[--stopped_count], SIGCONT);
}

bool frozen(void) { return reasons != 0; }

int handle_freeze(uint32_t request, struct cursor *payload) {
    if (!cursor_done(payload)) return EBADMSG;
    freeze_hold(FREEZE_BY_HOST);
    put_u32(frame_begin(REPLY_OK, request), (uint32_t)stopped_count);
    frame_end();
    return ANSWERED;
}

int handle_thaw(uint32_t request, struct cursor *payload) {
    (void)request;
    if (!cursor_done(payload)) return EBADMSG;
    freeze_release(FREEZE_BY_HOST);
    return 0;
}
