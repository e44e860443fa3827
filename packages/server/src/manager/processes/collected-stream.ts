import { StringDecoder } from "node:string_decoder";
import type { OutputShare } from "./output-budget.ts";

/** Output is copied into blocks of this size, so that its memory cost matches its length: a chunk may be one byte. */
const BLOCK_BYTES = 64 * 1024;

/** JSON writes characters below this as six, except for those with a short form: \b, \t, \n, \f and \r. */
const FIRST_PRINTABLE = 0x20;
const SHORT_IN_JSON: ReadonlySet<number> = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);
const LONG_IN_JSON_ADDS = 5;
/** As text, output may be three times as long in JSON, and a little more if it is short. */
const TEXT_MAY_ADD = { factor: 2, bytes: 1024 };

/** One stream of a process, in memory from a share of the budget. */
export class CollectedStream {
  readonly #share: OutputShare;
  readonly #looksLikeText: TextTest;
  readonly #blocks: Buffer[] = [];
  /** In the last block. */
  #used = BLOCK_BYTES;

  /** `from`: where the output begins. The first character may be cut if that is not 0. */
  constructor(share: OutputShare, from: number) {
    this.#share = share;
    this.#looksLikeText = new TextTest(from > 0);
  }

  get bytes(): number {
    return this.#blocks.length * BLOCK_BYTES - (BLOCK_BYTES - this.#used);
  }

  /** Waits for memory. False: the signal came first, and a part of the data is missing. */
  async append(data: Uint8Array, signal: AbortSignal): Promise<boolean> {
    let rest = data;
    while (rest.length > 0) {
      if (this.#used === BLOCK_BYTES) {
        if (!(await this.#share.take(BLOCK_BYTES, signal))) return false;
        this.#blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES));
        this.#used = 0;
      }
      const part = rest.subarray(0, BLOCK_BYTES - this.#used);
      this.#blocks.at(-1)?.set(part, this.#used);
      this.#used += part.length;
      this.#looksLikeText.add(part);
      rest = rest.subarray(part.length);
    }
    return true;
  }

  /**
   * Whether it is UTF-8 that JSON does not inflate. `cut`: bytes are missing at the end, so that half a character may
   * be there.
   */
  isText(cut: boolean): boolean {
    return this.#looksLikeText.passed(cut);
  }

  /** All of it in pieces; the memory of each piece is released with it, so it can be read once. */
  *take(encoding: "utf8" | "base64"): Generator<string, void, undefined> {
    const decoder = new StringDecoder(encoding);
    for (let block = this.#blocks.shift(); block !== undefined; block = this.#blocks.shift()) {
      yield decoder.write(this.#blocks.length === 0 ? block.subarray(0, this.#used) : block);
      this.#share.give(BLOCK_BYTES);
    }
    yield decoder.end();
  }
}

/** Checks output as it arrives, so that nothing waits for a check of all of it. */
class TextTest {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #isText = true;
  #bytes = 0;
  #longInJson = 0;
  #beginsCut: boolean;

  constructor(beginsCut: boolean) {
    this.#beginsCut = beginsCut;
  }

  add(data: Uint8Array): void {
    if (!this.#isText) return;
    this.#bytes += data.length;
    try {
      this.#decoder.decode(this.#beginsCut ? withoutHalfCharacter(data) : data, { stream: true });
      this.#beginsCut = false;
      for (const byte of data) if (byte < FIRST_PRINTABLE && !SHORT_IN_JSON.has(byte)) this.#longInJson += 1;
      this.#isText = !data.includes(0);
    } catch {
      this.#isText = false;
    }
  }

  passed(cut: boolean): boolean {
    const added = this.#longInJson * LONG_IN_JSON_ADDS;
    if (!this.#isText || added > this.#bytes * TEXT_MAY_ADD.factor + TEXT_MAY_ADD.bytes) return false;
    try {
      if (!cut) this.#decoder.decode();
      return true;
    } catch {
      return false;
    }
  }
}

function withoutHalfCharacter(data: Uint8Array): Uint8Array {
  const start = data.subarray(0, 3).findIndex((byte) => (byte & 0xc0) !== 0x80);
  return data.subarray(start === -1 ? 3 : start);
}
