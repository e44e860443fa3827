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
    const title = `More could be lost than ${lossWords(durability.maxLoss)}: ${durability.atRisk.reason}`;
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
    badges.push({ text: "not proven", kind: "warn", title: `A test restore has failed: ${unproven.reason}` });
  }
  if (pinned) badges.push({ text: "pinned", kind: "info", title: "Nobody removes it until it is unpinned." });
  if (name !== null) badges.push({ text: "named", kind: "plain", title: "No rule of retention removes it." });
  if (encryption != null) badges.push(encryptedBadge(encryption));
  if (proven != null) {
    badges.push({ text: "proven", kind: "good", title: `A test restore has answered, on ${proven.engine}.` });
  }
  return badges;
}

/** What saved states are encrypted with, in words. */
export function encryptionWords({ heldBy, key }: NonNullable<SandboxRecord["encryption"]>): string {
  return heldBy === "server" ? `the server's key ${key}` : `a client's key with the fingerprint ${key}`;
}

/** What was promised of what is lost when its server dies. */
export function lossWords(maxLoss: SandboxRecord["durability"]["maxLoss"]): string {
  if (maxLoss === null) return "what was done since its last checkpoint";
  return typeof maxLoss === "string" ? `the last ${maxLoss}` : `the last ${maxLoss} executions`;
}

function encryptedBadge(encryption: NonNullable<SandboxRecord["encryption"]>): Badge {
  return { text: "encrypted", kind: "plain", title: `What is saved of it is under ${encryptionWords(encryption)}.` };
}
