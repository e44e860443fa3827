/* Folders of the host that no sandbox can write to, whatever its kernel does. */
#include "readonly.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#define ATTRIBUTE_READ_ONLY 1u

/* As in linux/mount.h, which conflicts with sys/mount.h. */
struct attributes {
    uint64_t set, clear, propagation, user_namespace;
};

static int failed(const char *what) {
    /* The server shows this line. */
    fprintf(stderr, "cannot make %s read-only: %s\n", what, strerror(errno));
    return 126;
}

static int seal(const char *folder) {
    struct attributes wanted = {.set = ATTRIBUTE_READ_ONLY, .propagation = MS_PRIVATE};
    if (mount(folder, folder, NULL, MS_BIND | MS_REC, NULL) != 0) return failed(folder);
    if (syscall(SYS_mount_setattr, AT_FDCWD, folder, AT_RECURSIVE, &wanted, sizeof wanted) != 0) return failed(folder);
    return 0;
}

int run_read_only(char **arguments) {
    /* Later unmounts on the host apply here too; mounts made here stay here. */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) return failed("folders");
    for (; *arguments != NULL && strcmp(*arguments, "--") != 0; arguments++) {
        int error = seal(*arguments);
        if (error != 0) return error;
    }
    if (arguments[0] == NULL || arguments[1] == NULL) return 2;
    execvp(arguments[1], arguments + 1);
    fprintf(stderr, "cannot run %s: %s\n", arguments[1], strerror(errno));
    return 127;
}
