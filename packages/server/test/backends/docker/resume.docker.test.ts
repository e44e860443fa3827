import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";
import { runProcess } from "./support/run-process.ts";

describeDocker("resume across processes", (service) => {
  const lab = new DockerLab(service);
  const order = (key: string) => ({ service, directory: lab.directory, key });

  test("the next process reads files that the first wrote before its orderly stop", async () => {
    const key = randomUUID();
    const first = await runProcess({ ...order(key), write: "from the first", end: "close" });
    expect(first).toMatchObject({ tier: "fresh", marker: null });
    const [container = ""] = await lab.containersOf(key);
    expect(await lab.state(container)).toBe("exited");

    const second = await runProcess({ ...order(key), write: "from the second", end: "close" });
    const { sandboxId } = first;
    expect(second).toMatchObject({ tier: "resumed", sandboxId, marker: "from the first", processes: [] });
    const third = await runProcess({ ...order(key), end: "close" });
    expect(third).toMatchObject({ tier: "resumed", marker: "from the second" });
    expect(await lab.containersOf(key)).toEqual([container]);
  });

  test("a sandbox keeps running when its server is killed, and the next server takes it over with its output", async () => {
    const key = randomUUID();
    const script = "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done";
    await runProcess({ ...order(key), write: "kept", start: script, end: "stay" });
    const [container = ""] = await lab.containersOf(key);
    expect(await lab.state(container)).toBe("running");
    await lab.docker("exec", container, "bash", "-c", "while pgrep -f 'echo [$]i' > /dev/null; do sleep 0.05; done");

    const next = await runProcess({ ...order(key), end: "stay" });
    expect(next).toMatchObject({ tier: "resumed", marker: "kept", processes: ["work"], work: "1\n2\n3\n4\n5\n" });
    expect(await lab.containersOf(key)).toEqual([container]);
  });

  test("a sandbox that was frozen when its server was killed continues on the next one", async () => {
    const key = randomUUID();
    await runProcess({ ...order(key), write: "paused", start: "sleep 300", pause: true, end: "stay" });
    const [container = ""] = await lab.containersOf(key);
    expect(await lab.state(container)).toBe("paused");
    const next = await runProcess({ ...order(key), end: "close" });
    expect(next).toMatchObject({ tier: "resumed", marker: "paused", processes: ["work"] });
  });

  test("another spec creates another sandbox, and the old one is removed", async () => {
    const key = randomUUID();
    await runProcess({ ...order(key), write: "old", end: "close" });
    const [old = ""] = await lab.containersOf(key);
    const next = await runProcess({ ...order(key), specHash: "another", end: "close" });
    expect(next).toMatchObject({ tier: "fresh", marker: null });
    const left = await lab.containersOf(key);
    expect(left).toHaveLength(1);
    expect(left).not.toContain(old);
  });
});
