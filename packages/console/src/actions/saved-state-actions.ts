import type { Keep, Retention } from "../format/retention.ts";
import { spell } from "./sandbox-actions.ts";
import { snapshotPath } from "./snapshot-actions.ts";
import { literal, onServer, type Spellings } from "./spellings.ts";

/** Actions on saved states in other forms. */

export function verifySandboxSpellings(id: string): Spellings {
  return spell(["verify", `sandbox:${id}`], ["console.log(await sandbox.verify());"], id, {
    method: "POST",
    path: "/verify",
    body: {},
  });
}

export function verifySnapshotSpellings(id: string): Spellings {
  return onServer(["verify", id], `console.log(await client.snapshots.verify(${literal(id)}));`, {
    method: "POST",
    path: `${snapshotPath(id)}/verify`,
  });
}

export function proveSpellings(id: string): Spellings {
  return onServer(["prove", id], `const { proven } = await client.snapshots.prove(${literal(id)});`, {
    method: "POST",
    path: `${snapshotPath(id)}/prove`,
  });
}

export function pinSpellings(id: string, pinned: boolean): Spellings {
  return onServer(
    ["snapshots", pinned ? "pin" : "unpin", id],
    `await client.snapshots.update(${literal(id)}, { pinned: ${pinned} });`,
    { method: "PATCH", path: snapshotPath(id), body: { pinned } },
  );
}

export function retentionSpellings(id: string, retention: Retention | null): Spellings {
  const body = retention === null ? null : wireRetention(retention);
  return spell(
    [
      "update",
      id,
      ...keepOption("keep-checkpoints", retention?.checkpoints),
      ...keepOption("keep-snapshots", retention?.snapshots),
    ],
    [`await sandbox.update({ retention: ${JSON.stringify(retention)} });`],
    id,
    { method: "PATCH", path: "", body: { retention: body } },
  );
}

function keepOption(name: string, keep: Keep | undefined): string[] {
  if (keep === undefined) return [`--no-${name}`];
  const parts = { last: keep.keepLast, hourly: keep.hourly, daily: keep.daily };
  const said = Object.entries(parts).flatMap(([word, count]) => (count === undefined ? [] : [`${word}=${count}`]));
  return [`--${name}`, said.join(",")];
}

function wireRetention({ checkpoints, snapshots }: Retention): object {
  return {
    ...(checkpoints === undefined ? {} : { checkpoints: wireKeep(checkpoints) }),
    ...(snapshots === undefined ? {} : { snapshots: wireKeep(snapshots) }),
  };
}

function wireKeep({ keepLast, hourly, daily }: Keep): object {
  return { keep_last: keepLast, hourly, daily };
}
