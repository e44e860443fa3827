#ifndef RESTORED_H
#define RESTORED_H
#include <stdint.h>

#include "cursor.h"

/* Publishes the generation of a sandbox that was never restored, and secures the folder before other programs run. */
void restored_prepare(void);

int handle_restored(uint32_t request, struct cursor *payload);
#endif
