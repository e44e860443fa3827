import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotPayload } from "../../backends/backend.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { BLOCK_BYTES } from "../blocks/block-table.ts";
import type { EncodeJob } from "../blocks/block-jobs.ts";
import type { OpenSession } from "../blocks/block-workers.ts";
import type { EncodedBlock } from "../blocks/encode-blocks.ts";
import { type BaseImage, baseMember } from "./base-image.ts";

/** The size of one job for a thread. */
const JOB_BYTES = 8 * BLOCK_BYTES;

/** The blocks of all members, in order. A few jobs run ahead of the consumer to keep all threads busy. */
export async function* encodeMembers(
  session: OpenSession,
  state: SnapshotPayload,
  base: BaseImage | undefined,
  { jobsAhead, signal, onProgress }: CallOptions & { readonly jobsAhead: number },
): AsyncGenerator<EncodedBlock> {
  const totalBytes = state.members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  let doneBytes = 0;
  const jobs = jobsOf(state, base);
  const underWay: { readonly job: EncodeJob; readonly blocks: Promise<readonly EncodedBlock[]> }[] = [];
  const startOne = (): void => {
    const job = jobs.next();
    if (job.done === true) return;
    const blocks = encoded(session, job.value);
    // A failure surfaces when its turn comes.
    blocks.catch(() => {});
    underWay.push({ job: job.value, blocks });
  };
  try {
    for (let ahead = 0; ahead < jobsAhead; ahead++) startOne();
    for (let next = underWay.shift(); next !== undefined; next = underWay.shift()) {
      signal?.throwIfAborted();
      startOne();
      yield* await next.blocks;
      doneBytes += next.job.sizeBytes;
      onProgress?.({ phase: "packing", doneBytes, totalBytes });
    }
  } finally {
    await Promise.allSettled(underWay.map(({ blocks }) => blocks));
  }
}

function* jobsOf({ members }: SnapshotPayload, base: BaseImage | undefined): Generator<EncodeJob> {
  let sequence = 0;
  for (const { name, path, sizeBytes } of members) {
    const alike = base && baseMember(base, name);
    for (let position = 0; position < sizeBytes; position += JOB_BYTES) {
      const size = Math.min(JOB_BYTES, sizeBytes - position);
      yield { kind: "encode", path, position, sizeBytes: size, baseMember: alike, sequence };
      sequence += Math.ceil(size / BLOCK_BYTES);
    }
  }
}

async function encoded(session: OpenSession, job: EncodeJob): Promise<readonly EncodedBlock[]> {
  const result = await session.run(job);
  if (result.kind === "encoded") return result.blocks;
  throw new SandboxerError("internal", "A thread gave another answer than was asked for.");
}
