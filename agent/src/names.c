/* Names and attributes: FILE_MKDIR, FILE_RENAME, FILE_SYMLINK, FILE_LINK and FILE_SET. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "identity.h"
#include "report.h"

enum { SET_MODE = 1, SET_OWNER = 2, SET_MTIME = 4, SET_ALL = 7 };

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int make_folder(char *path, uint32_t mode, bool parents) {
    for (size_t size = strlen(path); size > 1 && path[size - 1] == '/';) path[--size] = 0;
    for (char *slash = strchr(path + 1, '/'); parents && slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int error = mkdir(path, 0755) == 0 || is_folder(path) ? 0 : errno;
        *slash = '/';
        if (error != 0) return error == EEXIST ? ENOTDIR : error;
    }
    if (mkdir(path, mode) == 0) return 0;
    int error = errno;
    return parents && is_folder(path) ? 0 : error;
}

int handle_file_mkdir(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload), parents = take_u8(payload);
    uint32_t mode = take_u32(payload);
    char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    error = parents > 1 || (mode & ~07777u) != 0 ? EINVAL : make_folder(path, mode, parents == 1);
    identity_leave();
    return error;
}

int handle_file_rename(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload);
    const char *from = take_str(payload), *to = take_str(payload);
    int error = file_enter(payload, as_root, from);
    if (error != 0) return error;
    if (*to != '/') error = *to == 0 ? ENOENT : EINVAL;
    else if (rename(from, to) != 0) error = errno;
    identity_leave();
    return error;
}

int handle_file_symlink(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload);
    const char *target = take_str(payload), *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    if (symlink(target, path) != 0) error = errno;
    identity_leave();
    return error;
}

int handle_file_link(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload);
    const char *existing = take_str(payload), *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    if (*existing != '/') error = *existing == 0 ? ENOENT : EINVAL;
    else if (linkat(AT_FDCWD, existing, AT_FDCWD, path, 0) != 0) error = errno;
    identity_leave();
    return error;
}

/* The kernel drops the set-group-ID bit when its setter has neither the file's group nor CAP_FSETID, which the agent has not: it
   takes on the group for the moment. */
static int change_mode_in_group(const char *path, uint32_t mode, gid_t group) {
    bool other = (mode & S_ISGID) != 0 && group != getegid();
    if (other && setegid(group) != 0) other = false;
    int error = chmod(path, mode) == 0 ? 0 : errno;
    if (other && setegid(0) != 0) {
        report("cannot return to the group of root: errno %d", errno);
        _exit(1);
    }
    return error;
}

/* A final symlink is refused. As root that holds against a swap in between too, by way of a descriptor; the user could only
   trick the agent into what the user may do anyway. */
static int change_mode(const char *path, uint32_t mode) {
    struct stat status;
    if (geteuid() != 0) {
        if (lstat(path, &status) != 0) return errno;
        if (S_ISLNK(status.st_mode)) return EOPNOTSUPP;
        return chmod(path, mode) == 0 ? 0 : errno;
    }
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = fstat(fd, &status) == 0 ? 0 : errno;
    if (error == 0 && S_ISLNK(status.st_mode)) error = EOPNOTSUPP;
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (error == 0) error = change_mode_in_group(link, mode, status.st_gid);
    close(fd);
    return error;
}

static struct timespec from_nanoseconds(int64_t nanoseconds) {
    int64_t seconds = nanoseconds / 1000000000, rest = nanoseconds % 1000000000;
    if (rest < 0) {
        seconds--;
        rest += 1000000000;
    }
    return (struct timespec){.tv_sec = seconds, .tv_nsec = rest};
}

int handle_file_set(uint32_t request, struct cursor *payload) {
    (void)request;
    uint8_t as_root = take_u8(payload), what = take_u8(payload);
    uint32_t mode = take_u32(payload), uid = take_u32(payload), gid = take_u32(payload);
    int64_t mtime = (int64_t)take_u64(payload);
    const char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    if (what == 0 || what > SET_ALL || ((what & SET_MODE) != 0 && (mode & ~07777u) != 0)) error = EINVAL;
    /* A change of owner clears set-user-ID bits, so the mode comes after it. */
    if (error == 0 && (what & SET_OWNER) != 0 && lchown(path, uid, gid) != 0) error = errno;
    if (error == 0 && (what & SET_MODE) != 0) error = change_mode(path, mode);
    if (error == 0 && (what & SET_MTIME) != 0) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, from_nanoseconds(mtime)};
        if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) != 0) error = errno;
    }
    identity_leave();
    return error;
}
