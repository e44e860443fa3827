import { randomUUID } from "node:crypto";
import type { Carried, CreatedSandboxRecord } from "@sandboxer/protocol";
import { expect, onTestFinished, test } from "vitest";
import { openGvisorServer } from "../../backends/daytona/gvisor-lab.ts";
import { describeDocker } from "../../backends/docker/support/describe-docker.ts";
import { DockerLab } from "../../backends/docker/support/docker-lab.ts";
import { openContractBackend } from "../../backends/docker/support/open-docker.ts";
import { testEngine } from "../../backends/gvisor/support/engine.ts";
import { HOST_IMAGE_PATH } from "../../../../../test/kit/services/host-image.ts";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { describeInside } from "./portable-tree.ts";
import type { SandboxClient } from "./processes/support.ts";
import { SnapshotClient } from "./snapshot-client.ts";

type Moved = CreatedSandboxRecord & { readonly carried: Carried };

/** Names of any bytes and lengths, sizes, links, modes and folders, made by the sandbox's own user. */
const MAKE_TREE = String.raw`
set -e
cd /workspace
printf raw > $'bytes-\xff\xfe-\x80'
printf nl > $'two\nlines'
printf dash > ./-rf
printf dash > ./--help
printf long > "$(printf 'n%.0s' $(seq 255))"
printf utf > 'ünï-日本-🙂'
for size in 0 1 65535 65536 65537 3000000; do head -c $size /dev/urandom > size-$size; done
deep=$(printf 'd%.0s' $(seq 200)); mkdir -p "$deep/$deep"; printf deep > "$deep/$deep/file"
mkdir empty closed sticky -- -folder; printf in > closed/inside
ln -s nowhere dangling; ln -s /etc/hostname absolute; ln -s ./-folder to-folder; ln -s $'\xff' raw-link
ln -s "$(printf '../%.0s' $(seq 60))far" long-link
mkfifo pipe
for mode in 000 400 755 1777 4755 2750; do printf $mode > mode-$mode; chmod $mode mode-$mode; done
chmod 1777 sticky; chmod 000 closed; chmod 711 .
mkdir ours; chmod 2770 ours; printf group > ours/file
ln mode-4755 second; ln mode-2750 ours/third; ln $'bytes-\xff\xfe-\x80' $'twin-\xff'
chmod 4755 mode-4755; chmod 2750 mode-2750
python3 -c 'import os; [os.setxattr(p, "user.odd", bytes(range(256))) for p in ("size-1", "empty", ".")]'
find . -depth -exec touch -h -d @1600000000 {} + 2>/dev/null || true
touch -d @1500000000 .
`;
/** The names that share one file, and the attributes that were kept. */
const SHOW_EXTRAS = `
cd /workspace; [ mode-4755 -ef second ] && [ mode-2750 -ef ours/third ] && echo links
python3 -c 'import os; print([p for p in ("size-1", "empty", ".") if os.getxattr(p, "user.odd") == bytes(range(256))])'
`;
const OPEN =
  "cd /workspace; chmod 700 closed; cat closed/inside; chmod 000 closed; chmod 400 mode-000; cat mode-000; chmod 000 mode-000";

async function describeTree(box: SandboxClient): Promise<string[]> {
  return [...(await describeInside(box)), (await box.exec({ shell: SHOW_EXTRAS })).stdout];
}

