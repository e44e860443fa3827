import { readFile } from "node:fs/promises";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import type { ImageLabel } from "../../src/checkpoints/image-context.ts";
import { ALIGNMENT_BYTES, encodeFooter, encodeHeaderStart, sha256Of } from "../../src/checkpoints/image-format.ts";

const LABEL: ImageLabel = { sandboxId: "sandbox", createdAt: "2026-11-15T15:00:00.000Z", parent: null };

/** An image of format 1, which servers read and no longer write. */
export async function packPlainImage(state: SnapshotPayload, label: ImageLabel = LABEL): Promise<Buffer> {
  const parts = [padded(encodeHeaderStart(1))];
  const members = [];
  for (const { name, path } of state.members) {
    const content = await readFile(path);
    const offset = Buffer.concat(parts).byteLength;
    members.push({ name, size_bytes: content.byteLength, offset, sha256: sha256Of(content) });
    parts.push(padded(content));
  }
  const { sandboxId, createdAt, parent } = label;
  const described = { sandbox_id: sandboxId, kind: state.kind, created_at: createdAt, parent };
  const manifest = Buffer.from(JSON.stringify({ format: 1, ...described, requirements: state.requirements, members }));
  const manifestOffset = Buffer.concat(parts).byteLength;
  const [manifestBytes, manifestSha256] = [manifest.byteLength, sha256Of(manifest)];
  return Buffer.concat([
    ...parts,
    manifest,
    encodeFooter({ format: 1, manifestOffset, manifestBytes, manifestSha256 }),
  ]);
}

function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes], Math.ceil(bytes.byteLength / ALIGNMENT_BYTES) * ALIGNMENT_BYTES);
}
