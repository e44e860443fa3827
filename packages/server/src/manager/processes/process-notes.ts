import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { SnapshotMember, SnapshotPayload } from "../../backends/backend.ts";
import type { MasterKey } from "../../checkpoints/keys/master-key.ts";
import { jsonOf } from "../../support/json.ts";
import type { ManagerContext } from "../context.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { withWorkFolder } from "../saving/work-folder.ts";
import type { ManagedProcess } from "./managed-process.ts";

/** The member of an image with the records of its processes; see COMPATIBILITY.md. Images before it have none. */
export const PROCESSES_MEMBER = "processes.json";

/** The newest processes have their last output with them. */
const TAILS = 16;
const TAIL_BYTES = 16 * 1024;
const COMMAND_CHARACTERS = 4096;
/** A sandbox that does not answer is saved without any output. */
const PATIENCE_MS = 1_000;

const text = z.string().max(2 * COMMAND_CHARACTERS);
const count = z.int().nonnegative();

const noteSchema = z.looseObject({
  id: z.string().max(256),
  pid: count,
  command: z.array(text).max(COMMAND_CHARACTERS).nullable(),
  started_at: z.iso.datetime().nullable(),
  execution: z.boolean(),
  pty: z.boolean(),
  detached: z.boolean(),
  exit: z.looseObject({ code: z.int().nullable(), signal: count.nullable(), output_end: count }).nullable(),
  acknowledged: count,
  /** The last output, in base64; empty: it was not saved. */
  tail: z
    .array(z.looseObject({ stream: z.enum(["stdout", "stderr"]), offset: count, data: z.base64().max(4 * TAIL_BYTES) }))
    .max(1024),
});
/** A process of a saved sandbox, as it was right before the save. */
export type ProcessNote = z.infer<typeof noteSchema>;

const notesSchema = z.looseObject({ format: z.literal(1), processes: z.array(noteSchema).max(256) });

/** Adds the records of its processes to a captured state. `notes` were made right before the capture. */
export async function withNotes(
  state: SnapshotPayload,
  notes: readonly ProcessNote[],
  folder: string,
): Promise<SnapshotPayload> {
  if (notes.length === 0) return state;
  const content = JSON.stringify({ format: 1, processes: notes });
  const path = join(folder, PROCESSES_MEMBER);
  await writeFile(path, content);
  const member: SnapshotMember = { name: PROCESSES_MEMBER, path, sizeBytes: Buffer.byteLength(content) };
  return { ...state, members: [...state.members, member] };
}

/** Never throws: a save does not depend on it. */
export async function noteProcesses(sandbox: LiveSandbox): Promise<readonly ProcessNote[]> {
  const { all, recalled } = sandbox.processes;
  if (all.length === 0) return [];
  const silent = new Promise<undefined>((resolve) => setTimeout(resolve, PATIENCE_MS, undefined).unref());
  await Promise.race([recalled, silent]);
  const newest = new Set(all.slice(-TAILS));
  return await Promise.all(
    all.map(async (process) =>
      noteOf(process, newest.has(process) ? await Promise.race([tailOf(process), silent]) : []),
    ),
  );
}

function noteOf(process: ManagedProcess, tail: ProcessNote["tail"] = []): ProcessNote {
  const { id, pid, traits, exit, acknowledged, startedAt } = process;
  return {
    id,
    pid,
    command: process.command === null ? null : shortened(process.command),
    started_at: startedAt,
    execution: traits.execution,
    pty: traits.pty,
    detached: traits.detached,
    exit:
      exit === undefined ? null : { code: exit.code ?? null, signal: exit.signal ?? null, output_end: exit.outputEnd },
    acknowledged,
    tail,
  };
}

async function tailOf(process: ManagedProcess): Promise<ProcessNote["tail"]> {
  try {
    const { end } = await process.bounds();
    const { chunks } = await process.look(Math.max(0, end - TAIL_BYTES));
    return chunks.map(({ stream, offset, data }) => ({ stream, offset, data: Buffer.from(data).toString("base64") }));
  } catch {
    return [];
  }
}

function shortened(command: readonly string[]): string[] {
  const kept: string[] = [];
  let left = COMMAND_CHARACTERS;
  for (const word of command) {
    if (left <= 0) return [...kept, "…"];
    kept.push(word.length > left ? `${word.slice(0, left)}…` : word);
    left -= word.length + 1;
  }
  return kept;
}

type NotesContext = Pick<ManagerContext, "durable" | "snapshots"> & {
  readonly options: { readonly workDirectory: string };
};

/** Where the records of a sandbox's processes may be. */
export interface NotesPlace {
  readonly sandboxId: string;
  readonly checkpoint: string | null | undefined;
  readonly snapshot: string | null | undefined;
  readonly presentedKey: MasterKey | undefined;
}

/** The processes of a saved state: of the checkpoint, otherwise of the snapshot. None if they are unknown. */
export async function readNotes(context: NotesContext, place: NotesPlace): Promise<readonly ProcessNote[]> {
  const { sandboxId, checkpoint, snapshot, presentedKey } = place;
  const keys = presentedKey === undefined ? {} : { presentedKey };
  return await withWorkFolder(context.options.workDirectory, async (folder) => {
    const member =
      checkpoint != null
        ? await context.durable.checkpoints.loadMember(sandboxId, checkpoint, PROCESSES_MEMBER, folder, keys)
        : snapshot == null
          ? undefined
          : await context.snapshots.loadMember(snapshot, PROCESSES_MEMBER, folder, keys);
    if (member === undefined) return [];
    const parsed = notesSchema.safeParse(jsonOf(await readFile(member.path, "utf8")));
    return parsed.success ? parsed.data.processes : [];
  });
}
