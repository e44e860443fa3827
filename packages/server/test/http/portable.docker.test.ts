import { randomUUID } from "node:crypto";
import type { Carried, CreatedSandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { describeDocker } from "../backends/docker/support/describe-docker.ts";
import { DockerLab } from "../backends/docker/support/docker-lab.ts";
import { HOST_IMAGE_PATH } from "../services/host-image.ts";
import { ServerProcess, whyNoEngine } from "../websocket/support/server-process.ts";
import { temporaryFolder } from "../websocket/support/temporary-folder.ts";
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
for size in 0 1 65535 65536 65537 20000000; do head -c $size /dev/urandom > size-$size; done
deep=$(printf 'd%.0s' $(seq 200)); mkdir -p "$deep/$deep"; printf deep > "$deep/$deep/file"
mkdir empty closed sticky -- -folder; printf in > closed/inside
ln -s nowhere dangling; ln -s /etc/hostname absolute; ln -s ./-folder to-folder; ln -s $'\xff' raw-link
ln -s "$(printf '../%.0s' $(seq 60))far" long-link
mkfifo pipe
for mode in 000 400 755 1777 4755 2750; do printf $mode > mode-$mode; chmod $mode mode-$mode; done
chmod 1777 sticky; chmod 000 closed; chmod 711 .
find . -depth -exec touch -h -d @1600000000 {} + 2>/dev/null || true
touch -d @1500000000 .
`;
/** One line for each entry, and one for the content of each file that can be read; as base64, because of the names. */
const DESCRIBE_TREE = String.raw`
cd /workspace
{ find . ! -type p \( -type f -printf 'f %s ' -o -printf '%y ' \) -printf '%m %U:%G %Ts %l %p\0' 2>/dev/null
  find . -type f -readable -exec sha256sum -z {} + 2>/dev/null; } | LC_ALL=C sort -z | base64 -w0
`;
const OPEN =
  "cd /workspace; chmod 700 closed; cat closed/inside; chmod 000 closed; chmod 400 mode-000; cat mode-000; chmod 000 mode-000";

async function describeTree(box: SandboxClient): Promise<string[]> {
  const { stdout } = await box.exec({ shell: DESCRIBE_TREE });
  return Buffer.from(stdout, "base64").toString("latin1").split("\0");
}

describeDocker("workspaces between backends", (service) => {
  const lab = new DockerLab(service);
  const missing = whyNoEngine();

  test("a tree goes from gVisor to Docker and back, and is the same", { timeout: 120_000 }, async (context) => {
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
    // The agent has no capability for this one bit, which has no effect inside (no-new-privileges).
    const afterDocker = before.map((line) => line.replace(/^f 4 2750 /, "f 4 750 ")).toSorted();
    expect(afterDocker).not.toEqual(before.toSorted());
    expect(before.filter((line) => line.includes("bytes-\xff\xfe-\x80"))).toHaveLength(2);

    const move = async (id: string, backend: string): Promise<Moved> => {
      const { status, body } = await api.call<Moved>("POST", `/v1/sandboxes/${id}/move`, { backend });
      expect([status, body]).toEqual([201, expect.objectContaining({ backend, name: "box", key })]);
      expect((await api.call("GET", `/v1/sandboxes/${id}/stats`)).status).not.toBe(200);
      return body;
    };
    const inDocker = await move(first.id, "docker");
    expect(inDocker.carried).toMatchObject({ memory: "lost", processes: "lost", files: { scope: "workspace" } });
    expect(inDocker.carried.notes).toContain("1 sockets, pipes or devices are not carried.");
    const there = api.sandbox(inDocker.id);
    expect((await describeTree(there)).toSorted()).toEqual(afterDocker);
    expect((await there.exec({ shell: `${OPEN}; echo $WORD; ls /tmp` })).stdout).toBe("in000carried\n");

    const back = await move(inDocker.id, "gvisor");
    expect(back.flags.enable_checkpoint).toBe(true);
    const here = api.sandbox(back.id);
    // The folder was opened and closed again, which leaves no trace that is looked at.
    expect((await describeTree(here)).toSorted()).toEqual(afterDocker);
    expect((await here.exec({ shell: `${OPEN}; echo $WORD` })).stdout).toBe("in000carried\n");
    const left = await lab.docker("ps", "-aq", "--filter", `label=sandboxer.sandbox-id=${inDocker.id}`);
    expect(left).toBe("");
    expect((await api.call("DELETE", `/v1/sandboxes/${back.id}`)).status).toBe(204);
    expect(await server.stop()).toBe(0);
  });

  test("what Docker saved by itself is not for gVisor, and the answer says for whom it is", async (context) => {
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
    expect((await api.call("DELETE", `/v1/sandboxes/${made.id}`)).status).toBe(204);
    expect(await server.stop()).toBe(0);
  });
});
