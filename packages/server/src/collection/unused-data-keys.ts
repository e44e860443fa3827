import { checkpointMs, checkpointsFolder } from "../checkpoints/checkpoint-names.ts";
import type { StoredDataKey } from "../checkpoints/keys/data-key-cell.ts";
import { readDataKeyOfImage } from "../checkpoints/open-image.ts";
import { mapAtOnce } from "../support/map-at-once.ts";
import type { CollectionContext } from "./garbage.ts";
import { nothingIfDamaged } from "../checkpoints/image-errors.ts";

const READS_AT_ONCE = 16;

/**
 * Sandboxes that hold a data key without need: retention has removed their last image under it, and newer ones use
 * another. Only sandboxes with several data keys are checked: a single key belongs to the images.
 */
export class UnusedDataKeys {
  readonly #context: CollectionContext;
  readonly #going: ReadonlySet<string>;
  readonly #keysOf = new Map<string, number>();
  readonly #used = new Map<string, Promise<ReadonlySet<string> | undefined>>();

  constructor(context: CollectionContext, cells: readonly (StoredDataKey | undefined)[], going: ReadonlySet<string>) {
    this.#context = context;
    this.#going = going;
    for (const cell of cells) {
      for (const holder of cell?.state === "kept" ? cell.holders : []) {
        this.#keysOf.set(holder, (this.#keysOf.get(holder) ?? 0) + 1);
      }
    }
  }

  /** The images are read after the cell. */
  async isUnused({ id }: StoredDataKey, holder: string): Promise<boolean> {
    const sandboxId = /^sandbox:([0-9a-f-]{36})$/.exec(holder)?.[1];
    if (sandboxId === undefined || (this.#keysOf.get(holder) ?? 0) < 2) return false;
    const using = this.#used.get(sandboxId) ?? this.#keysOfImages(sandboxId);
    this.#used.set(sandboxId, using);
    const used = await using;
    return used !== undefined && !used.has(id);
  }

  /** Undefined if one of the images does not say. */
  async #keysOfImages(sandboxId: string): Promise<ReadonlySet<string> | undefined> {
    const { store, signal } = this.#context;
    const folder = checkpointsFolder(sandboxId);
    const images: string[] = [];
    for await (const { key } of store.list(folder)) {
      if (checkpointMs(key.slice(folder.length + 1)) !== undefined && !this.#going.has(key)) images.push(key);
    }
    const reading = mapAtOnce(images, READS_AT_ONCE, (key) => readDataKeyOfImage(store, key), signal);
    const found = await reading.catch(nothingIfDamaged);
    return found === undefined ? undefined : new Set(found.filter((each) => each !== undefined));
  }
}
