import { asSandboxerError } from "@sandboxer/protocol";
import type { StoredSandbox } from "../lease/stored-sandboxes.ts";
import type { SightedSnapshot } from "./collect-snapshots.ts";
import type { CollectionContext, IndexFindings } from "./garbage.ts";
import type { IndexComparison, IndexSurveyor } from "./index-survey.ts";

/** A comparison of the index whose failure does not stop the collection: a full store must be collected. */
export class IndexCheck {
  readonly #context: CollectionContext;
  readonly #surveyor: IndexSurveyor;
  #comparison: IndexComparison | undefined;
  #failure: string | undefined;

  constructor(context: CollectionContext, surveyor: IndexSurveyor) {
    this.#context = context;
    this.#surveyor = surveyor;
  }

  async begin(): Promise<void> {
    await this.#try(async () => {
      this.#comparison = await this.#surveyor.begin(this.#context);
    });
  }

  async head(stored: StoredSandbox): Promise<void> {
    await this.#try(async () => await this.#comparison?.head(stored));
  }

  async end(snapshots: readonly SightedSnapshot[]): Promise<IndexFindings> {
    const found = await this.#try(async () => await this.#comparison?.end(snapshots));
    const { missing, outdated, unconfirmed } = found ?? { missing: 0, outdated: 0, unconfirmed: 0 };
    const counts = { missing, outdated, unconfirmed };
    return this.#failure === undefined ? counts : { ...counts, failure: this.#failure };
  }

  async #try<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    if (this.#failure !== undefined) return undefined;
    try {
      return await work();
    } catch (error) {
      this.#context.signal?.throwIfAborted();
      this.#failure = asSandboxerError(error).message;
      return undefined;
    }
  }
}
