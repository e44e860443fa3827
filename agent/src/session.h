#ifndef SESSION_H
#define SESSION_H
#include <stdbool.h>
#include <stdint.h>

#include "cursor.h"

bool session_quiesced(void);
uint64_t session_generation(void);
/* A new host has taken over: pending requests are not its own. */
void session_restored(uint64_t generation);
_Noreturn void session_end(int status);

int handle_hello(uint32_t request, struct cursor *payload);
int handle_ping(uint32_t request, struct cursor *payload);
int handle_quiesce(uint32_t request, struct cursor *payload);
int handle_resume(uint32_t request, struct cursor *payload);
#endif
