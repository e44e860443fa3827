import type { SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { HttpClient } from "../../http/support.ts";
import { HOST_IMAGE_PATH } from "../../services/host-image.ts";
import { ServerProcess } from "../../websocket/support/server-process.ts";
import { temporaryFolder } from "../../websocket/support/temporary-folder.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";

type Acquired = SandboxRecord & { readonly tier: string };

describeDocker("servers", (service) => {
  const lab = new DockerLab(service);
  const flags = ["--docker-host", service.host, "--docker-image", service.image, "--docker-mounts", "/usr"];
  const spec = { key: "my-convo", inputs: { mounts: "/usr:/usr:ro" }, env: { PATH: HOST_IMAGE_PATH } };

  test("the same key gives the same sandbox at the next server, which the last one closed or which was killed", async () => {
    const dataHome = await temporaryFolder();
    const start = () => ServerProcess.start({ dataHome, flags: ["--backend", "docker", ...flags] });
    const acquire = async (server: ServerProcess) => {
      const http = new HttpClient({ httpUrl: server.url.replace(/^ws/, "http") });
      const { body } = await http.call<Acquired>("POST", "/v1/sandboxes/acquire", spec);
      const exec = async (script: string): Promise<string> => {
        const command = { shell: script };
        const answer = await http.call<{ stdout: string }>("POST", `/v1/sandboxes/${body.id}/exec`, command);
        return answer.body.stdout;
      };
      return { ...body, exec, destroy: () => http.call("DELETE", `/v1/sandboxes/${body.id}`) };
    };
    const first = await start();
    const fresh = await acquire(first);
    expect(fresh).toMatchObject({ tier: "fresh", backend: "docker" });
    await fresh.exec("echo one > marker");
    expect(await first.stop()).toBe(0);

    const second = await start();
    const started = await acquire(second);
    expect(started).toMatchObject({ id: fresh.id, tier: "reattached" });
    expect(await started.exec("cat marker; echo two >> marker")).toBe("one\n");
    await second.killHard();

    const third = await start();
    const again = await acquire(third);
    expect(again).toMatchObject({ id: fresh.id, tier: "reattached" });
    expect(await again.exec("cat marker")).toBe("one\ntwo\n");
    await again.destroy();
    const left = await lab.docker("ps", "-aq", "--filter", `label=sandboxer.sandbox-id=${fresh.id}`);
    expect(left).toBe("");
  });

  test("a server on another backend offers Docker beside it", async () => {
    const server = await ServerProcess.start({ flags: ["--backend", "fake", ...flags] });
    const http = new HttpClient({ httpUrl: server.url.replace(/^ws/, "http") });
    const made = await http.create({ ...spec, key: undefined, backend: "docker" });
    const command = { shell: "id -u" };
    const { body } = await http.call<object>("POST", `/v1/sandboxes/${made.id}/exec`, command);
    expect(body).toMatchObject({ stdout: "1000\n" });
    expect((await http.call("DELETE", `/v1/sandboxes/${made.id}`)).status).toBeLessThan(300);
    expect(await server.stop()).toBe(0);
  });
});