describeDocker("workspaces between backends", (service) => {
  const lab = new DockerLab(service);
  const missing = whyNoEngine();

  test("a tree moves from gVisor to Docker and back unchanged", async (context) => {
    if (missing !== undefined) return context.skip(missing);
    const flags = ["--docker-host", service.host, "--docker-image", service.image, "--docker-mounts", "/usr"];
    const server = await ServerProcess.start({ store: await temporaryFolder(), flags });
    const api = new SnapshotClient({ httpUrl: server.url.replace(/^ws/, "http") });
    const spec = { inputs: { mounts: "/usr:/usr:ro" }, env: { PATH: HOST_IMAGE_PATH, WORD: "carried" } };
    const key = randomUUID();
    const first = await api.http.create({ ...spec, name: "box", key, resources: { processes: 99 } });
    expect(first.backend).toBe("gvisor");
    const box = api.sandbox(first.id);
    const made = await box.exec({ shell: MAKE_TREE });
    expect([made.exit_code, made.stderr]).toEqual([0, ""]);
    await box.exec({ shell: "echo outside > /tmp/outside" });
    const before = await describeTree(box);
    for (const bits of [
      /^f 4 2 4755 /,
      /^f 4 2 2750 /,
      /^d 2770 /,
      /^d 1777 /,
      /^links\n\['size-1', 'empty', '.'\]\n$/,
    ])
      expect(before).toContainEqual(expect.stringMatching(bits));
    expect(before.filter((line) => line.includes("bytes-\xff\xfe-\x80"))).toHaveLength(2);

    const move = async (id: string, backend: string): Promise<Moved> => {
      const { status, body } = await api.call<Moved>("POST", `/v1/sandboxes/${id}/move`, { backend });
      expect([status, body]).toEqual([200, expect.objectContaining({ id, backend, name: "box", key })]);
      return body;
    };
    const inDocker = await move(first.id, "docker");
    expect(inDocker.carried).toMatchObject({ memory: "lost", processes: "lost", files: { scope: "workspace" } });
    expect(inDocker.carried).toMatchObject({ hard_links: { kept: 3, lost: 0 }, xattrs: { kept: 3, lost: 0 } });
    expect(inDocker.carried.notes).toContain("1 sockets, pipes or devices are lost.");
    const there = api.sandbox(inDocker.id);
    expect(await describeTree(there)).toEqual(before);
    expect((await there.exec({ shell: `${OPEN}; echo $WORD; ls /tmp` })).stdout).toBe("in000carried\n");

    const back = await move(inDocker.id, "gvisor");
    expect(back.flags.enable_checkpoint).toBe(true);
    const here = api.sandbox(back.id);
    // The folder was opened and closed again, which leaves no trace that is looked at.
    expect(await describeTree(here)).toEqual(before);
    expect((await here.exec({ shell: `${OPEN}; echo $WORD` })).stdout).toBe("in000carried\n");
    const left = await lab.docker("ps", "-aq", "--filter", `label=sandboxer.sandbox-id=${inDocker.id}-1`);
    expect(left).toBe("");
    expect((await api.call("DELETE", `/v1/sandboxes/${back.id}`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  test("a tree moves from Docker to Daytona and back", async (context) => {
    const engine = testEngine();
    if ("missing" in engine) return context.skip(engine.missing);
    const vendor = await openGvisorServer(engine);
    const daytona = vendor.open();
    const docker = await openContractBackend(service);
    onTestFinished(async () => {
      await Promise.all([daytona.close(), docker.close()]);
      await vendor.close();
    });
    const api = new SnapshotClient(await startTestServer({ moreBackends: [daytona, docker.backend] }));
    const make = String.raw`set -e
      mkdir -p a/b; printf 1 > $'a/b/two\nlines'; chmod 2750 a/b; ln a/b/two* twin; ln -s nowhere dangling; umask 777; : > none
      python3 -c 'import os; os.setxattr("a", "user.lost", b"x")'`;
    // Neither here nor there can the user read what its mode forbids.
    const show =
      "chmod 600 none; find . -exec touch -h -d @1 {} +; find . -printf '%y %m %n %U:%G %Ts %l %p|' | sort -z";
    const made = await api.http.create({ backend: "docker" });
    expect((await api.sandbox(made.id).exec({ shell: make })).exit_code).toBe(0);
    let { id } = made;
    const expected = [
      { backend: "daytona", xattrs: { kept: 0, lost: 1 } },
      { backend: "docker", xattrs: null },
    ];
    for (const { backend, xattrs } of expected) {
      const { status, body } = await api.call<Moved>("POST", `/v1/sandboxes/${id}/move`, { backend });
      expect([status, body.carried]).toEqual([
        200,
        expect.objectContaining({ hard_links: { kept: 1, lost: 0 }, xattrs }),
      ]);
      ({ id } = body);
      const shell = `${show}; cat twin; [ twin -ef a/b/two* ] && echo one`;
      const { stdout: encoded, stdout_encoding } = await api.sandbox(id).exec({ shell });
      // `sort -z` ends what it prints with a NUL.
      const stdout = Buffer.from(encoded, stdout_encoding).toString();
      expect(stdout).toContain("d 2750 ");
      expect(stdout).toContain("f 600 1 ");
      expect(stdout).toContain("l 777 1 1000:1000 1 nowhere ./dangling|");
      expect(stdout).toMatch(/1one\n$/);
    }
  });

  test("gVisor refuses Docker's own saves, and the response names the right backend", async (context) => {
    if (missing !== undefined) return context.skip(missing);
    const flags = ["--docker-host", service.host, "--docker-image", service.image, "--docker-mounts", "/usr"];
    const server = await ServerProcess.start({ store: await temporaryFolder(), flags });
    const api = new SnapshotClient({ httpUrl: server.url.replace(/^ws/, "http") });
    const spec = { inputs: { mounts: "/usr:/usr:ro" }, env: { PATH: HOST_IMAGE_PATH } };
    const made = await api.http.create({ ...spec, backend: "docker" });
    const { id } = await api.take(made.id, { mode: "filesystem" });
    const refused = await api.call("POST", `/v1/snapshots/${id}/restore`, { backend: "gvisor" });
    expect(refused.status).toBe(422);
    expect(refused.body.error).toMatchObject({ code: "image_incompatible", details: { backends: ["docker"] } });
    expect((await api.call("DELETE", `/v1/sandboxes/${made.id}`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });
});
