import { DEFAULT_URL } from "@sandboxer/client/transport";
import { server } from "../session.ts";

/** How a user would do the same without the console. */
export interface Spellings {
  readonly cli: string;
  readonly sdk: string;
  readonly curl: string;
}

export interface HttpCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Percent-encoded as needed. */
  readonly path: string;
  readonly body?: object;
  /** More arguments for curl, such as the source or target of bytes. */
  readonly flags?: readonly string[];
}

/**
 * Characters that an interactive shell acts upon even between quotes (Ctrl-C, Tab), and characters that change the text
 * direction.
 */
// oxlint-disable-next-line no-control-regex
const UNSEEN = /[\0-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A shell argument: quoted unless it is plain. Names may contain anything. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (text.search(UNSEEN) === -1) return `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return `$'${text.replace(/[\\']/g, String.raw`\$&`).replace(UNSEEN, escaped)}'`;
}

function escaped(letter: string): string {
  if (letter === "\t") return String.raw`\t`;
  return [...new TextEncoder().encode(letter)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}

/** A command for this server, wherever the reader's own is. */
export function commandLine(...words: readonly string[]): string {
  const line = ["sandboxer", ...words].map(shellWord).join(" ");
  return location.origin === DEFAULT_URL ? line : `SANDBOXER_URL=${shellWord(location.origin)} ${line}`;
}

/** The key is a variable, never shown: it stays in the reader's environment. */
export function curlLine({ method, path, body, flags = [] }: HttpCall, origin: string): string {
  const verb = method === "GET" ? "" : ` -X ${method}`;
  const data = body === undefined ? "" : ` -H 'content-type: application/json' -d ${shellWord(JSON.stringify(body))}`;
  const more = flags.map((word) => ` ${shellWord(word)}`).join("");
  return `curl -fsS${verb} -H "authorization: Bearer $SANDBOXER_API_KEY"${data}${more} ${shellWord(origin + path)}`;
}

/** A string of TypeScript. */
export function literal(text: string): string {
  return JSON.stringify(text);
}

/** How a program connects to this server. The key is a variable, never shown. */
export function connection(): string {
  const key = server.value?.hasKey === true ? ", apiKey: process.env.SANDBOXER_API_KEY" : "";
  return `url: ${literal(location.origin)}${key}`;
}

/** The lines of a program that uses the SDK on one sandbox. */
export function sdkOnSandbox(id: string, ...lines: readonly string[]): string {
  return [
    'import { Sandbox } from "@sandboxer/client";',
    "",
    `const sandbox = await Sandbox.attach(${literal(id)}, { ${connection()} });`,
    ...lines,
  ].join("\n");
}

/** A call on the server as a whole, as a command line, a program and a request. */
export function onServer(cli: readonly string[], sdk: string, call: HttpCall): Spellings {
  return {
    cli: commandLine(...cli),
    sdk: [
      'import { Sandboxer } from "@sandboxer/client";',
      "",
      `const client = new Sandboxer({ ${connection()} });`,
      sdk,
    ].join("\n"),
    curl: curlLine(call, location.origin),
  };
}
