import { SandboxerError } from "@sandboxer/protocol/errors";

const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/;

/** Refuses every key that could leave the root, or collide with a driver's own names. */
export function checkKey(key: string): string {
  if (!isKey(key)) throw new SandboxerError("bad_request", `"${key}" is not a valid name in the store.`);
  return key;
}

export function isKey(key: string): boolean {
  return key.split("/").every((segment) => SEGMENT.test(segment));
}

/** As {@link checkKey}; the empty string is the root. */
export function checkFolder(folder: string): string {
  return folder === "" ? folder : checkKey(folder);
}

export function joinKey(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}
