import { type E2bNetworkUpdate, type NetworkPolicy, normalNetwork, parseEntry, parseRange } from "@sandboxer/protocol";
import { E2bError } from "../errors.ts";

const SUPPORTED: ReadonlySet<string> = new Set(["allowOut", "denyOut", "allow_internet_access"]);

/** The names of E2B's clients for all traffic. */
const ALL: ReadonlySet<string> = new Set(["0.0.0.0/0", "*"]);

/**
 * The policy that E2B's options describe; undefined: they say nothing. At E2B everything is allowed, `denyOut` denies,
 * and `allowOut` allows again. Ours denies first, so exceptions are only possible where everything else is denied.
 * Options that we cannot follow are refused: a client must not believe that they protect it.
 */
export function networkOf(given: E2bNetworkUpdate): NetworkPolicy | undefined {
  refuseOthers(given);
  const allow = given.allowOut ?? [];
  const deny = given.denyOut ?? [];
  const wrong = [...allow, ...deny].find((text) => parseEntry(text) === undefined);
  if (wrong !== undefined) {
    throw new E2bError(400, `${JSON.stringify(wrong.slice(0, 100))} is not a domain, *.domain, address or CIDR.`);
  }
  const deniesAll = given.allow_internet_access === false || deny.some((text) => ALL.has(text));
  if (deniesAll) return allow.length === 0 ? "none" : normalNetwork({ allow });
  const name = allow.find((text) => parseRange(text) === undefined);
  if (name !== undefined) {
    throw new E2bError(400, `To allow only domains such as ${name}, deny all others with denyOut: ["0.0.0.0/0"].`);
  }
  if (allow.length > 0 && deny.length > 0) {
    throw new E2bError(400, 'allowOut beside denyOut needs denyOut: ["0.0.0.0/0"] on this server.');
  }
  if (deny.length > 0) return normalNetwork({ deny });
  return given.allow_internet_access === true || allow.length > 0 ? "open" : undefined;
}

/** `rules`, `egressProxy`, `dnsServers`, `httpsPorts`, `maskRequestHost`, and those of later clients. */
function refuseOthers(given: E2bNetworkUpdate): void {
  const asked = Object.entries(given).find(([name, value]) => !SUPPORTED.has(name) && !isEmpty(value));
  if (asked === undefined) return;
  throw new E2bError(501, `This server does not support the network option ${asked[0].slice(0, 100)}.`);
}

/** Some clients send empty values for what was left out. */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
