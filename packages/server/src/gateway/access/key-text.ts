import { createHash, randomBytes } from "node:crypto";

const SHAPE = /^sbx_([0-9a-f]{12})_([0-9a-f]{64})$/;

/** The parts of `sbx_<id>_<secret>`. The id finds the record and is no secret. */
export interface KeyParts {
  readonly id: string;
  readonly secret: string;
}

/** 256 random bits, so that nobody can guess one, however fast. */
export function newKeyParts(): KeyParts {
  return { id: randomBytes(6).toString("hex"), secret: randomBytes(32).toString("hex") };
}

export function keyText({ id, secret }: KeyParts): string {
  return `sbx_${id}_${secret}`;
}

export function parseKey(text: string): KeyParts | undefined {
  const [, id, secret] = SHAPE.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** A plain hash is enough for a secret with full entropy: there is no list of likely secrets to try. */
export function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
