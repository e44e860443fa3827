import type { SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { CrashServer } from "../../system/crash/support/crash-server.ts";
import { KILLED } from "../../system/crash/support/pair.ts";
import type { StepName } from "../../system/crash/support/steps.ts";
import { SandboxClient } from "../../gateway/http/processes/support.ts";
import { SnapshotClient } from "../../gateway/http/snapshot-client.ts";
import { HOST_IMAGE_PATH } from "../../../../../test/kit/services/host-image.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";

describeDocker("a server that is killed during a rewind", (service) => {
  const lab = new DockerLab(service);
  const flags = ["--docker-host", service.host, "--docker-image", service.image, "--docker-mounts", "/usr"];
  const spec = { inputs: { mounts: "/usr:/usr:ro" }, env: { PATH: HOST_IMAGE_PATH } };

  test.each<[StepName, string]>([
    ["a copy at the provider is announced", "after"],
    ["a copy at the provider is about to take the sandbox's place", "after"],
    ["a copy at the provider has taken the sandbox's place", "before"],
  ])("when %s: one container is left, whose file says %s", async (dieAt, expected) => {
    const [store, dataDirectory] = [await temporaryFolder(), await temporaryFolder()];
    const place = { store, dataDirectory, backend: "docker", flags } as const;
    const doomed = await CrashServer.start({ ...place, dieAt });
    const api = new SnapshotClient({ httpUrl: doomed.url.replace(/^ws/, "http") });
    const { id, token } = await api.http.create({ ...spec, name: "kept" });
    await api.sandbox(id).exec({ shell: "echo before > file" });
    const snapshot = await api.take(id, { mode: "filesystem" });
    await api.sandbox(id).exec({ shell: "echo after > file" });
    await expect(api.call("POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: snapshot.id })).rejects.toThrow();
    expect(await doomed.exited).toEqual(KILLED);

    const next = await CrashServer.start(place);
    const there = new SandboxClient({ httpUrl: next.url.replace(/^ws/, "http") }, id);
    const headers = { authorization: `Bearer ${token}` };
    expect(await there.call<SandboxRecord>("POST", "/resume", undefined, headers)).toMatchObject({
      status: 200,
      body: { id, name: "kept", state: "running" },
    });
    expect((await there.exec({ shell: "cat file" })).stdout).toBe(`${expected}\n`);
    await eventually("one container is left", async () => {
      const labels = await lab.docker("ps", "-a", "--format", '{{.Label "sandboxer.sandbox-id"}}');
      return labels.split("\n").filter((label) => label.startsWith(id)).length === 1;
    });
    expect((await there.call("DELETE", "")).status).toBe(200);
  });
});
