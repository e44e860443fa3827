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

#define CAREFUL_MS 500 /* how long parents are waited for before their children are stopped; a lease may be about to end */
#define CAREFUL_ROUNDS 4 /* what forks faster than it can be scanned is stopped at one blow */

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
static void settle(size_t from, int64_t deadline) {
    for (size_t index = from; index < stopped_count; index++) {
        for (char state; (state = proc_state(stopped[index])) != 'T' && state != 0 && state != 'Z' && monotonic_ms() < deadline;) {
            usleep(200);
        }
    }
}

/* Parents before children, so that no shell sees its job stop and takes the terminal away from it. */
static size_t stop_round(int64_t deadline) {
    struct proc_list list = proc_scan();
    size_t before = stopped_count, settled = before;
    int depth = 0;
    if (list.count > 0) qsort(list.entries, list.count, sizeof *list.entries, by_depth);
    for (size_t index = 0; index < list.count; index++) {
        const struct proc *proc = &list.entries[index];
        if (proc->depth > depth) {
            settle(settled, deadline);
            settled = stopped_count;
            depth = proc->depth;
        }
        /* What its user has stopped stays stopped afterwards, so it is left alone. */
        bool idle = proc->state == 'T' || proc->state == 't' || proc->state == 'Z' || proc->state == 'X';
        if (!idle && !is_stopped_by_us(proc->pid)) stop(proc->pid);
    }
    settle(settled, deadline);
    proc_free(&list);
    return stopped_count - before;
}

/* One call reaches them all, newborns too. It does not say whom it has stopped, hence the look before and after. */
static void stop_at_once(void) {
    struct proc_list before = proc_scan();
    if (getpid() == 1) kill(-1, SIGSTOP);
    struct proc_list after = proc_scan();
    for (size_t index = 0; index < after.count; index++) {
        const struct proc *old = proc_find(&before, after.entries[index].pid);
        bool by_its_user = old != NULL && (old->state == 'T' || old->state == 't');
        if (!by_its_user && !is_stopped_by_us(after.entries[index].pid)) stop(after.entries[index].pid);
    }
    proc_free(&before);
    proc_free(&after);
}

void freeze_hold(enum freeze_reason reason) {
    reasons |= reason;
    int64_t deadline = monotonic_ms() + CAREFUL_MS;
    for (int round = 0; round < CAREFUL_ROUNDS && monotonic_ms() < deadline; round++) {
        if (stop_round(deadline) == 0) return;
    }
    stop_at_once();
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
