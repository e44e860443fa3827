/* Changes in folders, as inotify reports them: WATCH and UNWATCH. */
#include "changes.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "dispatch.h"
#include "files.h"
#include "heartbeat.h"
#include "identity.h"
#include "outbox.h"
#include "protocol.h"
#include "session.h"
#include "watch.h"

#define FOLDER_MAXIMUM 1024u
#define WANTED (IN_CREATE | IN_MODIFY | IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_ATTRIB | IN_ONLYDIR)

enum { CREATED = 1, WRITTEN = 2, REMOVED = 4, RENAMED = 8, ATTRIBUTES = 16, OF_FOLDER = 32, ENDED = 64, LOST = 128 };

/* The kernel gives one number to a folder, for every watcher and path. */
struct folder {
    int number;
    uint32_t holders;
};

static struct folder table[FOLDER_MAXIMUM];
static size_t count;
static int source = -1;

static struct folder *find(int number) {
    for (size_t index = 0; index < count; index++) {
        if (table[index].number == number) return &table[index];
    }
    return NULL;
}

static void drop(struct folder *folder) { *folder = table[--count]; }

static uint8_t flags_of(uint32_t mask) {
    unsigned flags = 0;
    if (mask & (IN_CREATE | IN_MOVED_TO)) flags = CREATED;
    else if (mask & IN_MODIFY) flags = WRITTEN;
    else if (mask & (IN_DELETE | IN_DELETE_SELF)) flags = REMOVED;
    else if (mask & (IN_MOVED_FROM | IN_MOVE_SELF)) flags = RENAMED;
    else if (mask & IN_ATTRIB) flags = ATTRIBUTES;
    return (uint8_t)(flags == 0 || (mask & IN_ISDIR) == 0 ? flags : flags | OF_FOLDER);
}

static void tell(uint32_t number, uint8_t flags, const char *name) {
    struct buffer *event = frame_begin(EVENT_CHANGE, 0);
    put_u32(event, number);
    put_u8(event, flags);
    put_str(event, name, strlen(name));
    frame_end();
}

static void tell_change(const struct inotify_event *change) {
    const char *name = change->len == 0 ? "" : change->name;
    if (change->mask & IN_Q_OVERFLOW) {
        tell(0, LOST, "");
        return;
    }
    struct folder *folder = find(change->wd);
    if (folder == NULL) return;
    if (change->mask & IN_IGNORED) {
        tell((uint32_t)change->wd, ENDED, "");
        drop(folder);
        return;
    }
    uint8_t flags = flags_of(change->mask);
    /* The attributes of the folder itself change with each folder inside. */
    if (flags != 0 && !((flags & ATTRIBUTES) != 0 && *name == 0)) tell((uint32_t)change->wd, flags, name);
}

static void readable(void *object) {
    (void)object;
    static char bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    while (outbox_has_room_for_events()) {
        ssize_t size = read(source, bytes, sizeof bytes);
        if (size <= 0) return;
        for (char *at = bytes; at < bytes + size;) {
            const struct inotify_event *change = (const struct inotify_event *)(const void *)at;
            tell_change(change);
            at += sizeof *change + change->len;
        }
    }
}

void changes_watch(void) {
    if (source < 0 || session_quiesced() || heartbeat_lost() || !outbox_has_room_for_events()) return;
    watch_fd(source, POLLIN, readable, NULL);
}

void changes_restart(void) {
    if (source >= 0) close(source);
    source = -1;
    count = 0;
}

/* An errno, or 0 with the number of the folder. */
static int add(const char *path, int *number) {
    if (source < 0) source = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (source < 0) return errno;
    *number = inotify_add_watch(source, path, WANTED);
    if (*number < 0) return errno;
    struct folder *known = find(*number);
    if (known != NULL) known->holders++;
    else if (count < FOLDER_MAXIMUM) table[count++] = (struct folder){.number = *number, .holders = 1};
    else {
        inotify_rm_watch(source, *number);
        return EAGAIN;
    }
    return 0;
}

int handle_watch(uint32_t request, struct cursor *payload) {
    uint8_t as_root = take_u8(payload);
    const char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    int number = 0;
    error = add(path, &number);
    identity_leave();
    if (error != 0) return error;
    put_u32(frame_begin(REPLY_OK, request), (uint32_t)number);
    frame_end();
    return ANSWERED;
}

int handle_unwatch(uint32_t request, struct cursor *payload) {
    (void)request;
    uint32_t number = take_u32(payload);
    if (!cursor_done(payload)) return EBADMSG;
    struct folder *folder = find((int)number);
    if (folder == NULL) return EINVAL;
    if (--folder->holders > 0) return 0;
    inotify_rm_watch(source, folder->number);
    drop(folder);
    return 0;
}
