import { randomBytes } from "node:crypto";
import { Sandbox } from "e2b";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { ServerProcess, whyNoEngine } from "../../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of E2B's client on gVisor are skipped: ${missing}`);

describe.skipIf(missing !== undefined)("E2B's client on gVisor", () => {
  test("commands, terminals, files, watches and signed URLs, before and after a pause", async () => {
    const server = await ServerProcess.start({ store: await temporaryFolder() });
    const url = `${server.url.replace(/^ws/, "http")}/e2b`;
    const options = { apiKey: "e2b_00", apiUrl: url, sandboxUrl: url };
    const sandbox = await Sandbox.create({ ...options, timeoutMs: 600_000, envs: { FROM_CREATE: "yes" } });
    const { commands, files, pty } = sandbox;

    // Commands with both outputs, variables, users and folders.
    const said: string[] = [];
    const result = await commands
      .run("echo out; echo err >&2; echo $FROM_CREATE$GIVEN; pwd; whoami; exit 3", {
        envs: { GIVEN: "too" },
        onStdout: (text) => void said.push(text),
      })
      .catch((error: unknown) => error);
    expect(result).toMatchObject({ exitCode: 3, stdout: "out\nyestoo\n/home/user\nuser\n", stderr: "err\n" });
    expect(said.join("")).toBe("out\nyestoo\n/home/user\nuser\n");
    expect((await commands.run("cat; pwd", { cwd: "/tmp" })).stdout).toBe("/tmp\n");
    const large = await commands.run("head -c 3000000 /dev/zero | tr '\\0' x");
    expect(large.stdout.length).toBe(3_000_000);
    await expect(commands.run("sleep 60", { timeoutMs: 500 })).rejects.toThrow("timed out");

    expect((await commands.run("whoami; pwd", { user: "root" })).stdout).toBe("root\n/root\n");
    await files.write("secret/file", "root's", { user: "root" });
    expect((await commands.run("stat -c %U:%a /root/secret /root/secret/file", { user: "root" })).stdout).toBe(
      "root:755\nroot:644\n",
    );
    await expect(files.read("/root/secret/file")).rejects.toThrow();

    // A background process with input and two readers.
    const counter = await commands.run("while read x; do echo got $x; done", { background: true, stdin: true });
    const other = await commands.connect(counter.pid);
    await commands.sendStdin(counter.pid, "a\n");
    await eventually("both readers", () => counter.stdout === "got a\n" && other.stdout === "got a\n");
    expect((await commands.run(`kill -0 ${counter.pid}; echo $?`)).stdout).toBe("0\n");
    await other.disconnect();

    // A terminal.
    let shown = "";
    const decoder = new TextDecoder();
    const terminal = await pty.create({ cols: 80, rows: 24, onData: (data) => void (shown += decoder.decode(data)) });
    await pty.sendInput(terminal.pid, new TextEncoder().encode("stty size\n"));
    await eventually("the size", () => shown.includes("24 80"));
    await pty.resize(terminal.pid, { cols: 100, rows: 30 });
    await pty.sendInput(terminal.pid, new TextEncoder().encode("stty size; exit 0\n"));
    await terminal.wait();
    expect(shown).toContain("30 100");

    // Files, with metadata and links.
    const bytes = randomBytes(2_000_000);
    await files.write("data/random", new Blob([bytes]), { metadata: { Origin: "a test" } });
    expect(Buffer.from(await files.read("data/random", { format: "bytes" })).equals(bytes)).toBe(true);
    expect((await commands.run("stat -c %U:%a data/random")).stdout).toBe("user:644\n");
    expect(await files.getInfo("data/random")).toMatchObject({
      size: 2_000_000,
      path: "/home/user/data/random",
      owner: "user",
      metadata: { origin: "a test" },
    });
    await files.write("data/random", "short");
    expect((await files.getInfo("data/random")).metadata).toBeUndefined();
    await commands.run("ln -s data/random link; chmod 600 data/random");
    expect(await files.getInfo("link")).toMatchObject({
      symlinkTarget: "/home/user/data/random",
      mode: 0o600,
      size: 5,
    });
    expect((await files.list("data")).map(({ name }) => name)).toEqual(["random"]);
    await files.rename("data/random", "moved/here/file");
    await files.remove("data");
    expect(await files.exists("data")).toBe(false);

    // Changes, as inotify reports them.
    await files.makeDir("watched");
    const events: string[] = [];
    const watch = await files.watchDir("watched", ({ type, name }) => void events.push(`${type} ${name}`), {
      recursive: true,
      timeoutMs: 0,
    });
    await commands.run("cd watched; echo 1 > a; chmod 600 a; mv a b; mkdir -p new/deep; echo 2 > new/deep/c; rm b");
    await eventually("the removal and the file below", () =>
      ["remove b", "create new/deep/c"].every((event) => events.includes(event)),
    );
    expect(events.filter((event) => / [ab]$/.test(event))).toEqual([
      "create a",
      "write a",
      "chmod a",
      "rename a",
      "create b",
      "remove b",
    ]);
    await watch.stop();
    const vanished = Promise.withResolvers<Error | undefined>();
    await files.watchDir("watched/new", () => {}, { onExit: (error) => vanished.resolve(error), timeoutMs: 0 });
    await commands.run("rm -r watched/new");
    expect((await vanished.promise)?.message).toContain("deleted or moved");

    // Signed URLs name neither the prefix nor the sandbox.
    const link = await sandbox.downloadUrl("moved/here/file", { useSignatureExpiration: 60 });
    expect(await (await fetch(link)).text()).toBe("short");

    // A pause keeps the process, and a watch does not stand in its way.
    const ended = Promise.withResolvers<void>();
    await files.watchDir("watched", () => {}, { onExit: () => ended.resolve(), timeoutMs: 0 });
    await sandbox.pause();
    await ended.promise;
    const resumed = await Sandbox.connect(sandbox.sandboxId, options);
    const again = await resumed.commands.connect(counter.pid);
    await resumed.commands.sendStdin(counter.pid, "b\n");
    await eventually("the process continues", () => again.stdout === "got b\n");
    expect(await resumed.commands.kill(counter.pid)).toBe(true);
    const later: string[] = [];
    await resumed.files.watchDir("watched", ({ type, name }) => void later.push(`${type} ${name}`));
    await resumed.files.write("watched/later", "");
    await eventually("a change after the pause", () => later.includes("create later"));
    if ((await resumed.commands.run("command -v git; true")).stdout !== "") {
      await resumed.git.init("project");
      await resumed.files.write("project/a", "1");
      await resumed.git.add("project");
      await resumed.git.commit("project", "first", { authorName: "A", authorEmail: "a@b" });
      expect((await resumed.git.status("project")).isClean).toBe(true);
    }
    expect(await resumed.kill()).toBe(true);
    expect(await resumed.isRunning()).toBe(false);
  });
});
