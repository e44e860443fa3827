import { once } from "node:events";
import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newRequest } from "../contract/context.ts";
import { bash, eventually, readText, run } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";

describeDocker("an engine over TCP", (service) => {
  const lab = new DockerLab(service);
  const sockets = new Set<Socket>();
  let server: Server;
  let host: string;
  beforeAll(async () => {
    server = createServer((near) => {
      const far = connect(service.host.replace("unix://", ""));
      for (const [from, to] of [[near, far] as const, [far, near] as const]) {
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => to.destroy());
      }
      sockets.add(near);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    host = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  test("it is all the same, and a connection that is lost costs no container", async () => {
    const backend = await lab.open({ host });
    const request = newRequest();
    const handle = await backend.acquire(request);
    expect((await run(handle, bash("echo $((6*7))"))).stdout).toBe("42\n");
    await handle.files.write("/workspace/marker", Buffer.from("kept"));
    for (const socket of sockets) socket.destroy();
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
