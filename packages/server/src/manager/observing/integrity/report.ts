import type { ImageProblemRecord, IntegrityReport } from "@sandboxer/protocol";
import type { LastScrub } from "../../../checkpoints/scrub/scrub-records.ts";
import type { ScrubResult } from "../../../checkpoints/scrub/store-scrub.ts";
import { ownerOf, type StoredImages } from "./stored-images.ts";

/** The lists in a report are cut at this length; the totals are exact. */
const LISTED = 1000;

export interface ReportOptions {
  readonly startedMs: number;
  readonly endedMs: number;
  /** Whether everything that is stored was checked. */
  readonly full: boolean;
  readonly nextStep?: string | undefined;
}

/** The result of a check in the form of the API. */
export function reportOf(
  result: ScrubResult,
  stored: StoredImages,
  { startedMs, endedMs, full, nextStep }: ReportOptions,
): IntegrityReport {
  const { images, blocks, bytes, damagedBlocks, missingPacks, unnamedPacks } = result;
  const problems = problemsOf(result, stored);
  const ok = images.damaged + images.unreadable + images.missing === 0;
  return {
    ok,
    started_at: new Date(startedMs).toISOString(),
    ended_at: new Date(endedMs).toISOString(),
    images,
    blocks,
    bytes,
    problems: problems.slice(0, LISTED),
    damaged_blocks: damagedBlocks.slice(0, LISTED).map(({ pack, offset, sizeBytes, problem, images: hurt }) => ({
      pack: pack ?? null,
      offset,
      size_bytes: sizeBytes,
      problem,
      images: [...hurt].toSorted().slice(0, LISTED),
    })),
    missing_packs: missingPacks
      .slice(0, LISTED)
      .map(({ pack, images: hurt }) => ({ pack, images: [...hurt].toSorted().slice(0, LISTED) })),
    unnamed_packs: full ? unnamedPacks : null,
    damaged_block_count: damagedBlocks.length,
    truncated: Math.max(problems.length, damagedBlocks.length, missingPacks.length) > LISTED,
    next_step: ok ? null : (nextStep ?? whatNext(problems)),
  };
}

export function problemsOf({ problems }: ScrubResult, stored: StoredImages): ImageProblemRecord[] {
  return [...problems]
    .map(([image, { verdict, problem }]) => {
      const { sandboxId, checkpoint, snapshotId } = ownerOf(image, stored);
      const owner = { sandbox_id: sandboxId, checkpoint, snapshot_id: snapshotId };
      return { image, state: verdict, problem, ...owner, current: stored.current.has(image) };
    })
    .toSorted((a, b) => (a.image < b.image ? -1 : 1));
}

/** For the store's record of the last pass. */
export function lastOf(report: IntegrityReport): LastScrub {
  const { damaged, unreadable, missing } = report.images;
  return {
    started_at: report.started_at,
    ended_at: report.ended_at,
    damaged_images: damaged + unreadable + missing,
    damaged_blocks: report.damaged_block_count,
    missing_packs: report.missing_packs.length,
  };
}

function whatNext(problems: readonly ImageProblemRecord[]): string {
  const live = problems.find(({ current, checkpoint, state }) => current && checkpoint !== null && state !== "locked");
  const saveAgain =
    "Save the running sandboxes (`sandboxer checkpoint ID --leave-running`): this writes damaged blocks again.";
  if (live === undefined) return `${saveAgain} Take damaged snapshots again, then delete the damaged ones.`;
  return `${saveAgain} For a paused sandbox, \`sandboxer verify ${live.sandbox_id}\` shows which older checkpoint is intact.`;
}
