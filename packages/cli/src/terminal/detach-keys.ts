import { SandboxerError } from "@sandboxer/protocol/errors";

export const DEFAULT_DETACH_KEYS = "ctrl-p,ctrl-q";

/** `ctrl-p,ctrl-q` as the bytes that the keys send. An empty text: no keys detach. */
export function parseDetachKeys(text: string): Uint8Array {
  if (text === "") return new Uint8Array();
  return Uint8Array.from(text.split(","), (key) => {
    const control = /^ctrl-([a-z@[\\\]^_])$/.exec(key)?.[1];
    if (control !== undefined) return control.toUpperCase().charCodeAt(0) & 0x1f;
    if (/^[\x20-\x7e]$/.test(key)) return key.charCodeAt(0);
    throw new SandboxerError("bad_request", `"${key}" is not a detach key.`, {
      hint: "Separate keys with commas; each is a letter or ctrl-LETTER, for example ctrl-p,ctrl-q.",
    });
  });
}

export interface Keystrokes {
  /** The input for the program. */
  readonly pass: Uint8Array;
  readonly detach: boolean;
}

/**
 * Looks for the detach keys in typed input. A possible beginning is held back until it is clear that it is not them.
 */
export class DetachKeys {
  readonly #keys: Uint8Array;
  #matched = 0;

  constructor(keys: Uint8Array) {
    this.#keys = keys;
  }

  filter(typed: Uint8Array): Keystrokes {
    if (this.#keys.length === 0) return { pass: typed, detach: false };
    const pass: number[] = [];
    for (const byte of typed) {
      if (byte === this.#keys[this.#matched]) {
        this.#matched += 1;
        if (this.#matched === this.#keys.length) return { pass: Uint8Array.from(pass), detach: true };
        continue;
      }
      pass.push(...this.#keys.subarray(0, this.#matched));
      this.#matched = byte === this.#keys[0] ? 1 : 0;
      if (this.#matched === 0) pass.push(byte);
    }
    return { pass: Uint8Array.from(pass), detach: false };
  }
}
