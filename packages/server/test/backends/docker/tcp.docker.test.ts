import { afterAll, beforeAll, expect, test } from "vitest";
import { newRequest } from "../contract/context.ts";
import { bash, eventually, readText, run } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";
import { TcpEngine } from "./support/tcp-engine.ts";

describeDocker("an engine over TCP", (service) => {
  const lab = new DockerLab(service);
  let engine: TcpEngine;
  beforeAll(async () => {
    engine = await TcpEngine.open(service);
  });
  afterAll(() => engine.close());

  test("everything works over TCP, and a lost connection costs no container", async () => {
    const backend = await lab.open({ host: engine.host });
    const request = newRequest();
    const handle = await backend.acquire(request);
    expect((await run(handle, bash("echo $((6*7))"))).stdout).toBe("42\n");
    await handle.files.write("/workspace/marker", Buffer.from("kept"));
    engine.cut();
    const end = await handle.ended;
    expect(end).toMatchObject({ reason: "crashed", message: expect.stringContaining("was lost") });
    const [container = ""] = await lab.containers(`label=sandboxer.sandbox-id=${request.sandboxId}`);
    expect(await lab.state(container)).toBe("running");
    const again = await backend.tryResume(request);
    expect(await readText(again!, "/workspace/marker")).toBe("kept");
    await again!.destroy();
    await eventually(async () => (await lab.containers()).length === 0, "the end of the container");
  });
});
