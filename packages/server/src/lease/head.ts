import { HEAD_FORMAT, HEAD_HISTORY_LENGTH } from "@sandboxer/protocol";
import type { About, CheckpointReference, Head, HeadFlags, Lineage, Promotion } from "@sandboxer/protocol";

/**
 * The moves of a head, without I/O. Each takes the current head and returns the next one or the reason why not; only
 * the store's compare-and-swap decides whether the next one is applied.
 */
export type Move = (head: Head, stamp: Stamp) => MoveResult;

export type MoveResult = { readonly head: Head } | { readonly refusal: Refusal };

export type Refusal = "not_owner" | "held" | "deleted";

/** Fresh values for every version of a head. */
export interface Stamp {
  readonly nonce: string;
  /** ISO 8601. */
  readonly now: string;
}

/** The choices of a sandbox's creator; the rest of the head follows from its life. */
export interface NewSandbox {
  readonly idleTimeoutSeconds: number;
  readonly backend: string;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly flags: HeadFlags;
  readonly tokenHash: string | null;
  readonly lineage?: Lineage;
  readonly about?: About;
  /** Absent: the store. */
  readonly residence?: Head["residence"];
  /** Absent: the first. */
  readonly copy?: Head["copy"];
  /** Absent: now. */
  readonly createdAt?: string;
  /** The state to start from, for a folder that came without a head. */
  readonly checkpoint?: CheckpointReference;
}

const NO_LINEAGE: Lineage = { sandbox_id: null, checkpoint: null, filesystem_snapshot: null };

export function newHead(owner: string, sandbox: NewSandbox, stamp: Stamp): Head {
  return {
    format: HEAD_FORMAT,
    epoch: 1,
    owner,
    state: "live",
    want: null,
    checkpoint: sandbox.checkpoint ?? null,
    history: [],
    nonce: stamp.nonce,
    status: "created",
    createdAt: sandbox.createdAt ?? stamp.now,
    lastCheckpointedAt: sandbox.checkpoint?.created_at ?? null,
    idle_timeout: sandbox.idleTimeoutSeconds,
    backend: sandbox.backend,
    spec: { ...sandbox.spec },
    flags: sandbox.flags,
    token_hash: sandbox.tokenHash,
    lineage: sandbox.lineage ?? NO_LINEAGE,
    ...(sandbox.about === undefined ? {} : { about: sandbox.about }),
    ...(sandbox.residence === undefined ? {} : { residence: sandbox.residence }),
    ...(sandbox.copy === undefined ? {} : { copy: sandbox.copy }),
    timestamps: { updated_at: stamp.now, claimed_at: stamp.now, deleted_at: null },
  };
}

/**
 * Claims a sandbox that has no owner, or whose owner is dead, or whose owner is the claimant itself (it lost the answer
 * to an earlier claim). The epoch grows in each case, so that everything written for the old one is void.
 */
export function claim(claimant: string, deadOwner?: string): Move {
  return (head, stamp) => {
    if (head.state === "deleted") return { refusal: "deleted" };
    const free = head.owner === null || head.owner === claimant || head.owner === deadOwner;
    if (!free) return { refusal: "held" };
    return advance(head, stamp, {
      epoch: head.epoch + 1,
      owner: claimant,
      state: "live",
      want: null,
      status: "running",
      timestamps: { ...head.timestamps, claimed_at: stamp.now },
    });
  };
}

/** Makes a checkpoint the sandbox's state; the owner keeps the sandbox. */
export function publishCheckpoint(owner: Owner, checkpoint: CheckpointReference, status?: string): Move {
  return asOwner(owner, (head, stamp) =>
    advance(head, stamp, { ...pointer(checkpoint), status: status ?? head.status }),
  );
}

/**
 * Releases the sandbox, with a last checkpoint in the same step, or at its current one. `stoppedAt`, for a sandbox that
 * its provider keeps: since when it is stopped there, null if it keeps running; absent: unchanged.
 */
export function release(owner: Owner, checkpoint?: CheckpointReference, stoppedAt?: string | null): Move {
  return asOwner(owner, (head, stamp) => {
    const last = checkpoint ?? head.checkpoint;
    return advance(head, stamp, {
      ...(checkpoint === undefined ? {} : pointer(checkpoint)),
      ...(stoppedAt === undefined ? {} : { stopped_at: stoppedAt }),
      owner: null,
      state: "parked",
      want: null,
      status: last === null ? head.status : "checkpointed",
    });
  });
}

