/* Log lines on stderr. */
#include "report.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void report(const char *format, ...) {
    int saved = errno;
    char line[512] = "agent: ";
    size_t prefix = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
    va_end(arguments);
    if (written >= 0) {
        size_t size = strlen(line);
        line[size++] = '\n';
        /* A full stderr pipe must never block the agent. A line is shorter than PIPE_BUF, so POLLOUT means it fits. */
        struct pollfd stderr_poll = {.fd = STDERR_FILENO, .events = POLLOUT};
        if (poll(&stderr_poll, 1, 0) == 1 && (stderr_poll.revents & POLLOUT) != 0) {
            ssize_t ignored = write(STDERR_FILENO, line, size);
            (void)ignored;
        }
    }
    errno = saved;
}
