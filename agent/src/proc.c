/* The kernel's process table, through /proc. */
#include "proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"

size_t proc_read(pid_t pid, const char *name, char *target, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    size_t total = 0;
    while (total < size) {
        ssize_t part = read(fd, target + total, size - total);
        if (part <= 0) break;
        total += (size_t)part;
    }
    close(fd);
    return total;
}

static bool parse_stat(pid_t pid, struct proc *proc) {
    char text[1024];
    size_t size = proc_read(pid, "stat", text, sizeof text - 1);
    text[size] = 0;
    /* The name may contain spaces and parentheses; the fields after its last parenthesis may not. */
    char *open_name = strchr(text, '('), *close_name = strrchr(text, ')');
    if (open_name == NULL || close_name == NULL || close_name < open_name) return false;
    unsigned long long user = 0, system = 0;
    long long resident = 0;
    int parent = 0, group = 0, session = 0;
    int fields = sscanf(close_name + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u %lld",
                        &proc->state, &parent, &group, &session, &user, &system, &resident);
    if (fields < 4) return false;
    proc->pid = pid;
    proc->parent = parent;
    proc->group = group;
    proc->session = session;
    proc->cpu_ticks = user + system;
    proc->resident_pages = resident > 0 ? (uint64_t)resident : 0;
    *close_name = 0;
    snprintf(proc->name, sizeof proc->name, "%.63s", open_name + 1);
    return true;
}

const struct proc *proc_find(const struct proc_list *list, pid_t pid) {
    for (size_t index = 0; index < list->count; index++) {
        if (list->entries[index].pid == pid) return &list->entries[index];
    }
    return NULL;
}

char proc_state(pid_t pid) {
    struct proc proc;
    return parse_stat(pid, &proc) ? proc.state : 0;
}

static void keep_descendants(struct proc_list *list) {
    pid_t self = getpid();
    struct proc_list kept = {.entries = must_allocate((list->count + 1) * sizeof *kept.entries)};
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t index = 0; index < list->count; index++) {
            const struct proc *proc = &list->entries[index];
            if (proc_find(&kept, proc->pid) != NULL) continue;
            if (proc->parent != self && proc_find(&kept, proc->parent) == NULL) continue;
            kept.entries[kept.count++] = *proc;
            grown = true;
        }
    }
    free(list->entries);
    *list = kept;
}

static void measure_depths(struct proc_list *list) {
    for (size_t index = 0; index < list->count; index++) {
        const struct proc *ancestor = &list->entries[index];
        int depth = -1;
        for (; ancestor != NULL && depth < 1000; depth++) ancestor = proc_find(list, ancestor->parent);
        list->entries[index].depth = depth;
    }
}

struct proc_list proc_scan(void) {
    struct proc_list list = {0};
    size_t capacity = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL) return list;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        pid_t pid = atoi(entry->d_name);
        if (pid <= 0 || pid == getpid()) continue;
        if (list.count == capacity) {
            capacity = capacity == 0 ? 64 : capacity * 2;
            list.entries = must_reallocate(list.entries, capacity * sizeof *list.entries);
        }
        if (parse_stat(pid, &list.entries[list.count])) list.count++;
    }
    closedir(folder);
    if (getpid() != 1) keep_descendants(&list);
    measure_depths(&list);
    return list;
}

void proc_free(struct proc_list *list) {
    free(list->entries);
    *list = (struct proc_list){0};
}
