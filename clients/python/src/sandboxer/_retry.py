"""Repeats calls after temporary failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from .errors import SandboxerError, never_sent

Result = TypeVar("Result")

#: Failures that may be temporary. Others are retryable too, but only after a person has acted.
PASSING = {
    "server_unreachable",
    "backend_unavailable",
    "store_unavailable",
    "starting",
    "draining",
    "timeout",
    "rate_limited",
}
#: After these, the server may have carried out the request.
UNCERTAIN = {"server_unreachable", "timeout"}


@dataclass(frozen=True)
class Retry:
    """How temporary failures are retried. Times are in seconds."""

    #: The maximum number of attempts; 1 turns retries off.
    attempts: int = 5
    #: The longest wait before the second attempt; it doubles with each further one.
    first_delay: float = 0.1
    max_delay: float = 5.0

    def delay(self, failures: int) -> float:
        """Full jitter: clients that failed together do not come back together."""
        return random.random() * min(self.max_delay, self.first_delay * 2.0 ** min(failures - 1, 30))


async def retrying(
    attempt: Callable[[int], Awaitable[Result]], retry: Retry, attempts: int, repeatable: bool
) -> Result:
    """With ``repeatable`` false, only after a failure that says that nothing was done. ``attempt`` gets the number
    of earlier attempts with an unknown outcome."""
    uncertain = 0
    failures = 0
    while True:
        try:
            return await attempt(uncertain)
        except SandboxerError as error:
            failures += 1
            if failures >= attempts or not _may_repeat(error, repeatable):
                raise
            if error.code in UNCERTAIN and not never_sent(error):
                uncertain += 1
            await asyncio.sleep(max(retry.delay(failures), _retry_after(error)))


def _may_repeat(error: SandboxerError, repeatable: bool) -> bool:
    if error.code not in PASSING:
        return False
    return repeatable or error.code not in UNCERTAIN or never_sent(error)


def _retry_after(error: SandboxerError) -> float:
    seconds = error.details.get("retry_after_seconds")
    return min(seconds, 60) if isinstance(seconds, (int, float)) else 0
