export * from "./control.ts";
export * from "./interpreter.ts";
