import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import {
  contains,
  isPrivateAddress,
  type NetworkJudge,
  normalHost,
  parseAddress,
  parseRange,
  type IpAddress,
} from "@sandboxer/protocol";
import { askNameserver } from "./ask-nameserver.ts";
import type { Question } from "./dns-message.ts";
import { nameserverResolver, type Resolve } from "./resolver.ts";

export interface OutsideOptions {
  /** Private networks that sandboxes may reach, as CIDRs; absent: none. */
  readonly allowed?: readonly string[];
  /** Absent: the host's. */
  readonly nameservers?: readonly string[];
  /** For tests. */
  readonly resolve?: Resolve;
  readonly ownAddresses?: () => readonly string[];
}

/** A connection that a rule forbids. */
export class RefusedError extends Error {
  readonly rule: string;
  readonly address: string | undefined;

  constructor(rule: string, address?: string) {
    super(`refused: ${rule}`);
    this.rule = rule;
    this.address = address;
  }
}

/** A connection that could not be made. */
export class UnreachableError extends Error {}

export interface Target {
  /** As the program wrote it: a name, or an address. */
  readonly host: string;
  readonly port: number;
  /** The address of the host that the program chose; absent: any that the server finds. */
  readonly address?: string;
}

export interface Dialed {
  readonly socket: Socket;
  readonly name: string;
  readonly address: IpAddress;
}

const CONNECT_MS = 10_000;
const MAX_ADDRESSES = 4;
export const PRIVATE_RULE = "private address";

/** The network around this server, as far as sandboxes may reach it. Shared by all sandboxes. */
export class Outside {
  readonly #allowed: readonly ReturnType<typeof parseRange>[];
  readonly #nameservers: readonly string[];
  readonly #resolve: Resolve;
  readonly #ownAddresses: () => readonly string[];

  constructor(options: OutsideOptions = {}) {
    this.#allowed = (options.allowed ?? []).map((text) => parseRange(text));
    this.#nameservers = options.nameservers ?? [];
    this.#resolve = options.resolve ?? nameserverResolver(options.nameservers);
    this.#ownAddresses = options.ownAddresses ?? interfaceAddresses;
  }

  /**
   * Connects to the first address of a host that is allowed and answers. The address that was checked is the one that
   * is connected to: the name is not resolved again.
   */
  async dial({ host, port, address: chosen }: Target, judge: NetworkJudge, signal: AbortSignal): Promise<Dialed> {
    const name = hostName(host);
    if (name === undefined) throw new UnreachableError(`${JSON.stringify(host.slice(0, 100))} is not a host`);
    const literal = parseAddress(name);
    const before = judge.judge({ name, port, ...(literal === undefined ? {} : { address: literal }) });
    if (!before.allowed) throw new RefusedError(before.rule);
    const known = literal === undefined ? chosen : name;
    const texts = known === undefined ? await this.addressesOf(name) : [known];
    signal.throwIfAborted();
    const allowed = texts.slice(0, MAX_ADDRESSES).map((text) => this.#checked(text, { name, port }, judge));
    const usable = allowed.flatMap((each) => (each instanceof RefusedError ? [] : [each]));
    const [first] = allowed;
    if (usable.length === 0 && first instanceof RefusedError) throw first;
    let failure: unknown;
    for (const { text, address } of usable) {
      try {
        return { socket: await open(text, port, signal), name, address };
      } catch (error) {
        failure = error;
      }
      signal.throwIfAborted();
    }
    throw new UnreachableError(`cannot connect to ${name}:${port}: ${reasonOf(failure)}`);
  }

  /** Why sandboxes may not reach an address, whatever their policy is. */
  refusalOf(address: IpAddress): string | undefined {
    const isAllowed = this.#allowed.some((range) => range !== undefined && contains(range, address));
    if (isAllowed) return undefined;
    if (isPrivateAddress(address)) return PRIVATE_RULE;
    const isOwn = this.#ownAddresses().some((text) => same(parseAddress(text), address));
    return isOwn ? "address of the server" : undefined;
  }

  /** A nameserver's own answer. It may hold anything but addresses of the name. */
  ask(question: Question): Promise<Buffer> {
    return askNameserver(question, this.#nameservers);
  }

  #checked(
    text: string,
    to: { readonly name: string; readonly port: number },
    judge: NetworkJudge,
  ): { readonly text: string; readonly address: IpAddress } | RefusedError {
    const address = parseAddress(text);
    if (address === undefined) return new RefusedError(PRIVATE_RULE, text);
    const rule = this.refusalOf(address);
    if (rule !== undefined) return new RefusedError(rule, text);
    const verdict = judge.judge({ ...to, address });
    return verdict.allowed ? { text, address } : new RefusedError(verdict.rule, text);
  }

  /** Unchecked. */
  async addressesOf(name: string): Promise<readonly string[]> {
    try {
      return await this.#resolve(name);
    } catch (error) {
      throw new UnreachableError(`cannot resolve ${name}: ${reasonOf(error)}`, { cause: error });
    }
  }
}

/** A name or an address in its usual form; undefined: neither. */
export function hostName(host: string): string | undefined {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return parseAddress(bare) === undefined ? normalHost(bare) : bare.toLowerCase();
}

function open(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true, signal });
    const timer = setTimeout(() => socket.destroy(new Error("no answer")), CONNECT_MS);
    socket.once("error", reject);
    socket.once("close", () => clearTimeout(timer));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", reject);
      socket.setKeepAlive(true, 60_000);
      resolve(socket);
    });
  });
}

function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException | undefined)?.code ?? (error instanceof Error ? error.message : String(error));
}

function same(left: IpAddress | undefined, right: IpAddress): boolean {
  return left?.bits === right.bits && left.value === right.value;
}

function interfaceAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
}
