#ifndef CURSOR_H
#define CURSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads a payload from front to back. Once something does not fit, `bad` stays set and every take gives zero or "". */
struct cursor {
    uint8_t *at;
    size_t left;
    bool bad;
};

uint8_t take_u8(struct cursor *cursor);
uint16_t take_u16(struct cursor *cursor);
uint32_t take_u32(struct cursor *cursor);
uint64_t take_u64(struct cursor *cursor);
/* NUL-terminated, valid as long as the frame is. */
char *take_str(struct cursor *cursor);
/* The rest of the frame. */
uint8_t *take_bytes(struct cursor *cursor, size_t *size);
/* True when everything fitted and nothing is left over. */
bool cursor_done(const struct cursor *cursor);
#endif
