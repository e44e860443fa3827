#ifndef HEARTBEAT_H
#define HEARTBEAT_H
#include <stdbool.h>
#include <stdint.h>

/* The dead man's switch. */
void heartbeat_set(uint32_t interval_ms); /* 0: none */
void heartbeat_frame(void);               /* a frame has come */
bool heartbeat_lost(void);
int heartbeat_timeout_ms(void); /* for poll; -1: wait forever */
void heartbeat_check(void);
int64_t monotonic_ms(void);
#endif
