#ifndef FREEZE_H
#define FREEZE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cursor.h"

/* Either reason keeps the processes stopped; they continue when neither is left. */
enum freeze_reason { FREEZE_BY_HOST = 1, FREEZE_BY_SILENCE = 2 };

void freeze_hold(enum freeze_reason reason);
void freeze_release(enum freeze_reason reason);
bool frozen(void);

int handle_freeze(uint32_t request, struct cursor *payload);
int handle_thaw(uint32_t request, struct cursor *payload);
#endif
