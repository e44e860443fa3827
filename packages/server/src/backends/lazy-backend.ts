import type { Capabilities, FileExtras, Health, SandboxBackend } from "./backend.ts";

/** The facts about a backend before its code is loaded. */
export interface BackendProvider extends Pick<SandboxBackend, "name" | "loads" | "capturesWorkspace" | "keeps"> {
  /** Its maximum capabilities; once it is open, it reports them itself. */
  readonly capabilities: Capabilities;
  /** Its snapshots reference something that `forgetSnapshot` removes. */
  readonly refersOutside?: boolean;
  open(): Promise<SandboxBackend>;
}

type Calls = Required<SandboxBackend>;
/** Every member of the contract, including optional ones: a wrapper that omits one does not compile. */
type Complete = { readonly [Name in keyof Calls]: SandboxBackend[Name] };

/** A backend that is opened when it is first used: a server offers many and most users need one. */
export class LazyBackend implements Complete {
  readonly name: string;
  readonly #provider: BackendProvider;
  #opening: Promise<SandboxBackend> | undefined;
  #opened: SandboxBackend | undefined;

  readonly acquire: Calls["acquire"] = async (...given) => (await this.#open()).acquire(...given);
  readonly tryResume: Calls["tryResume"] = async (...given) => (await this.#open()).tryResume(...given);
  readonly acquireFromSnapshot: Calls["acquireFromSnapshot"] = async (...given) =>
    (await this.#open()).acquireFromSnapshot(...given);
  readonly estimateCost: Calls["estimateCost"] = async (...given) => (await this.#open()).estimateCost?.(...given);
  // A backend that is not open has prepared nothing.
  readonly takePrepared: Calls["takePrepared"] = async (...given) => this.#opened?.takePrepared?.(...given);
  readonly forgetPrepared: Calls["forgetPrepared"] = (...given) => this.#opened?.forgetPrepared?.(...given);
  // Only the engines of a server's own backend differ between machines.
  readonly needsOf: Calls["needsOf"] = (snapshot) => this.#opened?.needsOf?.(snapshot) ?? {};
  readonly stopPreparing: Calls["stopPreparing"] = async () => this.#opened?.stopPreparing?.();

  constructor(provider: BackendProvider) {
    this.name = provider.name;
    this.#provider = provider;
  }

  get capabilities(): Capabilities {
    return this.#opened?.capabilities ?? this.#provider.capabilities;
  }

  get loads(): readonly string[] {
    return this.#opened?.loads ?? this.#provider.loads ?? [];
  }

  get capturesWorkspace(): boolean {
    return this.#opened?.capturesWorkspace ?? this.#provider.capturesWorkspace ?? false;
  }

  get keeps(): FileExtras {
    return this.#opened?.keeps ?? this.#provider.keeps ?? { hardLinks: false, extendedAttributes: false };
  }

  get defaultResources(): SandboxBackend["defaultResources"] {
    return this.#opened?.defaultResources;
  }

  get workspaceFolder(): SandboxBackend["workspaceFolder"] {
    return this.#opened?.workspaceFolder;
  }

  get engines(): SandboxBackend["engines"] {
    return this.#opened?.engines;
  }

  get machine(): SandboxBackend["machine"] {
    return this.#opened?.machine;
  }

  get warm(): SandboxBackend["warm"] {
    return this.#opened?.warm;
  }

  async probe(): Promise<Health> {
    try {
      return await (await this.#open()).probe();
    } catch (error) {
      return { ok: false, summary: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Opened for leftovers of an earlier use. */
  readonly forgetSnapshot: Calls["forgetSnapshot"] = async (...given) => {
    if (this.#provider.refersOutside === true) await (await this.#open()).forgetSnapshot?.(...given);
  };

  async close(): Promise<void> {
    await (await this.#opening?.catch(() => undefined))?.close();
  }

  /** The next caller retries a failed opening. */
  async #open(): Promise<SandboxBackend> {
    this.#opening ??= this.#provider.open();
    try {
      this.#opened = await this.#opening;
      return this.#opened;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }
}
