import { Transform, type TransformCallback } from "node:stream";

const MAX_REPORT_BYTES = 64 << 10;

export type StartReport =
  | { readonly kind: "started"; readonly pid: number }
  | { readonly kind: "no-folder" }
  | { readonly kind: "no-program" }
  /** It ended without a report; this is its output instead. */
  | { readonly kind: "silent"; readonly said: string };

/**
 * The command with which a starting process reports itself, on both of its streams: Docker carries both in one stream, in
 * any order. If the report were behind megabytes of the other stream, which nobody reads yet, it would never arrive.
 */
export function sayReport(nonce: string, what: string): string {
  const line = `printf '\\n%s %s\\n' ${nonce} ${what}`;
  return `{ ${line}; ${line} >&2; }`;
}

/** One stream of a starting process: passes on what follows the report. Earlier output comes from ssh or Docker. */
export class AfterReport extends Transform {
  readonly #pattern: RegExp;
  readonly #reported = Promise.withResolvers<string | undefined>();
  #found = false;
  #before: Buffer = Buffer.alloc(0);

  constructor(nonce: string) {
    super();
    this.#pattern = new RegExp(`\\n${nonce} (\\d+|no-folder|no-program)\\n`);
  }

  /** The report, or undefined if the stream ended without one. */
  get reported(): Promise<string | undefined> {
    return this.#reported.promise;
  }

  /** Its output without a report. */
  get said(): string {
    return this.#before.toString("utf8");
  }

  override _transform(data: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (this.#found) return done(null, data);
    this.#before = Buffer.concat([this.#before, data]);
    const match = this.#pattern.exec(this.#before.toString("latin1"));
    if (match === null) {
      this.#before = this.#before.subarray(-MAX_REPORT_BYTES);
      return done();
    }
    this.#found = true;
    const after = this.#before.subarray(match.index + match[0].length);
    this.#before = Buffer.alloc(0);
    this.#reported.resolve(match[1]);
    done(null, after);
  }

  override _flush(done: TransformCallback): void {
    this.#reported.resolve(undefined);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#reported.resolve(undefined);
    done(error);
  }
}

/** The report of a process, from the stream where it arrives first. */
export async function readReport(stdout: AfterReport, stderr: AfterReport): Promise<StartReport> {
  const both = [stdout.reported, stderr.reported];
  const word = (await Promise.race(both)) ?? (await Promise.all(both)).find((each) => each !== undefined);
  if (word === undefined) return { kind: "silent", said: stderr.said };
  return word === "no-folder" || word === "no-program" ? { kind: word } : { kind: "started", pid: Number(word) };
}
