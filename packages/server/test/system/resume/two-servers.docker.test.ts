import type { SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { describeDocker } from "../../backends/docker/support/describe-docker.ts";
import { DockerLab, lines } from "../../backends/docker/support/docker-lab.ts";
import { HOST_IMAGE_PATH } from "../../../../../test/kit/services/host-image.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { ServerProcess } from "../../../../../test/kit/server/server-process.ts";
import { ResumeServer } from "./support/resume-lab.ts";

const TIMEOUT_MS = 120_000;

/** Each server has a data directory of its own, as on two machines; the engine and the store are shared. */
describeDocker("one sandbox, two servers", (service) => {
  const lab = new DockerLab(service);
  const place = ["--docker-host", service.host, "--docker-image", service.image, "--docker-mounts", "/usr"];
  const runFlags = ["--env", `PATH=${HOST_IMAGE_PATH}`, "--input", "mounts=/usr:/usr:ro"];

  async function pair(): Promise<[ResumeServer, ResumeServer]> {
    const store = await temporaryFolder();
    const start = async (): Promise<ResumeServer> => {
      const flags = ["--backend", "docker", ...place, "--lease-ttl", "2s"];
      const server = await ServerProcess.start({ store, dataHome: await temporaryFolder(), flags });
      return new ResumeServer(server, runFlags);
    };
    return [await start(), await start()];
  }

  /** A process that counts in the background, and the container that it is in. */
  async function counting(server: ResumeServer): Promise<{ id: string; container: string; epoch: number | null }> {
    await server.run("true");
    const { id, epoch } = await server.only();
    const body = { shell: "while :; do echo >> ticks; sleep 0.1; done", detach: true };
    expect((await server.http.call("POST", `/v1/sandboxes/${id}/exec`, body)).status).toBeLessThan(300);
    const [container = ""] = await containersOf(id);
    expect(container).not.toBe("");
    return { id, container, epoch };
  }

  /** Whichever installation made them. */
  const containersOf = async (id: string): Promise<string[]> =>
    lines(await lab.docker("ps", "--all", "--quiet", "--no-trunc", "--filter", `label=sandboxer.sandbox-id=${id}`));

  const ticks = async (server: ResumeServer): Promise<number> => Number(await server.run("wc -l < ticks"));

  async function expectCounting(server: ResumeServer): Promise<void> {
    const before = await ticks(server);
    await expect.poll(() => ticks(server), { timeout: 30_000 }).toBeGreaterThan(before);
  }

  async function resume(server: ResumeServer, id: string): Promise<SandboxRecord> {
    const { status, body } = await server.http.call<SandboxRecord>("POST", `/v1/sandboxes/${id}/resume`);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body;
  }

  test("it is handed off while it runs, and its processes keep running", { timeout: TIMEOUT_MS }, async () => {
    const [one, two] = await pair();
    const { id, container } = await counting(one);
    const moved = await resume(two, id);
    expect(moved).toMatchObject({ id, state: "running", epoch: 2, owner: { here: true } });
    await expectCounting(two);
    expect(await containersOf(id)).toEqual([container]);
    // The end of the first server is nothing to it, nor is what that finds when it starts again.
    expect(await one.stop()).toBe(0);
    expect(await lab.state(container)).toBe("running");
    await expectCounting(two);
    await two.destroy(id);
    expect(await containersOf(id)).toEqual([]);
    expect(await two.stop()).toBe(0);
  });

  test("the other server takes it over from a killed one, with its data", { timeout: TIMEOUT_MS }, async () => {
    const [one, two] = await pair();
    await one.run("echo unsaved > marker");
    const { id } = await one.only();
    await one.kill();
    const taken = await resume(two, id);
    expect(taken).toMatchObject({ id, state: "running", epoch: 2 });
    expect(await two.run("cat marker")).toBe("unsaved\n");
    await two.destroy(id);
    expect(await two.stop()).toBe(0);
  });

  test("a server that continues after its lease has expired releases it", { timeout: TIMEOUT_MS }, async () => {
    const [one, two] = await pair();
    const { id, container } = await counting(one);
    one.process.suspend();
    const taken = await resume(two, id);
    expect(taken.epoch).toBe(2);
    await two.run("echo mine > marker");
    one.process.wake();
    await expect
      .poll(async () => (await one.http.get(id)).owner, { timeout: 30_000 })
      .toMatchObject({ here: false, instance_id: taken.owner?.instance_id });
    expect(await lab.state(container)).toBe("running");
    expect(await two.run("cat marker")).toBe("mine\n");
    expect(await one.stop()).toBe(0);
    expect(await two.run("cat marker")).toBe("mine\n");
    await two.destroy(id);
    expect(await two.stop()).toBe(0);
  });
});
