import { spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestAgent, isRoot, startAgent } from "./support/agent.ts";
import { agentBinary } from "./support/build.ts";
import { Type, str, u32, u64, u8 } from "./support/wire.ts";

// PID 1 of its own namespaces, in a root folder of its own: nothing of the machine is writable.
const script = `set -e
root=$1
mount -t tmpfs none $root
cd $root
mkdir usr etc run workspace tmp proc dev agent
chmod 1777 run workspace tmp
for name in bin sbin lib lib64; do
  if [ -L /$name ]; then cp -P /$name .; elif [ -d /$name ]; then mkdir $name; mount --rbind /$name $name; fi
done
mount --rbind /usr usr
mount --rbind /dev dev
mount -t proc none proc
cp $2 agent/agent
exec chroot . /agent/agent`;
const unshare = ["unshare", "--pid", "--uts", "--mount", "--fork", "--kill-child"];

let rootFolder: string;
beforeAll(() => {
  rootFolder = mkdtempSync(join(tmpdir(), "agent-pid1-"));
});
afterAll(() => rmdirSync(rootFolder));
const start = (): Promise<TestAgent> => startAgent([...unshare, "sh", "-c", script, "sh", rootFolder, agentBinary]);

/** Needs root and namespaces; elsewhere the tests in gVisor cover the same. */
const unavailable =
  !isRoot || spawnSync("unshare", [...unshare.slice(1), "mount", "-t", "tmpfs", "none", "/mnt"]).status !== 0;

const read = async (agent: TestAgent, path: string) =>
  (await agent.call(Type.fileRead, u8(1), u64(0), u32(1000), str(path))).toString();
const write = (agent: TestAgent, path: string, text: string, mode: number) =>
  agent.call(Type.fileWrite, u8(0), u8(3), u32(mode), u64(0), str(path), Buffer.from(text));

test.skipIf(unavailable)("RESTORED gives the copy its own identity and runs the user's hook", async () => {
  const before = hostname();
  const agent = await start();
  expect(await read(agent, "/run/sandboxer/generation")).toBe("0\n");
  await agent.call(Type.fileMkdir, u8(0), u8(1), u32(0o755), str("/workspace/.sandboxer"));
  await write(
    agent,
    "/workspace/.sandboxer/restored",
    "#!/bin/sh\necho $SANDBOXER_GENERATION $(id -u) $(pwd) > /workspace/hook\n",
    0o755,
  );
  await agent.call(Type.quiesce);
  await agent.call(
    Type.restored,
    u64(12n),
    str("copy-of-it"),
    str("0123456789abcdef0123456789abcdef"),
    Buffer.alloc(64, 7),
  );
  expect(await read(agent, "/run/sandboxer/generation")).toBe("12\n");
  expect(await read(agent, "/etc/machine-id")).toBe("0123456789abcdef0123456789abcdef\n");
  const { id } = await agent.spawn(["uname", "-n"]);
  await agent.exit(id);
  expect(agent.text(id)).toBe("copy-of-it\n");
  await expect.poll(() => read(agent, "/workspace/hook").catch(() => "")).toBe("12 1000 /workspace\n");
  expect(hostname()).toBe(before);
  // A hook that cannot run is only logged, and so is a folder that is in the way.
  await agent.call(
    Type.fileSet,
    u8(0),
    u8(1),
    u32(0o644),
    u32(0),
    u32(0),
    u64(0),
    str("/workspace/.sandboxer/restored"),
  );
  await agent.call(Type.restored, u64(13n), str(""), str(""));
  await agent.until("the log line", () => agent.stderr.includes("Permission denied"));
  expect(await read(agent, "/run/sandboxer/generation")).toBe("13\n");
});

