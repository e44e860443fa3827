#ifndef INPUT_H
#define INPUT_H
#include <stdint.h>

#include "cursor.h"
#include "process.h"

void input_watch(void);
/* Drops replies of unfinished requests: their host no longer exists. */
void input_restart(void);

int handle_stdin(uint32_t request, struct cursor *payload);
int handle_stdin_close(uint32_t request, struct cursor *payload);
#endif
