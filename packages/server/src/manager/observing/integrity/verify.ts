import { type IntegrityReport, SandboxerError } from "@sandboxer/protocol";
import { checkpointKey, checkpointMs } from "../../../checkpoints/checkpoint-names.ts";
import type { ImageTarget } from "../../../checkpoints/scrub/image-scrub.ts";
import type { ScrubResult } from "../../../checkpoints/scrub/store-scrub.ts";
import { imageKey } from "../../../checkpoints/snapshot-record.ts";
import type { ObservingContext } from "../../room-contexts.ts";
import { checkpointNotFound, notFound } from "../../not-found.ts";
import { findSnapshot } from "../../snapshots/source.ts";
import type { VerbOptions } from "../operations/tracked.ts";
import { integrityOf } from "./integrity-context.ts";
import type { Scrubber } from "./scrubber.ts";
import { markSnapshots, tellDamage } from "./note-damage.ts";
import { problemsOf, reportOf } from "./report.ts";
import { wakeFrom } from "./whole-checkpoint.ts";
import { readStoredImages, type StoredImages } from "./stored-images.ts";

const VERIFY_THREADS = 2;

/** Reads every block of a snapshot. Its record, and those of other snapshots with the same damage, get the result. */
export async function verifySnapshot(
  context: ObservingContext,
  scrubber: Scrubber,
  idOrName: string,
  options: VerbOptions = {},
): Promise<IntegrityReport> {
  const snapshot = await findSnapshot(context, idOrName);
  const { id, image_sha256: sha256, backend } = snapshot;
  if (sha256 === null) {
    throw new SandboxerError("not_supported", `The backend ${backend} keeps this snapshot itself.`, {
      hint: `Test-restore it with \`sandboxer prove ${id}\`.`,
    });
  }
  options.operation?.concerns({ snapshotId: id });
  await unlessDamaged(context.snapshots.checkKey(id, options.encryption ?? {}));
  const looks: Looks = {
    targets: [{ key: imageKey(id), sha256 }],
    isNamed: async () => (await context.snapshots.get(id)) !== undefined,
    snapshots: new Map([[imageKey(id), snapshot]]),
  };
  return await look(context, scrubber, looks, options, (bad) =>
    bad.size === 0
      ? undefined
      : "Take another snapshot while its sandbox runs: this writes damaged blocks again. Then delete this one.",
  );
}

/** Reads every block of the stored checkpoints of a sandbox, or of one of them. */
export async function verifySandbox(
  context: ObservingContext,
  scrubber: Scrubber,
  sandboxId: string,
  checkpoint: string | undefined,
  options: VerbOptions = {},
): Promise<IntegrityReport> {
  const head = await context.storedHead(sandboxId);
  if (head === undefined || head.state === "deleted") throw notFound(sandboxId);
  const stored = await context.durable.checkpoints.list(sandboxId);
  const present = head.checkpoint?.name;
  const names = new Set([...(present === undefined ? [] : [present]), ...stored.map(({ name }) => name)]);
  if (checkpoint !== undefined && !names.has(checkpoint)) {
    const hint = names.size === 0 ? "It has no stored checkpoints." : `It has ${[...names].join(", ")}.`;
    throw checkpointNotFound(checkpoint, hint);
  }
  const wanted = checkpoint === undefined ? [...names] : [checkpoint];
  const [first] = wanted;
  if (first !== undefined) {
    await unlessDamaged(context.durable.checkpoints.checkKey(sandboxId, first, options.encryption ?? {}));
  }
  const targets = wanted.map((name): ImageTarget => {
    return { key: checkpointKey(sandboxId, name), sha256: name === present ? head.checkpoint?.sha256 : undefined };
  });
  // A sandbox that was never saved starts from its origin.
  const snapshot = present === undefined && checkpoint === undefined ? head.lineage.snapshot : undefined;
  if (snapshot != null) targets.push({ key: imageKey(snapshot) });
  // Older ones are removed as new ones are saved.
  const isNamed = async (key: string): Promise<boolean> => {
    const now = await context.storedHead(sandboxId);
    const name = now?.checkpoint?.name;
    return key === (name === undefined ? imageKey(now?.lineage.snapshot ?? "") : checkpointKey(sandboxId, name));
  };
  return await look(
    context,
    scrubber,
    { targets, isNamed, snapshots: new Map() },
    options,
    (bad, { looked, problems }) => {
      const isBad = (name: string): boolean => bad.has(checkpointKey(sandboxId, name));
      if (present === undefined || !isBad(present)) return undefined;
      if (context.sandboxes.has(sandboxId)) {
        return `The sandbox runs on this server. Save it again (\`sandboxer checkpoint ${sandboxId} --leave-running\`): this writes damaged blocks again.`;
      }
      // A checkpoint may have been removed meanwhile or be encrypted; one newer than the head's was never published.
      const presentMs = checkpointMs(present) ?? Infinity;
      const isWhole = (key: string): boolean => looked.has(key) && !problems.has(key);
      const whole = wanted
        .filter((name) => isWhole(checkpointKey(sandboxId, name)) && (checkpointMs(name) ?? Infinity) <= presentMs)
        .toSorted(newestFirst)[0];
      return whole === undefined ? NONE_WHOLE : wakeFrom(sandboxId, whole);
    },
  );
}

/** A missing key is an error at once; damage goes into the report. */
async function unlessDamaged(check: Promise<void>): Promise<void> {
  await check.catch((error: unknown) => {
    if (!(error instanceof SandboxerError) || error.code !== "image_damaged") throw error;
  });
}

const NONE_WHOLE =
  "None of the checked checkpoints is intact. Restore a snapshot of the sandbox, or restore the store from a backup.";

function newestFirst(a: string, b: string): number {
  return (checkpointMs(b) ?? 0) - (checkpointMs(a) ?? 0);
}

interface Looks {
  readonly targets: readonly ImageTarget[];
  /** Whether a missing image should exist. */
  readonly isNamed: (key: string) => Promise<boolean>;
  /** The records of the checked snapshots, by image. */
  readonly snapshots: StoredImages["snapshots"];
}

async function look(
  context: ObservingContext,
  scrubber: Scrubber,
  { targets, isNamed, snapshots }: Looks,
  options: VerbOptions,
  nextStep: (bad: ReadonlySet<string>, result: ScrubResult) => string | undefined,
): Promise<IntegrityReport> {
  const { clock, workDirectory } = context.options;
  const { images } = integrityOf(context);
  const startedMs = clock.wallMs();
  const scrub = images.scrub({
    clock,
    workDirectory,
    threads: VERIFY_THREADS,
    presentedKey: options.encryption?.presentedKey,
  });
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  const onProgress = options.operation?.onProgress ?? options.onProgress;
  const result = await scrub.verify(targets, isNamed, {
    ...signal,
    ...(onProgress === undefined ? {} : { onProgress }),
  });
  const nothingElse: StoredImages = { digests: new Map(), current: new Set(), snapshots };
  // Everything is read only if other images may be affected.
  const stored =
    result.problems.size === 0
      ? nothingElse
      : await readStoredImages(context.durable.ownership.list(), context.snapshots);
  await markSnapshots(context.snapshots, result, stored);
  tellDamage(context.events, problemsOf(result, stored), stored);
  scrubber.found(result);
  const bad = new Set([...result.problems].flatMap(([key, { verdict }]) => (verdict === "locked" ? [] : [key])));
  const next = nextStep(bad, result);
  return reportOf(result, stored, { startedMs, endedMs: clock.wallMs(), full: false, nextStep: next });
}
