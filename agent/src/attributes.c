/* Extended attributes of the user: FILE_ATTRIBUTES, FILE_SET_ATTRIBUTE and FILE_REMOVE_ATTRIBUTE. */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "buffer.h"
#include "dispatch.h"
#include "files.h"
#include "identity.h"
#include "outbox.h"
#include "protocol.h"

/* Linux's limits for a list of names and for a value. */
#define NAMES_MAXIMUM 65536u
#define VALUE_MAXIMUM 65536u
#define REPLY_MAXIMUM 524288u

static bool is_of_user(const char *name) { return strncmp(name, "user.", 5) == 0 && name[5] != 0; }

/* An attribute that was removed since its name was listed is left out. */
static int put_attribute(struct buffer *reply, const char *path, const char *name, uint32_t *count) {
    static char value[VALUE_MAXIMUM];
    ssize_t size = lgetxattr(path, name, value, sizeof value);
    if (size < 0) return errno == ENODATA ? 0 : errno;
    if (buffer_size(reply) + strlen(name) + (size_t)size > REPLY_MAXIMUM) return E2BIG;
    put_str(reply, name, strlen(name));
    put_str(reply, value, (size_t)size);
    (*count)++;
    return 0;
}

static int put_attributes(struct buffer *reply, const char *path) {
    static char names[NAMES_MAXIMUM + 1];
    size_t count_at = buffer_size(reply);
    put_u32(reply, 0);
    ssize_t size = llistxattr(path, names, NAMES_MAXIMUM);
    if (size < 0) return errno == EOPNOTSUPP ? 0 : errno;
    names[size] = 0;
    uint32_t count = 0;
    for (const char *name = names; name < names + size; name += strlen(name) + 1) {
        int error = is_of_user(name) ? put_attribute(reply, path, name, &count) : 0;
        if (error != 0) return error;
    }
    patch_u32(reply, count_at, count);
    return 0;
}

int handle_file_attributes(uint32_t request, struct cursor *payload) {
    uint8_t as_root = take_u8(payload);
    const char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    error = put_attributes(frame_begin(REPLY_OK, request), path);
    if (error == 0) frame_end();
    identity_leave();
    return error == 0 ? ANSWERED : error;
}

int handle_file_set_attribute(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload);
    const char *path = take_str(payload), *name = take_str(payload);
    size_t size;
    const uint8_t *value = take_bytes(payload, &size);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    if (!is_of_user(name)) error = EINVAL;
    else if (lsetxattr(path, name, value, size, 0) != 0) error = errno;
    identity_leave();
    return error;
}

int handle_file_remove_attribute(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload);
    const char *path = take_str(payload), *name = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    if (!is_of_user(name)) error = EINVAL;
    else if (lremovexattr(path, name) != 0 && errno != ENODATA) error = errno;
    identity_leave();
    return error;
}
