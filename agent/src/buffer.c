/* Growable byte queue, and the little-endian encoding on top of it. */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

#define KEEP_CAPACITY 65536 /* an emptied buffer above this size frees its memory, unless it sets another limit */

void *must_reallocate(void *memory, size_t size) {
    void *grown = realloc(memory, size == 0 ? 1 : size);
    if (grown == NULL) {
        report("out of memory: %zu bytes", size);
        _Exit(70);
    }
    return grown;
}

void *must_allocate(size_t size) {
    void *memory = must_reallocate(NULL, size);
    memset(memory, 0, size);
    return memory;
}

size_t buffer_size(const struct buffer *buffer) { return buffer->tail - buffer->head; }

uint8_t *buffer_reserve(struct buffer *buffer, size_t size) {
    size_t used = buffer_size(buffer);
    if (buffer->capacity - buffer->tail < size && buffer->head > 0) {
        memmove(buffer->data, buffer->data + buffer->head, used);
        buffer->head = 0;
        buffer->tail = used;
    }
    if (buffer->capacity - buffer->tail < size) {
        size_t capacity = buffer->capacity == 0 ? 256 : buffer->capacity;
        while (capacity - used < size) capacity *= 2;
        buffer->data = must_reallocate(buffer->data, capacity);
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->tail;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t size) {
    if (size == 0) return;
    memcpy(buffer_reserve(buffer, size), bytes, size);
    buffer->tail += size;
}

void buffer_consume(struct buffer *buffer, size_t size) {
    buffer->head += size;
    if (buffer->head == buffer->tail) buffer_clear(buffer);
}

void buffer_clear(struct buffer *buffer) {
    if (buffer->capacity > (buffer->keep == 0 ? KEEP_CAPACITY : buffer->keep)) buffer_free(buffer);
    buffer->head = buffer->tail = 0;
}

void buffer_free(struct buffer *buffer) {
    free(buffer->data);
    *buffer = (struct buffer){.keep = buffer->keep};
}

void put_u8(struct buffer *buffer, uint8_t value) { buffer_append(buffer, &value, 1); }

void put_u16(struct buffer *buffer, uint16_t value) {
    put_u8(buffer, (uint8_t)value);
    put_u8(buffer, (uint8_t)(value >> 8));
}

void put_u32(struct buffer *buffer, uint32_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) put_u8(buffer, (uint8_t)(value >> shift));
}

void put_u64(struct buffer *buffer, uint64_t value) {
    put_u32(buffer, (uint32_t)value);
    put_u32(buffer, (uint32_t)(value >> 32));
}

void put_str(struct buffer *buffer, const char *text, size_t size) {
    put_u32(buffer, (uint32_t)size);
    buffer_append(buffer, text, size);
}

void patch_u32(struct buffer *buffer, size_t at, uint32_t value) {
    uint8_t *target = buffer->data + buffer->head + at;
    for (unsigned index = 0; index < 4; index++) target[index] = (uint8_t)(value >> (8 * index));
}
