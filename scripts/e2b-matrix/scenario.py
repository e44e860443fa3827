"""The calls of the matrix with the PyPI package `e2b`: `python scenario.py sync|async`.

Prints a line of JSON for each step, with the same names as scenario.mjs. The server is named by environment variables
alone; `SCENARIO_IMAGE` names an image with a shell that the server can use. The asynchronous package has the same calls,
so both flavours run the same steps.
"""

import asyncio
import inspect
import json
import os
import sys
import time
from datetime import datetime, timedelta, timezone

import e2b
import httpx

IS_ASYNC = sys.argv[1] == "async"
Sandbox = e2b.AsyncSandbox if IS_ASYNC else e2b.Sandbox


PATIENCE_S = 120
# Its own, for scenarios that run side by side.
METADATA = {"matrix": f"a b=c {os.getpid()}"}
SERVE = "import http.server as h; h.HTTPServer(('0.0.0.0', 3000), h.SimpleHTTPRequestHandler).serve_forever()"

# Both streams, a rich result, and a table, which needs no library: a data frame is known by its name and module.
RICH = """
import sys
class Rich:
    def __repr__(self): return "rich"
    def _repr_html_(self): return "<b>"
    def _repr_png_(self): return b"p"
    def _repr_json_(self): return {"a": [1]}
class DataFrame:
    __module__ = "pandas"
    columns = ["a"]
    def __repr__(self): return "frame"
    def head(self, _): return self
    def itertuples(self, **_): return [(1,), (None,)]
    def __len__(self): return 2
print("o", flush=True)
print("e", file=sys.stderr, flush=True)
display(Rich())
DataFrame()"""
RESULTS = [["rich", "<b>", "cA==", {"a": [1]}, None], ["frame", None, None, None, {"a": [1, None]}]]


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


async def eventually(is_so):
    end = time.monotonic() + PATIENCE_S
    while not await is_so():
        if time.monotonic() > end:
            raise AssertionError("it did not happen")
        await asyncio.sleep(0.1)


async def failure(call):
    """What a call raises; it is made here, because synchronous ones raise at once."""
    try:
        await done(call())
    except Exception as error:
        return error
    raise AssertionError("the call should have failed")


def visit(host, headers=None):
    """The status and text of a port, whose name may not be known to this machine."""
    if "E2B_DOMAIN" in os.environ:
        answer = httpx.get(f"https://{host}/kept.txt", headers=headers)
        return answer.status_code, answer.text
    url = httpx.URL(os.environ["E2B_SANDBOX_URL"]).copy_with(path="/kept.txt")
    answer = httpx.get(url, headers={"Host": host, **(headers or {})})
    return answer.status_code, answer.text


