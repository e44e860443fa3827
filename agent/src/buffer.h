#ifndef BUFFER_H
#define BUFFER_H
#include <stddef.h>
#include <stdint.h>

/* Bytes between head and tail are in use; consuming moves head, so a queue costs no copying. */
struct buffer {
    uint8_t *data;
    size_t head, tail, capacity;
    size_t keep; /* this much memory is kept when it is emptied; 0: the default */
};

/* Both end the agent when there is no memory: half a state machine is worse than none. */
void *must_allocate(size_t size);
void *must_reallocate(void *memory, size_t size);

size_t buffer_size(const struct buffer *buffer);
uint8_t *buffer_reserve(struct buffer *buffer, size_t size);
void buffer_append(struct buffer *buffer, const void *bytes, size_t size);
void buffer_consume(struct buffer *buffer, size_t size);
void buffer_clear(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

void put_u8(struct buffer *buffer, uint8_t value);
void put_u16(struct buffer *buffer, uint16_t value);
void put_u32(struct buffer *buffer, uint32_t value);
void put_u64(struct buffer *buffer, uint64_t value);
void put_str(struct buffer *buffer, const char *text, size_t size);
/* Overwrites four bytes that are `at` bytes after head. */
void patch_u32(struct buffer *buffer, size_t at, uint32_t value);
#endif
