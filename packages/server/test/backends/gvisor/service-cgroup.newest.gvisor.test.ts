import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

/** The hierarchies that systemd may watch its services in. */
const hierarchy = ["/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"].find((folder) => {
  try {
    accessSync(join(folder, "cgroup.procs"), constants.W_OK);
    return true;
  } catch {
    return false;
  }
});

describe.skipIf(whyNoEngine() !== undefined || hierarchy === undefined)("a server that systemd runs", () => {
  /** A server in the cgroup of a service. */
  async function startService() {
    const folder = join(hierarchy ?? "", `sandboxer-test-${randomUUID()}.service`);
    mkdirSync(folder);
    onTestFinished(() => rmdirSync(folder));
    const store = join(await temporaryFolder(), "store");
    const enter = ["sh", "-c", `echo $$ > ${folder}/cgroup.procs; exec "$@"`, "sh"];
    const server = await ServerProcess.start({ store, prefix: enter });
    const processes = (): number[] => readFileSync(join(folder, "cgroup.procs"), "utf8").trim().split("\n").map(Number);
    return { server, store, processes };
  }

  test("saves its sandboxes when every process of the service is signalled", async () => {
    const { server, store, processes } = await startService();
    const created = [
      await server.create({ enable_checkpoint: true }),
      await server.create({ enable_checkpoint: true }),
    ];
    await created[0]?.client.run("bash", "sleep 600").until("EXECUTION_RUNNING");
    // As `systemctl stop` does with KillMode=control-group, the default, and SendSIGHUP=yes.
    const all = processes();
    for (const signal of ["SIGTERM", "SIGCONT", "SIGHUP"] as const) for (const pid of all) process.kill(pid, signal);
    expect(await server.exited).toEqual({ code: 0, signal: null });
    for (const { id } of created) {
      const head: unknown = JSON.parse(readFileSync(join(store, id, "metadata.json"), "utf8"));
      expect(head).toMatchObject({ owner: null, checkpoint: { kind: "gvisor-checkpoint" } });
    }
    expect(await server.engineProcesses()).toEqual([]);
  });

  test("leaves no cgroup behind, not even after kill -9", async () => {
    const { server } = await startService();
    await server.create();
    const [instance = ""] = await server.runDirectories();
    const cgroup = join(hierarchy ?? "", "sandboxer", instance);
    expect(existsSync(cgroup)).toBe(true);
    await server.killHard();
    const next = await ServerProcess.start({ dataHome: server.dataHome });
    expect(existsSync(cgroup)).toBe(false);
    expect(await next.engineProcesses()).toEqual([]);
  });
});
