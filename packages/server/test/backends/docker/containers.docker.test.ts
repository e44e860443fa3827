import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { SandboxBackend, SandboxHandle } from "../../../src/backends/backend.ts";
import { newRequest } from "../contract/context.ts";
import { bash, errorCode, eventually, python, readText, run } from "../contract/programs.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";

const MIB = 1024 * 1024;
const EAGAIN = 11;
/** Forks until it is refused, prints why, and ends with all children. */
const FORKS = `
import os, time
try:
    for _ in range(40):
        if os.fork() == 0:
            time.sleep(60)
except OSError as error:
    print(error.errno)
os.killpg(0, 9)
`;

describeDocker("the parts of a container", (service) => {
  const lab = new DockerLab(service);
  let backend: SandboxBackend;
  let handle: SandboxHandle;
  beforeAll(async () => {
    backend = await lab.open();
    handle = await backend.acquire(newRequest());
  });
  const out = async (code: string, inside = handle): Promise<string> => (await run(inside, bash(code))).stdout.trim();

  test("code inside is the user 1000 without capabilities, network, or access to the agent", async () => {
    expect(await out("id -u; id -g; id -G; pwd; echo $HOME")).toBe("1000\n1000\n1000\n/workspace\n/workspace");
    const status = await out("grep -E 'Cap(Inh|Prm|Eff|Amb)|NoNewPrivs' /proc/self/status");
    expect(status.match(/0{16}/g)).toHaveLength(4);
    expect(status).toContain("NoNewPrivs:\t1");
    expect(await out("ls /sys/class/net")).toBe("lo");
    expect(await out("cat /proc/1/environ /proc/1/fd/0 2>&1; kill -9 1 2>&1; echo $?")).toMatch(
      /denied.*not permitted.*1$/s,
    );
    expect(await out("env")).not.toContain("RESYNC");
    expect(await out("tr '\\0' ' ' < /proc/1/cmdline")).toBe("/.sandboxer/sandboxer-agent");
    await handle.ping();
  });

  test("code inside may be another user, and root only if the server allows it", async () => {
    const as = async (user: string, inside = handle): Promise<string> =>
      (await run(inside, bash("id -u; id -g; grep CapEff /proc/self/status"), { user })).stdout;
    expect(await as("4242:77")).toMatch(/^4242\n77\nCapEff:\t0{16}\n$/);
    for (const user of ["0", "0:0"]) expect(await errorCode(as(user))).toBe("permission_denied");
    const allowing = await lab.open({ rootInside: true });
    const own = await allowing.acquire(newRequest({ user: "1234" }));
    // CAP_SYS_ADMIN is bit 21.
    expect(await as("0", own)).toMatch(/^0\n0\nCapEff:\t00000000a80405fb\n$/);
    await own.files.write("/workspace/mine", Buffer.from("1"));
    expect(await own.files.stat("/workspace/mine")).toMatchObject({ uid: 1234 });
    await own.destroy();
  });

  test("PID 1 gets no variables; those of the sandbox are for its programs", async () => {
    const own = await backend.acquire(newRequest({ env: { API_TOKEN: "hunter2" } }));
    expect(await out("echo $API_TOKEN", own)).toBe("hunter2");
    const [container = ""] = await lab.containers(`label=sandboxer.sandbox-id=${own.sandboxId}`);
    const config = await lab.docker("inspect", "--format", "{{json .Config.Env}}", container);
    expect(config).not.toMatch(/hunter2|RESYNC/);
    await own.destroy();
  });

  test("code inside can write to the root folder", async () => {
    expect(await out("echo hello > /test.txt; cat /test.txt")).toBe("hello");
  });

  test("the container's labels name its owner", async () => {
    const request = { ...newRequest(), identity: { key: "k", specHash: "h", owner: lab.directory, idleTtlMs: 5 } };
    const labelled = await backend.acquire(request);
    const [container = ""] = await lab.containersOf("k");
    const labels: unknown = JSON.parse(await lab.docker("inspect", "--format", "{{json .Config.Labels}}", container));
    expect(labels).toEqual({
      "sandboxer.key": "k",
      "sandboxer.resync-token": expect.stringMatching(/^[0-9a-f]{32}$/),
      "sandboxer.spec-hash": "h",
      "sandboxer.owner": lab.directory,
      "sandboxer.sandbox-id": request.sandboxId,
      "sandboxer.idle-ttl-ms": "5",
      "sandboxer.generation": "0",
    });
    await labelled.destroy();
  });

  test("limits are enforced: too much memory ends the process, too many processes are refused", async () => {
    const limited = await backend.acquire(
      newRequest({ resources: { memoryBytes: 64 * MIB, processes: 20, cpus: 0.5, fileBytes: MIB } }),
    );
    const hungry = await run(limited, python("b = bytearray(200 << 20)\nprint(len(b))"));
    expect(hungry.exit).toMatchObject({ signal: 9 });
    expect(hungry.stdout).toBe("");
    await limited.ping();
    const forks = await run(limited, python(FORKS));
    expect(forks.stdout).toBe(`${EAGAIN}\n`);
    const large = await run(limited, bash("head -c 3M /dev/zero > /workspace/large; stat -c %s /workspace/large"));
    expect(large.stdout).toBe(`${MIB}\n`);
    await limited.destroy();
    expect(await errorCode(backend.acquire(newRequest({ resources: { memoryBytes: MIB } })))).toBe("bad_request");
  });

  test("a disk limit that the storage driver does not support is refused, and nothing is left", async () => {
    const before = await lab.containers();
    const asked = backend.acquire(newRequest({ resources: { diskBytes: 100 * MIB } }));
    expect(await errorCode(asked)).toBe("not_supported");
    expect(await lab.containers()).toEqual(before);
  });

  test("only paths that the operator allows can be mounted, and written only if he allows it", async () => {
    const folder = await lab.folder();
    await mkdir(join(folder, "shared", "below"), { recursive: true });
    await chmod(folder, 0o755);
    await chmod(join(folder, "shared", "below"), 0o777);
    const shared = join(folder, "shared");
    await writeFile(join(shared, "given"), "from outside");
    const mount = (allowed: boolean, text: string) =>
      lab
        .open({
          allowedMounts: [
            { source: "/usr", writable: false },
            { source: shared, writable: allowed },
          ],
        })
        .then((opened) => opened.acquire(newRequest({ inputs: { mounts: `/usr:/usr,${text}` } })));
    for (const text of [
      `${shared}/below:/data:ro`,
      `${shared}:/data:rw`,
      "/etc:/data:ro",
      `${shared}/../shared:/data`,
    ]) {
      expect(await errorCode(mount(false, text))).toBe("permission_denied");
    }
    for (const text of [shared, "shared:/data", `${shared}:/`, `${shared}:/data:rwx`, `${shared}:data:ro`]) {
      expect(await errorCode(mount(true, text))).toBe("bad_request");
    }
    const readOnly = await mount(false, `${shared}:/data`);
    expect(await out("cat /data/given; touch /data/below/new 2>&1 || true", readOnly)).toMatch(
      /^from outside.*Read-only/s,
    );
    const writable = await mount(true, `${shared}:/data:rw`);
    await run(writable, bash("echo from inside > /data/below/new"));
    expect(await readFile(join(shared, "below/new"), "utf8")).toBe("from inside\n");
    await Promise.all([readOnly.destroy(), writable.destroy()]);
  });

  test("a sandbox with a network gets the operator's network, if there is one", async () => {
    // Otherwise the server's proxy is the only way out.
    for (const without of [backend, await lab.open({ network: "no-such-network" })]) {
      const proxied = await without.acquire(newRequest({ network: "open" }));
      expect(await out("ls /sys/class/net", proxied)).toBe("lo");
      await proxied.destroy();
    }
    const networked = await lab.open({ network: service.network });
    const connected = await networked.acquire(newRequest({ network: "open" }));
    expect(await out("ls /sys/class/net", connected)).toBe("eth0\nlo");
    const alone = await networked.acquire(newRequest());
    expect(await out("ls /sys/class/net", alone)).toBe("lo");
    await Promise.all([connected.destroy(), alone.destroy()]);
  });

  test("a creation that is cancelled leaves nothing", async () => {
    const before = await lab.containers();
    const controller = new AbortController();
    const onProgress = (): void => void setTimeout(() => controller.abort(new Error("called off")), 50);
    const asked = backend.acquire(newRequest(), { signal: controller.signal, onProgress });
    await expect(asked).rejects.toThrow("called off");
    expect(await lab.containers()).toEqual(before);
  });

  test("usage figures grow with use", async () => {
    const used = await backend.acquire(newRequest());
    const before = await used.stats();
    await run(used, bash("head -c 20M /dev/zero > /workspace/used; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"));
    const after = await used.stats();
    expect(after.diskBytes - before.diskBytes).toBeGreaterThan(19 * MIB);
    expect(after.cpuMs).toBeGreaterThan(before.cpuMs);
    expect(after.memoryBytes).toBeGreaterThan(0);
    await used.destroy();
  });

  test("an unexpected end is reported, and out of memory is distinguished", async () => {
    const killed = await backend.acquire(newRequest());
    const [container = ""] = await lab.containers(`label=sandboxer.sandbox-id=${killed.sandboxId}`);
    await lab.docker("kill", container);
    const end = await killed.ended;
    expect(end).toMatchObject({ reason: "crashed" });
    expect(end.message).toContain("137");
    expect(await errorCode(killed.ping())).toBe("sandbox_failed");
    expect(await errorCode(killed.freeze())).toBe("sandbox_failed");
    await killed.destroy();
    expect(await lab.containers()).not.toContain(container);

    const removed = await backend.acquire(newRequest());
    const [other = ""] = await lab.containers(`label=sandboxer.sandbox-id=${removed.sandboxId}`);
    await lab.docker("rm", "-f", other);
    expect(await removed.ended).toMatchObject({ reason: "crashed" });
    await removed.destroy();

    const full = await backend.acquire(newRequest({ resources: { memoryBytes: 16 * MIB } }));
    let over = false;
    void full.ended.then(() => (over = true));
    // Shared memory stays when its writer is killed, until only the agent is left to kill.
    await eventually(async () => {
      await run(full, bash("exec head -c 60M /dev/zero > /dev/shm/$$")).catch(() => {});
      return over;
    }, "the end of the sandbox");
    expect(await full.ended).toMatchObject({ reason: "out_of_memory" });
    await full.destroy();
  });

  test("files of a user keep their owner after a stop, and /tmp is kept too", async () => {
    const request = newRequest();
    const first = await backend.acquire(request);
    await run(first, bash("echo a > a; chmod 640 a; echo t > /tmp/t; ln -s a l"));
    await first.stop();
    const again = await backend.tryResume(request);
    expect(await out("stat -c '%u %g %a' a; cat l; cat /tmp/t", again)).toBe("1000 1000 640\na\nt");
    expect(await readText(again!, "/workspace/a")).toBe("a\n");
    await again!.destroy();
  });
});
