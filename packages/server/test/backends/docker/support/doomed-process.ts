/**
 * A server process for tests that kill it: it creates, saves and deletes sandboxes forever, and prints when it begins.
 * It takes the service and the folder of its installation as one JSON argument.
 */
import { mkdir } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { newRequest } from "../../contract/context.ts";
import type { DockerService } from "./docker-service.ts";
import { openDocker } from "./open-docker.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as { readonly service: DockerService; readonly directory: string };
const { backend, workDirectory } = await openDocker(order.service, order.directory);
process.stdout.write("begins\n");
for (;;) {
  const handle = await backend.acquire(newRequest());
  const into = join(workDirectory, randomUUID());
  await mkdir(into);
  const snapshot = await handle.snapshot(into, { mode: "filesystem", leaveRunning: true });
  const copy = await backend.acquireFromSnapshot(newRequest(), snapshot);
  await Promise.all([handle.destroy(), copy.destroy()]);
}
