/** The calls of the protocol's table as they are on the wire, for programs that do without the classes. */
export { DEFAULT_URL, Transport } from "./transport.ts";
export type { Answer, Bytes, CallInput, JsonRouteName } from "./call-types.ts";
export { errorOfFields, errorOfResponse, unreachable } from "./errors.ts";
export { fromWire } from "./naming.ts";
