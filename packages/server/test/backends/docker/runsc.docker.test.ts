import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { recoverDocker } from "../../../src/backends/docker/index.ts";
import { newContainerName } from "../../../src/backends/docker/labels.ts";
import { newRequest } from "../contract/context.ts";
import { bash, Follower, python, readText, run, start } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";

describeDocker("the runtime runsc", (service) => {
  const lab = new DockerLab(service);
  const missing = "SANDBOXER_TEST_RUNSC names no runsc";

  test("the same agent serves commands, terminals and files in gVisor, and files survive a stop", async (context) => {
    if (service.runsc === undefined) return context.skip(missing);
    const backend = await lab.open({ runtime: service.runsc.keeping });
    expect((await backend.probe()).details).toMatchObject({ runtime: service.runsc.keeping });
    const request = newRequest();
    const handle = await backend.acquire(request);
    expect((await run(handle, bash("dmesg | head -1"))).stdout).toContain("gVisor");
    expect((await run(handle, python("print(6 * 7)"))).stdout).toBe("42\n");
    // gVisor of 2024 shows it to every user.
    expect((await run(handle, bash("tr '\\0' '\\n' < /proc/1/environ"))).stdout).not.toContain("RESYNC");
    const terminal = await start(handle, bash("stty size; read line; echo got $line"), {
      pty: { rows: 30, columns: 90 },
    });
    const output = new Follower(terminal);
    await output.until("30 90");
    await terminal.writeStdin(Buffer.from("it\n"));
    await output.until("got it");
    await handle.freeze();
    await handle.thaw();
    await handle.files.write("/workspace/marker", Buffer.from("kept"));
    await handle.stop();
    const again = await backend.tryResume(request);
    expect(await readText(again!, "/workspace/marker")).toBe("kept");
    const snapshot = await again!.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
    await again!.destroy();
    const restored = await backend.acquireFromSnapshot(newRequest(), snapshot);
    expect(await readText(restored, "/workspace/marker")).toBe("kept");
    await restored.destroy();
  });

  test("a sandbox in gVisor is taken over while it runs", async (context) => {
    if (service.runsc === undefined) return context.skip(missing);
    const [first, second] = [
      await lab.open({ runtime: service.runsc.keeping }),
      await lab.open({ runtime: service.runsc.keeping }),
    ];
    const request = newRequest();
    const handle = await first.acquire(request);
    await start(handle, bash("sleep 300"), { key: "sleeper" });
    const joined = await second.tryResume(request);
    expect((await joined!.processes()).map(({ key }) => key)).toEqual(["sleeper"]);
    await joined!.destroy();
  });

  test("a frozen sandbox that accepts no signal can still be ended, by its server and by the next", async (context) => {
    if (service.runsc === undefined) return context.skip(missing);
    const backend = await lab.open({ runtime: service.runsc.keeping });
    const [destroyed, left] = [await backend.acquire(newRequest()), await backend.acquire(newRequest())];
    const [container = ""] = await lab.containers(`label=sandboxer.sandbox-id=${left.sandboxId}`);
    await Promise.all([destroyed.freeze(), left.freeze()]);
    await destroyed.destroy();
    expect(await lab.containers()).toEqual([container]);
    // Its server is dead.
    await lab.docker("rename", container, newContainerName(randomUUID()));
    await recoverDocker({ host: service.host, directory: lab.directory, owner: lab.directory }, async () => "free");
    expect(await lab.state(container)).toBe("exited");
    await lab.docker("rm", container);
  });

  test("a runtime that hides written files is refused with the missing setting, and nothing is left", async (context) => {
    if (service.runsc === undefined) return context.skip(missing);
    const backend = await lab.open({ runtime: service.runsc.losing });
    const asked = backend.acquire(newRequest());
    await expect(asked).rejects.toMatchObject({
      code: "backend_unavailable",
      hint: expect.stringContaining("--overlay2=none"),
    });
    expect(await lab.containers()).toEqual([]);
  });

  test("a missing runtime is reported", async () => {
    const backend = await lab.open({ runtime: "no-such-runtime" });
    expect(await backend.probe()).toMatchObject({ ok: false, summary: expect.stringContaining("no-such-runtime") });
    const asked = backend.acquire(newRequest());
    await expect(asked).rejects.toMatchObject({
      code: "backend_unavailable",
      hint: expect.stringContaining("daemon.json"),
    });
    expect(await lab.containers()).toEqual([]);
  });
});
