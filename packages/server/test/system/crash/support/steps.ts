import { headSchema, type Head } from "@sandboxer/protocol";

/** A call to the store, as the rest of the server makes it: what it does, to what, and the head that goes over. */
export interface StoreCall {
  readonly operation: "readCell" | "swapCell" | "list" | "read" | "write" | "writeText";
  readonly key: string;
  /** The written or read content, if it is a head. */
  readonly head?: Head | undefined;
}

/** Where a server ends: before a call, in the middle of the bytes that it writes, or once the call is done. */
export interface Step {
  readonly moment: "before" | "within" | "after";
  readonly isAt: (call: StoreCall) => boolean;
}

const swaps =
  (matches: (head: Head) => boolean): Step["isAt"] =>
  ({ operation, head }) =>
    operation === "swapCell" && head !== undefined && matches(head);
const creates = swaps((head) => head.epoch === 1 && head.owner !== null && head.want === null);
const claims = swaps((head) => head.epoch > 1 && head.owner !== null && head.want === null);
const releases = swaps((head) => head.state === "parked");
const asks = swaps((head) => head.want !== null && head.want.refused === undefined);
const publishesAlive = swaps((head) => head.epoch === 1 && head.owner !== null && head.checkpoint !== null);
const promotes = swaps(({ promotion }) => promotion != null && promotion.ends.length > 0);
const deletes = swaps((head) => head.state === "deleted");
const announcesCopy = swaps(({ copy = 0, spare_copy: spare }) => spare != null && spare.copy > copy);
const replacesCopy = swaps(({ copy = 0, spare_copy: spare }) => spare != null && spare.copy < copy);
const isImage = ({ key }: StoreCall): boolean => /\/checkpoint_\d+\.img$/.test(key);
/** Not the look at what the image needs of a machine, which comes before the claim. */
const loadsImage = (): Step["isAt"] => {
  let isClaimed = false;
  return (call) => {
    isClaimed ||= claims(call);
    return isClaimed && call.operation === "read" && isImage(call);
  };
};
const writesImage = (call: StoreCall): boolean => call.operation === "write" && isImage(call);
const swapsCell =
  (pattern: RegExp): Step["isAt"] =>
  ({ operation, key }) =>
    operation === "swapCell" && pattern.test(key);
const writesSnapshot = ({ operation, key }: StoreCall): boolean =>
  operation === "write" && /^snapshots\/.*\/image\.img$/.test(key);

/**
 * The steps of a sandbox's life between which a server may die. Each is seen from the store: what happens between two
 * calls to it stays in the process, and goes with it.
 */
export const STEPS = {
  "the sandbox is made, its head is not": { moment: "before", isAt: creates },
  "the head is made": { moment: "after", isAt: creates },
  "the state is saved, nothing of it is in the store": {
    moment: "before",
    isAt: ({ operation, key }) => operation === "list" && key.endsWith("/checkpoints"),
  },
  "half of the image is written": { moment: "within", isAt: writesImage },
  "the image is written": { moment: "after", isAt: writesImage },
  "the head is about to be released": { moment: "before", isAt: releases },
  "the head is released": { moment: "after", isAt: releases },
  "latest is written": { moment: "after", isAt: ({ operation }) => operation === "writeText" },
  "the head is about to name a live checkpoint": { moment: "before", isAt: publishesAlive },
  "the head names a live checkpoint": { moment: "after", isAt: publishesAlive },
  "the head is claimed": { moment: "after", isAt: claims },
  "the image is read": { moment: "after", isAt: loadsImage() },
  "the owner is asked": { moment: "after", isAt: asks },
  "the request is seen": {
    moment: "after",
    isAt: ({ operation, head }) => operation === "readCell" && head != null && head.want !== null,
  },
  "a snapshot is announced": { moment: "after", isAt: swapsCell(/^snapshots\/.*\/record\.json$/) },
  "half of a snapshot's image is written": { moment: "within", isAt: writesSnapshot },
  "a snapshot's image is written": { moment: "after", isAt: writesSnapshot },
  "a snapshot is about to get its name": { moment: "before", isAt: swapsCell(/^snapshot-names\//) },
  "a snapshot has its name": { moment: "after", isAt: swapsCell(/^snapshot-names\//) },
  "a copy at the provider is announced": { moment: "after", isAt: announcesCopy },
  "a copy at the provider is about to take the sandbox's place": { moment: "before", isAt: replacesCopy },
  "a copy at the provider has taken the sandbox's place": { moment: "after", isAt: replacesCopy },
  "the head is about to name a promotion": { moment: "before", isAt: promotes },
  "the head names a promotion": { moment: "after", isAt: promotes },
  "the head is about to become a tombstone": { moment: "before", isAt: deletes },
  "the head is a tombstone": { moment: "after", isAt: deletes },
} as const satisfies Record<string, Step>;

export type StepName = keyof typeof STEPS;

export function headIn(key: string, body: Uint8Array | undefined): Head | undefined {
  if (body === undefined || !key.endsWith("/metadata.json")) return undefined;
  return headSchema.safeParse(JSON.parse(Buffer.from(body).toString("utf8"))).data;
}
