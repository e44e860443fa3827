#ifndef IDENTITY_H
#define IDENTITY_H
#include <stdbool.h>
#include <sys/types.h>

/* Takes on a user's rights for file access; the agent itself can be signalled and traced no more than before, because
   its real and saved uid stay. Where the agent is not root (tests) there is nothing to take on. Returns an errno. */
int identity_enter(bool as_root);
void identity_leave(void);
/* For good, in a child. Returns an errno. */
int identity_become(uid_t uid, gid_t gid);
#endif
