import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, Sandboxer } from "@sandboxer/client";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { bootstrap } from "../../scripts/bootstrap.mjs";
import { packPackages } from "../../scripts/packages/pack-packages.ts";
import { eventually } from "../kit/eventually.ts";
import { type DockerEngine, startDocker } from "../kit/services/docker.ts";
import { buildServerImage, whyNoServerImage } from "../kit/services/server-image.ts";
import { temporaryFolder } from "../kit/temporary-folder.ts";

const KEY = "a-key-of-twenty-characters";
const PATIENCE_MS = 30 * 60_000;
const missing = whyNoServerImage();
if (missing !== undefined) console.warn(`The image of deploy/Dockerfile is not built: ${missing}`);

describe.skipIf(missing !== undefined)("the image of deploy/Dockerfile", () => {
  let docker: DockerEngine;
  let image: string;
  let packed: string;
  beforeAll(async () => {
    docker = await startDocker();
    packed = await mkdtemp(join(tmpdir(), "sandboxer-packed-"));
    await bootstrap();
    await packPackages(packed);
    image = await buildServerImage(docker, packed);
  }, PATIENCE_MS);
  afterAll(async () => {
    await docker.stop();
    await rm(packed, { recursive: true, force: true });
  });

  /** As docs/guides/container.md says, with the network of this machine and the store in a folder. */
  async function start(name: string, store: string): Promise<string> {
    const port = await freePort();
    const privileges = ["--privileged", "--cgroupns", "host", "--network", "host"];
    const settings = {
      SANDBOXER_HOST: "127.0.0.1",
      SANDBOXER_PORT: port,
      SANDBOXER_API_KEYS: KEY,
      SANDBOXER_STORE: "/store",
    };
    const env = Object.entries(settings).flatMap(([variable, value]) => ["--env", `${variable}=${value}`]);
    await docker.docker("run", "--detach", "--name", name, ...privileges, ...env, "--volume", `${store}:/store`, image);
    onTestFinished(async () => void (await docker.docker("rm", "--force", "--volumes", name)));
    const health = (): Promise<string> => docker.docker("inspect", "--format", "{{.State.Health.Status}}", name);
    await eventually("the container is healthy", async () => (await health()).trim() === "healthy", 300_000).catch(
      async (error: unknown) => {
        throw new Error(await docker.docker("logs", name), { cause: error });
      },
    );
    return `http://127.0.0.1:${port}`;
  }

  test(
    "a stop saves running sandboxes, and the next container resumes them",
    async () => {
      const store = await temporaryFolder();
      const first = await Sandbox.create({
        client: new Sandboxer({ url: await start("one", store), apiKey: KEY }),
        name: "web",
      });
      await first.exec([
        "sh",
        "-c",
        "(n=0; while sleep 0.1; do n=$((n+1)); echo $n >> /tmp/count; done) > /dev/null 2>&1 &",
      ]);
      const count = async (sandbox: Sandbox): Promise<number[]> => {
        const { stdout } = await sandbox.exec(["cat", "/tmp/count"]);
        return stdout.trim().split("\n").map(Number);
      };
      await eventually("it counts", async () => (await count(first).catch(() => [])).length > 5);
      const before = (await count(first)).length;
      await docker.docker("stop", "-t", "300", "one");
      expect((await docker.docker("inspect", "--format", "{{.State.ExitCode}}", "one")).trim()).toBe("0");

      const second = await Sandbox.attach(first.id, {
        client: new Sandboxer({ url: await start("two", store), apiKey: KEY }),
      });
      await eventually("it counts on", async () => (await count(second)).length > before + 5);
      const counted = await count(second);
      expect(counted).toEqual(counted.map((_, index) => index + 1));
    },
    PATIENCE_MS,
  );

  test(
    "nothing in the image asks a question, and a wrong setting ends it at once",
    async () => {
      const { stdout = "", stderr = "" } = (await docker
        .docker(
          "run",
          "--rm",
          "--network",
          "none",
          "--env",
          "SANDBOXER_TLS_CERT=/nonexistent",
          "--env",
          `SANDBOXER_API_KEYS=${KEY}`,
          image,
        )
        .then((text) => ({ stdout: text }))
        .catch((error: unknown) => error)) as { stdout?: string; stderr?: string };
      expect(stdout + stderr).toContain("--tls-cert needs --tls-key");
    },
    PATIENCE_MS,
  );
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
