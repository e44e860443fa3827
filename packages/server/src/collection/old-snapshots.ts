import type { Retention } from "@sandboxer/protocol";
import { keptBy } from "../checkpoints/retention.ts";
import type { StoredSnapshot } from "../checkpoints/snapshot-record.ts";
import type { LeftReason } from "./garbage.ts";
import type { SnapshotRules } from "./snapshot-garbage.ts";
import type { Survey } from "./survey.ts";

/** Of the snapshots that are nothing but old, which a rule does not keep. Those with a name and pinned ones always stay. */
export async function oldSnapshots(
  records: readonly StoredSnapshot[],
  keep: Retention,
  { survey, standing }: { readonly survey: Survey; readonly standing: SnapshotRules["standing"] },
): Promise<readonly StoredSnapshot[]> {
  const expendable: StoredSnapshot[] = [];
  for (const record of records) {
    if (record.state !== "ready" || record.pinned === true) continue;
    if (record.name === null || (await standing(record.name, record.id)) !== "has") expendable.push(record);
  }
  const bySandbox = Map.groupBy(expendable, ({ sandbox_id }) => sandbox_id);
  return [...bySandbox].flatMap(([sandboxId, ofOne]) => {
    const rule = survey.retention.get(sandboxId)?.snapshots ?? keep.snapshots;
    if (rule === undefined) return [];
    const dated = ofOne.map((record) => ({ record, ms: Date.parse(record.created_at) || 0 }));
    const kept = keptBy(rule, dated);
    return dated.filter((each) => !kept.has(each)).map(({ record }) => record);
  });
}

/** Why an old one stays all the same; undefined: it goes. */
export function whyOldStays(record: StoredSnapshot, survey: Survey): LeftReason | undefined {
  if (survey.neededSnapshots.has(record.id)) return "in use";
  if (!survey.complete) return "a head that cannot be read may name it";
  // Only a server can tell its backend.
  return record.image_sha256 === null ? "past retention, and kept by its provider" : undefined;
}
