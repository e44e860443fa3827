import type { Routes } from "@sandboxer/protocol";

/** The facts of a route at run time. */
export interface PlainRoute {
  readonly method: string;
  readonly path: string;
  readonly accept?: string;
  readonly contentType?: string;
  readonly idempotent?: boolean;
  /** Safe to repeat, although it is a POST without a key. */
  readonly repeatable?: boolean;
}

type SameRoute<R extends { method: string; path: string }> = PlainRoute & {
  readonly method: R["method"];
  readonly path: R["path"];
} & (R extends { idempotent: unknown } ? { readonly idempotent: true } : { readonly idempotent?: never });

/**
 * The protocol's table without its schemas, so that programs that talk to a server need not load them. The compiler
 * compares the two: a missing or different route is a type error.
 */
export const ROUTE_TABLE = {
  createSandbox: { method: "POST", path: "/v1/sandboxes", idempotent: true },
  acquireSandbox: { method: "POST", path: "/v1/sandboxes/acquire" },
  listSandboxes: { method: "GET", path: "/v1/sandboxes" },
  getSandbox: { method: "GET", path: "/v1/sandboxes/{id}" },
  updateSandbox: { method: "PATCH", path: "/v1/sandboxes/{id}" },
  sandboxNetwork: { method: "GET", path: "/v1/sandboxes/{id}/network" },
  previewRetention: { method: "GET", path: "/v1/sandboxes/{id}/retention" },
  destroySandbox: { method: "DELETE", path: "/v1/sandboxes/{id}" },
  checkpointSandbox: { method: "POST", path: "/v1/sandboxes/{id}/checkpoint" },
  resumeSandbox: { method: "POST", path: "/v1/sandboxes/{id}/resume", repeatable: true },
  forkSandbox: { method: "POST", path: "/v1/sandboxes/{id}/fork", idempotent: true },
  rewindSandbox: { method: "POST", path: "/v1/sandboxes/{id}/rewind" },
  promoteSandbox: { method: "POST", path: "/v1/sandboxes/{id}/promote", idempotent: true },
  moveSandbox: { method: "POST", path: "/v1/sandboxes/{id}/move", idempotent: true },
  handoffSandbox: { method: "POST", path: "/v1/sandboxes/{id}/handoff" },
  extendTtl: { method: "PATCH", path: "/v1/sandboxes/{id}/ttl" },
  expireSandboxes: { method: "POST", path: "/v1/sandboxes/expire" },
  recreateSandbox: { method: "POST", path: "/v1/sandboxes/{id}/recreate" },
  reachability: { method: "GET", path: "/v1/sandboxes/{id}/reachability" },
  sandboxStats: { method: "GET", path: "/v1/sandboxes/{id}/stats" },
  exec: { method: "POST", path: "/v1/sandboxes/{id}/exec", idempotent: true },
  listProcesses: { method: "GET", path: "/v1/sandboxes/{id}/processes" },
  getProcess: { method: "GET", path: "/v1/sandboxes/{id}/processes/{process_id}" },
  processTable: { method: "GET", path: "/v1/sandboxes/{id}/process-table" },
  processOutput: {
    method: "GET",
    path: "/v1/sandboxes/{id}/processes/{process_id}/output",
    accept: "application/x-ndjson",
  },
  writeStdin: {
    method: "POST",
    path: "/v1/sandboxes/{id}/processes/{process_id}/stdin",
    contentType: "application/octet-stream",
  },
  signalProcess: { method: "POST", path: "/v1/sandboxes/{id}/processes/{process_id}/signal" },
  resizeProcess: { method: "POST", path: "/v1/sandboxes/{id}/processes/{process_id}/resize", repeatable: true },
  releaseProcess: { method: "DELETE", path: "/v1/sandboxes/{id}/processes/{process_id}" },
  runCell: { method: "POST", path: "/v1/sandboxes/{id}/cells" },
  followCell: {
    method: "GET",
    path: "/v1/sandboxes/{id}/contexts/{context_id}/cells/{cell_id}",
    accept: "application/x-ndjson",
  },
  createContext: { method: "POST", path: "/v1/sandboxes/{id}/contexts" },
  listContexts: { method: "GET", path: "/v1/sandboxes/{id}/contexts" },
  restartContext: { method: "POST", path: "/v1/sandboxes/{id}/contexts/{context_id}/restart" },
  interruptContext: { method: "POST", path: "/v1/sandboxes/{id}/contexts/{context_id}/interrupt" },
  deleteContext: { method: "DELETE", path: "/v1/sandboxes/{id}/contexts/{context_id}" },
  readFile: { method: "GET", path: "/v1/sandboxes/{id}/files", accept: "application/octet-stream" },
  writeFile: { method: "PUT", path: "/v1/sandboxes/{id}/files", contentType: "application/octet-stream" },
  removeFile: { method: "DELETE", path: "/v1/sandboxes/{id}/files" },
  statFile: { method: "GET", path: "/v1/sandboxes/{id}/files/stat" },
  listFiles: { method: "GET", path: "/v1/sandboxes/{id}/files/list" },
  makeFolder: { method: "POST", path: "/v1/sandboxes/{id}/files/folder" },
  renameFile: { method: "POST", path: "/v1/sandboxes/{id}/files/rename" },
  downloadTree: { method: "GET", path: "/v1/sandboxes/{id}/tree", accept: "application/x-tar" },
  uploadTree: { method: "PUT", path: "/v1/sandboxes/{id}/tree", contentType: "application/x-tar" },
  listPorts: { method: "GET", path: "/v1/sandboxes/{id}/ports" },
  createPortLink: { method: "POST", path: "/v1/sandboxes/{id}/port-links", repeatable: true },
  withdrawPortLinks: { method: "DELETE", path: "/v1/sandboxes/{id}/port-links" },
  createSnapshot: { method: "POST", path: "/v1/sandboxes/{id}/snapshot", idempotent: true },
  listSnapshots: { method: "GET", path: "/v1/snapshots" },
  getSnapshot: { method: "GET", path: "/v1/snapshots/{id}" },
  updateSnapshot: { method: "PATCH", path: "/v1/snapshots/{id}" },
  deleteSnapshot: { method: "DELETE", path: "/v1/snapshots/{id}" },
  restoreSnapshot: { method: "POST", path: "/v1/snapshots/{id}/restore", idempotent: true },
  proveSnapshot: { method: "POST", path: "/v1/snapshots/{id}/prove" },
  explainSnapshot: { method: "GET", path: "/v1/snapshots/{id}/explain" },
  diffSnapshots: { method: "GET", path: "/v1/snapshots/{id}/diff" },
  listImages: { method: "GET", path: "/v1/images" },
  pullImage: { method: "POST", path: "/v1/images", repeatable: true },
  importImage: { method: "POST", path: "/v1/images/import", contentType: "application/x-tar" },
  pruneImages: { method: "POST", path: "/v1/images/prune", repeatable: true },
  getImage: { method: "GET", path: "/v1/images/{image}" },
  deleteImage: { method: "DELETE", path: "/v1/images/{image}" },
  verifySnapshot: { method: "POST", path: "/v1/snapshots/{id}/verify" },
  verifySandbox: { method: "POST", path: "/v1/sandboxes/{id}/verify" },
  proveSandbox: { method: "POST", path: "/v1/sandboxes/{id}/prove" },
  scrubStore: { method: "POST", path: "/v1/scrub" },
  scrubStatus: { method: "GET", path: "/v1/scrub" },
  stopScrub: { method: "DELETE", path: "/v1/scrub" },
  serverInfo: { method: "GET", path: "/v1/server" },
  listProfiles: { method: "GET", path: "/v1/profiles" },
  getProfile: { method: "GET", path: "/v1/profiles/{name}" },
  listBackends: { method: "GET", path: "/v1/backends" },
  listInstances: { method: "GET", path: "/v1/instances" },
  listOperations: { method: "GET", path: "/v1/operations" },
  getOperation: { method: "GET", path: "/v1/operations/{id}" },
  events: { method: "GET", path: "/v1/events" },
  listUsage: { method: "GET", path: "/v1/usage" },
  sandboxUsage: { method: "GET", path: "/v1/sandboxes/{id}/usage" },
} as const satisfies { readonly [Name in keyof Routes]: SameRoute<Routes[Name]> };

/** Whether a request may be repeated if the outcome of the first is unknown. */
export function isRepeatable({ method, idempotent, repeatable }: PlainRoute): boolean {
  return method !== "POST" || idempotent === true || repeatable === true;
}
