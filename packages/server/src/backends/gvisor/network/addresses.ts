import { networkInterfaces } from "node:os";
import { LINK_PREFIX } from "./names.ts";

/** Every sandbox with a network has four addresses of these, for a link with two ends. */
export const POOL = "10.213.0.0/16";
export const POOL_START = "10.213.";
/** The last four are the nameserver's. */
export const SLOTS = 16_383;
/** The nameserver of every sandbox: programs may remember it beyond a restore. No interface has the address. */
export const NAMESERVER = "10.213.255.253";

export interface LinkAddresses {
  /** The host's end. Its name is the claim on the addresses: the kernel allows a name for one link only. */
  readonly link: string;
  readonly host: string;
  readonly sandbox: string;
}

export function addressesOf(slot: number): LinkAddresses {
  const first = slot * 4;
  const address = (offset: number): string => `${POOL_START}${first >> 8}.${(first & 255) + offset}`;
  return { link: `${LINK_PREFIX}${slot}`, host: address(1), sandbox: address(2) };
}

/** An interface of the host that is in the pool but does not belong to a sandbox. */
export function poolConflict(interfaces = networkInterfaces()): string | undefined {
  const foreign = Object.entries(interfaces).filter(([name]) => !name.startsWith(LINK_PREFIX));
  return foreign.find(([, addresses]) => addresses?.some(({ address }) => address.startsWith(POOL_START)))?.[0];
}
