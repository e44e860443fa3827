#ifndef UTF8_H
#define UTF8_H
#include <stddef.h>
#include <stdint.h>

/* How many bytes at the end are the beginning of a character that is not complete: 0 to 3. */
size_t utf8_incomplete_tail(const uint8_t *bytes, size_t size);
#endif
