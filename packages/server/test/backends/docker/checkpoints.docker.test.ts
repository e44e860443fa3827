import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { AcquireRequest, SnapshotPayload } from "../../../src/backends/backend.ts";
import { HttpClient } from "../../gateway/http/support.ts";
import { HOST_IMAGE_PATH } from "../../../../../test/kit/services/host-image.ts";
import { ServerProcess } from "../../../../../test/kit/server/server-process.ts";
import { testBackend } from "../backend-contract.ts";
import { newRequest } from "../contract/context.ts";
import { countAbove, counter, errorCode, Follower, python, readText, start } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab, lines } from "./support/docker-lab.ts";
import { startDockerService } from "./support/docker-service.ts";
import { openContractBackend } from "./support/open-docker.ts";
import { TcpEngine } from "./support/tcp-engine.ts";

const COUNT = "/workspace/count";
const NO_RUNSC = "SANDBOXER_TEST_RUNSC names no runsc";

describeDocker("an engine with checkpoints", (shared) => {
  let engine: Awaited<ReturnType<typeof startDockerService>>;
  // Before those of the lab, which checks the engine at the end.
  beforeAll(async () => {
    engine = await startDockerService({ experimental: true });
    return () => engine.stop();
  });
  const lab = new DockerLab(() => engine.service);
  const runtime = shared.runsc?.keeping;

  if (runtime !== undefined) testBackend("docker with runsc", () => openContractBackend(engine.service, { runtime }));

  test("with runc and no CRIU, memory is refused with the engine's own message, and the trial leaves nothing", async (context) => {
    const backend = await lab.open();
    if (backend.capabilities.snapshot === "full") return context.skip("CRIU works on this kernel");
    const { ok, details } = await backend.probe();
    expect([ok, details?.["full_snapshots"]]).toEqual([true, expect.stringMatching(/^no: .*criu/i)]);
    expect(await leftovers()).toEqual([]);
    const handle = await backend.acquire(newRequest());
    await expect(handle.snapshot(await lab.folder(), { mode: "full", leaveRunning: true })).rejects.toMatchObject({
      code: "not_supported",
      message: expect.stringMatching(/criu/i),
    });
    await handle.ping();
    await handle.destroy();
  });

  test("a runtime that hides written files saves no memory either", async (context) => {
    if (shared.runsc === undefined) return context.skip(NO_RUNSC);
    const backend = await lab.open({ runtime: shared.runsc.losing });
    expect((await backend.probe()).details?.["full_snapshots"]).toMatch(/^no: .*keeps files where Docker cannot/);
    expect(await leftovers()).toEqual([]);
  });

  test("checkpoints work over TCP: nothing of the engine's machine has to be local", async (context) => {
    if (runtime === undefined) return context.skip(NO_RUNSC);
    const tcp = await TcpEngine.open(engine.service);
    const backend = await lab.open({ runtime, host: tcp.host });
    expect(backend.capabilities.snapshot).toBe("full");
    expect((await backend.probe()).details?.["full_snapshots"]).toBe("yes");
    expect(await leftovers()).toEqual([]);
    tcp.close();
  });

  test("open files and a network are saved too; others can take over the copy, and it starts fresh after a stop", async (context) => {
    if (runtime === undefined) return context.skip(NO_RUNSC);
    const { network } = engine.service;
    const [first, second] = [await lab.open({ runtime, network }), await lab.open({ runtime, network })];
    const handle = await first.acquire(newRequest({ network: "open" }));
    await start(handle, counter(COUNT), { key: "counter" });
    const code =
      "f = open('/workspace/log', 'a+')\nf.write('before ')\nf.flush()\nprint('ready')\nf.write(input())\nf.flush()\nf.seek(0)\nprint(f.read())";
    await new Follower(await start(handle, python(code), { key: "writer" })).until("ready");
    const snapshot = await handle.snapshot(await lab.folder(), { mode: "full", leaveRunning: false });
    await handle.destroy();
    expect(await leftovers()).toEqual([]);

    const request = newRequest({ network: "open" });
    await (await first.acquireFromSnapshot(request, snapshot)).ping();
    const joined = await second.tryResume(request);
    expect((await joined!.processes()).map(({ key }) => key)).toEqual(["counter", "writer"]);
    const writer = (await joined!.processes()).find(({ key }) => key === "writer");
    const output = new Follower(writer!);
    await writer!.writeStdin(Buffer.from("after\n"));
    await output.until("before after");
    await countAbove(joined!, COUNT, await countAbove(joined!, COUNT, 0));

    await joined!.stop();
    const again = await second.tryResume(request);
    expect(await again!.processes()).toEqual([]);
    expect(await readText(again!, "/workspace/log")).toBe("before after");
    await again!.destroy();
    expect(await leftovers()).toEqual([]);
  });

  test("a checkpoint that needs another environment is refused before anything is done", async (context) => {
    if (runtime === undefined || shared.runsc === undefined) return context.skip(NO_RUNSC);
    const { network } = engine.service;
    const backend = await lab.open({ runtime, network });
    const handle = await backend.acquire(newRequest());
    const snapshot = await handle.snapshot(await lab.folder(), { mode: "full", leaveRunning: true });
    expect(snapshot).toMatchObject({ kind: "docker-checkpoint", requirements: { runtime, generation: 0 } });
    await handle.destroy();
    const load = (change: Partial<SnapshotPayload>, request: AcquireRequest = newRequest()): Promise<string> =>
      errorCode(backend.acquireFromSnapshot(request, { ...snapshot, ...change }));
    const { requirements, members } = snapshot;
    expect(await load({ requirements: { ...requirements, runtime: "another" } })).toBe("image_incompatible");
    expect(await load({}, newRequest({ network: "open" }))).toBe("image_incompatible");
    expect(await load({}, newRequest({ inputs: { mounts: "/usr:/usr:ro" } }))).toBe("image_incompatible");
    expect(await load({ requirements: { ...requirements, generation: "first" } })).toBe("image_damaged");
    expect(await load({ members: members.filter(({ name }) => name === "image.tar") })).toBe("image_damaged");
    const path = join(await lab.folder(), "hostconfig.json");
    await writeFile(path, "{}");
    const outside = { name: "checkpoint/../../hostconfig.json", path, sizeBytes: 2 };
    expect(await load({ members: [...members, outside] })).toBe("image_damaged");
    const elsewhere = await openContractBackend(shared, { runtime });
    expect(await errorCode(elsewhere.backend.acquireFromSnapshot(newRequest(), snapshot))).toBe("not_supported");
    await elsewhere.close();
    expect(await leftovers()).toEqual([]);

    // Only the engine can find this out.
    const garbage = members.map((member) => (member.name.endsWith("/checkpoint.img") ? { ...member, path } : member));
    expect(await load({ members: garbage })).toBe("image_incompatible");
    expect(await leftovers()).toEqual([]);
  });

  test("a server saves a sandbox to its store and restores it with its processes", async (context) => {
    if (runtime === undefined) return context.skip(NO_RUNSC);
    const { host, image } = engine.service;
    const flags = ["--backend", "docker", "--docker-host", host, "--docker-image", image, "--docker-mounts", "/usr"];
    const store = await lab.folder();
    const server = await ServerProcess.start({ store, flags: [...flags, "--docker-runtime", runtime] });
    const http = new HttpClient({ httpUrl: server.url.replace(/^ws/, "http") });
    const { body: ready } = await http.call<{ summary: string }>("GET", "/readyz");
    expect(ready.summary).toContain("it saves memory and files");
    const spec = { inputs: { mounts: "/usr:/usr:ro" }, env: { PATH: HOST_IMAGE_PATH } };
    const { id } = await http.create({ ...spec, enable_checkpoint: true });
    const run = async (shell: string): Promise<string> =>
      (await http.call<{ stdout: string }>("POST", `/v1/sandboxes/${id}/exec`, { shell })).body.stdout;
    await run("sleep 300 > /dev/null 2>&1 & echo $! > pid");
    expect((await http.call("POST", `/v1/sandboxes/${id}/checkpoint`)).status).toBe(200);
    expect((await http.get(id)).state).toBe("stored");
    expect((await http.call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
    expect(await run("kill -0 $(cat pid) && echo alive")).toBe("alive\n");
    expect((await http.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(200);
    expect(await lab.docker("ps", "-aq")).toBe("");
    expect(await server.stop()).toBe(0);
  });

  /** Containers, and images of snapshots or trials. */
  async function leftovers(): Promise<string[]> {
    return [
      ...(await lab.containers()),
      ...(await lab.snapshotImages()),
      ...lines(await lab.docker("images", "-q", "sandboxer-trial")),
    ];
  }
});
