/* Decoding of request payloads. */
#include "cursor.h"

#include <string.h>

static uint64_t take_integer(struct cursor *cursor, size_t size) {
    if (cursor->bad || cursor->left < size) {
        cursor->bad = true;
        return 0;
    }
    uint64_t value = 0;
    for (size_t index = size; index > 0; index--) value = value << 8 | cursor->at[index - 1];
    cursor->at += size;
    cursor->left -= size;
    return value;
}

uint8_t take_u8(struct cursor *cursor) { return (uint8_t)take_integer(cursor, 1); }
uint16_t take_u16(struct cursor *cursor) { return (uint16_t)take_integer(cursor, 2); }
uint32_t take_u32(struct cursor *cursor) { return (uint32_t)take_integer(cursor, 4); }
uint64_t take_u64(struct cursor *cursor) { return take_integer(cursor, 8); }

char *take_str(struct cursor *cursor) {
    static char nothing[1];
    size_t size = take_u32(cursor);
    if (cursor->bad || cursor->left < size || memchr(cursor->at, 0, size) != NULL) {
        cursor->bad = true;
        nothing[0] = 0;
        return nothing;
    }
    /* Moving the text one byte down, over its own byte count, makes room for the NUL without a copy elsewhere. */
    char *text = (char *)cursor->at - 1;
    memmove(text, cursor->at, size);
    text[size] = 0;
    cursor->at += size;
    cursor->left -= size;
    return text;
}

uint8_t *take_bytes(struct cursor *cursor, size_t *size) {
    *size = cursor->bad ? 0 : cursor->left;
    uint8_t *bytes = cursor->at;
    cursor->at += *size;
    cursor->left -= *size;
    return bytes;
}

bool cursor_done(const struct cursor *cursor) { return !cursor->bad && cursor->left == 0; }
