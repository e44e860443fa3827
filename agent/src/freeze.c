/* Stopping every process, and continuing exactly those. */
#include "freeze.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "buffer.h"
#include "dispatch.h"
#include "heartbeat.h"
#include "outbox.h"
#include "proc.h"
#include "protocol.h"

#define CAREFUL_MS 500   /* how long to wait for a group before the next is stopped; a lease may be about to end */
#define CAREFUL_ROUNDS 4 /* processes that fork faster than they can be scanned are stopped by one call */

/* Whole process groups are stopped and continued, each by one call. gVisor hangs up a group without a job-control parent,
   which is what SPAWN makes, when one member is reaped while another is stopped; so no member may run while others do not.
   For the same reason the reaper rests while frozen. */
static pid_t *stopped; /* as for kill(2): negative for a group */
static size_t stopped_count, stopped_capacity;
static uint32_t process_count_stopped;
static unsigned reasons;

static bool is_idle(const struct proc *proc) { return strchr("TtZX", proc->state) != NULL; }
static bool is_stopped(const struct proc *proc) { return proc->state == 'T' || proc->state == 't'; }

static bool is_known(pid_t target) {
    for (size_t index = 0; index < stopped_count; index++) {
        if (stopped[index] == target) return true;
    }
    return false;
}

static void remember(pid_t target) {
    if (is_known(target)) return;
    if (stopped_count == stopped_capacity) {
        stopped_capacity = stopped_capacity == 0 ? 64 : stopped_capacity * 2;
        stopped = must_reallocate(stopped, stopped_capacity * sizeof *stopped);
    }
    stopped[stopped_count++] = target;
}

static int by_depth(const void *left, const void *right) {
    return ((const struct proc *)left)->depth - ((const struct proc *)right)->depth;
}

/* A signal that was sent is not yet a process that has stopped. */
static void settle(const struct proc_list *list, pid_t group, int64_t deadline) {
    for (size_t index = 0; index < list->count; index++) {
        const struct proc *proc = &list->entries[index];
        if (proc->group != group || is_idle(proc)) continue;
        for (char state; (state = proc_state(proc->pid)) != 'T' && state != 0 && state != 'Z' && monotonic_ms() < deadline;) usleep(200);
    }
}

static bool has_stopped_member(const struct proc_list *list, pid_t group) {
    for (size_t index = 0; index < list->count; index++) {
        if (list->entries[index].group == group && is_stopped(&list->entries[index])) return true;
    }
    return false;
}

static void stop_group(const struct proc_list *list, pid_t group) {
    bool known = is_known(-group);
    bool own = group == getpgrp(); /* the agent's, where removals run */
    /* A process that its user stopped must stay stopped: then the others of its group are continued one by one. */
    bool apart = own || (!known && has_stopped_member(list, group));
    if (!own) kill(-group, SIGSTOP);
    for (size_t index = 0; index < list->count; index++) {
        const struct proc *proc = &list->entries[index];
        if (proc->group != group || is_idle(proc)) continue;
        if (!known && !is_known(proc->pid)) process_count_stopped++;
        if (own) kill(proc->pid, SIGSTOP);
        if (apart) remember(proc->pid);
    }
    if (!apart) remember(-group);
}

/* Groups of parents before groups of children, so that no shell sees its job stop and takes the terminal away from it.
   Returns whether everything had stopped before. */
static bool stop_round(int64_t deadline) {
    struct proc_list list = proc_scan();
    if (list.count > 0) qsort(list.entries, list.count, sizeof *list.entries, by_depth);
    bool quiet = true;
    for (size_t index = 0; index < list.count; index++) {
        struct proc *proc = &list.entries[index];
        if (is_idle(proc)) continue;
        quiet = false;
        stop_group(&list, proc->group);
        settle(&list, proc->group, deadline);
        for (size_t other = index; other < list.count; other++) {
            if (list.entries[other].group == proc->group && other != index) list.entries[other].state = 'X'; /* done */
        }
    }
    proc_free(&list);
    return quiet;
}

/* One call reaches all processes, including new ones. It does not report which ones it stopped, so compare before and after. */
static void stop_at_once(void) {
    struct proc_list before = proc_scan();
    if (getpid() == 1) kill(-1, SIGSTOP);
    struct proc_list after = proc_scan();
    for (size_t index = 0; index < after.count; index++) {
        const struct proc *proc = &after.entries[index], *old = proc_find(&before, proc->pid);
        bool by_its_user = old != NULL && is_stopped(old);
        if (by_its_user || is_known(-proc->group) || is_known(proc->pid)) continue;
        kill(proc->pid, SIGSTOP);
        remember(proc->pid);
        process_count_stopped++;
    }
    proc_free(&before);
    proc_free(&after);
}

void freeze_hold(enum freeze_reason reason) {
    reasons |= reason;
    int64_t deadline = monotonic_ms() + CAREFUL_MS;
    for (int round = 0; round < CAREFUL_ROUNDS && monotonic_ms() < deadline; round++) {
        if (stop_round(deadline)) return;
    }
    stop_at_once();
}

void freeze_release(enum freeze_reason reason) {
    reasons &= ~(unsigned)reason;
    if (reasons != 0) return;
    /* Children first: a parent that looks at them finds them running. */
    while (stopped_count > 0) kill(stopped[--stopped_count], SIGCONT);
    process_count_stopped = 0;
}

bool frozen(void) { return reasons != 0; }

int handle_freeze(uint32_t request, struct cursor *payload) {
    if (!cursor_done(payload)) return EBADMSG;
    freeze_hold(FREEZE_BY_HOST);
    put_u32(frame_begin(REPLY_OK, request), process_count_stopped);
    frame_end();
    return ANSWERED;
}

int handle_thaw(uint32_t request, struct cursor *payload) {
    (void)request;
    if (!cursor_done(payload)) return EBADMSG;
    freeze_release(FREEZE_BY_HOST);
    return 0;
}
