/* From a frame's type to the function that serves it. */
#include "dispatch.h"

#include <errno.h>

#include "changes.h"
#include "connection.h"
#include "cursor.h"
#include "files.h"
#include "freeze.h"
#include "identity.h"
#include "input.h"
#include "listener.h"
#include "outbox.h"
#include "output.h"
#include "process.h"
#include "processtable.h"
#include "protocol.h"
#include "restored.h"
#include "resync.h"
#include "session.h"
#include "signals.h"
#include "spawn.h"

typedef int (*handler)(uint32_t request, struct cursor *payload);

static const handler handlers[256] = {
    [0x01] = handle_hello,
    [0x02] = handle_ping,
    [0x03] = handle_spawn,
    [0x04] = handle_stdin,
    [0x05] = handle_stdin_close,
    [0x06] = handle_signal,
    [0x07] = handle_resize,
    [0x08] = handle_window,
    [0x09] = handle_processes,
    [0x0A] = handle_forget,
    [0x0B] = handle_quiesce,
    [0x0C] = handle_resume,
    [0x0D] = handle_restored,
    [0x0E] = handle_freeze,
    [0x0F] = handle_thaw,
    [0x10] = handle_file_stat,
    [0x11] = handle_file_list,
    [0x12] = handle_file_read,
    [0x13] = handle_file_write,
    [0x14] = handle_file_mkdir,
    [0x15] = handle_file_remove,
    [0x16] = handle_file_rename,
    [0x17] = handle_file_symlink,
    [0x18] = handle_file_set,
    [0x19] = handle_file_link,
    [0x1A] = handle_file_attributes,
    [0x1B] = handle_file_set_attribute,
    [0x1C] = handle_file_remove_attribute,
    [0x1D] = handle_watch,
    [0x1E] = handle_unwatch,
    [0x20] = handle_connect,
    [0x21] = handle_connection_write,
    [0x22] = handle_connection_close,
    [0x23] = handle_connection_window,
    [0x24] = handle_listen,
    [0x30] = handle_process_table,
    [REQUEST_RESYNC] = handle_resync,
    [0x32] = handle_resync_token,
    [0x33] = handle_user,
};

bool dispatch_while_quiesced(uint8_t type) {
    handler serve = handlers[type];
    return serve == handle_ping || serve == handle_quiesce || serve == handle_resume || serve == handle_restored || serve == handle_resync;
}

void dispatch(uint8_t *frame, size_t size) {
    struct cursor payload = {.at = frame, .left = size};
    uint8_t type = take_u8(&payload);
    uint32_t request = take_u32(&payload);
    handler serve = handlers[type];
    if (serve == NULL) {
        reply_error(request, ENOSYS, "unknown frame type");
        return;
    }
    if (session_quiesced() && !dispatch_while_quiesced(type)) {
        reply_error(request, EBUSY, "too many requests while quiesced");
        return;
    }
    int result = serve(request, &payload);
    if (result == 0) reply_ok(request);
    else if (result > 0) reply_error(request, result, result == EBADMSG ? "malformed payload" : "");
}
