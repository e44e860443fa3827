import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { onTestFinished } from "vitest";
import type {
  ExecCommand,
  ProcessExit,
  SandboxBackend,
  SandboxHandle,
  SandboxProcess,
} from "../../../packages/server/src/backends/backend.ts";
import type { FakeBackend } from "../../../packages/server/src/backends/fake/index.ts";
import { OutputLog } from "../../../packages/server/src/backends/output/output-log.ts";
import { SandboxerError } from "../../../packages/protocol/src/errors.ts";

const SIGNALS: Readonly<Record<number, NodeJS.Signals>> = { 2: "SIGINT", 9: "SIGKILL", 15: "SIGTERM" };

/**
 * Fake sandboxes whose interpreters of contexts are real programs of this machine, because the fake runs no Python. They
 * stay while their sandbox is paused, as if their memory were saved with it.
 */
export function withHostInterpreters(backend: FakeBackend): SandboxBackend {
  const folder = mkdtempSync(join(tmpdir(), "sandboxer-contexts-"));
  const known = new Map<string, HostProcess[]>();
  onTestFinished(async () => {
    for (const process of [...known.values()].flat()) process.end();
    await Promise.all([...known.values()].flat().map(({ exited }) => exited));
    rmSync(folder, { recursive: true, force: true });
  });
  const wrapped = (handle: SandboxHandle): SandboxHandle => {
    const { sandboxId } = handle;
    const own = (): HostProcess[] => (known.get(sandboxId) ?? []).filter((process) => !process.released);
    const exec = async (command: ExecCommand): Promise<SandboxProcess> => {
      if (!command.key.startsWith("context:")) return handle.exec(command);
      const process = await HostProcess.start(command, folder);
      known.set(sandboxId, [...own(), process]);
      return process;
    };
    const processes = async (): Promise<readonly SandboxProcess[]> => [...(await handle.processes()), ...own()];
    return over(handle, { exec, processes });
  };
  return over<SandboxBackend>(backend, {
    acquire: async (...given) => wrapped(await backend.acquire(...given)),
    acquireFromSnapshot: async (...given) => wrapped(await backend.acquireFromSnapshot(...given)),
  });
}

function over<Thing extends object>(thing: Thing, replaced: Partial<Thing>): Thing {
  return new Proxy(thing, {
    get: (target, name) => {
      if (name in replaced) return Reflect.get(replaced, name) as unknown;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

class HostProcess implements SandboxProcess {
  readonly key: string;
  readonly exited: Promise<ProcessExit>;
  exit: ProcessExit | undefined;
  released = false;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #log = new OutputLog();

  private constructor(key: string, child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.key = key;
    this.#child = child;
    child.stdin.on("error", () => {});
    const read = Promise.all([this.#read("stdout", child.stdout), this.#read("stderr", child.stderr)]);
    const ended = new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve) =>
      child.once("exit", (code, signal) => resolve([code, signal])),
    );
    this.exited = Promise.all([ended, read]).then(([[code, name]]) => {
      const signal = Object.entries(SIGNALS).find(([, each]) => each === name)?.[0];
      const outputEnd = this.#log.end;
      this.exit = { code: code ?? undefined, signal: signal === undefined ? undefined : Number(signal), outputEnd };
      this.#log.finish();
      return this.exit;
    });
  }

  static async start({ key, argv, env, workingFolder }: ExecCommand, folder: string): Promise<HostProcess> {
    const child = spawn(argv[0] ?? "", argv.slice(1), {
      // The folders of a fake sandbox are not here.
      cwd: workingFolder === "/tmp" ? "/tmp" : folder,
      env: { PATH: process.env["PATH"], HOME: folder, LANG: "C.UTF-8", ...env },
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", () => reject(new SandboxerError("file_not_found", `${argv[0]} was not found.`)));
    });
    return new HostProcess(key, child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }
  get acknowledged(): number {
    return this.#log.acknowledged;
  }
  output(options: { readonly from?: number; readonly signal?: AbortSignal } = {}) {
    return this.#log.follow(options, {});
  }
  async bounds() {
    return { start: this.#log.end - this.#log.keptBytes, end: this.#log.end };
  }
  acknowledge(offset: number): void {
    this.#log.acknowledge(offset);
    this.#log.notify();
  }
  writeStdin(data: Uint8Array): Promise<void> {
    const gone = new SandboxerError("wrong_state", "The process has ended.");
    return new Promise((resolve, reject) =>
      this.#child.stdin.write(data, (error) => (error == null ? resolve() : reject(gone))),
    );
  }
  async closeStdin(): Promise<void> {
    this.#child.stdin.end();
  }
  async signal(signal: number): Promise<void> {
    if (this.exit === undefined) process.kill(-this.pid, SIGNALS[signal] ?? signal);
  }
  async resize(): Promise<void> {}
  async release(): Promise<void> {
    this.released = true;
  }

  /** With everything that it started. */
  end(): void {
    try {
      process.kill(-this.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }

  async #read(stream: "stdout" | "stderr", from: Readable): Promise<void> {
    for await (const data of from as AsyncIterable<Buffer>) {
      for (let rest = data; rest.length > 0;) {
        rest = rest.subarray(this.#log.append(stream, rest));
        if (rest.length > 0) await this.#log.changed();
      }
    }
  }
}
