/* Whose rights an operation has. */
#include "identity.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol.h"
#include "report.h"

static bool entered;

int identity_enter(bool as_root) {
    if (as_root || getuid() != 0) return 0;
    entered = true;
    if (setgroups(0, NULL) == 0 && setegid(USER_GROUP) == 0 && seteuid(USER_ID) == 0) return 0;
    int error = errno;
    identity_leave();
    return error;
}

void identity_leave(void) {
    int saved = errno;
    if (entered && (seteuid(0) != 0 || setegid(0) != 0)) {
        report("cannot return to root: errno %d", errno);
        _exit(1);
    }
    entered = false;
    errno = saved;
}

int identity_become(uid_t uid, gid_t gid) {
    if (getuid() != 0) return 0;
    return setgroups(0, NULL) == 0 && setgid(gid) == 0 && setuid(uid) == 0 ? 0 : errno;
}
