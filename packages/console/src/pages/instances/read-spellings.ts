import { onServer, type Spellings } from "../../actions/spellings.ts";

/** Read-only requests in other forms. */
export function readSpellings(command: readonly string[], sdkCall: string, path: string): Spellings {
  return onServer(command, `console.log(await client.${sdkCall});`, { method: "GET", path });
}
