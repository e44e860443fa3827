export * from "./address.ts";
export * from "./entry.ts";
export * from "./judge.ts";
export * from "./network-text.ts";
export * from "./policy.ts";
export * from "./private-ranges.ts";
