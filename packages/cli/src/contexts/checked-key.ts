import { SandboxerError } from "@sandboxer/protocol/errors";

/** Keys go into a header: one line of visible characters. */
export function checkedKey(text: string, where: string): string {
  const key = text.trim();
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new SandboxerError("bad_request", `${where} contains no key.`, {
    hint: "It must contain the key on a single line.",
  });
}
