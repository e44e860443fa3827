/* FILE_REMOVE. */
#include "removal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatch.h"
#include "files.h"
#include "identity.h"
#include "outbox.h"
#include "protocol.h"

#define REMOVAL_MAXIMUM 16

static struct removal {
    pid_t pid; /* 0: free */
    uint32_t request;
} removals[REMOVAL_MAXIMUM];

static struct removal *find(pid_t pid) {
    for (int index = 0; index < REMOVAL_MAXIMUM; index++) {
        if (removals[index].pid == pid) return &removals[index];
    }
    return NULL;
}

void removal_ended(pid_t pid, int status) {
    struct removal *removal = find(pid);
    if (removal == NULL) return;
    removal->pid = 0;
    /* The exit code is the errno; only somebody inside the sandbox can have ended it otherwise. */
    int error = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    if (error == 0) reply_ok(removal->request);
    else reply_error(removal->request, error, "removing");
}

void removal_restart(void) {
    for (int index = 0; index < REMOVAL_MAXIMUM; index++) removals[index].request = 0;
}

static int start_removal(uint32_t request, bool as_root, const char *path) {
    struct removal *removal = find(0);
    if (removal == NULL) return EAGAIN;
    pid_t pid = fork();
    if (pid < 0) return errno;
    if (pid == 0) {
        int error = as_root ? 0 : identity_become(identity_user());
        _exit(error != 0 ? error : remove_tree(path));
    }
    *removal = (struct removal){.pid = pid, .request = request};
    return ANSWERED;
}

static bool ends_in_dots(const char *path) {
    size_t size = strlen(path);
    while (size > 0 && path[size - 1] == '/') size--;
    size_t start = size;
    while (start > 0 && path[start - 1] != '/') start--;
    return (size - start == 1 && path[start] == '.') || (size - start == 2 && path[start] == '.' && path[start + 1] == '.');
}

int handle_file_remove(uint32_t request, struct cursor *payload) {
    uint8_t as_root = take_u8(payload), recursive = take_u8(payload);
    const char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    struct stat status, root;
    bool is_folder = false;
    if (recursive > 1 || ends_in_dots(path)) error = EINVAL;
    else if (lstat(path, &status) != 0 || lstat("/", &root) != 0) error = errno;
    else if (status.st_dev == root.st_dev && status.st_ino == root.st_ino) error = EBUSY;
    else is_folder = S_ISDIR(status.st_mode);
    if (error == 0 && !(is_folder && recursive == 1)) {
        if ((is_folder ? rmdir(path) : unlink(path)) != 0) error = errno;
    }
    identity_leave();
    if (error != 0 || !is_folder || recursive == 0) return error;
    return start_removal(request, as_root == 1, path);
}
