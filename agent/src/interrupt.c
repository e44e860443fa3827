/*
 * Ctrl+C, Ctrl+\ and Ctrl+Z. Linux discards what was typed before one of them and has not been read. gVisor keeps it: a
 * line that nobody reads holds the signal up for ever, and the rest of a line becomes the beginning of the next one; with
 * runsc of 2024 so does the character itself. Where a trial shows that, it is done here what Linux does.
 */
#include "interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "terminal.h"

/* A terminal takes no more at once anyway, nor has a line more. */
#define PIECE 4096u
#define LINES_MAXIMUM 65536
#define TRIAL_MS 1000

enum kept { UNKNOWN, NOTHING, LINE, LINE_AND_CHARACTER };

static enum kept try_terminal(int master, int slave) {
    if (write(master, "a\003\n", 3) != 3) return NOTHING;
    struct pollfd readable = {.fd = slave, .events = POLLIN};
    if (poll(&readable, 1, TRIAL_MS) != 1) return NOTHING;
    char line[8];
    switch (read(slave, line, sizeof line)) {
    case 2: return LINE;
    case 3: return LINE_AND_CHARACTER;
    default: return NOTHING;
    }
}

/* What the kernel keeps of a line when a signal is typed. */
static enum kept kept_at_signal(void) {
    static enum kept known;
    if (known != UNKNOWN) return known;
    int master, slave;
    if (terminal_open(&master, &slave, getuid(), getgid(), 0, 0) != 0) return NOTHING;
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

/* How many bytes come before the first one that discards others. Who reads single characters has read them already. */
static size_t count_plain(const struct termios *settings, const uint8_t *bytes, size_t size) {
    const tcflag_t modes = settings->c_lflag;
    if ((modes & ISIG) == 0 || (modes & ICANON) == 0 || (modes & NOFLSH) != 0) return size;
    size_t count = 0;
    while (count < size && !makes_signal(settings, bytes[count])) count++;
    return count;
}

static void note_typed(struct process *process, const uint8_t *bytes, size_t size) {
    for (size_t index = 0; index < size; index++) {
        if (bytes[index] == '\n' || bytes[index] == '\r') process->typed = 0;
        else if (process->typed < PIECE) process->typed++;
    }
}

/* Somebody inside may have put something endless in the terminal's place. */
static void forget_lines(int slave) {
    uint8_t forgotten[PIECE];
    for (int count = 0; count < LINES_MAXIMUM && read(slave, forgotten, sizeof forgotten) > 0; count++) continue;
}

/* As Linux shows it. A character that is kept is erased again, which wipes two places of the screen. */
static void show(int slave, uint8_t character, bool is_kept) {
    const char text[] = {'^', (char)(character ^ 0x40), ' ', ' '};
    ssize_t ignored = write(slave, text, is_kept ? 4 : 2);
    (void)ignored;
}

/* As its user would: who reads it takes no notice, and nobody else could without the danger that it is read meanwhile. */
static ssize_t erase_line(struct process *process, uint8_t erase) {
    uint8_t keys[PIECE];
    memset(keys, erase, process->typed);
    ssize_t erased = write(process->input, keys, process->typed);
    process->typed = 0;
    return erased;
}

static ssize_t interrupt(struct process *process, const struct termios *settings, uint8_t character) {
    const uint8_t erase = settings->c_cc[VERASE];
    bool can_erase = erase != _POSIX_VDISABLE;
    bool is_kept = can_erase && kept_at_signal() == LINE_AND_CHARACTER;
    /* Of its own, because the agent must not wait for who reads and writes there. */
    int slave = terminal_slave(process->input, O_NONBLOCK);
    forget_lines(slave);
    ssize_t erased = can_erase && process->typed > 0 ? erase_line(process, erase) : 0;
    if (erased >= 0 && (settings->c_lflag & ECHO) != 0) show(slave, character, is_kept);
    if (slave >= 0) close(slave);
    if (erased < 0) return erased;
    const uint8_t keys[] = {character, erase};
    ssize_t size = write(process->input, keys, is_kept ? 2 : 1);
    return size > 0 ? 1 : size;
}

ssize_t interrupt_write(struct process *process, const uint8_t *bytes, size_t size) {
    struct termios settings;
    if (size > PIECE) size = PIECE;
    size_t plain = tcgetattr(process->input, &settings) == 0 ? count_plain(&settings, bytes, size) : size;
    if (plain < size && kept_at_signal() == NOTHING) plain = size;
    if (plain == 0) return interrupt(process, &settings, bytes[0]);
    ssize_t written = write(process->input, bytes, plain);
    if (written > 0) note_typed(process, bytes, (size_t)written);
    return written;
}
