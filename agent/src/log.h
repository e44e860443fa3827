#ifndef LOG_H
#define LOG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_UNACKNOWLEDGED 1048576u
#define LOG_HISTORY 262144u

struct chunk;

/* The output of one process: bytes start..end, of which those up to `next` were sent. Offsets only grow. */
struct log {
    struct chunk *first, *last;
    size_t chunk_count;
    uint64_t start, acknowledged, next, limit, end;
};

/* One piece that may be sent now. */
struct piece {
    uint8_t stream;
    uint64_t offset;
    const uint8_t *bytes;
    size_t size;
};

/* How many bytes may be appended before the reader has to acknowledge some. */
size_t log_room(const struct log *log);
/* At most CHUNK_MAXIMUM bytes that do not end inside a character, unless that is how the stream ends. */
void log_append(struct log *log, uint8_t stream, const uint8_t *bytes, size_t size);
/* False, and nothing is changed, when an offset lies beyond the end. */
bool log_window(struct log *log, bool seek, uint64_t from, uint64_t acknowledged, uint64_t limit);
/* Unacknowledged output counts as lost; nothing is sent until the next window. */
void log_restart(struct log *log);
bool log_peek(const struct log *log, struct piece *piece);
void log_sent(struct log *log, size_t size);
void log_free(struct log *log);
#endif
