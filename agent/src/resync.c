/* RESYNC: another host takes over the pipes of one that has ended, maybe in the middle of a frame. */
#include "resync.h"

#include <errno.h>
#include <string.h>

#include "changes.h"
#include "connection.h"
#include "dispatch.h"
#include "inbox.h"
#include "input.h"
#include "listener.h"
#include "outbox.h"
#include "output.h"
#include "protocol.h"
#include "removal.h"
#include "session.h"

#define TOKEN_SIZE 32u
#define MARKER_SIZE (9u + TOKEN_SIZE)

static uint8_t marker[MARKER_SIZE] = {5 + TOKEN_SIZE, 0, 0, 0, REQUEST_RESYNC, 0, 0, 0, 0};
static bool possible;

int handle_resync_token(uint32_t request, struct cursor *payload) {
    (void)request;
    size_t size;
    const uint8_t *token = take_bytes(payload, &size);
    if (size != TOKEN_SIZE) return EINVAL;
    if (possible) return EALREADY;
    memcpy(marker + 9, token, TOKEN_SIZE);
    possible = true;
    return 0;
}

bool resync_possible(void) { return possible; }

size_t resync_find(const uint8_t *bytes, size_t size) {
    const uint8_t *found = size < MARKER_SIZE ? NULL : memmem(bytes, size, marker, MARKER_SIZE);
    return found == NULL ? size : (size_t)(found - bytes);
}

size_t resync_tail(size_t size) { return size < MARKER_SIZE ? size : MARKER_SIZE - 1; }

int handle_resync(uint32_t request, struct cursor *payload) {
    (void)request;
    size_t size;
    const uint8_t *token = take_bytes(payload, &size);
    if (!possible || size != TOKEN_SIZE || memcmp(token, marker + 9, TOKEN_SIZE) != 0) return EPERM;
    session_restored(session_generation());
    inbox_restart();
    output_restart();
    input_restart();
    removal_restart();
    connection_restart();
    listener_restart();
    changes_restart();
    buffer_append(frame_begin(EVENT_RESYNCED, 0), marker + 9, TOKEN_SIZE);
    frame_end();
    return ANSWERED;
}
