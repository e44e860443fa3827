import { execFileSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startSshServer, type SshServer } from "../../../../../test/kit/services/ssh-server.ts";
import { smallVolume } from "../../../../../test/kit/small-volume.ts";
import { bash, errorCode, eventually, run } from "../contract/programs.ts";
import { describeServices, Lab, requestFor } from "./fixture.ts";
import { docker, hostState } from "./host-state.ts";

const MEBIBYTE = 1 << 20;
const TOOLS = ["sh", "tar", "gzip", "flock", "setsid", "sha256sum", "mkdir", "rm", "cat", "tail", "env", "find"];

describeServices("compose-ssh, when something is wrong", (services) => {
  const lab = new Lab(services);
  let server: SshServer;
  const { DOCKER_HOST: _, ...environment } = services.docker.env;
  beforeAll(async () => {
    server = await startSshServer(environment);
  });
  afterAll(() => server.stop());

  const place = async (
    more: Record<string, string> = {},
  ): Promise<{ base: string; placement: Record<string, string> }> => {
    const base = join(await lab.folder(), "base");
    const place = { ...server.placement, docker_host: services.docker.host, base_dir: base };
    return { base, placement: { ...place, ...more } };
  };

  /** The error of an acquisition, which must leave nothing on the host, and nothing here once the backend is closed. */
  async function refusal(
    repo: string,
    { base, placement }: { base: string; placement: Record<string, string> },
    options: Parameters<ReturnType<Lab["backend"]>["acquire"]>[1] = {},
  ): Promise<SandboxerError> {
    const sockets = await lab.folder();
    const backend = lab.backend(sockets);
    const thrown: unknown = await backend.acquire(requestFor(repo, placement), options).then(
      () => "no error",
      (error: unknown) => error,
    );
    expect(await hostState(services, base)).toEqual([]);
    await backend.close();
    expect(readdirSync(sockets)).toEqual([]);
    expect(thrown).toBeInstanceOf(SandboxerError);
    return thrown as SandboxerError;
  }

  test("an unknown host key is refused", async () => {
    const empty = join(await lab.folder(), "known_hosts");
    await writeFile(empty, "");
    const error = await refusal(await lab.repository(), await place({ known_hosts_file: empty }));
    expect(error).toMatchObject({
      code: "backend_unavailable",
      message: expect.stringContaining("has a host key that this machine does not know"),
    });
    expect(error.hint).toContain(`ssh-keyscan -p ${server.port} 127.0.0.1 >> ${empty}`);
  });

  test("a changed host key is refused", async () => {
    const wrong = join(await lab.folder(), "known_hosts");
    const key = join(await lab.folder(), "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    const [type, text] = execFileSync("cat", [`${key}.pub`])
      .toString()
      .split(" ");
    await writeFile(wrong, `[127.0.0.1]:${server.port} ${type} ${text}\n`);
    const error = await refusal(await lab.repository(), await place({ known_hosts_file: wrong }));
    expect(error).toMatchObject({
      code: "backend_unavailable",
      message: expect.stringContaining("a host key that differs from the known one"),
    });
  });

  test("a key that the host does not accept is reported", async () => {
    const key = join(await lab.folder(), "key");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    const error = await refusal(await lab.repository(), await place({ identity_file: key }));
    expect(error).toMatchObject({
      code: "backend_unavailable",
      message: expect.stringContaining("accepts none of this machine's ssh keys"),
    });
    expect(error.hint).toContain("authorized_keys");
  });

  test("a port without a listener is reported", async () => {
    const gone = await startSshServer({ PATH: "/bin" });
    await gone.stop();
    const error = await refusal(await lab.repository(), await place({ port: String(gone.port) }));
    expect(error).toMatchObject({ code: "backend_unavailable", message: expect.stringContaining("refuses") });
  });

  test("a host without docker, or whose engine does not answer, is reported", async () => {
    const bin = join(await lab.folder(), "bin");
    mkdirSync(bin);
    for (const tool of TOOLS) symlinkSync(execFileSync("which", [tool]).toString().trim(), join(bin, tool));
    const bare = await startSshServer({ PATH: bin });
    try {
      const error = await refusal(await lab.repository(), await place(bare.placement));
      expect(error).toMatchObject({ code: "backend_unavailable", message: expect.stringContaining("has no docker") });
    } finally {
      await bare.stop();
    }
    const down = await refusal(await lab.repository(), await place({ docker_host: "unix:///nowhere/docker.sock" }));
    expect(down).toMatchObject({ code: "backend_unavailable", message: expect.stringContaining("does not answer") });
  });

  test("a missing or broken compose file, and one without the service, are reported", async () => {
    const bare = await lab.repository();
    const missing = await refusal(bare, await place({ compose_file: "other.yaml" }));
    expect(missing).toMatchObject({ code: "bad_request", message: expect.stringContaining("other.yaml") });
    const notYaml = await refusal(await lab.repository({ "compose.yaml": "services: [" }), await place());
    expect(notYaml).toMatchObject({ code: "bad_request", message: expect.stringContaining("broken") });
    const wrong = await lab.repository({ "compose.yaml": lab.composeFile({ bogus_key: 1 }) });
    const broken = await refusal(wrong, await place());
    expect(broken).toMatchObject({ code: "bad_request", message: expect.stringContaining("bogus_key") });
    const service = await refusal(bare, await place({ service: "nobody" }));
    expect(service).toMatchObject({ code: "bad_request", message: expect.stringContaining("nobody") });
  });

  test("a service that ends at once, and a missing image, are reported", async () => {
    const dying = await lab.repository({
      "compose.yaml": lab.composeFile({ command: ["sh", "-c", "echo oh no; exit 3"] }),
    });
    const died = await refusal(dying, await place());
    expect(died).toMatchObject({ code: "sandbox_failed", message: expect.stringContaining("oh no") });
    const without = await lab.repository({ "compose.yaml": lab.composeFile({ image: "no-such-image" }) });
    expect(await refusal(without, await place())).toMatchObject({ code: "backend_unavailable" });
  });

  test("a repository outside of the allowed folders, and invalid placements, are refused", async () => {
    const at = await place();
    expect(await refusal("/etc", at)).toMatchObject({ code: "permission_denied" });
    const repo = await lab.repository();
    for (const [key, value] of [
      ["base_dir", "/"],
      ["base_dir", "/tmp/../etc"],
      ["base_dir", "relative"],
      ["host", "-oProxyCommand=touch"],
      ["compose_file", "../../etc/passwd"],
      ["nonsense", "x"],
    ] as const) {
      const error = await refusal(repo, { ...at, placement: { ...at.placement, [key]: value } });
      expect(error).toMatchObject({ code: "bad_request", message: expect.stringContaining(key) });
    }
  });

  test("a full disk is reported for a workspace and for a snapshot, which the sandbox survives", async (context) => {
    const volume = smallVolume(6 * MEBIBYTE);
    if ("skipped" in volume) {
      console.log(`skipped: ${volume.skipped}`);
      return context.skip(volume.skipped);
    }
    // A server sees only volumes that existed before it.
    const small = await startSshServer(environment);
    try {
      const base = join(volume.folder, "base");
      await mkdir(base);
      const { placement } = await place({ ...small.placement, base_dir: base });
      const big = await lab.repository();
      await writeFile(join(big, "big"), randomBytes(8 * MEBIBYTE));
      expect(await refusal(big, { base, placement })).toMatchObject({ code: "no_space" });

      const repo = await lab.repository();
      await writeFile(join(repo, "half"), randomBytes(4 * MEBIBYTE));
      const handle = await lab.backend().acquire(requestFor(repo, placement));
      const full = await hostState(services, base);
      const saving = handle.snapshot(await lab.folder(), { mode: "filesystem", leaveRunning: true });
      expect(await errorCode(saving)).toBe("no_space");
      expect(await hostState(services, base)).toEqual(full);
      expect((await run(handle, bash("echo alive"))).stdout).toBe("alive\n");
      await handle.destroy();
    } finally {
      await small.stop();
      volume.remove();
    }
  });

  test("the leftovers of a dead server are removed by the next one, and nothing else is", async () => {
    const { base, placement } = await place();
    const [dead, young, complete] = [randomUUID(), randomUUID(), randomUUID()];
    const sandboxes = join(base, "sandboxes");
    await mkdir(sandboxes, { recursive: true });
    await mkdir(join(base, "snapshots"));
    const longAgo = new Date(Date.now() - 2 * 3_600_000);
    for (const id of [dead, young, complete]) {
      await mkdir(join(sandboxes, id));
      await writeFile(join(sandboxes, `${id}.lock`), "");
    }
    const part = join(base, "snapshots", "x.tar.gz.part");
    await writeFile(part, "half");
    await writeFile(join(sandboxes, `${complete}.json`), "{}");
    for (const path of [join(sandboxes, `${dead}.lock`), join(sandboxes, `${complete}.lock`), part]) {
      await utimes(path, longAgo, longAgo);
    }
    const project = ["--label", `com.docker.compose.project=sandboxer-${dead}`];
    await docker(services, "volume", "create", ...project);
    const handle = await lab.backend().acquire(requestFor(await lab.repository(), placement));
    await handle.destroy();
    const left = [young, `${young}.lock`, complete, `${complete}.lock`, `${complete}.json`];
    expect((await hostState(services, base)).toSorted()).toEqual(left.map((name) => `sandboxes/${name}`).toSorted());
  });

  test("a connection that is cut during the transfer leaves nothing", async () => {
    const repo = await lab.repository();
    await writeFile(join(repo, "big"), Buffer.alloc(64 * MEBIBYTE));
    let cutting: Promise<void> | undefined;
    const onProgress = ({ doneBytes = 0 }): void => {
      if (doneBytes > 4 * MEBIBYTE) cutting ??= server.cut();
    };
    const error = await refusal(repo, await place(), { onProgress });
    expect(cutting).toBeDefined();
    expect(error).toMatchObject({ code: "backend_unavailable", message: expect.stringContaining("was lost") });
  });

  test("a connection that is cut while the project starts leaves nothing", async () => {
    // `up` waits for the other service to become healthy, which never happens.
    const app = JSON.parse(lab.composeFile()) as { services: { app: Record<string, unknown> } };
    const healthcheck = { test: ["CMD", "false"], interval: "60s", retries: 100, start_period: "600s" };
    const slow = { ...app.services.app, healthcheck };
    const waiting = { ...app.services.app, depends_on: { slow: { condition: "service_healthy" } } };
    const repo = await lab.repository({ "compose.yaml": JSON.stringify({ services: { app: waiting, slow } }) });
    const at = await place();
    const failing = refusal(repo, at);
    const slowRuns = ["ps", "-q", "--filter", "label=com.docker.compose.service=slow"];
    await eventually(async () => (await docker(services, ...slowRuns)) !== "", "the service that up waits for");
    await server.cut();
    expect(await failing).toMatchObject({ code: "backend_unavailable", message: expect.stringContaining("was lost") });
  });

  test("an acquisition that is cancelled in the middle leaves nothing", async () => {
    const repo = await lab.repository();
    await writeFile(join(repo, "big"), Buffer.alloc(64 * MEBIBYTE));
    const controller = new AbortController();
    const onProgress = ({ doneBytes = 0 }): void => {
      if (doneBytes > 4 * MEBIBYTE) controller.abort(new SandboxerError("timeout", "called off"));
    };
    const error = await refusal(repo, await place(), { signal: controller.signal, onProgress });
    expect(error.message).toBe("called off");
  });

  test("a connection that is cut during a snapshot or a command is an error", async () => {
    const { base, placement } = await place();
    const repo = await lab.repository();
    await writeFile(join(repo, "big"), randomBytes(12 * MEBIBYTE));
    const handle = await lab.backend().acquire(requestFor(repo, placement));
    const before = await hostState(services, base);
    const into = await lab.folder();
    let cutting: Promise<void> | undefined;
    const onProgress = ({ phase, doneBytes = 0 }: { phase: string; doneBytes?: number }): void => {
      if (phase === "fetching" && doneBytes > MEBIBYTE) cutting ??= server.cut();
    };
    const saving = handle.snapshot(into, { mode: "filesystem", leaveRunning: true, onProgress });
    expect(await errorCode(saving)).toBe("backend_unavailable");
    expect(readdirSync(into)).toEqual([]);
    expect(await hostState(services, base)).toEqual(before);

    const process = await handle.exec({ key: "k", argv: bash("echo one; sleep 300") });
    const output = process.output()[Symbol.asyncIterator]();
    expect(Buffer.from((await output.next()).value?.data ?? []).toString()).toBe("one\n");
    await server.cut();
    expect(await errorCode(process.exited)).toBe("backend_unavailable");
    expect(await errorCode(output.next())).toBe("backend_unavailable");
    expect((await run(handle, bash("echo again"))).stdout).toBe("again\n");
    await handle.destroy();
    expect(await hostState(services, base)).toEqual([]);
  });
});