/** Deletes the sandbox: the head stays as a tombstone, and its data is no longer referenced. */
export function destroy(owner: Owner): Move {
  return asOwner(owner, (head, stamp) =>
    advance(head, stamp, {
      epoch: head.epoch + 1,
      owner: null,
      state: "deleted",
      want: null,
      checkpoint: null,
      status: "deleted",
      timestamps: { ...head.timestamps, deleted_at: stamp.now },
    }),
  );
}

/** Asks the owner to yield. The only change that another instance may make to a head with a live owner. */
export function ask(asker: string, request: string): Move {
  return (head, stamp) => {
    if (head.state === "deleted") return { refusal: "deleted" };
    return advance(head, stamp, { want: { instance_id: asker, request } });
  };
}

/** Takes back our own request. */
export function withdraw(request: string): Move {
  return (head, stamp) => {
    if (head.want?.request !== request) return { refusal: "not_owner" };
    return advance(head, stamp, { want: null });
  };
}

/** The owner refuses, with a reason. */
export function refuse(owner: Owner, reason: string): Move {
  return asOwner(owner, (head, stamp) => {
    const want = head.want === null ? null : { ...head.want, refused: reason };
    return advance(head, stamp, { want });
  });
}

/** Other changes by the owner: none of them affects ownership or state. */
export type HeadDetails = Pick<
  Partial<Head>,
  | "status"
  | "idle_timeout"
  | "flags"
  | "spec"
  | "token_hash"
  | "about"
  | "lineage"
  | "copy"
  | "spare_copy"
  | "promotion"
>;

export function updateDetails(owner: Owner, details: HeadDetails): Move {
  return asOwner(owner, (head, stamp) => advance(head, stamp, details));
}

/** The location of a sandbox after a move to another backend. */
export type NewHome = Required<
  Pick<Head, "backend" | "spec" | "flags" | "about" | "lineage" | "residence" | "copy" | "spare_copy">
>;

/**
 * Moves the sandbox to another backend. The epoch grows, so that clients with an earlier one are refused. Its
 * checkpoints are no longer its state; until the next one, the snapshot in its lineage is.
 */
export function rehouse(owner: Owner, home: NewHome): Move {
  return asOwner(owner, (head, stamp) =>
    advance(head, stamp, { ...home, epoch: head.epoch + 1, checkpoint: null, lastCheckpointedAt: null }),
  );
}

/** Another state for a sandbox, with everything that changes with the state. */
export interface Replacement extends Pick<HeadDetails, "spec" | "about" | "lineage" | "copy" | "spare_copy"> {
  /** Absent for a sandbox that is not saved to the store. */
  readonly checkpoint?: CheckpointReference | undefined;
  /** The state comes from a fork. */
  readonly promotion?: Promotion | undefined;
}

/**
 * Gives the sandbox another state, in one step. Before it the sandbox has its old state, after it the new one, whoever
 * owns it then. With a promotion the epoch grows, so that clients with an earlier one are refused, and so is a second
 * promotion that began before this one.
 */
export function replaceState(owner: Owner, { checkpoint, promotion, ...details }: Replacement): Move {
  return asOwner(owner, (head, stamp) =>
    advance(head, stamp, {
      ...details,
      ...(checkpoint === undefined ? {} : pointer(checkpoint)),
      ...(promotion === undefined ? {} : { promotion, epoch: head.epoch + 1 }),
    }),
  );
}

/** An instance at one epoch. The same instance at an earlier epoch is a different owner. */
export interface Owner {
  readonly instanceId: string;
  readonly epoch: number;
}

function asOwner(owner: Owner, move: Move): Move {
  return (head, stamp) => {
    if (head.state === "deleted") return { refusal: "deleted" };
    if (head.owner !== owner.instanceId || head.epoch !== owner.epoch) return { refusal: "not_owner" };
    return move(head, stamp);
  };
}

function pointer(checkpoint: CheckpointReference): Partial<Head> {
  return { checkpoint, lastCheckpointedAt: checkpoint.created_at };
}

function advance(head: Head, stamp: Stamp, changes: Partial<Head>): MoveResult {
  const next: Head = {
    ...head,
    ...changes,
    history: [head.nonce, ...head.history].slice(0, HEAD_HISTORY_LENGTH),
    nonce: stamp.nonce,
  };
  return { head: { ...next, timestamps: { ...next.timestamps, updated_at: stamp.now } } };
}

/** Every move by its name. The lease's core takes them as a whole, so that a test can inject a wrong one. */
export const headMoves = {
  newHead,
  claim,
  publishCheckpoint,
  release,
  destroy,
  ask,
  withdraw,
  refuse,
  updateDetails,
  rehouse,
  replaceState,
};

export type HeadMoves = typeof headMoves;
