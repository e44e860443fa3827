export * from "./control.ts";
