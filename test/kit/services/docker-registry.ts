/** Debian's docker-registry: the reference implementation of a registry. */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withGvisorTools } from "./gvisor-tools.ts";
import { startService, untilReady } from "./service-process.ts";

export interface RunningRegistry {
  /** `127.0.0.1:PORT`. */
  readonly host: string;
  stop(): Promise<void>;
}

/** Starts an empty registry on a free port of the loopback interface. */
export async function startDockerRegistry(): Promise<RunningRegistry> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-registry-"));
  const config = join(folder, "config.yml");
  const storage = `{ filesystem: { rootdirectory: ${join(folder, "data")} } }`;
  await writeFile(config, `version: 0.1\nlog: { level: info }\nstorage: ${storage}\nhttp: { addr: "127.0.0.1:0" }\n`);
  const service = startService(["docker-registry", "serve", config], {
    env: { PATH: withGvisorTools(process.env["PATH"] ?? "") },
    cleanUp: `rm -rf '${folder}'`,
  });
  const port = (): string | undefined => /listening on 127\.0\.0\.1:(\d+)/.exec(service.said())?.[1];
  await untilReady(service, async () => port() !== undefined, "docker-registry");
  return { host: `127.0.0.1:${port()}`, stop: () => service.stop() };
}