async def state_of(sandbox_id):
    try:
        return (await done(Sandbox.get_info(sandbox_id))).state.value
    except e2b.SandboxNotFoundException:
        return "missing"


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
        self.sandbox = await self.created(metadata=METADATA, envs={"GREETING": "hello"}, timeout=300)
        info = await done(self.sandbox.get_info())
        same(info.metadata, METADATA)
        same(info.state.value, "running")
        same(await done(self.sandbox.is_running()), True)

    async def list(self):
        query = e2b.SandboxQuery(metadata=METADATA, state=[e2b.SandboxState.RUNNING])
        second = await self.created(metadata=METADATA)
        pages = Sandbox.list(query=query, limit=1)
        ids = []
        while pages.has_next:
            items = await done(pages.next_items())
            same(len(items) <= 1, True)
            ids += [item.sandbox_id for item in items]
        same(ids, [second.sandbox_id, self.sandbox.sandbox_id])
        await done(second.kill())

    async def commands(self):
        streamed = {"out": "", "err": ""}

        def on_stdout(text):
            streamed["out"] += text

        def on_stderr(text):
            streamed["err"] += text

        command = "echo $GREETING$OWN; pwd; whoami; echo wrong >&2"
        result = await self.run(command, envs={"OWN": "!"}, on_stdout=on_stdout, on_stderr=on_stderr)
        same(result.stdout, "hello!\n/home/user\nuser\n")
        same(streamed, {"out": result.stdout, "err": "wrong\n"})
        same((await self.run("pwd", cwd="/tmp")).stdout, "/tmp\n")
        same((await failure(lambda: self.run("exit 3"))).exit_code, 3)
        same(type(await failure(lambda: self.run("sleep 60", timeout=1))).__name__, "TimeoutException")

    async def root(self):
        same((await self.run("whoami; pwd", user="root")).stdout, "root\n/root\n")

    async def background(self):
        commands = self.sandbox.commands
        command = await self.run("while read x; do echo got $x; done", background=True, stdin=True)
        await done(command.disconnect())
        again = await done(commands.connect(command.pid))
        await done(commands.send_stdin(command.pid, "words\n"))
        same(command.pid in [each.pid for each in await done(commands.list())], True)
        if not hasattr(commands, "stream_input"):
            await done(commands.send_stdin(command.pid, "more\n"))
        elif IS_ASYNC:
            async with commands.stream_input(command.pid) as stdin:
                await stdin.send("more\n")
        else:
            commands.stream_input(command.pid, ["more\n"])
        await done(commands.close_stdin(command.pid))
        same((await done(again.wait())).stdout, "got words\ngot more\n")
        sleeper = await self.run("sleep 1000", background=True)
        same(await done(commands.kill(sleeper.pid)), True)

        async def ended():
            return not await done(commands.kill(sleeper.pid))

        # A killed process needs a moment to end.
        await eventually(ended)

    async def files(self):
        files = self.sandbox.files
        await done(files.write("folder/hello.txt", "hello"))
        same(await done(files.read("/home/user/folder/hello.txt")), "hello")
        same([entry.name for entry in await done(files.list("folder"))], ["hello.txt"])
        await done(files.rename("folder/hello.txt", "folder/other.txt"))
        same(await done(files.exists("folder/hello.txt")), False)
        written = await done(
            files.write_files([{"path": "folder/deep/one", "data": "1"}, {"path": "folder/deep/two", "data": "2"}])
        )
        same([each.path for each in written], ["/home/user/folder/deep/one", "/home/user/folder/deep/two"])
        same(len(await done(files.list("folder", depth=2))), 4)
        info = await done(files.get_info("folder/deep/one"))
        same([info.type.value, info.permissions, info.owner, info.size], ["file", "-rw-r--r--", "user", 1])
        await self.run("ln -s other.txt folder/link")
        link = await done(files.get_info("folder/link"))
        same([link.type.value, link.symlink_target], ["symlink", "/home/user/folder/other.txt"])
        await done(files.remove("folder"))
        same(type(await failure(lambda: files.read("folder/other.txt"))).__name__, "FileNotFoundException")

    async def metadata(self):
        await done(self.sandbox.files.write("noted", "1", metadata={"Origin": "a test"}))
        same((await done(self.sandbox.files.get_info("noted"))).metadata, {"origin": "a test"})

    async def git(self):
        git = self.sandbox.git
        await done(git.init("project", initial_branch="main"))
        await done(git.configure_user("A", "a@b.c", scope="local", path="project"))
        await done(self.sandbox.files.write("project/a", "1"))
        await done(git.add("project"))
        await done(git.commit("project", "first"))
        await done(git.create_branch("project", "other"))
        branches = await done(git.branches("project"))
        status = await done(git.status("project"))
        same([branches.current_branch, status.is_clean], ["other", True])
        await done(git.clone("/home/user/project", path="copy"))
        same(await done(self.sandbox.files.read("copy/a")), "1")

    async def terminal(self):
        size = e2b.PtySize(rows=24, cols=80)
        shown = []
        if IS_ASYNC:
            handle = await self.sandbox.pty.create(size, on_data=lambda data: shown.append(bytes(data)))
        else:
            handle = self.sandbox.pty.create(size)
        pty = self.sandbox.pty
        await done(pty.send_stdin(handle.pid, b"echo $((1+2)) terminals\n"))
        await done(pty.resize(handle.pid, e2b.PtySize(rows=30, cols=100)))
        await done(pty.send_stdin(handle.pid, b"stty size; exit\n"))
        if IS_ASYNC:
            await handle.wait()
        else:
            handle.wait(on_pty=lambda data: shown.append(bytes(data)))
        text = b"".join(shown).decode()
        same(["3 terminals" in text, "30 100" in text], [True, True])

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
        expired = await done(self.sandbox.download_url("signed.txt", use_signature_expiration=-10))
        same(httpx.get(expired).status_code, 401)

    async def timeout(self):
        await done(self.sandbox.set_timeout(600))
        info = await done(self.sandbox.get_info())
        same(info.end_at > datetime.now(timezone.utc) + timedelta(minutes=9), True)

    async def deleting_timeout(self):
        short = await self.created(timeout=8)

        async def is_missing():
            return await state_of(short.sandbox_id) == "missing"

        await eventually(is_missing)
        same(await done(short.is_running()), False)

    async def automatic(self):
        plain = await self.created(lifecycle={"on_timeout": "pause", "auto_resume": False})
        automatic = await self.created(lifecycle={"on_timeout": "pause", "auto_resume": True})
        for each in [plain, automatic]:
            await done(each.set_timeout(0))

            async def is_paused(each=each):
                return await state_of(each.sandbox_id) == "paused"

            await eventually(is_paused)
        same(await done(plain.is_running()), False)
        same((await done(automatic.commands.run("echo awake"))).stdout, "awake\n")
        same([await state_of(plain.sandbox_id), await state_of(automatic.sandbox_id)], ["paused", "running"])
        await done(plain.connect())
        same((await done(plain.commands.run("echo awake"))).stdout, "awake\n")
        for each in [plain, automatic]:
            await done(each.kill())

    async def automatic_without_memory(self):
        lifecycle = {"on_timeout": {"action": "pause", "keep_memory": False}}
        plain = await self.created(lifecycle=lifecycle)
        await done(plain.files.write("kept.txt", "kept"))
        sleeper = await done(plain.commands.run("sleep 1000", background=True))
        await done(plain.set_timeout(0))

        async def is_paused():
            return await state_of(plain.sandbox_id) == "paused"

        await eventually(is_paused)
        await done(plain.connect())
        same(await done(plain.files.read("kept.txt")), "kept")
        same(await done(plain.commands.kill(sleeper.pid)), False)
        await done(plain.kill())

    async def metrics(self):
        async def has_points():
            return len(await done(self.sandbox.get_metrics())) > 0

        await eventually(has_points)
        last = (await done(self.sandbox.get_metrics()))[-1]
        same([last.mem_used > 0, last.mem_total > last.mem_used, last.cpu_count > 0], [True, True, True])

    async def host(self):
        closed = await self.created(network={"allow_public_traffic": False})
        for each in [self.sandbox, closed]:
            await done(each.files.write("kept.txt", "kept"))
            await done(each.commands.run(f'python3 -c "{SERVE}"', background=True, timeout=0))

        async def is_open(each=self.sandbox, headers=None):
            return visit(each.get_host(3000), headers) == (200, "kept")

        await eventually(is_open)
        same(visit(closed.get_host(3000))[0] == 200, False)
        token = {"e2b-traffic-access-token": closed.traffic_access_token}
        await eventually(lambda: is_open(closed, token))
        await done(closed.kill())

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
        forks = await done(self.sandbox.fork(timeout=60, count=2))
        self.made += [fork.sandbox_id for fork in forks]
        for fork in forks:
            same(await done(fork.files.read("kept.txt")), "kept")
        same(len({each.sandbox_id for each in [self.sandbox, *forks]}), 3)

    async def snapshots(self):
        needs(self.sandbox, "create_snapshot")
        snapshot = await done(self.sandbox.create_snapshot())
        listed = await done(Sandbox.list_snapshots(sandbox_id=self.sandbox.sandbox_id).next_items())
        same([each.snapshot_id for each in listed], [snapshot.snapshot_id])
        copy = await self.created(snapshot.snapshot_id, envs={"OWN": "its own"})
        same(await done(copy.files.read("kept.txt")), "kept")
        same((await done(copy.commands.run("echo $OWN"))).stdout, "its own\n")
        await done(copy.kill())
        same(await done(Sandbox.delete_snapshot(snapshot.snapshot_id)), True)
        same(await done(Sandbox.delete_snapshot(snapshot.snapshot_id)), False)

    async def image(self):
        if "SCENARIO_IMAGE" not in os.environ:
            raise Missing("an image")
        other = await self.created(os.environ["SCENARIO_IMAGE"])
        same((await done(other.commands.run("echo inside; pwd; whoami"))).stdout, "inside\n/home/user\nuser\n")
        await done(other.files.write("a", "1"))
        same(await done(other.files.read("/home/user/a")), "1")
        await done(other.kill())

    async def network(self):
        needs(self.sandbox, "update_network")
        await done(self.sandbox.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["example.com"]}))
        network = (await done(self.sandbox.get_info())).network
        same([network["allow_out"], network["deny_out"]], [["example.com"], ["0.0.0.0/0"]])
        rules = {"rules": {"a.b": [{"transform": {}}]}}
        same("501" in str(await failure(lambda: self.sandbox.update_network(rules))), True)
        closed = await self.created(allow_internet_access=False)
        same((await done(closed.get_info())).allow_internet_access, False)
        await done(closed.kill())

    async def template(self):
        template = e2b.AsyncTemplate if IS_ASYNC else e2b.Template
        needs(template, "exists")
        same([await done(template.exists("base")), await done(template.exists("no-such-template"))], [True, False])

    async def builds(self):
        template = e2b.AsyncTemplate if IS_ASYNC else e2b.Template
        recipe = template().from_base_image().run_cmd("true")
        same("501" in str(await failure(lambda: template.build(recipe, "mine"))), True)
        volume = e2b.AsyncVolume if IS_ASYNC else e2b.Volume
        same("501" in str(await failure(lambda: volume.create("mine"))), True)

    async def interpreter(self):
        try:
            import e2b_code_interpreter as package
        except ImportError as error:
            raise Missing("e2b-code-interpreter") from error
        own = await done((package.AsyncSandbox if IS_ASYNC else package.Sandbox).create())
        self.made.append(own.sandbox_id)
        await done(own.run_code("x = 20"))
        run = await done(own.run_code("print('out')\nx + 1"))
        same([run.text, run.logs.stdout], ["21", ["out\n"]])
        same((await done(own.run_code("1 / 0"))).error.name, "ZeroDivisionError")
        context = await done(own.create_code_context(cwd="/tmp"))
        same((await done(own.run_code("import os; os.getcwd()", context=context))).text, "/tmp")
        same((await done(own.run_code("x", context=context))).error.name, "NameError")
        same((await done(own.run_code("echo $((40 + 2))", language="bash"))).logs.stdout, ["42\n"])
        await done(own.pause())
        await done(own.connect())
        same((await done(own.run_code("x"))).text, "20")
        await done(own.kill())

    async def interpreter_results(self):
        try:
            import e2b_code_interpreter as package
        except ImportError as error:
            raise Missing("e2b-code-interpreter") from error
        own = await done((package.AsyncSandbox if IS_ASYNC else package.Sandbox).create())
        self.made.append(own.sandbox_id)
        seen = []

        def on_result(result):
            seen.append([result.text, result.html, result.png, result.json, result.data])

        callbacks = {
            "on_stdout": lambda message: seen.append(["out", message.line]),
            "on_stderr": lambda message: seen.append(["err", message.line]),
            "on_result": on_result,
            "on_error": lambda error: seen.append([error.name]),
        }
        run = await done(own.run_code(RICH, **callbacks))
        same([run.execution_count, [result.is_main_result for result in run.results]], [1, [False, True]])
        same(sorted(seen[:2]), [["err", "e\n"], ["out", "o\n"]])
        same(seen[2:], RESULTS)
        await done(own.run_code("1 / 0", **callbacks))
        same(seen[-1], ["ZeroDivisionError"])
        same((await done(own.run_code("const y = 6; y * 7", language="javascript"))).text, "42")
        context = await done(own.create_code_context(language="python", cwd="/tmp"))
        await done(own.run_code("z = 1", context=context))

        async def ids():
            return [each.id for each in await done(own.list_code_contexts())]

        same(context.id in await ids(), True)
        await failure(lambda: own.run_code("while True: pass", context=context, timeout=1))
        # The client's departure has interrupted the cell, and nothing else.
        same((await done(own.run_code("z", context=context))).text, "1")
        await done(own.restart_code_context(context))
        same((await done(own.run_code("z", context=context))).error.name, "NameError")
        await done(own.remove_code_context(context))
        same(context.id in await ids(), False)
        await done(own.kill())

    async def kill(self):
        same(await done(self.sandbox.kill()), True)
        same(await done(Sandbox.kill(self.sandbox.sandbox_id)), False)


