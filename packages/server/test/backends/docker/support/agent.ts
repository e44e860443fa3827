import { existsSync } from "node:fs";

export const BUILT_AGENT =
  process.env["SANDBOXER_TEST_AGENT"] ??
  new URL("../../../../../../agent/build/sandboxer-agent", import.meta.url).pathname;

export function whyNoAgent(): string | undefined {
  return existsSync(BUILT_AGENT) ? undefined : `There is no agent at ${BUILT_AGENT}. Run: make -C agent`;
}
