/* The conversation with the host as a whole. */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "dispatch.h"
#include "heartbeat.h"
#include "outbox.h"
#include "protocol.h"
#include "signals.h"

static bool quiesced;
static uint64_t generation;

bool session_quiesced(void) { return quiesced; }
uint64_t session_generation(void) { return generation; }

void session_restored(uint64_t new_generation) {
    generation = new_generation;
    quiesced = false;
    outbox_release(false);
}

void session_end(int status) {
    outbox_flush();
    /* The end of PID 1 ends everything else; elsewhere the agent has to do it. */
    if (getpid() != 1) signal_everything(SIGKILL);
    exit(status);
}

int handle_hello(uint32_t request, struct cursor *payload) {
    uint32_t version = take_u32(payload);
    uint32_t heartbeat_ms = take_u32(payload);
    if (!cursor_done(payload)) return EBADMSG;
    if (version != PROTOCOL_VERSION) return EPROTONOSUPPORT;
    heartbeat_set(heartbeat_ms);
    struct buffer *reply = frame_begin(REPLY_OK, request);
    put_u32(reply, PROTOCOL_VERSION);
    put_u64(reply, generation);
    frame_end();
    return ANSWERED;
}

int handle_ping(uint32_t request, struct cursor *payload) {
    size_t size;
    const uint8_t *bytes = take_bytes(payload, &size);
    buffer_append(frame_begin(REPLY_OK, request), bytes, size);
    frame_end();
    return ANSWERED;
}

int handle_quiesce(uint32_t request, struct cursor *payload) {
    if (!cursor_done(payload)) return EBADMSG;
    if (quiesced) return EALREADY;
    quiesced = true;
    reply_ok(request);
    outbox_hold();
    return ANSWERED;
}

int handle_resume(uint32_t request, struct cursor *payload) {
    (void)request;
    if (!cursor_done(payload)) return EBADMSG;
    quiesced = false;
    outbox_release(true);
    return 0;
}
