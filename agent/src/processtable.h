#ifndef PROCESSTABLE_H
#define PROCESSTABLE_H
#include <stdint.h>

#include "cursor.h"

int handle_process_table(uint32_t request, struct cursor *payload);
#endif
