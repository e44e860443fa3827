#ifndef SIGNALS_H
#define SIGNALS_H
#include <stdint.h>

#include "cursor.h"

/* Every process but the agent. */
void signal_everything(int number);

int handle_signal(uint32_t request, struct cursor *payload);
int handle_resize(uint32_t request, struct cursor *payload);
#endif
