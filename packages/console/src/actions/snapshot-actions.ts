import type { SnapshotRecord } from "@sandboxer/client";
import { spell } from "./sandbox-actions.ts";
import { commandLine, connection, curlLine, literal, onServer, sdkOnSandbox, type Spellings } from "./spellings.ts";

/** Snapshot actions in other forms. Undefined settings use the server's default. */

export type Labels = Readonly<Record<string, string>>;

export interface CaptureChoice {
  readonly name?: string | undefined;
  readonly mode?: "full" | "filesystem" | "workspace" | undefined;
  readonly labels?: Labels | undefined;
}

export function snapshotSpellings(id: string, choice: CaptureChoice): Spellings {
  const options = [...option("--name", choice.name), ...option("--mode", choice.mode), ...labelOptions(choice.labels)];
  const body = given({ ...choice });
  return spell(["snapshot", id, ...options], [`const snapshot = await sandbox.snapshot(${settings(body)});`], id, {
    method: "POST",
    path: "/snapshot",
    body,
  });
}

export interface ForkChoice {
  readonly count: number;
  readonly name?: string | undefined;
}

export function forkSpellings(id: string, { count, name }: ForkChoice): Spellings {
  const body = given({ count, name });
  return spell(
    ["fork", id, "--count", String(count), ...option("--name", name)],
    [`const copies = await sandbox.fork(${settings(body)});`],
    id,
    { method: "POST", path: "/fork", body },
  );
}

export function rewindSpellings(id: string, snapshotId: string): Spellings {
  return spell(["rewind", snapshotId, "--sandbox", id], [`await sandbox.rewind(${literal(snapshotId)});`], id, {
    method: "POST",
    path: "/rewind",
    body: { snapshot_id: snapshotId },
  });
}

export interface PromoteChoice {
  /** The sandbox that gets the state. */
  readonly into: string;
  readonly discardOthers: boolean;
}

export function promoteSpellings(id: string, { into, discardOthers }: PromoteChoice): Spellings {
  const call = { method: "POST", path: "/promote", body: { winner: id, discard_others: discardOthers } } as const;
  return {
    cli: commandLine("promote", id, "--into", into, ...(discardOthers ? ["--discard-others"] : [])),
    sdk: sdkOnSandbox(id, `await sandbox.promote(${settings({ into, discardOthers })});`),
    curl: spell([], [], into, call).curl,
  };
}

export function handoffSpellings(id: string, to: string): Spellings {
  return spell(["handoff", id, "--to", to], [`await sandbox.handoff(${literal(to)});`], id, {
    method: "POST",
    path: "/handoff",
    body: { to },
  });
}

export function moveSpellings(id: string, backend: string): Spellings {
  return spell(
    ["move", id, "--backend", backend],
    [`const moved = await sandbox.move(${settings({ backend })});`],
    id,
    {
      method: "POST",
      path: "/move",
      body: { backend },
    },
  );
}

export function renameSpellings(id: string, name: string | null): Spellings {
  const body = { name };
  const options = name === null ? ["--no-name"] : ["--name", name];
  return spell(["update", id, ...options], [`await sandbox.update(${settings(body)});`], id, {
    method: "PATCH",
    path: "",
    body,
  });
}

export function labelSpellings(id: string, before: Labels, labels: Labels): Spellings {
  const changed = Object.entries(labels).filter(([key, value]) => before[key] !== value);
  const removed = Object.keys(before).filter((key) => !Object.hasOwn(labels, key));
  const options = [
    ...changed.flatMap(([key, value]) => ["--label", `${key}=${value}`]),
    ...removed.flatMap((key) => ["--remove-label", key]),
  ];
  return spell(["update", id, ...options], [`await sandbox.update(${settings({ labels })});`], id, {
    method: "PATCH",
    path: "",
    body: { labels },
  });
}

export interface RestoreChoice {
  readonly name?: string | undefined;
  readonly backend?: string | undefined;
}

export function restoreSpellings(snapshotId: string, choice: RestoreChoice): Spellings {
  const body = given({ ...choice });
  return {
    cli: commandLine("restore", snapshotId, ...option("--name", choice.name), ...option("--backend", choice.backend)),
    sdk: [
      'import { Sandbox } from "@sandboxer/client";',
      "",
      `const sandbox = await Sandbox.restore(${literal(snapshotId)}, { ${[connection(), ...fields(body)].join(", ")} });`,
    ].join("\n"),
    curl: curlLine({ method: "POST", path: `${snapshotPath(snapshotId)}/restore`, body }, location.origin),
  };
}

export function deleteSnapshotSpellings(snapshotId: string): Spellings {
  return onServer(["snapshots", "rm", snapshotId], `await client.snapshots.delete(${literal(snapshotId)});`, {
    method: "DELETE",
    path: snapshotPath(snapshotId),
  });
}

export interface SnapshotChangeChoice {
  readonly name: string | null;
  readonly labels: Labels;
}

export function amendSnapshotSpellings(
  before: Pick<SnapshotRecord, "id" | "name" | "labels">,
  { name, labels }: SnapshotChangeChoice,
): Spellings {
  const { id } = before;
  const body = { ...(name === before.name ? {} : { name }), labels };
  const path = snapshotPath(id);
  const removes = Object.keys(before.labels).some((key) => !Object.hasOwn(labels, key));
  const added = Object.entries(labels).filter(([key, value]) => before.labels[key] !== value);
  const naming = name === before.name ? [] : name === null ? ["--none"] : [name];
  return onServer(
    // The command adds labels and removes none.
    removes
      ? ["api", "PATCH", path, "--body", JSON.stringify(body)]
      : ["snapshots", "name", id, ...naming, ...added.flatMap(([key, value]) => ["--label", `${key}=${value}`])],
    `await client.snapshots.update(${literal(id)}, ${settings(body)});`,
    { method: "PATCH", path, body },
  );
}

/** `to` is a snapshot, or `sandbox:ID`. */
export function diffSpellings(from: string, to: string): Spellings {
  return onServer(
    ["snapshots", "diff", from, to],
    `const diff = await client.snapshots.diff(${literal(from)}, ${literal(to)});`,
    { method: "GET", path: `${snapshotPath(from)}/diff?to=${encodeURIComponent(to)}` },
  );
}

export function snapshotPath(id: string): string {
  return `/v1/snapshots/${encodeURIComponent(id)}`;
}

function option(flag: string, value: string | undefined): string[] {
  return value === undefined ? [] : [flag, value];
}

function labelOptions(labels: Labels = {}): string[] {
  return Object.entries(labels).flatMap(([key, value]) => ["--label", `${key}=${value}`]);
}

function given(choice: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(choice).filter(([, value]) => value !== undefined));
}

/** The fields of an object of TypeScript. */
function fields(values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
}

/** An object literal; nothing if it is empty. */
function settings(values: Readonly<Record<string, unknown>>): string {
  return Object.keys(values).length === 0 ? "" : JSON.stringify(values);
}
