import { randomUUID } from "node:crypto";
import { readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { profileSchema } from "@sandboxer/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { acquireWithState } from "../../../src/manager/snapshots/portable/acquire-with-state.ts";
import { captureWorkspace } from "../../../src/manager/snapshots/portable/capture-workspace.ts";
import { ProfileCatalog } from "../../../src/profiles/profile-catalog.ts";
import { rewindTwice } from "../../gateway/http/rewind-kept.ts";
import { debianPrograms } from "../../../../../test/kit/services/debian-programs.ts";
import { startSshServer } from "../../../../../test/kit/services/ssh-server.ts";
import { bash, finish, python, run, start, eventually, readText, errorCode } from "../contract/programs.ts";
import { throughStore } from "../through-store.ts";
import { describeServices, Lab, requestFor } from "./fixture.ts";
import { docker, hostState } from "./host-state.ts";

/** Prints as much as the pipes hold, records how much that was, and ends on request. */
const FULL = `
import os, sys, time
os.set_blocking(1, False)
written = refused = 0
while refused < 10:
    try:
        written += os.write(1, b"x" * 4096)
        refused = 0
    except BlockingIOError:
        refused += 1
        time.sleep(0.1)
with open("/workspace/written.part", "w") as file:
    file.write(str(written))
os.rename("/workspace/written.part", "/workspace/written")
sys.stdin.readline()
`;

describeServices("a compose-ssh sandbox", (services) => {
  const lab = new Lab(services);

  const place = async (): Promise<{ base: string; placement: Record<string, string> }> => {
    const base = join(await lab.folder(), "base");
    return { base, placement: { ...services.hosts[0], base_dir: base } };
  };

  test("a sandbox has the files of its repository, and leaves nothing when it is deleted, even twice", async () => {
    const { base, placement } = await place();
    const compose = JSON.parse(lab.composeFile()) as { services: { app: { volumes: string[] } } };
    compose.services.app.volumes.push("data:/data");
    const repo = await lab.repository({
      "compose.yaml": JSON.stringify({ ...compose, volumes: { data: {} } }),
      "with space'\"$(x)": "hostile\n",
    });
    const backend = lab.backend();
    const request = requestFor(repo, placement, { env: { TRICKY: `a'b"c$(d)\n\`e\`\\ \ttab` } });
    const handle = await backend.acquire(request);
    expect(await readText(handle, "/workspace/with space'\"$(x)")).toBe("hostile\n");
    const { stdout } = await run(handle, ["sh", "-c", 'printf "%s|%s|%s" "$TRICKY" "$1" "$2"', "sh", "x'\n\n y", "-n"]);
    expect(stdout).toBe(`a'b"c$(d)\n\`e\`\\ \ttab|x'\n\n y|-n`);
    expect((await stat(join(base, "sandboxes", request.sandboxId))).isDirectory()).toBe(true);
    expect((await hostState(services, base)).filter((entry) => entry.startsWith("volume"))).toHaveLength(1);
    await handle.destroy();
    await handle.destroy();
    expect(await hostState(services, base)).toEqual([]);
  });

  test("a second server finds it by its id, running or stopped; another spec hash or id finds nothing", async () => {
    const { base, placement } = await place();
    const request = requestFor(await lab.repository(), placement);
    const first = lab.backend();
    const handle = await first.acquire(request);
    await run(handle, bash("echo kept > note"));
    await first.close();
    expect(await handle.ended).toMatchObject({ reason: "destroyed" });

    const identity = { key: "k", specHash: "other", owner: "o", idleTtlMs: 1000 };
    expect(await lab.backend().tryResume({ ...request, identity })).toBeUndefined();
    const second = lab.backend();
    const found = await second.tryResume(request);
    if (found === undefined) throw new Error("It was not found.");
    expect(await readText(found, "/workspace/note")).toBe("kept\n");
    await found.stop();
    expect(await errorCode(found.ping())).toBe("sandbox_failed");
    expect(await docker(services, "ps", "-q")).toBe("");

    const started = await lab.backend().tryResume(request);
    if (started === undefined) throw new Error("It was not started.");
    expect(await readText(started, "/workspace/note")).toBe("kept\n");
    expect(await errorCode(lab.backend().acquire(request))).toBe("wrong_state");
    await started.ping();
    await started.destroy();
    expect(await lab.backend().tryResume(request)).toBeUndefined();
    expect(await hostState(services, base)).toEqual([]);
  });

  test("exit codes are reported, and more commands run at once than one connection supports", async () => {
    const { base, placement } = await place();
    const request = requestFor(await lab.repository(), placement);
    const handle = await lab.backend().acquire(request);
    expect((await run(handle, bash("exit 255"))).exit).toMatchObject({ code: 255, signal: undefined });
    // sshd's MaxSessions is 10.
    const many = await Promise.all(Array.from({ length: 14 }, () => start(handle, bash("read x; echo got $x"))));
    await Promise.all(many.map((process) => process.writeStdin(Buffer.from("it\n"))));
    const exits = await Promise.all(many.map((process) => process.exited));
    expect(exits.map(({ code }) => code)).toEqual(many.map(() => 0));
    expect(await errorCode(start(handle, bash("true"), { pty: { rows: 1, columns: 1 } }))).toBe("not_supported");

    const container = await docker(services, "ps", "-q", "--filter", `name=${request.sandboxId}`);
    await docker(services, "kill", container);
    expect(await handle.ended).toMatchObject({ reason: "crashed" });
    expect(await errorCode(handle.ping())).toBe("sandbox_failed");
    await handle.destroy();
    expect(await hostState(services, base)).toEqual([]);
  });

  test("an exited process with unread output does not block others, and loses nothing", async () => {
    const { placement } = await place();
    const handle = await lab.backend().acquire(requestFor(await lab.repository(), placement));
    onTestFinished(() => handle.destroy());
    const killed = await start(handle, bash("yes for ever"));
    const done = await start(handle, python(FULL));
    for (const process of [killed, done]) {
      await eventually(async () => (await process.bounds()).end >= 1 << 20, "a log that is full");
    }
    const written = async (): Promise<number> => Number(await readText(handle, "/workspace/written").catch(() => ""));
    await eventually(async () => (await written()) > 0, "pipes that are full");
    await killed.signal(9, "group");
    await done.writeStdin(Buffer.from("end\n"));
    expect((await run(handle, bash("echo other"))).stdout).toBe("other\n");
    expect([killed.exit, done.exit]).toEqual([undefined, undefined]);
    expect((await finish(done)).exit).toMatchObject({ code: 0, outputEnd: await written() });
    expect((await finish(killed)).exit).toMatchObject({ signal: 9 });
  });

  test("a host with docker-compose instead of the plugin works", async () => {
    const bin = await lab.folder();
    await symlink(join(debianPrograms.plugins, "docker-compose"), join(bin, "docker-compose"));
    const server = await startSshServer({ PATH: `${bin}:${services.docker.env["PATH"]}`, DOCKER_CONFIG: bin });
    try {
      const { base, placement } = await place();
      const request = requestFor(await lab.repository(), { ...placement, ...server.placement });
      const handle = await lab.backend().acquire(request);
      expect(await readFile(join(base, "sandboxes", `${request.sandboxId}.json`), "utf8")).toContain("standalone");
      expect((await run(handle, bash("pwd"))).stdout).toBe("/workspace\n");
      await handle.destroy();
      expect(await hostState(services, base)).toEqual([]);
    } finally {
      await server.stop();
    }
  });

  test("a sandbox is rewound in place, and one project is left on the host", async () => {
    const { base, placement } = await place();
    const settings = { name: "profile.ssh", extension: "ext.compose-ssh", placement, inputs: { repo: {} } };
    const profile = profileSchema.parse(settings);
    const entry = { profile, file: "test", bundled: false, overrides: undefined };
    const body = { profile: "profile.ssh", inputs: { repo: await lab.repository() } };
    const check = async (id: string): Promise<void> => {
      const left = (await hostState(services, base)).filter((each) => each.includes(id));
      expect(left.length).toBeGreaterThan(0);
      expect(left.filter((each) => !each.includes(`${id}-2`))).toEqual([]);
    };
    await rewindTwice(lab.backend(), check, body, { profiles: new ProfileCatalog([entry]) });
  });

  describe("snapshots", () => {
    test("stay on the host, are stored by value, and are restored there and on another host", async () => {
      const { base, placement } = await place();
      const backend = lab.backend();
      const handle = await backend.acquire(requestFor(await lab.repository({ data: "first\n" }), placement));
      await run(handle, bash("echo second >> data"));
      const snapshotId = randomUUID();
      const taken = await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true, snapshotId });
      const snapshot = JSON.parse(JSON.stringify(taken)) as typeof taken;
      const { extension, record } = snapshot.requirements as { extension: string; record: Record<string, string> };
      expect([snapshot.kind, extension]).toEqual(["workspace-tar", "compose-ssh"]);
      const artifact = join(base, "snapshots", `${snapshotId}.tar.gz`);
      expect(record).toMatchObject({ host: placement["host"], remote_path: artifact });
      const bytes = await readFile(artifact);
      expect(Number(record["size_bytes"])).toBe(bytes.length);
      expect(snapshot.members).toMatchObject([{ name: "workspace.tar.gz", sizeBytes: bytes.length }]);
      expect(bytes.equals(await readFile(snapshot.members[0]?.path ?? ""))).toBe(true);
      expect(await errorCode(handle.snapshot(await lab.folder(), { mode: "full", leaveRunning: true }))).toBe(
        "not_supported",
      );

      await run(handle, bash("echo third >> data"));
      // The artifact exists there: no bytes are transferred.
      const here = await backend.acquireFromSnapshot(requestFor("", placement), { ...snapshot, members: [] });
      expect(await readText(here, "/workspace/data")).toBe("first\nsecond\n");
      const otherBase = join(await lab.folder(), "base");
      const other = { ...services.hosts[1], base_dir: otherBase };
      const elsewhere = lab.backend();
      const loaded = await throughStore(snapshot, await lab.folder());
      const there = await elsewhere.acquireFromSnapshot(requestFor("", other), loaded);
      expect(await readText(there, "/workspace/data")).toBe("first\nsecond\n");
      expect(await readText(handle, "/workspace/data")).toBe("first\nsecond\nthird\n");

      await Promise.all([handle.destroy(), here.destroy(), there.destroy()]);
      expect(await hostState(services, base)).toEqual([`snapshots/${record["snapshot_id"]}.tar.gz`]);
      // The uploaded copy would belong to nobody.
      expect(await hostState(services, otherBase)).toEqual([]);

      const away = { ...placement, port: "1" };
      const failure = await backend.forgetSnapshot(snapshot, { placement: away }).then(
        () => "no error",
        (error: unknown) => String(error),
      );
      expect(failure).toContain(`The artifact ${artifact} on ${placement["host"]} stays: `);
      expect(await errorCode(backend.forgetSnapshot(snapshot, { placement: other }))).toBe("wrong_state");
      expect(await hostState(services, base)).toHaveLength(1);
      await backend.forgetSnapshot(snapshot, { placement });
      await backend.forgetSnapshot(snapshot, { placement });
      expect(await hostState(services, base)).toEqual([]);
    });

    test("of other backends are unpacked into the service, and its own keep hard links", async () => {
      const { placement } = await place();
      const backend = lab.backend();
      const handle = await backend.acquire(requestFor(await lab.repository(), placement));
      await run(handle, bash("mkdir d; echo x > d/f; ln d/f twin; chmod 2750 d; chmod 4755 d/f; ln -s nowhere link"));
      const capture = { backend, handle, diskBytes: undefined };
      const own = await captureWorkspace(capture, await lab.folder(), {});
      expect(own.requirements).toMatchObject({ extension: "compose-ssh" });
      const foreign = { ...own, requirements: { portable: {} } };
      const lost: object[] = [];
      const request = requestFor(await lab.repository(), placement);
      const there = await acquireWithState(backend, request, foreign, {}, (told) => lost.push(told));
      expect(lost).toMatchObject([{ copiedLinks: 0, lostAttributes: 0 }]);
      const show = bash("stat -c '%n %a %h' d d/f; readlink link; [ d/f -ef twin ] && cat twin");
      expect((await run(there, show)).stdout).toBe("d 2750 2\nd/f 4755 2\nnowhere\nx\n");
      await Promise.all([handle.destroy(), there.destroy()]);
      await backend.forgetSnapshot(own, { placement });
    });

    test("that are missing or damaged are refused, and the host is unchanged", async () => {
      const { base, placement } = await place();
      const backend = lab.backend();
      const handle = await backend.acquire(requestFor(await lab.repository(), placement));
      const snapshot = await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
      await handle.destroy();
      const otherBase = join(await lab.folder(), "base");
      const request = requestFor("", { ...services.hosts[1], base_dir: otherBase });
      const load = (payload: typeof snapshot): Promise<string> =>
        errorCode(backend.acquireFromSnapshot(request, payload));
      expect(await load({ ...snapshot, members: [] })).toBe("image_damaged");
      const [member] = snapshot.members;
      const wrongFile = join(await lab.repository(), "compose.yaml");
      expect(await load({ ...snapshot, members: [{ ...member!, path: wrongFile }] })).toBe("image_damaged");
      expect(await load({ ...snapshot, kind: "docker-image-tar" })).toBe("image_incompatible");
      expect(await load({ ...snapshot, requirements: { extension: "ext.other", record: {} } })).toBe(
        "image_incompatible",
      );
      expect(await hostState(services, otherBase)).toEqual([]);
      expect(await hostState(services, base)).toHaveLength(1);
    });
  });

  test("a sandbox that is saved to be paused stays frozen until it is resumed, and can be deleted while paused", async () => {
    const { base, placement } = await place();
    const handle = await lab.backend().acquire(requestFor(await lab.repository(), placement));
    await handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: false });
    expect(await docker(services, "ps", "-q", "--filter", "status=paused")).not.toBe("");
    let answered = false;
    const reading = run(handle, bash("echo here")).then(() => (answered = true));
    expect(answered).toBe(false);
    await handle.thaw();
    await reading;
    await eventually(async () => (await docker(services, "ps", "-q", "--filter", "status=paused")) === "", "the end");
    await handle.freeze();
    await handle.destroy();
    expect(await hostState(services, base)).toHaveLength(1);
  });
});
