import type { ObjectStore } from "../../store/store.ts";
import { imageDamaged } from "../image-errors.ts";
import type { OpenPlainImage } from "../open-image.ts";
import { oneAhead } from "./read-ahead.ts";

/** The bytes of an image from its start up to its manifest, handed out in the portions that the caller asks for. */
export class ImageReader {
  readonly #image: OpenPlainImage;
  readonly #chunks: AsyncGenerator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  #position = 0;

  constructor(store: ObjectStore, image: OpenPlainImage, signal: AbortSignal | undefined) {
    this.#image = image;
    const options = {
      start: 0,
      end: image.manifestOffset,
      reuseMemory: true,
      ...(signal === undefined ? {} : { signal }),
    };
    this.#chunks = oneAhead(asGenerator(store.read(image.key, options)));
  }

  /** The next `sizeBytes` bytes, as pieces in order. A piece is good until the next one is asked for. */
  async *take(sizeBytes: number, member?: string): AsyncGenerator<Uint8Array> {
    for (let left = sizeBytes; left > 0;) {
      if (this.#rest.byteLength === 0) await this.#refill(member);
      const piece = this.#rest.subarray(0, Math.min(left, this.#rest.byteLength));
      this.#rest = this.#rest.subarray(piece.byteLength);
      this.#position += piece.byteLength;
      left -= piece.byteLength;
      yield piece;
    }
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }

  async #refill(member: string | undefined): Promise<void> {
    const next = await this.#chunks.next();
    if (next.done === true) throw imageDamaged(this.#image.key, `truncated at byte ${this.#position}`, member);
    this.#rest = next.value;
  }
}

async function* asGenerator<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  yield* source;
}
