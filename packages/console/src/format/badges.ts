import type { SandboxRecord, SnapshotRecord } from "@sandboxer/client";

/** A fact about a saved state that users should see at once. */
export interface Badge {
  readonly text: string;
  readonly kind: "plain" | "good" | "info" | "warn" | "danger";
  /** The full sentence. */
  readonly title: string;
}

/** Badges of a sandbox, most important first. `damage` is the result of the last check of its checkpoints. */
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

/** Badges of a snapshot, most important first. */
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

/** The encryption of saved states, in words. */
export function encryptionWords({ heldBy, key }: NonNullable<SandboxRecord["encryption"]>): string {
  return heldBy === "server" ? `the server's key ${key}` : `a client key with the fingerprint ${key}`;
}

/** The possible loss if its server dies. */
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
