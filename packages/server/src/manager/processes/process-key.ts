import { createHash, randomUUID } from "node:crypto";
import { CONTEXT_LANGUAGES, type ContextLanguage } from "@sandboxer/protocol";

/**
 * The facts about a process that travel with its sandbox: they are encoded in the key that the backend keeps with the
 * process. `process:{letters}[t{timeout ms}]:{id}:{digest of the request}`, `execution:{id}`, or
 * `context:{language}:{id}:{working folder}`.
 */
export interface ProcessTraits {
  readonly id: string;
  /** Code that a client of the WebSocket protocol runs: one at a time, with no other reader. */
  readonly execution: boolean;
  /** The server reads the output, so that the process never blocks. */
  readonly detached: boolean;
  /** Its output is kept until it is read. */
  readonly kept: boolean;
  readonly pty: boolean;
  /** Its code is in a file, to be removed at its end. */
  readonly codeFile: boolean;
  readonly timeoutMs: number | undefined;
  /** Distinguishes a repeated request from another one with the same key; undefined without an idempotency key. */
  readonly requestDigest: string | undefined;
  /** It is the interpreter of a context. */
  readonly context?: ContextFacts;
}

export interface ContextFacts {
  readonly language: ContextLanguage;
  /** Undefined: the sandbox's own. */
  readonly workingFolder: string | undefined;
}

const KEY =
  /^process:(d?)(w?)(p?)(f?)(?:t([1-9]\d{0,9}))?:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([0-9a-f]{32})?$/;
const CONTEXT_KEY = new RegExp(`^context:(${CONTEXT_LANGUAGES.join("|")}):([0-9a-z-]{1,64}):(/.*)?$`, "su");
const EXECUTION = "execution:";

export function processKey(traits: ProcessTraits): string {
  if (traits.execution) return EXECUTION + traits.id;
  const { context } = traits;
  if (context !== undefined) return `context:${context.language}:${traits.id}:${context.workingFolder ?? ""}`;
  const letters = [traits.detached && "d", traits.kept && "w", traits.pty && "p", traits.codeFile && "f"];
  const timeout = traits.timeoutMs === undefined ? "" : `t${traits.timeoutMs}`;
  const flags = letters.filter((letter) => letter !== false).join("") + timeout;
  return `process:${flags}:${traits.id}:${traits.requestDigest ?? ""}`;
}

/** Undefined if the key is not a process key. */
export function parseProcessKey(key: string): ProcessTraits | undefined {
  if (key.startsWith(EXECUTION)) return executionTraits(key.slice(EXECUTION.length), false);
  const [, language, contextId = "", workingFolder] = CONTEXT_KEY.exec(key) ?? [];
  if (language !== undefined) return contextTraits(contextId, { language: language as ContextLanguage, workingFolder });
  const match = KEY.exec(key);
  if (match === null) return undefined;
  const [, detached, kept, pty, codeFile, timeoutMs, id = "", requestDigest] = match;
  return {
    id,
    execution: false,
    detached: detached !== "",
    kept: kept !== "",
    pty: pty !== "",
    codeFile: codeFile !== "",
    timeoutMs: timeoutMs === undefined ? undefined : Number(timeoutMs),
    requestDigest,
  };
}

/** The key of an execution does not say whether its code is in a file: another server leaves such a file. */
export function executionTraits(id: string, codeFile: boolean): ProcessTraits {
  const unset = { timeoutMs: undefined, requestDigest: undefined };
  return { id, execution: true, detached: false, kept: true, pty: false, codeFile, ...unset };
}

/** The server reads along, so that an interpreter never waits for a client that left. */
export function contextTraits(id: string, context: ContextFacts): ProcessTraits {
  const unset = { timeoutMs: undefined, requestDigest: undefined };
  return { id, execution: false, detached: true, kept: false, pty: false, codeFile: false, ...unset, context };
}

/** A fresh id, or the id that an idempotency key of a caller always maps to. */
export function processId(idempotency: { readonly caller: string; readonly key: string } | undefined): string {
  if (idempotency === undefined) return randomUUID();
  const hash = digest([idempotency.caller, idempotency.key]);
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-a${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

export function requestDigest(request: unknown): string {
  return digest(request).slice(0, 32);
}

function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}
