/* Open files on the host. */
#include "hostfiles.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUBJECT = 3, FIRST_FILE = 4, MAX_FILES = 8, PAGE = 4096, PAGES_AT_ONCE = 256 };

static void end_with_server(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

int run_send_files(const char *text) {
    end_with_server();
    int count = atoi(text);
    if (count < 1 || count > MAX_FILES) return 2;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(MAX_FILES * sizeof(int))];
    } control = {0};
    char first = '{';
    struct iovec piece = {.iov_base = &first, .iov_len = 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes};
    message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    for (int file = 0; file < count; file++) {
        int descriptor = FIRST_FILE + file;
        memcpy(CMSG_DATA(rights) + (size_t)file * sizeof(int), &descriptor, sizeof descriptor);
    }
    return sendmsg(SUBJECT, &message, MSG_NOSIGNAL) == 1 ? 0 : 1;
}

static int read_page(char *page) {
    for (size_t have = 0; have < PAGE;) {
        ssize_t got = read(STDIN_FILENO, page + have, PAGE - have);
        if (got <= 0) return -1;
        have += (size_t)got;
    }
    return 0;
}

int run_fill_file(const char *text) {
    static char pages[PAGES_AT_ONCE * PAGE];
    end_with_server();
    /* Nobody waits for this. */
    (void)!nice(19);
    if (read_page(pages) != 0) return 2;
    for (size_t page = 1; page < PAGES_AT_ONCE; page++) memcpy(pages + page * PAGE, pages, PAGE);
    for (long long left = atoll(text); left > 0;) {
        size_t size = left < (long long)sizeof pages ? (size_t)left : sizeof pages;
        ssize_t put = write(SUBJECT, pages, size);
        /* The next piece would not begin with a page. */
        if (put <= 0 || (size_t)put != size) return 1;
        left -= put;
    }
    return 0;
}
