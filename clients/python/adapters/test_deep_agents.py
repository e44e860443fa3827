from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import example
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_tests.integration_tests import SandboxIntegrationTests

from sandboxer import Sandbox
from sandboxer.langchain import SandboxerBackend, checkpoint_tools

# LangChain's tests call `python`. The default image is the server's machine, which may have `python3` only.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/workspace/bin"
PYTHON = 'mkdir /workspace/bin && ln -s "$(command -v python3)" /workspace/bin/python'


class TestOfLangChain(SandboxIntegrationTests):
    """LangChain's own tests of sandboxes."""

    @pytest.fixture(scope="class")
    def sandbox(self, url: str) -> Iterator[SandboxBackendProtocol]:
        with Sandbox.create(url=url, env={"PATH": PATH}) as sandbox:
            assert sandbox.exec(PYTHON).exit_code == 0
            yield SandboxerBackend(sandbox)


class TestExecute:
    @pytest.fixture(scope="class")
    def backend(self, sandbox_of_class: Sandbox) -> SandboxerBackend:
        return SandboxerBackend(sandbox_of_class, max_output_bytes=1000)

    def test_keeps_the_order_of_both_streams(self, backend: SandboxerBackend) -> None:
        line = "for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done; exit 3"
        result = backend.execute(line)
        assert result.output == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
        assert (result.exit_code, result.truncated) == (3, False)

    def test_truncates_endless_output_and_reports_it(self, backend: SandboxerBackend) -> None:
        result = backend.execute("head -c 50000000 /dev/zero | tr '\\0' x")
        assert (len(result.output), result.truncated, result.exit_code) == (1000, True, 0)

    def test_kills_a_command_that_does_not_end(self, backend: SandboxerBackend) -> None:
        result = backend.execute("echo begun; sleep 1000", timeout=1)
        assert result.exit_code == 124
        assert result.output == "begun\n\nThe command was killed after 1 seconds."

    def test_reports_the_signal_that_ended_a_command(self, backend: SandboxerBackend) -> None:
        assert backend.execute("kill -9 $$").exit_code == 137

    def test_refuses_a_negative_timeout(self, backend: SandboxerBackend) -> None:
        with pytest.raises(ValueError, match="negative"):
            backend.execute("true", timeout=-1)


def test_the_example_breaks_its_workspace_and_rewinds_it(own_sandbox: Sandbox) -> None:
    said = list(example("deep-agents").messages_of_run(own_sandbox))
    assert said[1].startswith("checkpoint: Saved as ")
    assert "removed /workspace/answer.txt" in said[3]
    assert said[4].startswith("rewind: Rewound to ")
    assert said[5].startswith("execute: 42")
    assert said[6] == "The answer is 42."


def test_tools_report_missing_checkpoints(own_sandbox: Sandbox) -> None:
    tools = {tool.name: tool for tool in checkpoint_tools(SandboxerBackend(own_sandbox))}
    assert set(tools) == {"checkpoint", "history", "diff", "rewind"}
    assert tools["history"].invoke({}) == "There is no checkpoint."
    assert "snapshot_not_found" in tools["rewind"].invoke({"checkpoint_id": "never-taken"})
    # The rewind that failed has saved nothing.
    assert tools["history"].invoke({}) == "There is no checkpoint."


def test_a_rewind_restores_memory(own_sandbox: Sandbox) -> None:
    backend = SandboxerBackend(own_sandbox)
    checkpoint, _, _, rewind = checkpoint_tools(backend)
    counting = "n=0; while true; do n=$((n + 1)); echo $n > /tmp/beats; sleep 0.05; done"
    process = own_sandbox.spawn(counting, detach=True)
    backend.execute("until [ -s /tmp/beats ]; do sleep 0.05; done", timeout=60)
    saved = checkpoint.invoke({"note": "it counts"}).removeprefix("Saved as ").split(":")[0]
    process.kill()
    own_sandbox.exec("rm /tmp/beats")
    rewind.invoke({"checkpoint_id": saved})
    counts_on = 'a=$(cat /tmp/beats); while [ "$(cat /tmp/beats)" = "$a" ]; do sleep 0.05; done; echo on'
    assert backend.execute(counts_on, timeout=60).output == "on\n"
