/* Connections of sandboxes that the server judges one by one. Bytes do not pass through here. */
#include "divert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As in linux/netfilter_ipv4.h. */
#define ORIGINAL_DESTINATION 80
#define WAITING 512
#define NO_DESCRIPTORS_MS 50

static int fail(const char *what) {
    fprintf(stderr, "cannot %s: %s\n", what, strerror(errno));
    return 1;
}

static int open_listener(struct sockaddr_in *own) {
    socklen_t size = sizeof *own;
    struct sockaddr_in any = {.sin_family = AF_INET};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&any, sizeof any) != 0) return -1;
    if (listen(listener, WAITING) != 0 || getsockname(listener, (struct sockaddr *)own, &size) != 0) return -1;
    return listener;
}

/* One line of Node's channel between processes, with a descriptor or -1. */
static bool tell(int channel, const char *line, int descriptor) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec bytes = {.iov_base = (void *)(uintptr_t)line, .iov_len = strlen(line)};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    /* A line is short and the other side reads: it is sent as a whole, or the channel is of no more use. */
    struct pollfd writable = {.fd = channel, .events = POLLOUT};
    for (;;) {
        ssize_t sent = sendmsg(channel, &message, MSG_NOSIGNAL);
        if (sent == (ssize_t)bytes.iov_len) return true;
        if (sent >= 0 || (errno != EAGAIN && errno != EINTR)) return false;
        poll(&writable, 1, -1);
    }
}

/* How many lines were sent; -1: the channel has ended. A connection that nobody redirected is closed. */
static int hand_over(int channel, int connection, const struct sockaddr_in *from, in_port_t own_port) {
    struct sockaddr_in to;
    socklen_t size = sizeof to;
    char source[INET_ADDRSTRLEN], target[INET_ADDRSTRLEN], line[256];
    if (getsockopt(connection, SOL_IP, ORIGINAL_DESTINATION, &to, &size) != 0 || to.sin_port == own_port) return 0;
    inet_ntop(AF_INET, &from->sin_addr, source, sizeof source);
    inet_ntop(AF_INET, &to.sin_addr, target, sizeof target);
    snprintf(line, sizeof line,
             "{\"cmd\":\"NODE_HANDLE\",\"type\":\"net.Socket\",\"msg\":{\"from\":\"%s\",\"address\":\"%s\",\"port\":%d}}\n",
             source, target, ntohs(to.sin_port));
    return tell(channel, line, connection) ? 1 : -1;
}

/* How many lines came: one for each connection that the other side has taken. -1: the channel has ended. */
static int lines_from(int channel) {
    char bytes[4096];
    ssize_t length = read(channel, bytes, sizeof bytes);
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) return -1;
    int lines = 0;
    for (ssize_t at = 0; at < length; at++) lines += bytes[at] == '\n';
    return lines;
}

int run_divert(void) {
    const char *text = getenv("NODE_CHANNEL_FD");
    int channel = text == NULL ? -1 : atoi(text);
    struct sockaddr_in own;
    char line[64];
    if (channel < 3) return 2;
    int listener = open_listener(&own);
    if (listener < 0) return fail("listen");
    snprintf(line, sizeof line, "{\"port\":%d}\n", ntohs(own.sin_port));
    if (!tell(channel, line, -1)) return fail("report the port");
    /* One at a time: Node takes the descriptor that came with a line only if no other is on its way. */
    int on_the_way = 0;
    for (;;) {
        struct pollfd watched[2] = {{.fd = channel, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
        if (poll(watched, on_the_way > 0 ? 1 : 2, -1) < 0) continue;
        if (watched[0].revents != 0) {
            int lines = lines_from(channel);
            if (lines < 0) return 0;
            on_the_way = lines > on_the_way ? 0 : on_the_way - lines;
        }
        if (on_the_way > 0 || (watched[1].revents & POLLIN) == 0) continue;
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        int connection = accept4(listener, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (connection < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) poll(NULL, 0, NO_DESCRIPTORS_MS);
            continue;
        }
        on_the_way = hand_over(channel, connection, &from, own.sin_port);
        close(connection);
        if (on_the_way < 0) return 0;
    }
}
