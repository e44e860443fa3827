/** The calls of the protocol's table in wire form, for programs that do not use the classes. */
export { DEFAULT_URL, Transport } from "./transport.ts";
export type { Answer, Bytes, CallInput, JsonRouteName } from "./call-types.ts";
export { errorOfFields, errorOfResponse, unreachable } from "./errors.ts";
export { fromWire, toWire } from "./naming.ts";
export { SandboxCalls, type RoamingOptions } from "../sandbox-calls.ts";
