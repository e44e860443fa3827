#ifndef PROC_H
#define PROC_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    pid_t pid, parent, group, session;
    int depth; /* how many known ancestors it has */
    char state;
    uint64_t cpu_ticks, resident_pages;
    char name[64];
};

struct proc_list {
    struct proc *entries;
    size_t count;
};

/* Every process but the agent. Where the agent is not PID 1 (tests): its descendants only, so that it can never touch
   the machine it runs on. */
struct proc_list proc_scan(void);
const struct proc *proc_find(const struct proc_list *list, pid_t pid);
/* The state letter; 0 when there is no such process. */
char proc_state(pid_t pid);
void proc_free(struct proc_list *list);
/* Reads /proc/PID/NAME; returns the size, 0 when it cannot be read. */
size_t proc_read(pid_t pid, const char *name, char *target, size_t size);
#endif
