import type { SandboxRecord, SnapshotRecord } from "@sandboxer/client";

/** Something about a saved state that a person should see without asking. */
export interface Badge {
  readonly text: string;
  readonly kind: "plain" | "good" | "info" | "warn" | "danger";
  /** The whole sentence. */
  readonly title: string;
}

/** Of a sandbox, what matters most first. `damage` is what a look at its checkpoints has found. */
export function sandboxBadges(
  { durability, encryption }: Pick<SandboxRecord, "durability" | "encryption">,
  damage: string | undefined,
): readonly Badge[] {
  const badges: Badge[] = [];
  if (durability.atRisk !== null) {
    const title = `A failure now could lose more than ${lossWords(durability.maxLoss)}: ${durability.atRisk.reason}`;
    badges.push({ text: "at risk", kind: "warn", title });
  }
  if (damage !== undefined) badges.push({ text: "damaged", kind: "danger", title: damage });
  if (encryption != null) badges.push(encryptedBadge(encryption));
  return badges;
}

/** Of a snapshot, what matters most first. */
export function snapshotBadges(snapshot: SnapshotRecord): readonly Badge[] {
  const { state, problem, unproven, pinned, name, encryption, proven } = snapshot;
  const badges: Badge[] = [];
  if (state !== "ready") badges.push({ text: state, kind: "danger", title: problem ?? `Its data is ${state}.` });
  if (unproven != null) {
    badges.push({
      text: "test restore failed",
      kind: "warn",
      title: `The last test restore failed: ${unproven.reason}`,
    });
  }
  if (pinned) badges.push({ text: "pinned", kind: "info", title: "Cannot be deleted until it is unpinned." });
  if (name !== null) badges.push({ text: "named", kind: "plain", title: "Retention does not remove it." });
  if (encryption != null) badges.push(encryptedBadge(encryption));
  if (proven != null) {
    badges.push({ text: "proven", kind: "good", title: `A test restore succeeded, on ${proven.engine}.` });
  }
  return badges;
}

/** What saved states are encrypted with, in words. */
export function encryptionWords({ heldBy, key }: NonNullable<SandboxRecord["encryption"]>): string {
  return heldBy === "server" ? `the server's key ${key}` : `a client key with the fingerprint ${key}`;
}

/** What was promised of what is lost when its server dies. */
export function lossWords(maxLoss: SandboxRecord["durability"]["maxLoss"]): string {
  if (maxLoss === null) return "everything since its last checkpoint";
  return typeof maxLoss === "string" ? `the last ${maxLoss}` : `the last ${maxLoss} executions`;
}

function encryptedBadge(encryption: NonNullable<SandboxRecord["encryption"]>): Badge {
  return {
    text: "encrypted",
    kind: "plain",
    title: `Its saved data is encrypted with ${encryptionWords(encryption)}.`,
  };
}
