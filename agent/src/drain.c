/* Pipes that outlive the process they were made for. */
#include "drain.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include "watch.h"

#define DRAIN_MAXIMUM 1024 /* more than the processes that a sandbox may have */

static int adopted[DRAIN_MAXIMUM];
static int count;

void drain_adopt(int fd) {
    if (count == DRAIN_MAXIMUM) close(fd);
    else adopted[count++] = fd;
}

static void drain(void *object) {
    static uint8_t dropped[65536];
    int *fd = object;
    ssize_t size = read(*fd, dropped, sizeof dropped);
    if (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR))) return;
    close(*fd);
    *fd = -1;
}

void drain_watch(void) {
    int kept = 0;
    for (int index = 0; index < count; index++) {
        if (adopted[index] >= 0) adopted[kept++] = adopted[index];
    }
    count = kept;
    for (int index = 0; index < count; index++) watch_fd(adopted[index], POLLIN, drain, &adopted[index]);
}
