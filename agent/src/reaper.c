/* SIGCHLD, by way of a pipe to the loop. */
#include "reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "freeze.h"
#include "output.h"
#include "process.h"
#include "removal.h"
#include "report.h"
#include "watch.h"

static int wake[2];

static void on_child(int number) {
    (void)number;
    int saved = errno;
    ssize_t ignored = write(wake[1], "", 1);
    (void)ignored;
    errno = saved;
}

void reaper_start(void) {
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        report("cannot make a pipe: errno %d", errno);
        exit(1);
    }
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
}

static void reap(void *unused) {
    (void)unused;
    if (frozen()) return;
    char dropped[64];
    while (read(wake[0], dropped, sizeof dropped) > 0) {
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        struct process *process = process_find_pid(pid);
        if (process != NULL) output_leader_exited(process, status);
        else removal_ended(pid, status);
    }
}

/* While frozen nobody is reaped (freeze.c says why); the bytes that wait in the pipe make up for it afterwards. */
void reaper_watch(void) {
    if (!frozen()) watch_fd(wake[0], POLLIN, reap, NULL);
}
