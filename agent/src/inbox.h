#ifndef INBOX_H
#define INBOX_H
#include <stdbool.h>

/* Serves the requests that have arrived; true when a full outbox kept it from serving all of them. Must not be called while
   a poll set exists: requests free what that points to. */
bool inbox_serve(void);
bool inbox_may_serve(void);
void inbox_watch(void);
/* Drops requests that wait for RESUME: their host no longer exists. */
void inbox_restart(void);
#endif
