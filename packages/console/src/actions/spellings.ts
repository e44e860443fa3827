/** How a person would do the same without the console. */
export interface Spellings {
  readonly cli: string;
  readonly sdk: string;
  readonly curl: string;
}

export interface HttpCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With everything in it percent-encoded that needs to be. */
  readonly path: string;
  readonly body?: object;
  /** More words for curl, such as where the bytes come from or go to. */
  readonly flags?: readonly string[];
}

/** An argument of a shell line: quoted unless it is plain. Names come from others and may hold anything. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

export function shellLine(...words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

/** The key is named, never shown: it stays in the reader's environment. */
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

/** The lines of a program that uses the SDK on one sandbox. */
export function sdkOnSandbox(id: string, ...lines: readonly string[]): string {
  return [
    'import { Sandbox } from "@sandboxer/client";',
    "",
    `const sandbox = await Sandbox.attach(${literal(id)}, { url: ${literal(location.origin)} });`,
    ...lines,
  ].join("\n");
}
