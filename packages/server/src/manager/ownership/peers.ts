/** What a server says of itself to anybody who asks. */
export interface InstanceCondition {
  /** Null without a store, and before it has one. */
  readonly instance_id: string | null;
  readonly frozen: boolean | null;
  readonly frozen_reason: string | null;
}

/** On whose behalf another server is asked: it is shown the same as this one was. */
export interface PeerCaller {
  readonly authorization: string | undefined;
}

/** What this server asks of others of the same store. */
export interface Peers {
  /** To take a sandbox up, on behalf of a caller. */
  resume(url: string, sandboxId: string, caller: PeerCaller): Promise<void>;
  /** How it is; undefined: it has not said in time. */
  condition(url: string): Promise<InstanceCondition | undefined>;
}
