/*
 * Ctrl+C, Ctrl+\ and Ctrl+Z. Linux discards typed input before one of them that was not read yet. gVisor keeps it: a
 * line that nobody reads delays the signal forever, and the rest of a line becomes the beginning of the next one; with
 * runsc of 2024 so does the character itself. Where a trial shows that, the agent discards the input as Linux does.
 */
#include "interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "terminal.h"

/* A terminal takes no more at once anyway, nor has a line more. */
#define PIECE 4096u
/* The rest is read in the next turn: the agent has other work. */
#define READS_AT_ONCE 2048u
#define TRIAL_MS 1000

enum kept { UNKNOWN, NOTHING, LINE, LINE_AND_CHARACTER };

static enum kept try_terminal(int master, int slave) {
    if (fcntl(slave, F_SETFL, O_NONBLOCK) != 0 || write(master, "a\003\n", 3) != 3) return UNKNOWN;
    struct pollfd readable = {.fd = slave, .events = POLLIN};
    if (poll(&readable, 1, TRIAL_MS) != 1) return UNKNOWN;
    char line[8];
    switch (read(slave, line, sizeof line)) {
    case 1: return NOTHING;
    case 2: return LINE;
    case 3: return LINE_AND_CHARACTER;
    default: return UNKNOWN;
    }
}

/* The part of a line that the kernel keeps when a signal is typed. */
static enum kept kept_at_signal(void) {
    static enum kept known;
    int master, slave;
    if (known != UNKNOWN || terminal_open(&master, &slave, getuid(), getgid(), 0, 0) != 0) return known;
    known = try_terminal(master, slave);
    close(slave);
    close(master);
    return known;
}

static bool makes_signal(const struct termios *settings, uint8_t character) {
    const cc_t *keys = settings->c_cc;
    return character != _POSIX_VDISABLE
        && (character == keys[VINTR] || character == keys[VQUIT] || character == keys[VSUSP]);
}

/* How many bytes come before the first one that discards others. */
static size_t count_plain(const struct termios *settings, const uint8_t *bytes, size_t size) {
    if ((settings->c_lflag & ISIG) == 0 || (settings->c_lflag & NOFLSH) != 0) return size;
    size_t count = 0;
    while (count < size && !makes_signal(settings, bytes[count])) count++;
    return count;
}

/* Too many do no harm: there is nothing to erase on an empty line. */
static void note_typed(struct process *process, const struct termios *settings, const uint8_t *bytes, size_t size) {
    bool has_lines = (settings->c_lflag & ICANON) != 0;
    uint8_t returns = (settings->c_iflag & ICRNL) != 0 ? '\r' : '\n';
    for (size_t index = 0; index < size; index++) {
        bool is_end = bytes[index] == '\n' || bytes[index] == returns;
        if (has_lines && bytes[index] == settings->c_cc[VEOF]) interrupt_note_end(process);
        if (is_end || !has_lines) process->typed = 0;
        else if (process->typed < PIECE) process->typed++;
    }
}

void interrupt_note_end(struct process *process) {
    if (process->typed_ends < PIECE) process->typed_ends++;
}

/* False when there may be more. A typed end of file looks like the end of the input, and like no input at all. */
static bool forget_lines(struct process *process, int slave) {
    uint8_t forgotten[PIECE];
    for (unsigned count = 0; count < READS_AT_ONCE; count++) {
        if (read(slave, forgotten, sizeof forgotten) > 0) continue;
        if (process->typed_ends == 0) return true;
        process->typed_ends--;
    }
    return false;
}

/* As its user would: a reader does not notice it, and any other way risks that the text is read meanwhile. */
static bool erase_line(struct process *process, uint8_t erase) {
    uint8_t keys[PIECE];
    memset(keys, erase, process->typed);
    ssize_t erased = process->typed == 0 ? 0 : write(process->input, keys, process->typed);
    if (erased > 0) process->typed -= (size_t)erased;
    return process->typed == 0;
}

/* As Linux shows it. A character that is kept is erased again, which wipes two places of the screen. */
static void show(int slave, const struct termios *settings, uint8_t character, bool is_kept) {
    const tcflag_t shown = ECHO | ECHOCTL;
    if ((settings->c_lflag & shown) != shown || character >= ' ') return;
    const char text[] = {'^', (char)(character ^ 0x40), ' ', ' '};
    ssize_t ignored = write(slave, text, is_kept ? 4 : 2);
    (void)ignored;
}

static ssize_t send_signal(struct process *process, int slave, const struct termios *settings, uint8_t character) {
    const uint8_t erase = settings->c_cc[VERASE];
    bool is_discarded = tcflush(slave, TCIFLUSH) == 0;
    bool can_erase = !is_discarded && (settings->c_lflag & ICANON) != 0 && erase != _POSIX_VDISABLE;
    if (is_discarded) process->typed = process->typed_ends = 0;
    else if (!forget_lines(process, slave) || (can_erase && !erase_line(process, erase))) {
        errno = EAGAIN;
        return -1;
    }
    bool is_kept = can_erase && kept_at_signal() == LINE_AND_CHARACTER;
    show(slave, settings, character, is_kept);
    const uint8_t keys[] = {character, erase};
    ssize_t size = write(process->input, keys, is_kept ? 2 : 1);
    return size > 0 ? 1 : size;
}

ssize_t interrupt_write(struct process *process, const uint8_t *bytes, size_t size) {
    struct termios settings;
    if (size > PIECE) size = PIECE;
    if (tcgetattr(process->input, &settings) != 0) return write(process->input, bytes, size);
    size_t plain = count_plain(&settings, bytes, size);
    if (plain < size && kept_at_signal() <= NOTHING) plain = size;
    if (plain > 0) {
        ssize_t written = write(process->input, bytes, plain);
        if (written > 0) note_typed(process, &settings, bytes, (size_t)written);
        return written;
    }
    /* A terminal of its own, because the agent must not wait for the sandbox's readers and writers. */
    int slave = terminal_slave(process->input, O_NONBLOCK);
    if (slave < 0) return write(process->input, bytes, 1);
    ssize_t written = send_signal(process, slave, &settings, bytes[0]);
    int error = errno;
    close(slave);
    errno = error;
    return written;
}
