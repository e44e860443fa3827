import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isErrno, SandboxerError, parseCopyId } from "@sandboxer/protocol";
import { z } from "zod";
import { replaceFile } from "../../support/replace-file.ts";
import type { AcquireRequest } from "../backend.ts";
import type { ExtensionHandle } from "./extension.ts";

/** The record of a live sandbox, here or where the sandbox is. */
export const handleRecordSchema = z.object({
  format: z.literal(1),
  spec_hash: z.string(),
  handle: z.record(z.string(), z.string()),
});

/** The handles of live sandboxes, one file each; without a folder nothing is kept. */
export class HandleRecords {
  readonly #folder: string | undefined;

  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  get kept(): boolean {
    return this.#folder !== undefined;
  }

  /** Undefined if there is none, or one of another spec. */
  async read(request: AcquireRequest): Promise<ExtensionHandle | undefined> {
    const path = this.#pathOf(request.sandboxId);
    if (path === undefined) return undefined;
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (thrown) {
      if (isErrno(thrown) && thrown.code === "ENOENT") return undefined;
      throw thrown;
    }
    const record = parse(path, text);
    return fits(request, record.spec_hash) ? record.handle : undefined;
  }

  async write(request: AcquireRequest, handle: ExtensionHandle): Promise<void> {
    const path = this.#pathOf(request.sandboxId);
    if (path === undefined || this.#folder === undefined) return;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await replaceFile(path, recordText(request, handle));
  }

  async remove(sandboxId: string): Promise<void> {
    const path = this.#pathOf(sandboxId);
    if (path !== undefined) await rm(path, { force: true });
  }

  #pathOf(sandboxId: string): string | undefined {
    if (this.#folder === undefined) return undefined;
    if (parseCopyId(sandboxId) === undefined)
      throw new SandboxerError("bad_request", `"${sandboxId}" is not a sandbox id.`);
    return join(this.#folder, `${sandboxId}.json`);
  }
}

/** Without an identity a sandbox is found by its id alone. */
export function fits(request: AcquireRequest, recordedHash: string): boolean {
  return request.identity === undefined || request.identity.specHash === recordedHash;
}

/** As `handleRecordSchema` reads it. */
export function recordText(request: AcquireRequest, handle: ExtensionHandle): string {
  return JSON.stringify({ format: 1, spec_hash: request.identity?.specHash ?? "", handle });
}

function parse(path: string, text: string): z.infer<typeof handleRecordSchema> {
  try {
    return handleRecordSchema.parse(JSON.parse(text));
  } catch (thrown) {
    throw new SandboxerError("internal", `${path} is damaged.`, {
      cause: thrown,
      hint: "Delete the file, then remove the sandbox that it names by hand.",
    });
  }
}
