#ifndef PROCESS_H
#define PROCESS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "buffer.h"
#include "cursor.h"
#include "log.h"

#define PROCESS_MAXIMUM 256u

/* DRAINING: the leader has exited, and the rest of its output is still being read into the log. */
enum process_state { RUNNING, DRAINING, EXITED };

struct stream {
    int fd; /* -1 once it has ended */
    uint8_t partial[3]; /* the beginning of a character whose rest was not read yet */
    size_t partial_size;
    uint64_t drain_left; /* while DRAINING: bytes that still belong to the leader */
};

struct process {
    uint32_t id;
    pid_t pid;
    char *key;
    bool terminal;
    enum process_state state;
    int exit_code, exit_signal;
    bool exit_sent;
    struct stream streams[2]; /* stdout and stderr; a terminal has the first only */
    int slave; /* held open so that a terminal without users does not hang up while its leader lives; else -1 */
    int input; /* write end of stdin; -1 when closed */
    struct buffer input_queue;
    uint32_t input_request;
    bool input_busy, input_close_after;
    size_t typed, typed_ends; /* upper bounds of unread bytes of the terminal's last line, and of unread ends of file */
    struct log log;
};

struct process *process_find(uint32_t id);
struct process *process_find_key(const char *key);
struct process *process_find_pid(pid_t pid);
/* Forgets an old process when the table is full; false when none may be forgotten. */
bool process_make_room(void);
/* Needs room. */
struct process *process_create(void);
void process_forget(struct process *process);

/* Iterates: `index` starts at 0; NULL at the end. */
struct process *process_at(size_t index);
size_t process_count(void);

int handle_processes(uint32_t request, struct cursor *payload);
int handle_forget(uint32_t request, struct cursor *payload);
#endif
