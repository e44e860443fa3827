#ifndef WATCH_H
#define WATCH_H
/* The set of descriptors that one turn of the loop waits for. It is built again each turn:
   poll(2) has no state in the kernel, so there is nothing that a restore could lose. */
typedef void (*ready_function)(void *object);

void watch_clear(void);
/* `ready` may be NULL if only waking up is needed. */
void watch_fd(int fd, short events, ready_function ready, void *object);
void watch_wait(int timeout_ms);
/* Calls `ready` of each ready descriptor, in the order of the watch_fd calls. */
void watch_dispatch(void);
#endif
