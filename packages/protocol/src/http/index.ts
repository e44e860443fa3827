import { FILE_ROUTES } from "./routes/files.ts";
import { IMAGE_ROUTES } from "./routes/images.ts";
import { INTEGRITY_ROUTES } from "./routes/integrity.ts";
import { INTERPRETER_ROUTES } from "./routes/interpreter.ts";
import { PORT_ROUTES } from "./routes/ports.ts";
import { PROCESS_ROUTES } from "./routes/processes.ts";
import { SANDBOX_ROUTES } from "./routes/sandboxes.ts";
import { SNAPSHOT_ROUTES } from "./routes/snapshots.ts";
import { SYSTEM_ROUTES } from "./routes/system.ts";
import { USAGE_ROUTES } from "./routes/usage.ts";

/** Every operation of the HTTP interface, by its name. */
export const ROUTES = {
  ...SANDBOX_ROUTES,
  ...PROCESS_ROUTES,
  ...INTERPRETER_ROUTES,
  ...FILE_ROUTES,
  ...PORT_ROUTES,
  ...SNAPSHOT_ROUTES,
  ...IMAGE_ROUTES,
  ...INTEGRITY_ROUTES,
  ...SYSTEM_ROUTES,
  ...USAGE_ROUTES,
} as const;
export type Routes = typeof ROUTES;
export type RouteName = keyof Routes;

export * from "./carried.ts";
export * from "./affinity.ts";
export * from "./common.ts";
export * from "./create-request.ts";
export * from "./image-record.ts";
export * from "./integrity-record.ts";
export * from "./interpreter-record.ts";
export * from "./network-record.ts";
export * from "./operation-record.ts";
export * from "./process-record.ts";
export * from "./process-socket.ts";
export * from "./removed-data.ts";
export * from "./retention-preview.ts";
export * from "./route.ts";
export * from "./sandbox-record.ts";
export * from "./snapshot-record.ts";
export type { CellRequestBody } from "./routes/interpreter.ts";
export { PORT_CONNECT_PATH, type PortLink } from "./routes/ports.ts";
export type { SandboxUsage, UsageColumns } from "./routes/usage.ts";
export { execRequestSchema, PROCESS_ATTACH_PATH, type ExecRequestBody } from "./routes/processes.ts";
