/* Dead man's switch: a host that has gone silent may have lost the sandbox to another one. */
#include "heartbeat.h"

#include <limits.h>
#include <time.h>

#include "freeze.h"
#include "report.h"
#include "session.h"

#define LATE_MS 1000 /* a wait that ends this much too late was no wait: the clock has jumped */

static int64_t interval, last_frame, expected_wake;
static bool lost;

int64_t monotonic_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void heartbeat_set(uint32_t interval_ms) { interval = interval_ms; }

void heartbeat_frame(void) {
    last_frame = monotonic_ms();
    if (!lost) return;
    lost = false;
    freeze_release(FREEZE_BY_SILENCE);
}

bool heartbeat_lost(void) { return lost; }

int heartbeat_timeout_ms(void) {
    if (interval == 0 || lost) return -1;
    int64_t now = monotonic_ms(), left = last_frame + interval - now;
    if (left < 0) left = 0;
    if (left > INT_MAX - LATE_MS) left = INT_MAX - LATE_MS;
    expected_wake = now + left;
    return (int)left;
}

void heartbeat_check(void) {
    if (interval == 0 || lost) return;
    int64_t now = monotonic_ms();
    /* A restore moves the monotonic clock on by the time spent in storage. The host that restored is about to speak:
       it gets one interval to do so, and nothing is stopped and continued for show. */
    if (session_quiesced() && now > expected_wake + LATE_MS) last_frame = now;
    if (now - last_frame < interval) return;
    report("no frame for %lld ms: stopping every process", (long long)(now - last_frame));
    lost = true;
    freeze_hold(FREEZE_BY_SILENCE);
}
