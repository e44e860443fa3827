/* Content of files: FILE_READ and FILE_WRITE. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch.h"
#include "identity.h"
#include "outbox.h"
#include "protocol.h"

#define READ_MAXIMUM 262144u

enum { WRITE_CREATE = 1, WRITE_TRUNCATE = 2, WRITE_APPEND = 4, WRITE_EXCLUSIVE = 8, WRITE_ALL = 15 };

int file_enter(const struct cursor *payload, uint8_t as_root, const char *path) {
    if (!cursor_done(payload)) return EBADMSG;
    if (as_root > 1) return EINVAL;
    if (*path == 0) return ENOENT;
    if (*path != '/') return EINVAL;
    return identity_enter(as_root == 1);
}

/* Opens a regular file only: anything else (a FIFO, a terminal, a device) could block the agent. */
static int open_regular(const char *path, int flags, mode_t mode) {
    int fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    if (fd < 0) return -1;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
    errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int handle_file_read(uint32_t request, struct cursor *payload) {
    uint8_t as_root = take_u8(payload);
    uint64_t offset = take_u64(payload);
    uint32_t length = take_u32(payload);
    const char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    int fd = length > READ_MAXIMUM || offset > INT64_MAX - READ_MAXIMUM ? -1 : open_regular(path, O_RDONLY, 0);
    error = length > READ_MAXIMUM || offset > INT64_MAX - READ_MAXIMUM ? EINVAL : errno;
    identity_leave();
    if (fd < 0) return error;
    struct buffer *reply = frame_begin(REPLY_OK, request);
    uint8_t *target = buffer_reserve(reply, length);
    size_t total = 0;
    ssize_t size = 0;
    while (total < length) {
        size = pread(fd, target + total, length - total, (off_t)(offset + total));
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) break;
        total += (size_t)size;
    }
    error = errno;
    close(fd);
    if (size < 0 && total == 0) return error;
    reply->tail += total;
    frame_end();
    return ANSWERED;
}

static int write_all(int fd, const uint8_t *bytes, size_t size, uint64_t offset, bool append) {
    for (size_t done = 0; done < size;) {
        ssize_t part = append ? write(fd, bytes + done, size - done) : pwrite(fd, bytes + done, size - done, (off_t)(offset + done));
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return errno;
        done += (size_t)part;
    }
    return 0;
}

int handle_file_write(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload), flags = take_u8(payload);
    uint32_t mode = take_u32(payload);
    uint64_t offset = take_u64(payload);
    const char *path = take_str(payload);
    size_t size;
    const uint8_t *bytes = take_bytes(payload, &size);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    bool append = (flags & WRITE_APPEND) != 0;
    bool lonely = (flags & WRITE_EXCLUSIVE) != 0 && (flags & WRITE_CREATE) == 0;
    int fd = -1;
    if (flags > WRITE_ALL || lonely || (mode & ~07777u) != 0 || offset > INT64_MAX - FRAME_MAXIMUM) {
        errno = EINVAL;
    } else {
        int open_flags = O_WRONLY | ((flags & WRITE_CREATE) != 0 ? O_CREAT : 0) | (append ? O_APPEND : 0) | ((flags & WRITE_EXCLUSIVE) != 0 ? O_EXCL : 0);
        fd = open_regular(path, open_flags, mode);
    }
    error = fd < 0 ? errno : 0;
    /* Truncating after the check keeps everything but regular files untouched. */
    if (error == 0 && (flags & WRITE_TRUNCATE) != 0 && ftruncate(fd, 0) != 0) error = errno;
    if (error == 0) error = write_all(fd, bytes, size, offset, append);
    if (fd >= 0 && close(fd) != 0 && error == 0) error = errno;
    identity_leave();
    return error;
}
