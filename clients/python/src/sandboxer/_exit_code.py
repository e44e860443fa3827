"""The outcome of a process as one number, for frameworks that expect only that."""

from __future__ import annotations

import signal

from ._process_link import ExitStatus
from .errors import failure

#: As the program `timeout` does.
TIMED_OUT = 124


def exit_code_of(ended: ExitStatus | None) -> int:
    """A signal is 128 plus its number, as in a shell."""
    if ended is None:
        raise failure("wrong_state", "The process was detached before it ended.")
    if ended.timed_out:
        return TIMED_OUT
    if ended.exit_code is not None:
        return ended.exit_code
    name = ended.signal or "SIGKILL"
    return 128 + (signal.Signals[name] if name in signal.Signals.__members__ else signal.SIGKILL)
