import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import type { AcquireRequest, SandboxBackend, SandboxHandle, SandboxSpec } from "../../../src/backends/backend.ts";

export type OpenBackend = () => Promise<{ backend: SandboxBackend; close: () => Promise<void> }>;

export interface ContractOptions {
  /** False for a backend whose sandboxes run nothing; no capability describes this. */
  readonly runsCommands?: boolean;
}

/** Shared by the tests: the backend, one sandbox for tests that leave it unchanged, and clean-up. */
export class ContractContext {
  readonly runsCommands: boolean;
  readonly #open: OpenBackend;
  readonly #closing: (() => Promise<void>)[] = [];
  #handles: SandboxHandle[] = [];
  #backend: SandboxBackend | undefined;
  #shared: Promise<SandboxHandle> | undefined;

  constructor(open: OpenBackend, options: ContractOptions) {
    this.#open = open;
    this.runsCommands = options.runsCommands ?? true;
  }

  async start(): Promise<void> {
    this.#backend = await this.openAnother();
  }

  /** Processes that outlive their test would take the CPU from later tests. */
  async endTest(): Promise<void> {
    const handles = this.#handles;
    this.#handles = [];
    await Promise.allSettled(handles.map((handle) => handle.destroy()));
  }

  async finish(): Promise<void> {
    await this.endTest();
    await this.#shared?.then((handle) => handle.destroy()).catch(() => {});
    for (const close of this.#closing.toReversed()) await close();
  }

  get backend(): SandboxBackend {
    if (this.#backend === undefined) throw new Error("The suite has not started.");
    return this.#backend;
  }

  /** Another instance, as on another server. */
  async openAnother(): Promise<SandboxBackend> {
    const { backend, close } = await this.#open();
    this.#closing.push(close);
    return backend;
  }

  /** The sandbox that many tests use one after the other. */
  shared(): Promise<SandboxHandle> {
    this.#shared ??= this.backend.acquire(newRequest({ env: { GREETING: "grüß dich" } }));
    return this.#shared;
  }

  async acquire(spec: Partial<SandboxSpec> = {}, backend = this.backend): Promise<SandboxHandle> {
    return this.keep(await backend.acquire(newRequest(spec)));
  }

  /** Deleted at the end of the test, whatever the test did. */
  keep(handle: SandboxHandle): SandboxHandle {
    this.#handles.push(handle);
    return handle;
  }

  /** An empty folder on this machine. */
  async folder(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), "backend-contract-"));
    this.#closing.push(() => rm(path, { recursive: true, force: true }));
    return path;
  }
}

export function newRequest(spec: Partial<SandboxSpec> = {}): AcquireRequest {
  return { sandboxId: randomUUID(), spec: { env: {}, resources: {}, network: "none", ...spec } };
}
