/* Pseudo terminals. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "report.h"

int terminal_resize(int fd, uint16_t rows, uint16_t columns) {
    struct winsize size = {.ws_row = rows, .ws_col = columns};
    return ioctl(fd, TIOCSWINSZ, &size) == 0 ? 0 : errno;
}

uint8_t terminal_end_of_file(int fd) {
    struct termios settings;
    if (tcgetattr(fd, &settings) != 0 || settings.c_cc[VEOF] == 0) return 4;
    return settings.c_cc[VEOF];
}

int terminal_slave(int master, int flags) {
    char path[64];
    int error = ptsname_r(master, path, sizeof path);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | flags);
}

int terminal_open(int *master, int *slave, uid_t uid, gid_t gid, uint16_t rows, uint16_t columns) {
    *slave = -1;
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (*master < 0) return errno;
    if (grantpt(*master) != 0 || unlockpt(*master) != 0 || (*slave = terminal_slave(*master, 0)) < 0) {
        int error = errno;
        close(*master);
        return error;
    }
    if (getuid() == 0 && (fchown(*slave, uid, gid) != 0 || fchmod(*slave, 0620) != 0)) {
        report("cannot give a terminal to its user: errno %d", errno);
    }
    struct termios settings;
    if (tcgetattr(*slave, &settings) == 0) {
        settings.c_iflag |= IUTF8; /* so that erasing removes characters, not bytes */
        tcsetattr(*slave, TCSANOW, &settings);
    }
    if (rows != 0 && columns != 0) terminal_resize(*master, rows, columns);
    return 0;
}
