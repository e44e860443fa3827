import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { CallOptions } from "../../support/call-options.ts";
import type { SnapshotMember, SnapshotPayload } from "../backend.ts";
import { checkpointMembers, MEMBERS, takeCheckpoint, type CheckpointPlace } from "./checkpoint-files.ts";
import type { Container } from "./engine/answers.ts";
import { commitContainer, exportSnapshot } from "./image-snapshot.ts";
import { generationOf } from "./labels.ts";

/** Container settings that must be equal where its memory is loaded. */
const SharedFacts = z.object({
  runtime: z.string(),
  has_network: z.boolean(),
  /** `TARGET:ro` or `TARGET:rw`, sorted. */
  mounts: z.array(z.string()),
});
type SharedFacts = z.output<typeof SharedFacts>;

const CheckpointRequirements = SharedFacts.extend({
  generation: z.number().int().nonnegative(),
  /** For people: the version of the engine that made it. */
  engine: z.string(),
});

export interface SavedContainer {
  readonly checkpoint: string;
  readonly image: string;
}

/** Memory and files of a paused container, both at the engine, until {@link exportCheckpoint}. */
export async function saveContainer({ engine, instanceId }: CheckpointPlace, id: string): Promise<SavedContainer> {
  const checkpoint = randomBytes(8).toString("hex");
  await engine.createCheckpoint(id, checkpoint);
  try {
    return { checkpoint, image: await commitContainer(engine, id, instanceId, { withToken: true }) };
  } catch (error) {
    await engine.removeCheckpoint(id, checkpoint).catch(() => {});
    throw error;
  }
}

/** Streams both into a folder, and removes them from the engine, whatever happens. */
export async function exportCheckpoint(
  place: CheckpointPlace,
  container: Container,
  { checkpoint, image }: SavedContainer,
  into: string,
  { engine: version, ...options }: CallOptions & { readonly architecture: string; readonly engine: string },
): Promise<SnapshotPayload> {
  const { engine } = place;
  const id = container.Id;
  try {
    options.onProgress?.({ phase: "saving memory" });
    const memory = await takeCheckpoint(place, { id, image }, checkpoint, into, options);
    const files = await exportSnapshot(engine, image, into, options);
    const needed = { ...sharedFacts(container.HostConfig), generation: generationOf(container), engine: version };
    const requirements = { ...files.requirements, ...(needed satisfies z.input<typeof CheckpointRequirements>) };
    return { kind: "docker-checkpoint", members: [...files.members, ...memory], requirements };
  } catch (error) {
    await rm(join(into, MEMBERS), { recursive: true, force: true }).catch(() => {});
    throw options.signal?.aborted === true ? options.signal.reason : asSandboxerError(error);
  } finally {
    // Neither is worth failing a good save; both are removed with their container, or at the next start.
    await Promise.allSettled([engine.removeImage(image), engine.removeCheckpoint(id, checkpoint)]);
  }
}

export interface LoadableCheckpoint {
  readonly members: readonly SnapshotMember[];
  /** The configuration of the new sandbox. */
  readonly generation: number;
  /** For people: where it was made. */
  readonly madeBy: string;
}

/** Checks, before anything is done, whether a container with this configuration can continue from a checkpoint. */
export function checkCheckpoint(snapshot: SnapshotPayload, config: HostFacts): LoadableCheckpoint {
  const parsed = CheckpointRequirements.safeParse(snapshot.requirements);
  if (!parsed.success) throw new SandboxerError("image_damaged", "The snapshot does not list its requirements.");
  const { generation, engine, ...saved } = parsed.data;
  const here = sharedFacts(config);
  if (saved.runtime !== here.runtime) {
    throw incompatible(`the runtime ${saved.runtime}, but this server uses ${here.runtime}`);
  }
  if (saved.has_network !== here.has_network) {
    throw incompatible(
      saved.has_network ? "a network, but this sandbox has none" : "no network, but this sandbox has one",
    );
  }
  if (saved.mounts.join() !== here.mounts.join()) {
    throw incompatible(`the mounts ${listed(saved.mounts)}, but this sandbox has ${listed(here.mounts)}`);
  }
  const madeBy = `Docker ${engine} with ${saved.runtime}`;
  return { members: checkpointMembers(snapshot.members), generation: generation + 1, madeBy };
}

type HostFacts = Pick<Container["HostConfig"], "NetworkMode" | "Runtime"> & {
  readonly Mounts: readonly { readonly Target: string; readonly ReadOnly: boolean }[];
};

function sharedFacts({ Runtime, NetworkMode, Mounts }: HostFacts): SharedFacts {
  const mounts = Mounts.map(({ Target, ReadOnly }) => `${Target}:${ReadOnly ? "ro" : "rw"}`).toSorted();
  return { runtime: Runtime, has_network: NetworkMode !== "none", mounts };
}

function incompatible(needs: string): SandboxerError {
  return new SandboxerError("image_incompatible", `The snapshot contains the memory of a sandbox with ${needs}.`);
}

function listed(mounts: readonly string[]): string {
  return mounts.length === 0 ? "(none)" : mounts.join(", ");
}
