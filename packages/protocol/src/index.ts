export * from "./duration.ts";
export * from "./errors.ts";
export * from "./head.ts";
