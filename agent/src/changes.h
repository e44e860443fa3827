#ifndef CHANGES_H
#define CHANGES_H
#include <stdint.h>

#include "cursor.h"

void changes_watch(void);
/* The next host requests its watches again. */
void changes_restart(void);

int handle_watch(uint32_t request, struct cursor *payload);
int handle_unwatch(uint32_t request, struct cursor *payload);
#endif
