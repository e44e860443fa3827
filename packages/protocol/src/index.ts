export * from "./duration.ts";
export * from "./errors.ts";
