/* SIGNAL and RESIZE. */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "proc.h"
#include "process.h"
#include "terminal.h"

enum scope { SCOPE_LEADER, SCOPE_GROUP, SCOPE_EVERYTHING };

void signal_everything(int number) {
    if (getpid() == 1) {
        kill(-1, number);
        return;
    }
    struct proc_list list = proc_scan();
    for (size_t index = 0; index < list.count; index++) kill(list.entries[index].pid, number);
    proc_free(&list);
}

static int signal_process(const struct process *process, int number, enum scope scope) {
    if (process == NULL) return ESRCH;
    if (process->state == RUNNING) return kill(scope == SCOPE_GROUP ? -process->pid : process->pid, number) == 0 ? 0 : errno;
    /* The group of an exited leader continues with its children, unless its number was reused. */
    if (scope != SCOPE_GROUP || process_find_pid(process->pid) != NULL) return ESRCH;
    return kill(-process->pid, number) == 0 ? 0 : errno;
}

int handle_signal(uint32_t request, struct cursor *payload) {
    (void)request;
    const struct process *process = process_find(take_u32(payload));
    uint32_t number = take_u32(payload);
    uint8_t scope = take_u8(payload);
    if (!cursor_done(payload)) return EBADMSG;
    if (number >= NSIG || scope > SCOPE_EVERYTHING) return EINVAL;
    if (scope != SCOPE_EVERYTHING) return signal_process(process, (int)number, scope);
    signal_everything((int)number);
    return 0;
}

/* gVisor changes the size silently, and does not say which group is in front. A program that ignores SIGWINCH
   does not notice it; one that gets it twice, because the kernel sent it too, finds the same size. */
static void tell_session(pid_t leader) {
    struct proc_list list = proc_scan();
    for (size_t index = 0; index < list.count; index++) {
        if (list.entries[index].session == leader) kill(list.entries[index].pid, SIGWINCH);
    }
    proc_free(&list);
}

int handle_resize(uint32_t request, struct cursor *payload) {
    (void)request;
    const struct process *process = process_find(take_u32(payload));
    uint16_t rows = take_u16(payload), columns = take_u16(payload);
    if (!cursor_done(payload)) return EBADMSG;
    if (process == NULL || process->state != RUNNING) return ESRCH;
    if (!process->terminal) return ENOTTY;
    int error = terminal_resize(process->slave, rows, columns);
    if (error == 0) tell_session(process->pid);
    return error;
}
