/* Where a piece of text may be cut. */
#include "utf8.h"

#include <stdbool.h>

static size_t sequence_length(uint8_t lead) {
    if (lead >= 0xC2 && lead <= 0xDF) return 2;
    if (lead >= 0xE0 && lead <= 0xEF) return 3;
    if (lead >= 0xF0 && lead <= 0xF4) return 4;
    return 1;
}

/* The second byte decides about overlong forms, surrogates and what lies beyond U+10FFFF. */
static bool second_byte_fits(uint8_t lead, uint8_t second) {
    switch (lead) {
    case 0xE0: return second >= 0xA0 && second <= 0xBF;
    case 0xED: return second >= 0x80 && second <= 0x9F;
    case 0xF0: return second >= 0x90 && second <= 0xBF;
    case 0xF4: return second >= 0x80 && second <= 0x8F;
    default: return (second & 0xC0) == 0x80;
    }
}

size_t utf8_incomplete_tail(const uint8_t *bytes, size_t size) {
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        uint8_t byte = bytes[size - back];
        if ((byte & 0xC0) == 0x80) continue;
        if (sequence_length(byte) <= back) return 0;
        return back == 1 || second_byte_fits(byte, bytes[size - back + 1]) ? back : 0;
    }
    return 0;
}
