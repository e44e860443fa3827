"""A program of a user of E2B's packages, who sets E2B_DOMAIN and E2B_API_KEY and nothing else: `sync` or `async`."""

import asyncio
import inspect
import json
import sys

import e2b
import httpx

Sandbox = e2b.AsyncSandbox if sys.argv[1] == "async" else e2b.Sandbox


async def done(value):
    return await value if inspect.isawaitable(value) else value


async def main():
    sandbox = await done(Sandbox.create(metadata={"by": "domain"}))
    result = await done(sandbox.commands.run("echo hello"))
    command = await done(sandbox.commands.run("read x; echo got $x", background=True, stdin=True))
    await done(sandbox.commands.send_stdin(command.pid, "words\n"))
    background = await done(command.wait())
    await done(sandbox.files.write("/workspace/a.txt", "content"))
    content = await done(sandbox.files.read("/workspace/a.txt"))
    listed = await done(Sandbox.list(query=e2b.SandboxQuery(metadata={"by": "domain"})).next_items())
    url = await done(sandbox.download_url("/workspace/a.txt"))
    found = {
        "id": sandbox.sandbox_id,
        "stdout": result.stdout,
        "background": background.stdout,
        "content": content,
        "downloaded": httpx.get(url).text,
        "url": url,
        "host": sandbox.get_host(3000),
        "listed": len(listed),
        "isKilled": await done(sandbox.kill()),
    }
    print(json.dumps(found))


asyncio.run(main())
