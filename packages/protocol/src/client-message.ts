import { z } from "zod";

export const LANGUAGES = ["python", "bash", "javascript"] as const;
export type Language = (typeof LANGUAGES)[number];
export const languageSchema = z.enum(LANGUAGES);

/** Messages of a client that has a sandbox. */
export type ClientMessage =
  | { readonly type: "execute"; readonly language: Language; readonly code: string }
  | { readonly type: "stdin"; readonly data: string }
  | { readonly type: "checkpoint" }
  | { readonly type: "snapshot_filesystem"; readonly name: string }
  | { readonly type: "kill_process" }
  | { readonly type: "kill_sandbox" }
  | { readonly type: "reconnect"; readonly executionId: string | undefined; readonly offset: number | undefined };

/** The error of a message, by the row of the protocol's table that answers it. */
export type BadMessage =
  | { readonly type: "malformed"; readonly message: string }
  | { readonly type: "unsupported"; readonly message: string }
  | { readonly type: "stdin_without_data"; readonly message: string }
  | { readonly type: "snapshot_without_name"; readonly message: string };

const reconnectSchema = z.object({
  execution_id: z.string().optional().catch(undefined),
  offset: z.number().int().nonnegative().safe().optional().catch(undefined),
});

export function parseClientMessage(text: string): ClientMessage | BadMessage {
  const value = parseObject(text);
  if (value === undefined) return { type: "malformed", message: "The message is not a JSON object." };
  if (value["event"] === "stdin") return parseStdin(value);
  if (typeof value["action"] === "string") return parseAction(value["action"], value);
  if (typeof value["language"] === "string") return parseExecution(value["language"], value);
  return unsupported("The message has no language and is not a known action or event.");
}

/** A JSON object, or undefined. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function parseStdin(value: Record<string, unknown>): ClientMessage | BadMessage {
  const data = value["data"];
  if (typeof data === "string") return { type: "stdin", data };
  return { type: "stdin_without_data", message: "A stdin event needs data, which must be a string." };
}

function parseAction(action: string, value: Record<string, unknown>): ClientMessage | BadMessage {
  switch (action) {
    case "checkpoint":
    case "kill_process":
    case "kill_sandbox":
      return { type: action };
    case "snapshot_filesystem": {
      const name = value["name"];
      if (typeof name === "string" && name !== "") return { type: action, name };
      return { type: "snapshot_without_name", message: "A filesystem snapshot needs a name." };
    }
    case "reconnect": {
      const { execution_id: executionId, offset } = reconnectSchema.parse(value);
      return { type: action, executionId, offset };
    }
    default:
      return unsupported(`Unknown action ${JSON.stringify(action.slice(0, 100))}.`);
  }
}

function parseExecution(language: string, value: Record<string, unknown>): ClientMessage | BadMessage {
  if (!isLanguage(language)) return unsupported(`Unsupported language ${JSON.stringify(language.slice(0, 100))}.`);
  const code = value["code"];
  if (typeof code !== "string")
    return { type: "malformed", message: "An execution needs code, which must be a string." };
  if (code.includes("\0")) return { type: "malformed", message: "Code cannot contain NUL characters." };
  return { type: "execute", language, code };
}

function isLanguage(text: string): text is Language {
  return (LANGUAGES as readonly string[]).includes(text);
}

function unsupported(why: string): BadMessage {
  return { type: "unsupported", message: `${why} Supported languages: ${LANGUAGES.join(", ")}.` };
}
