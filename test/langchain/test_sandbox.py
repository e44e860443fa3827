"""LangChain's public tests of sandboxes, through langchain-e2b and E2B's own client, all unmodified."""

from collections.abc import Iterator

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from e2b import Sandbox
from langchain_e2b import E2BSandbox
from langchain_tests.integration_tests import SandboxIntegrationTests

# The tests call `python`. The default image is the server's machine, which may have `python3` only.
PYTHON = """
command -v python && exit
mkdir -p ~/.local/bin
ln -s "$(command -v python3)" ~/.local/bin/python
echo 'PATH="$HOME/.local/bin:$PATH"' > ~/.profile
"""


class TestSandboxer(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[SandboxBackendProtocol]:
        sandbox = Sandbox.create(timeout=1800)
        try:
            sandbox.commands.run(PYTHON)
            yield E2BSandbox(sandbox=sandbox)
        finally:
            sandbox.kill()
