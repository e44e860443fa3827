#ifndef SPAWN_H
#define SPAWN_H
#include <stdint.h>

#include "cursor.h"

int handle_spawn(uint32_t request, struct cursor *payload);
#endif
