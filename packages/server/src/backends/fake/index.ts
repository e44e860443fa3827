export { FakeBackend, type FakeBackendOptions } from "./fake-backend.ts";
export { type Fault, Faults, type FaultyOperation } from "./faults.ts";
