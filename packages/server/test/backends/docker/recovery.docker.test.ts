import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { recoverDocker } from "../../../src/backends/docker/index.ts";
import { Label, newContainerName } from "../../../src/backends/docker/labels.ts";
import { newRequest } from "../contract/context.ts";
import type { Fate } from "../../../src/backends/instance-folder.ts";
import { delay, eventually, readText } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab, lines } from "./support/docker-lab.ts";
import { keyed } from "./support/open-docker.ts";
import { runProcess } from "./support/run-process.ts";

const DOOMED = new URL("./support/doomed-process.ts", import.meta.url).pathname;

describeDocker("the leftovers of dead servers", (service) => {
  const lab = new DockerLab(service);
  const recover = (fate: Fate = "free") =>
    recoverDocker({ host: service.host, directory: lab.directory, owner: lab.directory }, async () => fate);

  test("its running sandboxes are stopped, not removed; those of live servers keep running", async () => {
    const living = await lab.open();
    const handle = await living.acquire(newRequest());
    const key = randomUUID();
    await runProcess({ service, directory: lab.directory, key, write: "left", start: "sleep 300", end: "stay" });
    const [left = ""] = await lab.containersOf(key);
    const dead = await recover();
    expect(dead).toHaveLength(1);
    expect(await lab.state(left)).toBe("exited");
    await handle.ping();
    const resumed = await living.tryResume(keyed(key, lab.directory));
    expect(await readText(resumed!, "/workspace/marker")).toBe("left");

    // It belongs to the live server now.
    expect(await recover()).toEqual([]);
    await resumed!.ping();
    await resumed!.destroy();
    await handle.destroy();
  });

  test("a sandbox that another server owns by its head is left alone, and deleted ones are removed", async () => {
    const [held, destroyed] = [randomUUID(), randomUUID()];
    for (const key of [held, destroyed])
      await runProcess({ service, directory: lab.directory, key, start: "sleep 300", end: "stay" });
    const [ofOther = ""] = await lab.containersOf(held);
    const [orphan = ""] = await lab.containersOf(destroyed);
    const orphanId = await lab.docker("inspect", "--format", `{{index .Config.Labels "${Label.sandboxId}"}}`, orphan);
    const fateOf = async (sandboxId: string): Promise<Fate> => (sandboxId === orphanId ? "destroyed" : "held");
    await recoverDocker({ host: service.host, directory: lab.directory, owner: lab.directory }, fateOf);
    expect(await lab.state(ofOther)).toBe("running");
    expect(await lab.containersOf(destroyed)).toEqual([]);
    await lab.docker("rm", "--force", ofOther);
  });

  test("half-created and expired containers and images of interrupted saves are removed; those of others stay", async () => {
    const key = randomUUID();
    await runProcess({ service, directory: lab.directory, key, end: "stay" });
    const [running = ""] = await lab.containersOf(key);
    const name = await lab.docker("inspect", "--format", "{{.Name}}", running);
    const instanceId = name.replace(/^\/sandboxer-(.*)-[0-9a-f]{12}$/, "$1");
    const make = (owner: string, instance: string): Promise<string> =>
      lab.docker(
        "create",
        "--name",
        newContainerName(instance),
        "--label",
        `${Label.owner}=${owner}`,
        service.image,
        "x",
      );
    const halfMade = await make(lab.directory, instanceId);
    const ofTheForgotten = await make(lab.directory, randomUUID());
    const ofAnotherOwner = await make("somebody else", instanceId);
    const image = `sandboxer-snapshot:${randomUUID()}`;
    await lab.docker("commit", "--change", `LABEL ${Label.snapshot}=${instanceId}`, halfMade, image);

    const backend = await lab.open();
    const expired = randomUUID();
    await (await backend.acquire(keyed(expired, lab.directory, { idleTtlMs: 0 }))).stop();

    expect(await recover()).toEqual([instanceId]);
    expect(await lab.state(running)).toBe("exited");
    expect(await lab.containersOf(expired)).toEqual([]);
    const left = lines(await lab.docker("ps", "-aq", "--no-trunc"));
    for (const gone of [halfMade, ofTheForgotten]) expect(left).not.toContain(gone);
    expect(left).toEqual(expect.arrayContaining([running, ofAnotherOwner]));
    expect(await lab.docker("images", "-q", image)).toBe("");
    await lab.docker("rm", ofAnotherOwner, running);
  });

  test("the next server cleans up after one that was killed at any moment", async () => {
    const instances = (): Promise<string[]> => readdir(join(lab.directory, "instances"));
    const living = await instances();
    for (let round = 0; round < 8; round++) {
      const argument = JSON.stringify({ service, directory: lab.directory });
      const child = spawn(process.execPath, [DOOMED, argument], { stdio: ["ignore", "pipe", "inherit"] });
      const exited = once(child, "exit");
      await once(child.stdout, "data");
      await delay(Math.random() * 1_200);
      child.kill("SIGKILL");
      await exited;
    }
    // The engine may finish a last request after the first check.
    const settled = async (): Promise<boolean> => {
      await recover();
      const unsettled = await lab.containers("status=created", "status=running", "status=paused");
      return unsettled.length === 0;
    };
    await eventually(settled, "the end of what was left");
    const left = await lab.containers();
    if (left.length > 0) await lab.docker("rm", ...left);
    await recover();
    expect(await lab.snapshotImages()).toEqual([]);
    expect(await instances()).toEqual(living);
  });
});
