/* A child that becomes a program, with the failure brought back to the caller. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heartbeat.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define START_TIMEOUT_MS 10000 /* a child that is stopped before execve must not stop the agent */
#define CHILD_STACK_SIZE (64 * 1024)

enum step { STEP_SETUP, STEP_IDENTITY, STEP_FOLDER, STEP_PROGRAM };
static const char *const step_names[] = {"setting up the process", "changing the user", "changing to the working folder", "running the program"};

struct failure {
    int step, error;
};

static _Noreturn void fail(int report_fd, enum step step, int error) {
    struct failure failure = {.step = step, .error = error};
    ssize_t ignored = write(report_fd, &failure, sizeof failure);
    (void)ignored;
    _exit(127);
}

/* Signals that the agent changed for itself; it reset all others when it started. */
static void reset_signals(void) {
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static const char *path_of(char *const *environment) {
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, "PATH=", 5) == 0) return *environment + 5;
    }
    return DEFAULT_PATH;
}

/* Like execvpe, but with the PATH of the new environment and without the detour over a shell. Returns an errno. */
static int run_program(const struct launch *launch) {
    const char *name = launch->arguments[0];
    if (*name == 0) return ENOENT;
    if (strchr(name, '/') != NULL) {
        execve(name, launch->arguments, launch->environment);
        return errno;
    }
    int result = ENOENT;
    for (const char *folder = path_of(launch->environment); folder != NULL;) {
        const char *colon = strchr(folder, ':');
        size_t size = colon == NULL ? strlen(folder) : (size_t)(colon - folder);
        char candidate[4096];
        int length = snprintf(candidate, sizeof candidate, "%.*s/%s", (int)size, size == 0 ? "." : folder, name);
        folder = colon == NULL ? NULL : colon + 1;
        if (size > sizeof candidate || (size_t)length >= sizeof candidate) continue;
        execve(candidate, launch->arguments, launch->environment);
        if (errno == EACCES) result = EACCES;
        else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    return result;
}

struct start {
    const struct launch *launch;
    int report_fd;
};

static int child(void *argument) {
    const struct launch *launch = ((const struct start *)argument)->launch;
    int report_fd = ((const struct start *)argument)->report_fd;
    reset_signals();
    umask(022);
    if (setsid() < 0) fail(report_fd, STEP_SETUP, errno);
    if (dup2(launch->input, 0) < 0 || dup2(launch->output, 1) < 0 || dup2(launch->error, 2) < 0) fail(report_fd, STEP_SETUP, errno);
    if (launch->terminal && ioctl(0, TIOCSCTTY, 0) != 0) fail(report_fd, STEP_SETUP, errno);
    /* Set-user-ID programs of the root filesystem must not lead back to root, unless root is allowed. */
    if (!launch->gains) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    /* For root, and for users who may become root. */
    int error = launch->gains || launch->identity.uid == 0 ? identity_limit() : 0;
    if (error == 0) error = identity_become(&launch->identity);
    if (error != 0) fail(report_fd, STEP_IDENTITY, error);
    if (chdir(*launch->folder == 0 ? "/" : launch->folder) != 0) fail(report_fd, STEP_FOLDER, errno);
    fail(report_fd, STEP_PROGRAM, run_program(launch));
}

/*
 * The child shares the agent's memory until its execve: a copy of the address space is what takes gVisor longest. It has
 * a stack of its own, and unlike vfork it does not keep the agent waiting, so that a child which code inside stops in
 * the one moment when it can costs a time-out and not the agent. Both share errno; the agent does not look at it meanwhile.
 */
static pid_t start_child(struct start *start) {
#ifdef __SANITIZE_ADDRESS__
    /* The sanitizer keeps its books by address, and would take the child's for the agent's. */
    pid_t pid = fork();
    if (pid == 0) _exit(child(start));
    return pid;
#else
    static _Alignas(16) char stack[CHILD_STACK_SIZE];
    return clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, start);
#endif
}

/* Waits for the end of file that a successful execve causes. */
static int outcome(struct launch *launch, int report_fd, pid_t pid) {
    struct pollfd wait = {.fd = report_fd, .events = POLLIN};
    int64_t deadline = monotonic_ms() + START_TIMEOUT_MS;
    for (;;) {
        int64_t left = deadline - monotonic_ms();
        int ready = poll(&wait, 1, left > 0 ? (int)left : 0);
        if (ready < 0) continue;
        struct failure failure = {.step = STEP_PROGRAM, .error = ETIMEDOUT};
        if (ready > 0) {
            ssize_t size = read(report_fd, &failure, sizeof failure);
            if (size < 0) continue;
            if (size == 0) return 0;
        } else {
            kill(pid, SIGKILL);
        }
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        launch->failed_step = step_names[failure.step];
        return failure.error;
    }
}

int launch(struct launch *launch, pid_t *pid) {
    int report_fds[2];
    launch->failed_step = step_names[STEP_SETUP];
    if (pipe2(report_fds, O_CLOEXEC) != 0) return errno;
    struct start start = {.launch = launch, .report_fd = report_fds[1]};
    *pid = start_child(&start);
    int error = *pid < 0 ? errno : 0;
    close(report_fds[1]);
    if (*pid > 0) error = outcome(launch, report_fds[0], *pid);
    close(report_fds[0]);
    return error;
}
