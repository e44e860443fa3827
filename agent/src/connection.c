/* TCP connections to and from ports inside the sandbox. */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dispatch.h"
#include "heartbeat.h"
#include "outbox.h"
#include "protocol.h"
#include "session.h"
#include "watch.h"

#define CONNECTION_MAXIMUM 256u
/* Programs inside must not keep the host from connecting. */
#define ACCEPTED_MAXIMUM 192u

enum connection_state { CONNECTING, OPEN, CLOSED };

struct connection {
    uint32_t id;
    int fd;
    enum connection_state state;
    uint64_t sent, limit; /* towards the host */
    bool peer_ended, we_ended;
    struct buffer queue; /* towards the peer */
    uint32_t request;    /* of CONNECT, then of the write in progress */
    bool writing, accepted;
};

static struct connection *table[CONNECTION_MAXIMUM];
static size_t count, accepted_count;
static uint32_t last_id;

static struct connection *find(uint32_t id) {
    for (size_t index = 0; index < count; index++) {
        if (table[index]->id == id && table[index]->state == OPEN) return table[index];
    }
    return NULL;
}

static void finish_write(struct connection *connection, int error) {
    if (!connection->writing) return;
    connection->writing = false;
    buffer_free(&connection->queue);
    if (error == 0) reply_ok(connection->request);
    else reply_error(connection->request, error, "writing to the connection");
}

/* Memory is freed in the next turn: the poll set of this one may still point to it. */
static void shut(struct connection *connection, int error) {
    if (connection->state == CLOSED) return;
    connection->state = CLOSED;
    close(connection->fd);
    finish_write(connection, error == 0 ? ECANCELED : error);
}

static void ended(struct connection *connection, int error) {
    shut(connection, error);
    struct buffer *event = frame_begin(EVENT_CONNECTION_CLOSED, 0);
    put_u32(event, connection->id);
    put_u32(event, (uint32_t)error);
    frame_end();
}

static void read_more(struct connection *connection) {
    static uint8_t bytes[CHUNK_MAXIMUM];
    uint64_t allowed = connection->limit - connection->sent;
    ssize_t size = recv(connection->fd, bytes, allowed < sizeof bytes ? (size_t)allowed : sizeof bytes, 0);
    if (size < 0) {
        if (errno != EAGAIN && errno != EINTR) ended(connection, errno);
        return;
    }
    struct buffer *event = frame_begin(EVENT_CONNECTION_DATA, 0);
    put_u32(event, connection->id);
    buffer_append(event, bytes, (size_t)size);
    frame_end();
    connection->sent += (uint64_t)size;
    connection->peer_ended = size == 0;
    if (connection->peer_ended && connection->we_ended) ended(connection, 0);
}

static void write_more(struct connection *connection) {
    struct buffer *queue = &connection->queue;
    while (buffer_size(queue) > 0) {
        ssize_t size = send(connection->fd, queue->data + queue->head, buffer_size(queue), MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) return;
        if (size < 0) {
            ended(connection, errno);
            return;
        }
        buffer_consume(queue, (size_t)size);
    }
    finish_write(connection, 0);
}

static void connected(struct connection *connection) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0) {
        connection->state = OPEN;
        put_u32(frame_begin(REPLY_OK, connection->request), connection->id);
        frame_end();
    } else {
        shut(connection, error);
        reply_error(connection->request, error, "connecting");
    }
}

static bool may_read(const struct connection *connection) {
    return connection->state == OPEN && !connection->peer_ended && connection->sent < connection->limit && outbox_has_room_for_events();
}

static void readable(void *object) {
    if (may_read(object)) read_more(object);
}

static void writable(void *object) {
    struct connection *connection = object;
    if (connection->state == CONNECTING) connected(connection);
    else if (connection->state == OPEN && connection->writing) write_more(connection);
}

void connection_watch(void) {
    size_t kept = 0;
    for (size_t index = 0; index < count; index++) {
        if (table[index]->state != CLOSED) {
            table[kept++] = table[index];
            continue;
        }
        if (table[index]->accepted) accepted_count--;
        free(table[index]);
    }
    count = kept;
    if (session_quiesced() || heartbeat_lost()) return;
    for (size_t index = 0; index < count; index++) {
        struct connection *connection = table[index];
        /* Only descriptors that we wait for: poll keeps reporting errors and hang-ups of every descriptor that it gets. */
        if (connection->state == CONNECTING || connection->writing) watch_fd(connection->fd, POLLOUT, writable, connection);
        if (may_read(connection)) watch_fd(connection->fd, POLLIN, readable, connection);
    }
}

void connection_restart(void) {
    for (size_t index = 0; index < count; index++) {
        table[index]->request = 0;
        shut(table[index], 0);
    }
}

bool connection_may_accept(void) { return count < CONNECTION_MAXIMUM && accepted_count < ACCEPTED_MAXIMUM && outbox_has_room_for_events(); }

void connection_accepted(int fd, uint16_t port) {
    struct connection *connection = must_allocate(sizeof *connection);
    *connection = (struct connection){.id = ++last_id, .fd = fd, .state = OPEN, .accepted = true};
    table[count++] = connection;
    accepted_count++;
    struct buffer *event = frame_begin(EVENT_CONNECTION_ACCEPTED, 0);
    put_u32(event, connection->id);
    put_u16(event, port);
    frame_end();
}

int handle_connect(uint32_t request, struct cursor *payload) {
    uint16_t port = take_u16(payload);
    if (!cursor_done(payload)) return EBADMSG;
    if (port == 0) return EINVAL;
    if (count == CONNECTION_MAXIMUM) return EAGAIN;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        return error;
    }
    struct connection *connection = must_allocate(sizeof *connection);
    *connection = (struct connection){.id = ++last_id, .fd = fd, .state = CONNECTING, .request = request};
    table[count++] = connection;
    return ANSWERED;
}

int handle_connection_write(uint32_t request, struct cursor *payload) {
    struct connection *connection = find(take_u32(payload));
    bool malformed = payload->bad;
    size_t size;
    const uint8_t *bytes = take_bytes(payload, &size);
    if (malformed) return EBADMSG;
    if (connection == NULL) return ENOTCONN;
    if (connection->writing) return EBUSY;
    if (connection->we_ended) return EPIPE;
    if (size == 0) {
        connection->we_ended = true;
        shutdown(connection->fd, SHUT_WR);
        reply_ok(request);
        if (connection->peer_ended) ended(connection, 0);
        return ANSWERED;
    }
    buffer_append(&connection->queue, bytes, size);
    connection->request = request;
    connection->writing = true;
    write_more(connection);
    return ANSWERED;
}

int handle_connection_close(uint32_t request, struct cursor *payload) {
    (void)request;
    struct connection *connection = find(take_u32(payload));
    if (!cursor_done(payload)) return EBADMSG;
    if (connection == NULL) return ENOTCONN;
    shut(connection, 0);
    return 0;
}

int handle_connection_window(uint32_t request, struct cursor *payload) {
    (void)request;
    struct connection *connection = find(take_u32(payload));
    uint64_t limit = take_u64(payload);
    if (!cursor_done(payload)) return EBADMSG;
    if (connection == NULL) return ENOTCONN;
    connection->limit = limit;
    return 0;
}
