"""A program of a user of E2B's packages, who sets E2B_DOMAIN and E2B_API_KEY and nothing else: `sync` or `async`."""

import asyncio
import inspect
import json
import sys

import e2b
import e2b_code_interpreter
import httpx

IS_ASYNC = sys.argv[1] == "async"
Sandbox = e2b_code_interpreter.AsyncSandbox if IS_ASYNC else e2b_code_interpreter.Sandbox
FILE = "/workspace/watched/a.txt"


async def done(value):
    return await value if inspect.isawaitable(value) else value


async def changes_of(sandbox):
    """Writes the file while its folder is watched; the names that were seen."""
    await done(sandbox.files.make_dir("/workspace/watched"))
    names = []
    if IS_ASYNC:
        seen = asyncio.Event()
        watch = await sandbox.files.watch_dir(
            "/workspace/watched", on_event=lambda event: (names.append(event.name), seen.set())
        )
        await sandbox.files.write(FILE, "content")
        await seen.wait()
        await watch.stop()
    else:
        watch = sandbox.files.watch_dir("/workspace/watched")
        sandbox.files.write(FILE, "content")
        while not names:
            names += [event.name for event in watch.get_new_events()]
        watch.stop()
    return names


async def main():
    sandbox = await done(Sandbox.create(metadata={"by": "domain"}))
    result = await done(sandbox.commands.run("echo hello"))
    command = await done(sandbox.commands.run("read x; echo got $x", background=True, stdin=True))
    await done(sandbox.commands.send_stdin(command.pid, "words\n"))
    background = await done(command.wait())
    changed = await changes_of(sandbox)
    content = await done(sandbox.files.read(FILE))
    url = await done(sandbox.download_url(FILE))
    cell = await done(sandbox.run_code("6 * 7", language="javascript"))
    listed = await done(Sandbox.list(query=e2b.SandboxQuery(metadata={"by": "domain"})).next_items())
    await done(sandbox.pause())
    is_running = await done(sandbox.is_running())
    await done(sandbox.connect())
    found = {
        "id": sandbox.sandbox_id,
        "stdout": result.stdout,
        "background": background.stdout,
        "content": content,
        "changed": "a.txt" in changed,
        "downloaded": httpx.get(url).text,
        "paused": [is_running, await done(sandbox.files.read(FILE))],
        "cell": cell.text,
        "url": url,
        "host": sandbox.get_host(3000),
        "listed": len(listed),
        "isKilled": await done(sandbox.kill()),
    }
    print(json.dumps(found))


asyncio.run(main())
