"""Ports of programs inside, on a server that runs real ones."""

from __future__ import annotations

import asyncio

import pytest

from sandboxer import AsyncSandbox, InvalidRequestError, Sandbox, SandboxerError


def test_a_signed_link_opens_a_port(sandbox: Sandbox) -> None:
    link = sandbox.port_url(8000, expires="10m")
    assert link.url.startswith("http")
    assert link.expires_at is not None
    assert sandbox.ports() == []
    sandbox.withdraw_port_urls(8000)
    assert sandbox.port_url(8000).url.split("?")[1] != link.url.split("?")[1]


def test_a_port_without_a_program_is_an_error(url: str) -> None:
    async def use() -> list[SandboxerError]:
        errors: list[SandboxerError] = []
        async with await AsyncSandbox.create(url=url) as sandbox:
            with pytest.raises(SandboxerError):
                await sandbox.connect_port(9)
            async with await sandbox.forward_port(9, local_port=0, on_error=errors.append) as forwarded:
                reader, writer = await asyncio.open_connection(forwarded.address, forwarded.port)
                assert await reader.read() == b""
                writer.close()
                with pytest.raises(InvalidRequestError, match="cannot be used"):
                    await sandbox.forward_port(9, local_port=forwarded.port)
        return errors

    assert len(asyncio.run(use())) == 1
