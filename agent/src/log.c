/* The bounded output log of a process. */
#include "log.h"

#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "protocol.h"
#include "utf8.h"

/* Streams that take turns byte by byte make many tiny chunks; their bookkeeping must be bounded too. */
#define CHUNKS_UNTIL_FULL 8192u
#define CHUNKS_OF_HISTORY 1024u

struct chunk {
    struct chunk *following;
    uint64_t offset;
    uint32_t size, capacity;
    uint8_t stream;
    uint8_t bytes[];
};

size_t log_room(const struct log *log) {
    uint64_t kept = log->end - log->acknowledged;
    if (kept >= LOG_UNACKNOWLEDGED || log->chunk_count >= CHUNKS_UNTIL_FULL) return 0;
    return (size_t)(LOG_UNACKNOWLEDGED - kept);
}

static void drop_first(struct log *log) {
    struct chunk *gone = log->first;
    log->first = gone->following;
    if (log->first == NULL) log->last = NULL;
    log->chunk_count--;
    free(gone);
}

/* Drops history beyond the promised size. */
static void trim(struct log *log) {
    uint64_t oldest = log->acknowledged > LOG_HISTORY ? log->acknowledged - LOG_HISTORY : 0;
    while (log->first != NULL) {
        uint64_t end = log->first->offset + log->first->size;
        bool crowded = log->chunk_count > CHUNKS_OF_HISTORY && end <= log->acknowledged;
        if (end > oldest && !crowded) break;
        drop_first(log);
    }
    uint64_t first = log->first == NULL ? log->end : log->first->offset;
    if (first < oldest) {
        /* The history begins inside this chunk: at the start of a character, if there is one near. */
        const struct chunk *chunk = log->first;
        first = oldest;
        for (int skipped = 0; skipped < 3 && first < log->acknowledged; skipped++, first++) {
            if ((chunk->bytes[first - chunk->offset] & 0xC0) != 0x80) break;
        }
    }
    if (first > log->start) log->start = first;
    if (log->next < log->start) log->next = log->start;
}

static struct chunk *extend_last(struct log *log, uint8_t stream, size_t size) {
    struct chunk *last = log->last;
    if (last == NULL || last->stream != stream || last->size + size > CHUNK_MAXIMUM) return NULL;
    if (last->size + size <= last->capacity) return last;
    size_t capacity = last->capacity;
    while (capacity < last->size + size) capacity *= 2;
    if (capacity > CHUNK_MAXIMUM) capacity = CHUNK_MAXIMUM;
    struct chunk **link = &log->first;
    while (*link != last) link = &(*link)->following;
    *link = log->last = must_reallocate(last, sizeof *last + capacity);
    log->last->capacity = (uint32_t)capacity;
    return log->last;
}

void log_append(struct log *log, uint8_t stream, const uint8_t *bytes, size_t size) {
    if (size == 0) return;
    struct chunk *chunk = extend_last(log, stream, size);
    if (chunk == NULL) {
        size_t capacity = size < 32 ? 32 : size;
        chunk = must_reallocate(NULL, sizeof *chunk + capacity);
        *chunk = (struct chunk){.offset = log->end, .capacity = (uint32_t)capacity, .stream = stream};
        if (log->last == NULL) log->first = chunk;
        else log->last->following = chunk;
        log->last = chunk;
        log->chunk_count++;
    }
    memcpy(chunk->bytes + chunk->size, bytes, size);
    chunk->size += (uint32_t)size;
    log->end += size;
}

bool log_window(struct log *log, bool seek, uint64_t from, uint64_t acknowledged, uint64_t limit) {
    if (acknowledged > log->end || (seek && from > log->end)) return false;
    if (acknowledged > log->acknowledged) log->acknowledged = acknowledged;
    if (seek) log->next = from;
    log->limit = limit;
    trim(log);
    return true;
}

void log_restart(struct log *log) {
    log->limit = 0;
    log->next = log->acknowledged;
}

bool log_peek(const struct log *log, struct piece *piece) {
    if (log->next >= log->end || log->next >= log->limit) return false;
    const struct chunk *chunk = log->first;
    while (chunk->offset + chunk->size <= log->next) chunk = chunk->following;
    size_t skip = (size_t)(log->next - chunk->offset);
    size_t size = chunk->size - skip;
    const uint8_t *bytes = chunk->bytes + skip;
    if (log->limit - log->next < size) {
        size = (size_t)(log->limit - log->next);
        size -= utf8_incomplete_tail(bytes, size);
    }
    *piece = (struct piece){.stream = chunk->stream, .offset = log->next, .bytes = bytes, .size = size};
    return size > 0;
}

void log_sent(struct log *log, size_t size) { log->next += size; }

void log_free(struct log *log) {
    while (log->first != NULL) drop_first(log);
}
