import { SandboxerError } from "@sandboxer/protocol/errors";
import { checkFolder } from "../keys.ts";

/** `s3://bucket/prefix?endpoint=https://host&region=name`, taken apart. */
export interface BucketAddress {
  /** As it may be shown. */
  readonly text: string;
  readonly bucket: string;
  /** Empty, or ends with `/`. */
  readonly prefix: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Takes an address apart; `known` are the parameters that its kind of store understands. */
export function parseBucketAddress(address: string, known: readonly string[]): BucketAddress {
  const [, scheme, bucket = "", path = "", query = ""] = /^(\w+):\/\/([^/?#]*)([^?#]*)\??([^#]*)$/.exec(address) ?? [];
  if (scheme === undefined) throw wrong("The store's address is not valid.");
  if (bucket.includes("@"))
    throw wrong("The store's address must not contain credentials.", "See docs/reference/stores.md.");
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{1,221}$/.test(bucket)) throw wrong(`"${bucket}" is not a valid bucket name.`);
  const parameters = new Map(new URLSearchParams(query));
  for (const name of parameters.keys()) {
    if (!known.includes(name)) throw wrong(`The store's address has an unknown parameter "${name}".`, knownHint(known));
  }
  checkEndpoint(parameters.get("endpoint"));
  const folder = checkFolder(path.replaceAll(/^\/+|\/+$/g, ""));
  return { text: address, bucket, prefix: folder === "" ? "" : `${folder}/`, parameters };
}

function checkEndpoint(endpoint: string | undefined): void {
  if (endpoint === undefined) return;
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol)) throw wrong(`The endpoint "${endpoint}" is not a URL.`);
  if (url.username !== "" || url.password !== "") throw wrong("The endpoint must not contain credentials.");
}

function knownHint(known: readonly string[]): string {
  return `Allowed parameters: ${known.join(", ")}.`;
}

function wrong(message: string, hint = "For example: s3://bucket/prefix or gs://bucket/prefix."): SandboxerError {
  return new SandboxerError("bad_request", message, { hint });
}
