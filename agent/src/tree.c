/* Removal of a whole tree, of any depth, with bounded descriptors and without recursion. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer.h"
#include "removal.h"

#define OPEN_LEVELS 64     /* folders above this depth stay open; deeper ones are opened again on the way back */
#define DEPTH_MAXIMUM 65536
#define EMPTYING_ROUNDS 16 /* how often a folder that others keep filling is emptied again */

struct level {
    DIR *folder; /* NULL: closed for now */
    dev_t device;
    ino_t inode;
    int rounds;
    char *name; /* inside its parent */
};

static struct level *levels;
static size_t depth, capacity;

static int push(int parent, const char *name) {
    if (depth >= DEPTH_MAXIMUM) return ELOOP;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno;
    struct stat status;
    DIR *folder = fstat(fd, &status) == 0 ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        int error = errno;
        close(fd);
        return error;
    }
    if (depth == capacity) {
        capacity = capacity == 0 ? 64 : capacity * 2;
        levels = must_reallocate(levels, capacity * sizeof *levels);
    }
    char *copy = strcpy(must_allocate(strlen(name) + 1), name);
    levels[depth++] = (struct level){.folder = folder, .device = status.st_dev, .inode = status.st_ino, .name = copy};
    return 0;
}

/* Opens the parent of the deepest level again. It must be the folder that we came through: someone may have moved it. */
static int reopen_parent(void) {
    struct level *child = &levels[depth - 1], *parent = &levels[depth - 2];
    if (parent->folder != NULL) return 0;
    int fd = openat(dirfd(child->folder), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    struct stat status;
    if (fstat(fd, &status) != 0 || status.st_dev != parent->device || status.st_ino != parent->inode) {
        close(fd);
        return EAGAIN;
    }
    parent->folder = fdopendir(fd);
    return parent->folder == NULL ? errno : 0;
}

/* Leaves the deepest level, which is empty now, and removes it. */
static int pop(int top_parent) {
    struct level *level = &levels[depth - 1];
    int error = depth > 1 ? reopen_parent() : 0;
    if (error != 0) return error;
    int parent = depth > 1 ? dirfd(levels[depth - 2].folder) : top_parent;
    if (unlinkat(parent, level->name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        if ((errno != ENOTEMPTY && errno != EEXIST) || ++level->rounds >= EMPTYING_ROUNDS) return errno;
        rewinddir(level->folder);
        return 0;
    }
    closedir(level->folder);
    free(level->name);
    depth--;
    return 0;
}

static int remove_entry(DIR *folder, const struct dirent *entry) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) return 0;
    if (entry->d_type != DT_DIR) {
        if (unlinkat(dirfd(folder), entry->d_name, 0) == 0 || errno == ENOENT) return 0;
        if (errno != EISDIR && errno != EPERM) return errno;
        int error = errno;
        struct stat status;
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode)) return error;
    }
    int error = push(dirfd(folder), entry->d_name);
    if (error == ENOENT) return 0;
    if (error == 0 && depth > OPEN_LEVELS) {
        closedir(levels[depth - 2].folder);
        levels[depth - 2].folder = NULL;
    }
    return error;
}

int remove_tree(const char *path) {
    int error = push(AT_FDCWD, path);
    while (error == 0 && depth > 0) {
        DIR *folder = levels[depth - 1].folder;
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry != NULL) error = remove_entry(folder, entry);
        else error = errno != 0 ? errno : pop(AT_FDCWD);
    }
    return error;
}
