/**
 * A server process for tests across processes. It takes one JSON argument, resumes or creates the sandbox of a key,
 * does the requested work, and prints the result as one line of JSON. Then it ends as requested: `close` in order, or
 * `stay` until it is killed.
 */
import { finish, readText, start } from "../../contract/programs.ts";
import type { DockerService } from "./docker-service.ts";
import { keyed, openDocker } from "./open-docker.ts";

export interface ProcessOrder {
  readonly service: DockerService;
  readonly directory: string;
  readonly key: string;
  readonly specHash?: string;
  /** Content for the marker file. */
  readonly write?: string;
  /** A shell script to start under the key `work`. */
  readonly start?: string;
  /** Paused at the end. */
  readonly pause?: boolean;
  readonly end: "close" | "stay";
}

export interface ProcessReport {
  readonly tier: "resumed" | "fresh";
  readonly sandboxId: string;
  readonly marker: string | null;
  /** The keys of processes that already existed. */
  readonly processes: readonly string[];
  /** The unacknowledged output of the process with the key `work`, if it has ended. */
  readonly work: string | null;
}

const MARKER = "/workspace/marker";
const order = JSON.parse(process.argv[2] ?? "{}") as ProcessOrder;
const { backend } = await openDocker(order.service, order.directory);
const request = keyed(order.key, order.directory, { specHash: order.specHash ?? "same" });
const resumed = await backend.tryResume(request);
const handle = resumed ?? (await backend.acquire(request));
const processes = await handle.processes();
const work = processes.find(({ key }) => key === "work");
const report: ProcessReport = {
  tier: resumed === undefined ? "fresh" : "resumed",
  sandboxId: handle.sandboxId,
  marker: await readText(handle, MARKER).catch(() => null),
  processes: processes.map(({ key }) => key),
  work: work?.exit === undefined ? null : (await finish(work)).stdout,
};
if (order.write !== undefined) await handle.files.write(MARKER, Buffer.from(order.write));
if (order.start !== undefined) await start(handle, ["bash", "-c", order.start], { key: "work" });
if (order.pause === true) await handle.freeze();
if (order.end === "close") await backend.close();
process.stdout.write(`${JSON.stringify(report)}\n`);
if (order.end === "stay") setInterval(() => {}, 60_000);
