/* The rights of an operation. */
#include "identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "buffer.h"
#include "protocol.h"
#include "report.h"

static struct identity user = {.uid = USER_ID, .gid = USER_GROUP};
static char *folder;
static bool entered;

const struct identity *identity_user(void) { return &user; }
const char *identity_folder(void) { return folder == NULL ? USER_FOLDER : folder; }

int identity_enter(bool as_root) {
    if (as_root || getuid() != 0) return 0;
    entered = true;
    if (setgroups(user.group_count, user.groups) == 0 && setegid(user.gid) == 0 && seteuid(user.uid) == 0) return 0;
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

int identity_limit(void) {
    if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 1) return 0;
    return prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0 ? 0 : errno;
}

int identity_become(const struct identity *identity) {
    if (getuid() != 0) return 0;
    bool became = setgroups(identity->group_count, identity->groups) == 0 && setgid(identity->gid) == 0 && setuid(identity->uid) == 0;
    return became ? 0 : errno;
}

void take_groups(struct cursor *payload, struct identity *identity) {
    uint32_t count = take_u32(payload);
    if (count > GROUPS_MAXIMUM || count > payload->left / 4) payload->bad = true;
    if (payload->bad) return;
    identity->groups = must_allocate(count * sizeof *identity->groups + 1);
    identity->group_count = count;
    for (uint32_t index = 0; index < count; index++) identity->groups[index] = take_u32(payload);
}

int handle_user(uint32_t request, struct cursor *payload) {
    (void)request;
    struct identity wanted = {0};
    wanted.uid = take_u32(payload);
    wanted.gid = take_u32(payload);
    take_groups(payload, &wanted);
    const char *home = take_str(payload);
    int error = !cursor_done(payload) ? EBADMSG : *home != '/' ? EINVAL : 0;
    if (error != 0) {
        free(wanted.groups);
        return error;
    }
    free(user.groups);
    free(folder);
    user = wanted;
    folder = strcpy(must_allocate(strlen(home) + 1), home);
    return 0;
}
