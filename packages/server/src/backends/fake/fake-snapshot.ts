import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isErrno, SandboxerError } from "@sandboxer/protocol";
import type { SandboxSpec, SnapshotPayload } from "../backend.ts";
import type { Fault } from "./faults.ts";
import type { MachineState } from "./machine/machine.ts";

const MEMBER = "state.json";

/** The requirements of a fake snapshot. */
export interface FakeRequirements {
  readonly engine: "fake";
  readonly engineVersion: string;
  readonly mode: "full" | "filesystem";
  readonly image: string;
}

export function requirementsOf(
  engineVersion: string,
  mode: FakeRequirements["mode"],
  spec: SandboxSpec,
): FakeRequirements {
  return { engine: "fake", engineVersion, mode, image: spec.image ?? "default" };
}

/** Writes the only member: the digest of the state in the first line, then the state as JSON. */
export async function writeSnapshot(
  into: string,
  state: MachineState,
  requirements: FakeRequirements,
  damage: Fault["damage"],
): Promise<SnapshotPayload> {
  const json = JSON.stringify(state);
  const content = Buffer.from(`${digestOf(json)}\n${json}`);
  const path = join(into, MEMBER);
  if (damage !== "missing") await writeFile(path, damaged(content, damage));
  if (damage === "half_written") {
    const cause = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", path });
    throw new SandboxerError("no_space", `No space left on the device (${path}).`, { cause });
  }
  return {
    kind: "fake-state",
    members: [{ name: MEMBER, path, sizeBytes: content.length }],
    requirements: { ...requirements },
  };
}

/** Compares the snapshot's requirements with this backend; throws before anything has happened. */
export function checkSnapshot(snapshot: SnapshotPayload, engineVersion: string, spec: SandboxSpec): void {
  if (snapshot.kind !== "fake-state") {
    throw new SandboxerError("image_incompatible", `The fake backend loads fake-state, not ${snapshot.kind}.`, {
      details: { kind: snapshot.kind },
    });
  }
  const here = requirementsOf(engineVersion, "full", spec);
  for (const name of ["engine", "engineVersion", "image"] as const) {
    const needed = snapshot.requirements[name];
    if (needed === here[name]) continue;
    throw new SandboxerError(
      "image_incompatible",
      `The image needs ${name} ${String(needed)}; this server has ${here[name]}.`,
      {
        details: { name, needed, here: here[name] },
      },
    );
  }
}

export async function readSnapshot(snapshot: SnapshotPayload): Promise<MachineState> {
  const member = snapshot.members.find(({ name }) => name === MEMBER);
  if (member === undefined) throw new SandboxerError("image_damaged", `The image has no member ${MEMBER}.`);
  const content = await readMember(member.path);
  const lineEnd = content.indexOf("\n");
  const json = content.slice(lineEnd + 1);
  if (lineEnd === -1 || digestOf(json) !== content.slice(0, lineEnd)) throw damagedMember("its digest differs");
  return JSON.parse(json) as MachineState;
}

async function readMember(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (thrown) {
    if (isErrno(thrown) && thrown.code === "ENOENT") throw damagedMember("it is missing", thrown);
    throw thrown;
  }
}

function damagedMember(what: string, cause?: unknown): SandboxerError {
  return new SandboxerError("image_damaged", `The member ${MEMBER} is damaged: ${what}.`, {
    cause,
    details: { member: MEMBER },
  });
}

function damaged(content: Buffer, damage: Fault["damage"]): Buffer {
  if (damage === "half_written" || damage === "truncated") return content.subarray(0, content.length >> 1);
  if (damage !== "flipped_byte") return content;
  const flipped = Buffer.from(content);
  const middle = content.length >> 1;
  flipped[middle] = (flipped[middle] ?? 0) ^ 1;
  return flipped;
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
