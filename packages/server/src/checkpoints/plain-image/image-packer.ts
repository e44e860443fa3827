import { createHash } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotMember, SnapshotPayload } from "../../backends/backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import {
  ALIGNMENT_BYTES,
  encodeFooter,
  encodeHeader,
  IMAGE_FORMAT,
  type Manifest,
  type ManifestMember,
  paddingAfter,
  sha256Of,
} from "../image-format.ts";
import type { ImageLabel } from "../image-context.ts";
import { checkMemberNames } from "../member-names.ts";
import { oneAhead, readAhead, ReadRing } from "./read-ahead.ts";

const ZEROS = Buffer.alloc(ALIGNMENT_BYTES);

/**
 * Turns a saved state into the bytes of one image, in one pass: while one chunk is being written by the consumer, the
 * next is hashed and those after it are read. A chunk's memory is used again once the next one is asked for.
 */
export class ImagePacker {
  readonly #state: SnapshotPayload;
  readonly #label: ImageLabel;
  readonly #options: CallOptions;
  readonly #totalBytes: number;
  #doneBytes = 0;
  #packed: { readonly manifestSha256: string; readonly sizeBytes: number } | undefined;

  constructor(state: SnapshotPayload, label: ImageLabel, options: CallOptions = {}) {
    this.#state = state;
    this.#label = label;
    this.#options = options;
    this.#totalBytes = state.members.reduce((sum, member) => sum + member.sizeBytes, 0);
    checkMemberNames(state.members);
  }

  /** Known once {@link chunks} has come to its end. */
  get packed(): { readonly manifestSha256: string; readonly sizeBytes: number } {
    if (this.#packed === undefined) throw new SandboxerError("internal", "The image is not packed yet.");
    return this.#packed;
  }

  chunks(): AsyncGenerator<Uint8Array> {
    return oneAhead(this.#generate());
  }

  async *#generate(): AsyncGenerator<Uint8Array> {
    const ring = new ReadRing();
    yield encodeHeader();
    let offset = ALIGNMENT_BYTES;
    const members: ManifestMember[] = [];
    for (const member of this.#state.members) {
      const packed = yield* this.#packMember(member, offset, ring);
      members.push(packed);
      const padding = paddingAfter(packed.size_bytes);
      if (padding > 0) yield ZEROS.subarray(0, padding);
      offset += packed.size_bytes + padding;
    }
    const manifest = Buffer.from(JSON.stringify(this.#manifest(members)));
    const manifestSha256 = sha256Of(manifest);
    const footer = encodeFooter({
      format: 1,
      manifestOffset: offset,
      manifestBytes: manifest.byteLength,
      manifestSha256,
    });
    this.#packed = { manifestSha256, sizeBytes: offset + manifest.byteLength + footer.byteLength };
    yield manifest;
    yield footer;
  }

  async *#packMember(
    member: SnapshotMember,
    offset: number,
    ring: ReadRing,
  ): AsyncGenerator<Uint8Array, ManifestMember> {
    const hash = createHash("sha256");
    let sizeBytes = 0;
    for await (const chunk of readAhead(member.path, ring)) {
      this.#options.signal?.throwIfAborted();
      hash.update(chunk);
      sizeBytes += chunk.byteLength;
      this.#doneBytes += chunk.byteLength;
      this.#options.onProgress?.({ phase: "packing", doneBytes: this.#doneBytes, totalBytes: this.#totalBytes });
      yield chunk;
    }
    return { name: member.name, size_bytes: sizeBytes, offset, sha256: hash.digest("hex") };
  }

  #manifest(members: ManifestMember[]): Manifest {
    return {
      format: IMAGE_FORMAT,
      sandbox_id: this.#label.sandboxId,
      kind: this.#state.kind,
      created_at: this.#label.createdAt,
      parent: this.#label.parent,
      requirements: { ...this.#state.requirements },
      members,
    };
  }
}
