/* One turn's poll set. */
#include "watch.h"

#include <poll.h>
#include <stddef.h>

#include "buffer.h"

struct target {
    ready_function ready;
    void *object;
};

static struct pollfd *polls;
static struct target *targets;
static size_t count, capacity;

void watch_clear(void) { count = 0; }

void watch_fd(int fd, short events, ready_function ready, void *object) {
    if (count == capacity) {
        capacity = capacity == 0 ? 64 : capacity * 2;
        polls = must_reallocate(polls, capacity * sizeof *polls);
        targets = must_reallocate(targets, capacity * sizeof *targets);
    }
    polls[count] = (struct pollfd){.fd = fd, .events = events};
    targets[count] = (struct target){.ready = ready, .object = object};
    count++;
}

void watch_wait(int timeout_ms) {
    if (poll(polls, count, timeout_ms) >= 0) return;
    for (size_t index = 0; index < count; index++) polls[index].revents = 0;
}

void watch_dispatch(void) {
    for (size_t index = 0; index < count; index++) {
        if (polls[index].revents != 0 && targets[index].ready != NULL) targets[index].ready(targets[index].object);
    }
}
