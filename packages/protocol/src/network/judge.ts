import { type Destination, matches, parseEntry, type NetworkEntry } from "./entry.ts";
import type { NetworkPolicy } from "./network-text.ts";

/** Whether a connection may be made; if not, the rule that refused it. */
export type Verdict = { readonly allowed: true } | { readonly allowed: false; readonly rule: string };

const ALLOWED: Verdict = { allowed: true };

/** A policy that is ready to judge connections. */
export class NetworkJudge {
  readonly policy: NetworkPolicy;
  readonly #allow: readonly NetworkEntry[] | undefined;
  readonly #deny: readonly NetworkEntry[];

  constructor(policy: NetworkPolicy) {
    this.policy = policy;
    const { allow, deny = [] } = typeof policy === "string" ? {} : policy;
    this.#allow = allow?.flatMap((text) => parseEntry(text) ?? []);
    this.#deny = deny.flatMap((text) => parseEntry(text) ?? []);
  }

  /** Whether names other than that of the destination matter, such as those that TLS or HTTP send. */
  get looksAtNames(): boolean {
    return typeof this.policy !== "string";
  }

  /**
   * Judges a destination. One without an address is allowed if some address could be: a name that no rule can allow is
   * not even resolved, because a question to a nameserver carries data out.
   */
  judge(to: Destination): Verdict {
    if (this.policy === "none") return { allowed: false, rule: "network none" };
    const denied = this.#deny.find((entry) => matches(entry, to));
    if (denied !== undefined) return { allowed: false, rule: `deny ${denied.text}` };
    if (this.#allow === undefined || this.#allow.some((entry) => matches(entry, to) || couldMatch(entry, to)))
      return ALLOWED;
    return { allowed: false, rule: "not in allow" };
  }

  /** The same for a question about a name, which has no port: it is allowed if some port could be. */
  judgeHost(to: Omit<Destination, "port">): Verdict {
    if (typeof this.policy === "string") return this.judge({ ...to, port: 0 });
    const deny = this.#deny.filter(({ port }) => port === undefined);
    const at = { ...to, port: 0 };
    const denied = deny.find((entry) => matches(entry, at));
    if (denied !== undefined) return { allowed: false, rule: `deny ${denied.text}` };
    const anyPort = this.#allow?.map(({ text, host }) => ({ text, host }));
    if (anyPort === undefined || anyPort.some((entry) => matches(entry, at) || couldMatch(entry, at))) return ALLOWED;
    return { allowed: false, rule: "not in allow" };
  }
}

function couldMatch({ host, port }: NetworkEntry, to: Destination): boolean {
  return "range" in host && to.address === undefined && (port === undefined || port === to.port);
}
