/* RESTORED: makes two copies of one checkpoint differ where they must. */
#include "restored.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "changes.h"
#include "connection.h"
#include "inbox.h"
#include "input.h"
#include "launch.h"
#include "listener.h"
#include "output.h"
#include "protocol.h"
#include "removal.h"
#include "report.h"
#include "session.h"

#define FOLDER "/run/sandboxer"
#define HOOK ".sandboxer/restored"

static void refused(const char *step) { report("%s: %s", step, strerror(errno)); }

static bool write_file(int folder, const char *path, int flags, mode_t mode, const void *bytes, size_t size) {
    int fd = openat(folder, path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, mode);
    if (fd < 0) return false;
    bool written = write(fd, bytes, size) == (ssize_t)size;
    close(fd);
    return written;
}

/* /run may be writable for everybody, so check who owns the folder. */
static bool write_generation(uint64_t generation) {
    int folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (folder < 0 || fstat(folder, &status) != 0) return false;
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRIu64 "\n", generation);
    bool done = false;
    if (status.st_uid != 0) errno = EPERM;
    /* Renamed into place, so that a reader sees one number or the other. */
    else done = write_file(folder, "generation.new", O_CREAT | O_TRUNC, 0644, text, (size_t)size) && renameat(folder, "generation.new", folder, "generation") == 0;
    close(folder);
    return done;
}

void restored_prepare(void) {
    if (getpid() != 1) return;
    mkdir("/run", 0755);
    mkdir(FOLDER, 0755);
    if (!write_generation(0)) refused("writing the generation");
}

static void run_hook(uint64_t generation) {
    const char *folder = identity_folder();
    char program[4096], home[4096];
    int size = snprintf(program, sizeof program, "%s/%s", folder, HOOK);
    struct stat status;
    if (size >= (int)sizeof program || lstat(program, &status) != 0) return;
    snprintf(home, sizeof home, "HOME=%s", folder);
    char variable[64];
    snprintf(variable, sizeof variable, "SANDBOXER_GENERATION=%" PRIu64, generation);
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    char *arguments[] = {program, NULL}, *environment[] = {path, home, variable, NULL};
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct launch hook = {.arguments = arguments, .environment = environment, .folder = folder, .identity = *identity_user(), .input = nowhere, .output = nowhere, .error = nowhere};
    pid_t pid;
    int error = nowhere < 0 ? errno : launch(&hook, &pid);
    if (error != 0) report("%s (%s): %s", hook.failed_step == NULL ? "opening /dev/null" : hook.failed_step, program, strerror(error));
    if (nowhere >= 0) close(nowhere);
}

static void change_system(uint64_t generation, const char *hostname, const char *machine_id, const uint8_t *entropy, size_t entropy_size) {
    if (getpid() != 1) {
        report("not PID 1: the system is left as it is");
        return;
    }
    if (*hostname != 0 && sethostname(hostname, strlen(hostname)) != 0) refused("setting the hostname");
    char line[128];
    int size = snprintf(line, sizeof line, "%.126s\n", machine_id);
    if (*machine_id != 0 && !write_file(AT_FDCWD, "/etc/machine-id", O_CREAT | O_TRUNC, 0444, line, (size_t)size)) refused("writing the machine id");
    if (entropy_size > 0 && !write_file(AT_FDCWD, "/dev/urandom", 0, 0, entropy, entropy_size)) refused("mixing in entropy");
    if (!write_generation(generation)) refused("writing the generation");
    run_hook(generation);
}

int handle_restored(uint32_t request, struct cursor *payload) {
    (void)request;
    uint64_t generation = take_u64(payload);
    const char *hostname = take_str(payload), *machine_id = take_str(payload);
    bool malformed = payload->bad;
    size_t entropy_size;
    const uint8_t *entropy = take_bytes(payload, &entropy_size);
    if (malformed) return EBADMSG;
    session_restored(generation);
    inbox_restart();
    output_restart();
    input_restart();
    removal_restart();
    connection_restart();
    listener_restart();
    changes_restart();
    change_system(generation, hostname, machine_id, entropy, entropy_size);
    return 0;
}
