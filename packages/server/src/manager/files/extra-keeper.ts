import { type ErrorCode, SandboxerError } from "@sandboxer/protocol";
import type { Header } from "tar-stream";
import type { RawFiles } from "../../backends/backend.ts";
import { readAttributes } from "./tar-attributes.ts";

/** Errors of a file system that lacks a feature or has no room for it; any other error is a failure. */
const REFUSALS: readonly ErrorCode[] = [
  "not_supported",
  "bad_request",
  "permission_denied",
  "limit_reached",
  "no_space",
];

export interface LostExtras {
  /** Hard links that became separate files. */
  readonly copiedLinks: number;
  /** Extended attributes that could not be set. */
  readonly lostAttributes: number;
}

/** Restores hard links and extended attributes while a tree is unpacked, and counts the ones that are lost. */
export class ExtraKeeper implements LostExtras {
  copiedLinks = 0;
  lostAttributes = 0;
  readonly #files: RawFiles;
  readonly #wanted: boolean;

  constructor(files: RawFiles, wanted: boolean) {
    this.#files = files;
    this.#wanted = wanted;
  }

  /** Whether the link was created; if not, the name is free for a copy. */
  async makeHardLink(existing: string, path: string): Promise<boolean> {
    const made = this.#wanted && (await taken(this.#files.makeHardLink?.(existing, path)));
    if (!made) this.copiedLinks += 1;
    return made;
  }

  async setAttributes(path: string, header: Header): Promise<void> {
    const { pax } = header;
    if (!this.#wanted || pax == null) return;
    const { attributes, unreadable } = readAttributes(pax as Readonly<Record<string, string>>);
    this.lostAttributes += unreadable;
    for (const [name, value] of attributes) {
      if (!(await taken(this.#files.setAttribute?.(path, name, value)))) this.lostAttributes += 1;
    }
  }
}

async function taken(work: Promise<void> | undefined): Promise<boolean> {
  if (work === undefined) return false;
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof SandboxerError && REFUSALS.includes(error.code)) return false;
    throw error;
  }
}
