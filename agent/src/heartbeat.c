/* Dead man's switch: a silent host may have lost the sandbox to another one. */
#include "heartbeat.h"

#include <limits.h>
#include <time.h>

#include "freeze.h"
#include "report.h"
#include "session.h"

/* While quiesced, time counts in ticks: a restore moves the monotonic clock on by the time spent in storage, and that is
   no silence of the host. The one that restored is about to speak, and nothing is stopped and continued for show. */
#define TICK_MS 250
#define TICK_COUNTS_AT_MOST_MS 500

static int64_t interval, silence, last_check;
static bool lost;

int64_t monotonic_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void heartbeat_set(uint32_t interval_ms) { interval = interval_ms; }

void heartbeat_frame(void) {
    silence = 0;
    last_check = monotonic_ms();
    if (!lost) return;
    lost = false;
    freeze_release(FREEZE_BY_SILENCE);
}

bool heartbeat_lost(void) { return lost; }

int heartbeat_timeout_ms(void) {
    if (interval == 0 || lost) return -1;
    int64_t left = interval - silence;
    if (session_quiesced() && left > TICK_MS) left = TICK_MS;
    return left > 0 ? (int)(left < INT_MAX ? left : INT_MAX) : 0;
}

void heartbeat_check(void) {
    if (interval == 0 || lost) return;
    int64_t now = monotonic_ms(), elapsed = now - last_check;
    if (session_quiesced() && elapsed > TICK_COUNTS_AT_MOST_MS) elapsed = TICK_COUNTS_AT_MOST_MS;
    silence += elapsed;
    last_check = now;
    if (silence < interval) return;
    report("no frame for %lld ms: stopping every process", (long long)silence);
    lost = true;
    freeze_hold(FREEZE_BY_SILENCE);
}
