import { execFileSync } from "node:child_process";
import { cpus, loadavg, release, tmpdir, totalmem } from "node:os";
import { REPOSITORY } from "./arguments.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  /** The file system of stores and images. */
  readonly fileSystem: string;
  readonly node: string;
  readonly commit: string;
  /** Over one minute, at the start and at the end: other load makes both sides slower, but not equally. */
  readonly loadAverage: readonly number[];
}

export function loadNow(): number {
  return loadavg()[0] ?? 0;
}

export function describeMachine(loadAtStart: number): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    fileSystem: said("df", "--output=fstype", tmpdir()).split("\n").at(-1) ?? "",
    node: process.version,
    commit: said("git", "-C", REPOSITORY, "rev-parse", "--short", "HEAD"),
    loadAverage: [loadAtStart, loadNow()],
  };
}

function said(program: string, ...args: readonly string[]): string {
  try {
    return execFileSync(program, args, { encoding: "utf8" }).trim();
  } catch {
    return "unknown";
  }
}
