"""The calls of the matrix with the PyPI package `e2b`: `python scenario.py sync|async`.

Prints a line of JSON for each step, with the same names as scenario.mjs. The server is named by environment variables
alone. The asynchronous package has the same calls, so both flavours run the same steps.
"""

import asyncio
import inspect
import json
import sys
from datetime import datetime, timedelta, timezone

import e2b
import httpx

IS_ASYNC = sys.argv[1] == "async"
Sandbox = e2b.AsyncSandbox if IS_ASYNC else e2b.Sandbox


class Missing(Exception):
    """This version of the package does not have the call."""


async def done(value):
    """The result of a call of either flavour."""
    return await value if inspect.isawaitable(value) else value


def same(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r} instead of {wanted!r}")


def needs(owner, name):
    if not hasattr(owner, name):
        raise Missing(name)


class Scenario:
    def __init__(self):
        self.sandbox = None
        self.made = []

    async def created(self, *given, **options):
        sandbox = await done(Sandbox.create(*given, **options))
        self.made.append(sandbox.sandbox_id)
        return sandbox

    async def run(self, command, **options):
        return await done(self.sandbox.commands.run(command, **options))

    async def create(self):
        self.sandbox = await self.created(metadata={"matrix": "a b=c"}, envs={"GREETING": "hello"}, timeout=300)
        info = await done(self.sandbox.get_info())
        same(info.metadata, {"matrix": "a b=c"})
        same(info.state.value, "running")
        same(await done(self.sandbox.is_running()), True)

    async def list(self):
        query = e2b.SandboxQuery(metadata={"matrix": "a b=c"}, state=[e2b.SandboxState.RUNNING])
        items = await done(Sandbox.list(query=query).next_items())
        same([item.sandbox_id for item in items], [self.sandbox.sandbox_id])

    async def commands(self):
        same((await self.run("echo $GREETING; pwd; whoami")).stdout, "hello\n/home/user\nuser\n")
        try:
            await self.run("exit 3")
        except e2b.CommandExitException as error:
            same(error.exit_code, 3)
        else:
            raise AssertionError("the failure was not reported")

    async def root(self):
        same((await self.run("whoami", user="root")).stdout, "root\n")

    async def background(self):
        command = await self.run("read line; echo got $line", background=True, stdin=True)
        await done(self.sandbox.commands.send_stdin(command.pid, "words\n"))
        same((await done(command.wait())).stdout, "got words\n")
        sleeper = await self.run("sleep 1000", background=True)
        same(await done(self.sandbox.commands.kill(sleeper.pid)), True)

    async def files(self):
        files = self.sandbox.files
        await done(files.write("folder/hello.txt", "hello"))
        same(await done(files.read("/home/user/folder/hello.txt")), "hello")
        same([entry.name for entry in await done(files.list("folder"))], ["hello.txt"])
        await done(files.rename("folder/hello.txt", "folder/other.txt"))
        same(await done(files.exists("folder/hello.txt")), False)
        await done(files.remove("folder"))

    async def watch(self):
        await done(self.sandbox.files.make_dir("watched"))
        names = []
        if IS_ASYNC:
            handle = await self.sandbox.files.watch_dir("watched", on_event=lambda event: names.append(event.name))
        else:
            handle = self.sandbox.files.watch_dir("watched")
        await done(self.sandbox.files.write("watched/new.txt", "new"))
        for _ in range(100):
            if not IS_ASYNC:
                names += [event.name for event in handle.get_new_events()]
            if "new.txt" in names:
                break
            await asyncio.sleep(0.1)
        same("new.txt" in names, True)
        await done(handle.stop())

    async def signed(self):
        await done(self.sandbox.files.write("signed.txt", "signed"))
        url = await done(self.sandbox.download_url("signed.txt"))
        same(httpx.get(url).text, "signed")
        upload = await done(self.sandbox.upload_url("uploaded.txt"))
        same(httpx.post(upload, files={"file": ("uploaded.txt", b"uploaded")}).status_code, 200)
        same(await done(self.sandbox.files.read("uploaded.txt")), "uploaded")

    async def timeout(self):
        await done(self.sandbox.set_timeout(600))
        info = await done(self.sandbox.get_info())
        same(info.end_at > datetime.now(timezone.utc) + timedelta(minutes=9), True)

    async def metrics(self):
        same(isinstance(await done(self.sandbox.get_metrics()), list), True)

    async def host(self):
        same(self.sandbox.get_host(3000).startswith(f"3000-{self.sandbox.sandbox_id}."), True)

    async def pause(self):
        await done(self.sandbox.files.write("kept.txt", "kept"))
        sleeper = await self.run("sleep 1000", background=True)
        needs(self.sandbox, "pause")
        await done(self.sandbox.pause())
        same(await done(self.sandbox.is_running()), False)
        self.sandbox = await done(Sandbox.connect(self.sandbox.sandbox_id, timeout=300))
        same(await done(self.sandbox.files.read("kept.txt")), "kept")
        same((await self.run(f"kill -0 {sleeper.pid}")).exit_code, 0)

    async def pause_without_memory(self):
        before = (await self.run("cat /proc/sys/kernel/random/boot_id")).stdout
        try:
            await done(self.sandbox.pause(keep_memory=False))
        except TypeError as error:
            raise Missing("keep_memory") from error
        await done(self.sandbox.connect(timeout=300))
        same((await self.run("cat /proc/sys/kernel/random/boot_id")).stdout == before, False)
        same(await done(self.sandbox.files.read("kept.txt")), "kept")

    async def fork(self):
        needs(self.sandbox, "fork")
        [fork] = await done(self.sandbox.fork(timeout=60))
        self.made.append(fork.sandbox_id)
        same(await done(fork.files.read("kept.txt")), "kept")

    async def snapshots(self):
        needs(self.sandbox, "create_snapshot")
        snapshot = await done(self.sandbox.create_snapshot())
        copy = await self.created(snapshot.snapshot_id)
        same(await done(copy.files.read("kept.txt")), "kept")
        await done(copy.kill())
        same(await done(Sandbox.delete_snapshot(snapshot.snapshot_id)), True)

    async def network(self):
        needs(self.sandbox, "update_network")
        await done(self.sandbox.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["example.com"]}))

    async def template(self):
        template = e2b.AsyncTemplate if IS_ASYNC else e2b.Template
        needs(template, "exists")
        same([await done(template.exists("base")), await done(template.exists("no-such-template"))], [True, False])

    async def kill(self):
        same(await done(self.sandbox.kill()), True)
        same(await done(Sandbox.kill(self.sandbox.sandbox_id)), False)


STEPS = {
    "create, getInfo, isRunning": Scenario.create,
    "list with filters": Scenario.list,
    "commands.run": Scenario.commands,
    "commands as root": Scenario.root,
    "commands in the background, stdin": Scenario.background,
    "files": Scenario.files,
    "files.watchDir": Scenario.watch,
    "downloadUrl, uploadUrl": Scenario.signed,
    "setTimeout": Scenario.timeout,
    "getMetrics": Scenario.metrics,
    "getHost": Scenario.host,
    "pause, connect": Scenario.pause,
    "pause without memory": Scenario.pause_without_memory,
    "fork": Scenario.fork,
    "snapshots": Scenario.snapshots,
    "updateNetwork": Scenario.network,
    "Template.exists": Scenario.template,
    "kill": Scenario.kill,
}


async def main():
    scenario = Scenario()
    for step, run in STEPS.items():
        try:
            await run(scenario)
            report = {"step": step, "result": "ok"}
        except Missing:
            report = {"step": step, "result": "missing"}
        except Exception as error:
            report = {"step": step, "result": "failed", "message": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(report), flush=True)
    for sandbox_id in scenario.made:
        try:
            await done(Sandbox.kill(sandbox_id))
        except Exception:
            pass


asyncio.run(main())
