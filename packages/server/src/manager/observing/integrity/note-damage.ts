import type { ImageProblemRecord } from "@sandboxer/protocol";
import type { ScrubResult } from "../../../checkpoints/scrub/store-scrub.ts";
import type { SnapshotRepository } from "../../../checkpoints/snapshot-repository.ts";
import type { EventLog } from "../events/event-log.ts";
import type { StoredImages } from "./stored-images.ts";

/** Updates the snapshot records with the result: marks new damage and clears marks of repaired snapshots. */
export async function markSnapshots(
  library: Pick<SnapshotRepository, "note">,
  { looked, problems }: ScrubResult,
  { snapshots }: StoredImages,
): Promise<void> {
  for (const [key, { id, state: present }] of snapshots) {
    const found = problems.get(key);
    if ((found === undefined && !looked.has(key)) || found?.verdict === "locked") continue;
    const state = found === undefined ? "ready" : found.verdict === "missing" ? "missing" : "damaged";
    if (state !== present)
      await library.note(id, state, found === undefined ? null : `The image ${key}: ${found.problem}.`);
  }
}

/** `store.damaged`, once for each sandbox with its checkpoints, and once for each snapshot. */
export function tellDamage(
  events: EventLog,
  problems: readonly ImageProblemRecord[],
  { snapshots }: StoredImages,
): void {
  const damage = problems.filter(({ state }) => state !== "locked");
  for (const { image, snapshot_id, sandbox_id, state, problem, current } of damage) {
    if (snapshot_id === null) continue;
    const name = snapshots.get(image)?.name ?? null;
    const data = { snapshot_id, name, checkpoints: [], state, problem, current };
    events.append({ type: "store.damaged", sandboxId: sandbox_id, data });
  }
  const ofSandboxes = damage.filter(({ snapshot_id }) => snapshot_id === null);
  for (const [sandboxId, hurt] of Map.groupBy(ofSandboxes, ({ sandbox_id }) => sandbox_id)) {
    const worst = hurt.find(({ current }) => current) ?? hurt[0];
    const checkpoints = hurt.flatMap(({ checkpoint }) => checkpoint ?? []);
    const { state, problem, current } = worst ?? {};
    events.append({
      type: "store.damaged",
      sandboxId,
      data: { snapshot_id: null, name: null, checkpoints, state, problem, current },
    });
  }
}
