import { refuseLists } from "../refuse-lists.ts";
import { SandboxerError } from "@sandboxer/protocol";
import type {
  AcquireRequest,
  Capabilities,
  CostEstimate,
  ForgetOptions,
  Health,
  SandboxBackend,
  SandboxHandle,
  SandboxSpec,
  SnapshotPayload,
} from "../backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { ExtensionHandle, ExtensionTools, SandboxExtension } from "./extension.ts";
import { ExtensionSandbox } from "./extension-sandbox.ts";
import { HandleRecords } from "./handle-records.ts";
import { asExtensionError, lacking, toolsOf } from "./hooks.ts";
import { canSnapshot, kindOf, openSnapshot } from "./payload.ts";
import { SHELL_FILES } from "../traits.ts";

export interface ExtensionBackendOptions {
  /** Folder for the handles of live sandboxes, to find them again after a restart of this server. */
  readonly handlesDirectory?: string;
}

/** Creates a backend from an extension; its capabilities follow from the existing hooks. */
export class ExtensionBackend implements SandboxBackend {
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly capturesWorkspace: boolean;
  readonly keeps = SHELL_FILES;
  readonly #extension: SandboxExtension;
  readonly #records: HandleRecords;
  readonly #live = new Set<ExtensionSandbox>();

  constructor(extension: SandboxExtension, options: ExtensionBackendOptions = {}) {
    this.name = extension.name;
    this.#extension = extension;
    this.#records = new HandleRecords(options.handlesDirectory);
    this.capabilities = capabilitiesOf(extension, this.#records.kept);
    this.capturesWorkspace = this.capabilities.filesystemSnapshot;
  }

  async probe(): Promise<Health> {
    try {
      return (await this.#extension.probe?.()) ?? { ok: true, summary: `The extension ${this.name} is loaded.` };
    } catch (thrown) {
      const { message, hint } = asExtensionError(this.#extension, thrown);
      return { ok: false, summary: message, remedy: hint };
    }
  }

  async acquire(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle> {
    this.#checkSpec(request.spec);
    return this.#make(request, options, (tools) => this.#extension.provision(request, tools));
  }

  async acquireFromSnapshot(
    request: AcquireRequest,
    payload: SnapshotPayload,
    options: CallOptions = {},
  ): Promise<SandboxHandle> {
    const snapshot = openSnapshot(this.#extension, payload);
    this.#checkSpec(request.spec);
    return this.#make(request, options, (tools) => {
      if (this.#extension.restoreFromSnapshot === undefined) throw lacking(this.#extension, "snapshots");
      return this.#extension.restoreFromSnapshot(request, snapshot, tools);
    });
  }

  async tryResume(request: AcquireRequest, options: CallOptions = {}): Promise<SandboxHandle | undefined> {
    options.signal?.throwIfAborted();
    const live = [...this.#live].find((sandbox) => sandbox.sandboxId === request.sandboxId);
    if (live !== undefined) return live;
    const tools = toolsOf(options);
    try {
      const find = this.#extension.find?.bind(this.#extension);
      const handle = await (find === undefined ? this.#recorded(request, tools) : find(request, tools));
      if (handle === undefined) return undefined;
      await this.#records.write(request, handle);
      return this.#open(request, handle);
    } catch (thrown) {
      throw asExtensionError(this.#extension, thrown);
    }
  }

  async forgetSnapshot(payload: SnapshotPayload, options: ForgetOptions = {}): Promise<void> {
    const extension = this.#extension;
    if (extension.forgetSnapshot === undefined) return;
    const { record } = openSnapshot(extension, payload);
    try {
      await extension.forgetSnapshot(record, options.placement ?? {}, toolsOf(options));
    } catch (thrown) {
      throw asExtensionError(extension, thrown);
    }
  }

  /** Undefined if the extension does not say. */
  async estimateCost(request: AcquireRequest): Promise<CostEstimate | undefined> {
    try {
      return await this.#extension.estimateCost?.(request);
    } catch (thrown) {
      throw asExtensionError(this.#extension, thrown);
    }
  }

  /** Sandboxes that outlive the server are released; the others are removed. */
  async close(): Promise<void> {
    const live = [...this.#live];
    if (this.capabilities.outlivesServer) {
      for (const sandbox of live) sandbox.letGo();
    } else {
      await Promise.allSettled(live.map((sandbox) => sandbox.destroy()));
    }
    await this.#extension.close?.();
  }

  async #make(
    request: AcquireRequest,
    options: CallOptions,
    provide: (tools: ExtensionTools) => Promise<ExtensionHandle>,
  ): Promise<SandboxHandle> {
    options.signal?.throwIfAborted();
    const extension = this.#extension;
    const tools = toolsOf(options);
    let handle: ExtensionHandle | undefined;
    try {
      handle = await provide(tools);
      await extension.waitReady(handle, tools);
      options.signal?.throwIfAborted();
      await this.#records.write(request, handle);
      return this.#open(request, handle);
    } catch (thrown) {
      if (handle !== undefined) await this.#undo(handle, thrown);
      throw options.signal?.aborted === true ? options.signal.reason : asExtensionError(extension, thrown);
    }
  }

  async #undo(handle: ExtensionHandle, cause: unknown): Promise<void> {
    try {
      await this.#extension.teardown(handle, toolsOf());
    } catch (thrown) {
      const [failed, left] = [cause, thrown].map((error) => asExtensionError(this.#extension, error));
      const message = `${failed?.message} The partly created sandbox could not be removed: ${left?.message}`;
      throw new SandboxerError(failed?.code ?? "internal", message, { cause, details: { left: handle } });
    }
  }

  async #recorded(request: AcquireRequest, tools: ExtensionTools): Promise<ExtensionHandle | undefined> {
    const handle = await this.#records.read(request);
    if (handle === undefined) return undefined;
    try {
      await this.#extension.waitReady(handle, tools);
      return handle;
    } catch (thrown) {
      tools.signal.throwIfAborted();
      const error = asExtensionError(this.#extension, thrown);
      // A sandbox that cannot be reached now may still exist.
      if (error.row.retryable) throw error;
      return undefined;
    }
  }

  #open(request: AcquireRequest, handle: ExtensionHandle): ExtensionSandbox {
    const sandbox = new ExtensionSandbox({
      extension: this.#extension,
      request,
      handle,
      onRemoved: () => this.#records.remove(request.sandboxId),
      onEnded: (ended) => void this.#live.delete(ended),
    });
    this.#live.add(sandbox);
    return sandbox;
  }

  #checkSpec(spec: SandboxSpec): void {
    if (spec.image !== undefined) throw lacking(this.#extension, "choice of image");
    if (spec.network !== "none" && !this.capabilities.network) throw lacking(this.#extension, "network");
    refuseLists(this.name, spec.network);
    const limits = Object.entries(spec.resources).filter(([, value]) => value !== undefined);
    if (limits.length > 0) throw lacking(this.#extension, `limits (${limits.map(([name]) => name).join(", ")})`);
  }
}

function capabilitiesOf(extension: SandboxExtension, handlesKept: boolean): Capabilities {
  const snapshots = canSnapshot(extension);
  const files = snapshots && kindOf(extension) === "workspace-tar";
  return {
    snapshot: files ? "filesystem" : snapshots ? "metadata" : "none",
    filesystemSnapshot: files,
    pty: false,
    files: extension.exec !== undefined && extension.shell === true,
    connect: false,
    network: extension.network === true,
    limits: false,
    selfHosted: extension.selfHosted === true,
    outlivesServer: handlesKept || extension.find !== undefined,
  };
}
