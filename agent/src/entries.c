/* Facts about files: FILE_STAT and FILE_LIST. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch.h"
#include "files.h"
#include "identity.h"
#include "outbox.h"
#include "protocol.h"

#define LIST_MAXIMUM 262144u

static uint8_t kind_of(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFDIR: return 'd';
    case S_IFLNK: return 'l';
    case S_IFCHR: return 'c';
    case S_IFBLK: return 'b';
    case S_IFIFO: return 'p';
    case S_IFSOCK: return 's';
    default: return 'f';
    }
}

static void put_entry(struct buffer *reply, int folder, const char *path, const char *name, const struct stat *status) {
    char target[PATH_MAX];
    ssize_t target_size = S_ISLNK(status->st_mode) ? readlinkat(folder, path, target, sizeof target) : 0;
    put_u8(reply, kind_of(status->st_mode));
    put_u32(reply, status->st_mode & 07777);
    put_u32(reply, status->st_uid);
    put_u32(reply, status->st_gid);
    put_u64(reply, (uint64_t)status->st_size);
    put_u64(reply, (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec);
    put_u64(reply, status->st_dev);
    put_u64(reply, status->st_ino);
    put_u32(reply, (uint32_t)status->st_nlink);
    put_str(reply, name, strlen(name));
    put_str(reply, target, target_size > 0 ? (size_t)target_size : 0);
}

/* The last component, without trailing slashes. */
static const char *base_name(char *path) {
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') path[--size] = 0;
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == 0 ? path : slash + 1;
}

int handle_file_stat(uint32_t request, struct cursor *payload) {
    uint8_t as_root = take_u8(payload);
    char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    struct stat status;
    error = lstat(path, &status) == 0 ? 0 : errno;
    if (error == 0) {
        char full[PATH_MAX];
        strcpy(full, path); /* lstat has refused longer paths */
        put_entry(frame_begin(REPLY_OK, request), AT_FDCWD, full, base_name(path), &status);
        frame_end();
    }
    identity_leave();
    return error == 0 ? ANSWERED : error;
}

/* A folder that may be read but not searched shows names only. */
static bool stat_entry(int folder, const struct dirent *entry, struct stat *status) {
    if (fstatat(folder, entry->d_name, status, AT_SYMLINK_NOFOLLOW) == 0) return true;
    *status = (struct stat){.st_mode = (mode_t)DTTOIF(entry->d_type), .st_ino = entry->d_ino};
    return errno != ENOENT;
}

static void put_entries(struct buffer *reply, DIR *folder, uint32_t skip) {
    size_t more_at = buffer_size(reply);
    put_u8(reply, 0);
    put_u32(reply, 0);
    uint32_t count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (skip > 0) {
            skip--;
            continue;
        }
        if (buffer_size(reply) > LIST_MAXIMUM) {
            reply->data[reply->head + more_at] = 1;
            break;
        }
        struct stat status;
        if (!stat_entry(dirfd(folder), entry, &status)) continue;
        put_entry(reply, dirfd(folder), entry->d_name, entry->d_name, &status);
        count++;
    }
    patch_u32(reply, more_at + 1, count);
}

int handle_file_list(uint32_t request, struct cursor *payload) {
    uint8_t as_root = take_u8(payload);
    uint32_t skip = take_u32(payload);
    const char *path = take_str(payload);
    int error = file_enter(payload, as_root, path);
    if (error != 0) return error;
    DIR *folder = opendir(path);
    error = folder == NULL ? errno : 0;
    if (folder != NULL) {
        put_entries(frame_begin(REPLY_OK, request), folder, skip);
        frame_end();
        closedir(folder);
    }
    identity_leave();
    return error == 0 ? ANSWERED : error;
}
