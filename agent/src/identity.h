#ifndef IDENTITY_H
#define IDENTITY_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cursor.h"

#define GROUPS_MAXIMUM 1024u

struct identity {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* supplementary ones; may be NULL if there are none */
    size_t group_count;
};

/* The sandbox's user, and the folder of its hook. */
const struct identity *identity_user(void);
const char *identity_folder(void);

/* Takes on the rights of the sandbox's user for file access; the agent itself can be signalled and traced no more than
   before, because its real and saved uid stay. Where the agent is not root (tests) there is nothing to take on. Returns
   an errno. */
int identity_enter(bool as_root);
void identity_leave(void);
/* Gives up, for good and in a child, what only the agent needs: the right to set the hostname would also let root inside
   trace the agent and mount. Returns an errno. */
int identity_limit(void);
/* For good, in a child. Returns an errno. */
int identity_become(const struct identity *identity);

/* A count and as many groups, which the caller frees. */
void take_groups(struct cursor *payload, struct identity *identity);
int handle_user(uint32_t request, struct cursor *payload);
#endif
