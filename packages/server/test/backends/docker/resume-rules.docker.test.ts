import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { encodeFrame } from "../../../src/backends/agent/frame-decoder.ts";
import { Request } from "../../../src/backends/agent/frame-types.ts";
import { DockerEngine } from "../../../src/backends/docker/engine/docker-engine.ts";
import { Label } from "../../../src/backends/docker/labels.ts";
import { newRequest } from "../contract/context.ts";
import { bash, countAbove, counter, errorCode, readText, run, start } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";
import { keyed } from "./support/open-docker.ts";

describeDocker("the rules of resuming", (service) => {
  const lab = new DockerLab(service);
  const request = (key: string, identity = {}) => keyed(key, lab.directory, identity);

  test("a sandbox that was stopped for longer than its idle time is removed", async () => {
    const [key, backend] = [randomUUID(), await lab.open()];
    await (await backend.acquire(request(key))).stop();
    expect(await lab.containersOf(key)).toHaveLength(1);
    expect(await backend.tryResume(request(key, { idleTtlMs: 0 }))).toBeUndefined();
    expect(await lab.containersOf(key)).toEqual([]);
  });

  test("the newest of several is kept, and the others are removed", async () => {
    const [key, backend] = [randomUUID(), await lab.open()];
    for (const content of ["oldest", "middle", "newest"]) {
      const handle = await backend.acquire(request(key));
      await handle.files.write("/workspace/marker", Buffer.from(content));
      await handle.stop();
    }
    expect(await lab.containersOf(key)).toHaveLength(3);
    const resumed = await (await lab.open()).tryResume(request(key));
    expect(await readText(resumed!, "/workspace/marker")).toBe("newest");
    expect(await lab.containersOf(key)).toHaveLength(1);
    await resumed!.destroy();
    expect(await lab.containersOf(key)).toEqual([]);
  });

  test("a sandbox whose agent hangs is restarted with its files; one that cannot answer is removed", async () => {
    const [key, backend] = [randomUUID(), await lab.open()];
    const handle = await backend.acquire(request(key));
    await handle.files.write("/workspace/marker", Buffer.from("kept"));
    const [container = ""] = await lab.containersOf(key);
    process.kill(Number(await lab.docker("inspect", "--format", "{{.State.Pid}}", container)), "SIGSTOP");
    const resumed = await (await lab.open()).tryResume(request(key));
    expect(await readText(resumed!, "/workspace/marker")).toBe("kept");
    await resumed!.destroy();

    const labels = [`${Label.owner}=${lab.directory}`, `${Label.key}=${key}`, `${Label.specHash}=same`];
    const marked = labels.flatMap((label) => ["--label", label]);
    const mounts = ["-v", "/usr:/usr:ro"];
    await lab.docker("run", "-d", "--network", "none", ...marked, ...mounts, service.image, "sleep", "300");
    expect(await lab.containersOf(key)).toHaveLength(1);
    const impatient = await lab.open({ startTimeoutMs: 2_000 });
    expect(await impatient.tryResume(request(key))).toBeUndefined();
    expect(await lab.containersOf(key)).toEqual([]);
  });

  test("a sandbox of another owner with the same key is neither found nor touched", async () => {
    const [key, backend] = [randomUUID(), await lab.open()];
    const other = await backend.acquire(request(key, { owner: "somebody else" }));
    expect(await backend.tryResume(request(key))).toBeUndefined();
    await other.ping();
    const found = await (await lab.open()).tryResume(request(key, { owner: "somebody else" }));
    await found!.destroy();
  });

  test("without a key it is found by the sandbox's id", async () => {
    const [wanted, backend] = [newRequest(), await lab.open()];
    const handle = await backend.acquire(wanted);
    expect(await backend.tryResume(wanted)).toBe(handle);
    await handle.files.write("/workspace/marker", Buffer.from("by id"));
    await handle.stop();
    expect(await handle.ended).toMatchObject({ reason: "destroyed" });
    const resumed = await backend.tryResume(wanted);
    expect(await readText(resumed!, "/workspace/marker")).toBe("by id");
    expect(resumed!.sandboxId).toBe(wanted.sandboxId);
    await resumed!.destroy();
    expect(await backend.tryResume(wanted)).toBeUndefined();
  });

  test("a replaced server notices it, and does not end the sandbox when it ends", async () => {
    const [key, backend] = [randomUUID(), await lab.open()];
    const handle = await backend.acquire(request(key));
    const process = await start(handle, counter("/workspace/count"), { key: "counter" });
    await countAbove(handle, "/workspace/count", 2);
    const resumed = await (await lab.open()).tryResume(request(key));
    expect(await handle.ended).toMatchObject({
      reason: "crashed",
      message: "Another server owns the sandbox now.",
    });
    expect(await errorCode(process.exited)).toBe("sandbox_failed");
    await backend.close();
    expect((await resumed!.processes()).map((each) => each.key)).toEqual(["counter"]);
    await countAbove(resumed!, "/workspace/count", await countAbove(resumed!, "/workspace/count", 0));
    await resumed!.destroy();
  });

  test("an interrupted request does no harm", async () => {
    const [key, backend] = [randomUUID(), await lab.open()];
    const handle = await backend.acquire(request(key));
    await start(handle, counter("/workspace/count"), { key: "counter" });
    const [container = ""] = await lab.containersOf(key);
    const engine = new DockerEngine(service.host);
    const attachment = await engine.attach(container);
    attachment.input.write(encodeFrame(Request.freeze, 0, Buffer.alloc(0)));
    const half = encodeFrame(
      Request.stdin,
      1,
      await readFile(process.execPath).then((bytes) => bytes.subarray(0, 900_000)),
    );
    await new Promise((resolve) => attachment.input.write(half.subarray(0, 500_000), resolve));
    attachment.close();
    engine.close();
    const resumed = await (await lab.open()).tryResume(request(key));
    expect((await resumed!.processes()).map((each) => each.key)).toEqual(["counter"]);
    await countAbove(resumed!, "/workspace/count", await countAbove(resumed!, "/workspace/count", 0));
    expect((await run(resumed!, bash("echo works"))).stdout).toBe("works\n");
    await resumed!.destroy();
  });
});
