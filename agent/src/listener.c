/* Ports inside the sandbox that the host serves. */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"
#include "dispatch.h"
#include "heartbeat.h"
#include "outbox.h"
#include "protocol.h"
#include "session.h"
#include "watch.h"

#define LISTENER_MAXIMUM 8u
#define BACKLOG 128

struct listener {
    int fd;
    uint16_t asked, port;
    bool wanted; /* by the present host */
};

static struct listener table[LISTENER_MAXIMUM];
static size_t count;

static void acceptable(void *object) {
    struct listener *listener = object;
    while (connection_may_accept()) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) connection_accepted(fd, listener->port);
        else if (errno != EINTR && errno != ECONNABORTED) return;
    }
}

void listener_watch(void) {
    if (session_quiesced() || heartbeat_lost() || !connection_may_accept()) return;
    for (size_t index = 0; index < count; index++) {
        if (table[index].wanted) watch_fd(table[index].fd, POLLIN, acceptable, &table[index]);
    }
}

void listener_restart(void) {
    for (size_t index = 0; index < count; index++) table[index].wanted = false;
}

/* An errno, or 0 with the socket and its port. */
static int open_listener(struct listener *listener) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(listener->asked), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        int error = errno;
        close(fd);
        return error;
    }
    listener->fd = fd;
    listener->port = ntohs(address.sin_port);
    return 0;
}

static struct listener *find(uint16_t asked) {
    for (size_t index = 0; index < count; index++) {
        if (table[index].asked == asked) return &table[index];
    }
    return NULL;
}

int handle_listen(uint32_t request, struct cursor *payload) {
    uint16_t asked = take_u16(payload);
    if (!cursor_done(payload)) return EBADMSG;
    struct listener *listener = find(asked);
    if (listener == NULL) {
        if (count == LISTENER_MAXIMUM) return EAGAIN;
        listener = &table[count];
        *listener = (struct listener){.asked = asked};
        int error = open_listener(listener);
        if (error != 0) return error;
        count++;
    }
    listener->wanted = true;
    put_u16(frame_begin(REPLY_OK, request), listener->port);
    frame_end();
    return ANSWERED;
}
