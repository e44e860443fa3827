from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request

from sandboxer import Sandbox

SERVER = "python3 -u -m http.server 8000 --directory /tmp/site"


def test_commands_stdin_files_and_a_terminal(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    large = "0123456789" * 300_000
    assert sandbox.exec(["wc", "-c"], stdin=large).stdout.strip() == "3000000"
    assert sandbox.exec(["cat"], stdin=large).stdout == large
    sandbox.files.write("/tmp/folder/file", "text")
    assert sandbox.exec("cat /tmp/folder/file").stdout == "text"
    terminal = sandbox.pty(rows=31, columns=99)
    terminal.write("stty size; tty && echo is a tty\n")
    terminal.write("exit 5\n")
    shown = terminal.collect()
    assert "31 99" in shown.stdout
    assert "is a tty" in shown.stdout
    assert shown.exit_code == 5


def test_a_port_inside_opens_here(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/site/index.html", "served")
    process = sandbox.spawn(SERVER)
    assert next(iter(process.lines())).startswith("Serving HTTP")
    assert [port.port for port in sandbox.ports()] == [8000]
    with sandbox.forward_port(8000, local_port=0) as forwarded:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(2):
            with opener.open(f"http://127.0.0.1:{forwarded.port}/") as answer:
                assert answer.read() == b"served"


def test_ctrl_c_kills_the_process_inside(sandbox: Sandbox, urls: list[str]) -> None:
    program = (
        "import sys; from sandboxer import Sandbox\n"
        "sandbox = Sandbox.attach(sys.argv[1], url=sys.argv[2])\n"
        "sandbox.exec('sleep 54321', on_connection=lambda state: print(state, flush=True))"
    )
    environment = {**os.environ, "PYTHONPATH": "src"}
    child = subprocess.Popen(
        [sys.executable, "-c", program, sandbox.id, urls[0]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "attached\n"
    child.send_signal(signal.SIGINT)
    child.communicate()
    process = next(one for one in sandbox.processes() if one.command == ["bash", "-c", "sleep 54321"] or one.signal)
    assert sandbox.process(process.id).wait().signal == "SIGKILL"


def test_a_handoff_in_the_middle_neither_loses_nor_repeats_bytes(sandbox: Sandbox, urls: list[str]) -> None:
    process = sandbox.spawn("for i in $(seq 1 100); do echo tick $i; sleep 0.01; done; exit 7")
    text = b""
    moved = None
    for chunk in process.chunks():
        text += chunk.data
        assert len(text) == chunk.offset
        if chunk.offset > 200 and moved is None:
            moved = sandbox.handoff(urls[1])
    assert moved is not None
    assert text.decode() == "".join(f"tick {number + 1}\n" for number in range(100))
    assert process.info().exit_code == 7
    # Memory survives: the server inside still answers.
    assert [port.port for port in sandbox.ports()] == [8000]
