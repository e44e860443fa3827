"""An agent that tries three fixes at once, and keeps the one that works: agent.ts, in Python.

python examples/agent-that-rewinds/agent.py

It prepares a sandbox with a program and its tests, forks it three times, applies another fix in each fork, runs the
tests in all of them, and promotes the fork that passes: the sandbox continues with that state, under the same id. Every
step can be repeated, so the agent survives a server that is killed at any moment and started again.

SANDBOXER_URL and SANDBOXER_API_KEY name the server. Needs the package sandboxer.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from sandboxer import ExecResult, InvalidRequestError, Sandbox, Sandboxer, SandboxerError, UnreachableError

Result = TypeVar("Result")

BUGGY = "echo $(($1 - $1 * $2))"
FIXES = ["echo $(($1 - $2))", "echo $(($1 * (100 - $2) / 100))", "echo $(($1 / 100 * $2))"]
TESTS = """
for test in "200 10 180" "50 0 50" "80 25 60"; do
  set -- $test
  got=$(sh discount.sh $1 $2)
  [ "$got" = "$3" ] || { echo "$1 minus $2 % is $3, not $got"; exit 1; }
done
echo "3 tests passed"
"""
# A program that keeps its number in memory alone.
HEART = "n=0; while true; do n=$((n + 1)); echo $n > /tmp/beats; sleep 0.1; done"
GIVE_UP_SECONDS = 300

client = Sandboxer(
    url=os.environ.get("SANDBOXER_URL", "http://127.0.0.1:8080"), api_key=os.environ.get("SANDBOXER_API_KEY")
)


def main() -> int:
    work = lasting(prepare)
    print(f"prepared  {work.id}: {lasting(lambda: test(work)).stdout.strip()}", flush=True)

    forks = lasting(lambda: fork(work))
    print(f"forked    {', '.join(each.record.name or '' for each in forks)}", flush=True)

    winner = lasting(lambda: try_fixes(forks))
    print(f"promoting {winner.record.name}", flush=True)

    kept = lasting(lambda: winner.promote(discard_others=True)).sandbox
    result = lasting(lambda: test(work))
    print(f"kept      {kept.name}, {kept.id}: {result.stdout.strip()}", flush=True)
    print(f"alive     its program counted on, to {lasting(lambda: next_beat(work))}", flush=True)
    lasting(work.destroy)
    return 1 if result.exit_code is None else result.exit_code


def prepare() -> Sandbox:
    """The sandbox with the bug. Its state is saved before anything depends on it."""
    sandbox = Sandbox.acquire(client=client, key="agent-that-rewinds", name="work")
    sandbox.files.write("/workspace/discount.sh", BUGGY)
    sandbox.files.write("/workspace/test.sh", TESTS)
    if not any(process.state == "running" for process in sandbox.processes()):
        sandbox.spawn(HEART, detach=True)
    sandbox.checkpoint(leave_running=True)
    return sandbox


def fork(work: Sandbox) -> list[Sandbox]:
    """Three forks. A server that was killed may have created some of them."""
    found = list(Sandbox.list(client=client, label=f"agent={work.id}"))
    alive = [each for each in found if each.record.state != "destroyed"]
    if len(alive) == len(FIXES):
        return sorted(alive, key=lambda each: each.record.name or "")
    for each in alive:
        each.destroy()
    return work.fork(count=len(FIXES), name="fix", labels={"agent": work.id})


def try_fixes(forks: list[Sandbox]) -> Sandbox:
    """Another fix in each fork, then the tests in all of them. The fork that passes is saved."""
    for each, fix in zip(forks, FIXES, strict=True):
        each.files.write("/workspace/discount.sh", fix)
    best = None
    for each, item in zip(forks, forks[0].compare(forks[1:], "sh test.sh").items, strict=True):
        if item.run is None:
            raise UnreachableError("server_unreachable", "; ".join(item.problems))
        print(f"{item.name}     exit {item.run.exit_code}: {item.run.stdout.strip()}", flush=True)
        if item.run.exit_code == 0:
            best = each
    if best is None:
        raise RuntimeError("No fix passes the tests.")
    best.checkpoint(leave_running=True)
    return best


def test(sandbox: Sandbox) -> ExecResult:
    return sandbox.exec("sh test.sh")


def next_beat(work: Sandbox) -> str:
    """The number of the program, once it has grown."""
    before = work.files.read_text("/tmp/beats").strip()
    while (now := work.files.read_text("/tmp/beats").strip()) in ("", before):
        time.sleep(0.1)
    return now


def lasting(step: Callable[[], Result]) -> Result:
    """Repeats a step while the server is away. A request that is wrong is not repeated."""
    end = time.monotonic() + GIVE_UP_SECONDS
    while True:
        try:
            return step()
        except SandboxerError as error:
            if isinstance(error, InvalidRequestError) or time.monotonic() > end:
                raise
            print(f"again     {error.code}: {error.message}", file=sys.stderr, flush=True)
            time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
