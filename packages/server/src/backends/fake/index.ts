export { FakeBackend, type FakeBackendOptions } from "./fake-backend.ts";
export type { Fault } from "./faults.ts";