STEPS = {
    "create, getInfo, isRunning": Scenario.create,
    "list with filters and pages": Scenario.list,
    "commands.run": Scenario.commands,
    "commands as root": Scenario.root,
    "commands in the background, stdin, reconnect": Scenario.background,
    "files": Scenario.files,
    "metadata of files": Scenario.metadata,
    "git helpers": Scenario.git,
    "files.watchDir": Scenario.watch,
    "pty.create": Scenario.terminal,
    "downloadUrl, uploadUrl": Scenario.signed,
    "setTimeout": Scenario.timeout,
    "a timeout that deletes": Scenario.deleting_timeout,
    "auto-pause, auto-resume": Scenario.automatic,
    "auto-pause without memory": Scenario.automatic_without_memory,
    "getMetrics": Scenario.metrics,
    "getHost, allowPublicTraffic": Scenario.host,
    "pause, connect": Scenario.pause,
    "pause without memory": Scenario.pause_without_memory,
    "fork": Scenario.fork,
    "snapshots as templates": Scenario.snapshots,
    "images as templates": Scenario.image,
    "network options": Scenario.network,
    "Template.exists": Scenario.template,
    "501 for builds and volumes": Scenario.builds,
    "code interpreter": Scenario.interpreter,
    "code interpreter: results, callbacks, contexts": Scenario.interpreter_results,
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
