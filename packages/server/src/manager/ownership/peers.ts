/** Public facts about a server. */
export interface InstanceCondition {
  /** Null without a store, and before the server registered. */
  readonly instance_id: string | null;
  readonly frozen: boolean | null;
  readonly frozen_reason: string | null;
  /** Absent: it accepts no sandboxes now, or is of an earlier release. */
  readonly room?: Room | undefined;
  /** Whether the container image that was asked about is on its machine. */
  readonly has_image?: boolean | undefined;
}

/** The room for more sandboxes on a server; null: it sets no limit. */
export interface Room {
  readonly places: number;
  readonly memory_bytes: number | null;
  readonly cpus: number | null;
}

/** How servers of a store know each other over TLS. */
export interface PeerTls {
  /** The authorities that the other server's certificate must come from, in PEM. */
  readonly ca: string;
  /** This server's own certificate and key, for a server that asks for them. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** The caller for whom another server is asked: it gets the same credentials as this one got. */
export interface PeerCaller {
  readonly authorization: string | undefined;
}

/** Its server drains, has died, or was asked to resume it and has no room for it, or cannot run it. */
export const LEFT_REASONS = ["drain", "server_died", "no_room"] as const;

/** A sandbox that its server has left, and that others may resume. */
export interface LeftSandbox {
  readonly sandboxId: string;
  /** The epoch at which it was left. At a later one, somebody else has taken it. */
  readonly epoch: number;
  /** The id of the server that ran it, or that was asked to. */
  readonly from: string;
  readonly reason: (typeof LEFT_REASONS)[number];
}

/** Requests of this server to others of the same store. */
export interface Peers {
  /** Tells it to resume a sandbox on behalf of a caller. */
  resume(url: string, sandboxId: string, caller: PeerCaller): Promise<void>;
  /** Asks it to resume a sandbox that no server runs. Throws if it does not accept it, or does not answer soon. */
  offer(url: string, left: LeftSandbox): Promise<void>;
  /** Its state; undefined: it did not answer in time. `image`: a container image that it may have. */
  condition(url: string, image?: string): Promise<InstanceCondition | undefined>;
}
