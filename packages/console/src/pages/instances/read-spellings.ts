import { commandLine, connection, curlLine, type Spellings } from "../../actions/spellings.ts";

/** Read-only requests in other forms. */
export function readSpellings(command: readonly string[], sdkCall: string, path: string): Spellings {
  return {
    cli: commandLine(...command),
    sdk: [
      'import { Sandboxer } from "@sandboxer/client";',
      "",
      `const client = new Sandboxer({ ${connection()} });`,
      `console.log(await client.${sdkCall});`,
    ].join("\n"),
    curl: curlLine({ method: "GET", path }, location.origin),
  };
}