test.skipIf(unavailable)("root needs a host that names its groups, and cannot administer the system", async () => {
  const agent = await start();
  await expect(agent.spawn(["true"], { uid: 0 })).rejects.toThrow("1:");
  const { id } = await agent.shell("id -u; id -G; grep CapBnd /proc/self/status; umount /tmp 2>&1", {
    uid: 0,
    groups: [4, 27],
  });
  await agent.exit(id);
  const [uid, groups, bounding, mounting] = agent.text(id).split("\n");
  expect([uid, groups]).toEqual(["0", "0 4 27"]);
  expect((BigInt(`0x${bounding?.split("\t")[1]}`) >> 21n) & 1n).toBe(0n);
  expect(mounting).toMatch(/not permitted|must be superuser|denied|not mounted/);
  expect(await agent.spawn(["id"], { uid: 1000, groups: [] })).toMatchObject({ existed: false });
  await agent.ping();
});

test.skipIf(unavailable)("USER sets the owner of files and of the hook", async () => {
  const agent = await start();
  const user = (uid: number, groups: number[], folder: string): Promise<Buffer> =>
    agent.call(Type.user, u32(uid), u32(uid), u32(groups.length), ...groups.map(u32), str(folder));
  await user(1234, [5, 6], "/tmp/home");
  await agent.call(Type.fileMkdir, u8(0), u8(1), u32(0o755), str("/tmp/home/.sandboxer"));
  await write(agent, "/tmp/home/.sandboxer/restored", "#!/bin/sh\necho $(id -u) $(id -G) $HOME $(pwd) > hook\n", 0o755);
  await agent.call(Type.restored, u64(1n), str(""), str(""));
  await expect.poll(() => read(agent, "/tmp/home/hook").catch(() => "")).toBe("1234 1234 5 6 /tmp/home /tmp/home\n");
  const { id } = await agent.shell("stat -c %u:%g /tmp/home");
  await agent.exit(id);
  expect(agent.text(id)).toBe("1234:1234\n");
  await user(0, [], "/");
  await write(agent, "/etc/roots", "", 0o600);
  expect(await read(agent, "/etc/roots")).toBe("");
  // An incomplete request changes nothing.
  for (const parts of [
    [u32(1)],
    [u32(1), u32(1), u32(2), u32(3), str("/")],
    [u32(1), u32(1), u32(2 ** 31), str("/")],
  ]) {
    expect(await agent.failure(Type.user, ...parts)).toBe(74);
  }
  expect(await agent.failure(Type.user, u32(1), u32(1), u32(0), str("here"))).toBe(22);
});

test.skipIf(unavailable)("spawned processes can neither be root nor reach the agent", async () => {
  const agent = await start();
  await expect(agent.spawn(["true"], { uid: 0 })).rejects.toThrow("1:");
  const { id } = await agent.shell(
    "for s in KILL STOP TERM; do kill -$s 1 2>/dev/null && echo reached; done; for f in 0 1 2; do (: > /proc/1/fd/$f) 2>/dev/null && echo opened; done; cat /proc/1/environ /proc/1/mem 2>/dev/null; echo done",
  );
  await agent.exit(id);
  expect(agent.text(id)).toBe("done\n");
  await agent.ping();
});

test.skipIf(unavailable)("all processes except the agent are signalled, frozen and shown", async () => {
  const agent = await start();
  const { id } = await agent.shell("setsid sleep 81 & sleep 82");
  // All have started: a shell that waits for a program to start stops only after that.
  const names = async (): Promise<string[]> => (await agent.processTable()).map(({ command }) => command);
  await expect.poll(names).toEqual([expect.stringMatching(/^sh /), "sleep 81", "sleep 82"]);
  expect((await agent.call(Type.freeze)).readUInt32LE()).toBe(3);
  // A process that reads from a slow disk stops when the read is done.
  const states = async (): Promise<string[]> => (await agent.processTable()).map((entry) => entry.state);
  await expect.poll(states).toEqual(["T", "T", "T"]);
  await agent.call(Type.thaw);
  await agent.signal(0, 9, 2);
  expect(await agent.exit(id)).toMatchObject({ signal: 9 });
  await expect.poll(() => agent.processTable()).toEqual([]);
});
