import { expect, test } from "vitest";
import { HttpClient } from "../../gateway/http/support.ts";
import { HOST_IMAGE_PATH } from "../../../../../test/kit/services/host-image.ts";
import { ServerProcess } from "../../../../../test/kit/server/server-process.ts";
import { describeDocker } from "./support/describe-docker.ts";

describeDocker("servers", (service) => {
  const flags = ["--docker-host", service.host, "--docker-image", service.image, "--docker-mounts", "/usr"];
  const spec = { inputs: { mounts: "/usr:/usr:ro" }, env: { PATH: HOST_IMAGE_PATH } };

  test("a server on another backend offers Docker beside it", async () => {
    const server = await ServerProcess.start({ flags: ["--backend", "fake", ...flags] });
    const http = new HttpClient({ httpUrl: server.url.replace(/^ws/, "http") });
    const made = await http.create({ ...spec, backend: "docker" });
    const command = { shell: "id -u" };
    const { body } = await http.call<object>("POST", `/v1/sandboxes/${made.id}/exec`, command);
    expect(body).toMatchObject({ stdout: "1000\n" });
    expect((await http.call("DELETE", `/v1/sandboxes/${made.id}`)).status).toBeLessThan(300);
    expect(await server.stop()).toBe(0);
  });
});
