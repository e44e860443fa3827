import { SandboxerError, type E2bList, type SandboxRecord } from "@sandboxer/protocol";
import type { SandboxManager } from "../../../manager/sandbox-manager.ts";
import type { ListPlace } from "../../../manager/observing/list-sandboxes.ts";
import { decodeCursor, encodeCursor } from "../../http/page.ts";
import { metadataOf } from "../reserved-labels.ts";
import { E2bError } from "../errors.ts";
import { withoutTag } from "./templates.ts";
import { type E2bState, e2bStateOf, templateOf } from "./view.ts";

export interface ListedPage {
  readonly items: readonly { readonly record: SandboxRecord; readonly state: E2bState }[];
  readonly nextToken: string | undefined;
}

const READ_AT_ONCE = 200;

/** A page of the sandboxes that match. Newest first unless asked otherwise, over all pages. */
export async function listSandboxes(manager: SandboxManager, query: E2bList): Promise<ListedPage> {
  const wanted = metadataFilter(query.metadata);
  const after = query.nextToken === undefined ? undefined : decodeToken(query.nextToken);
  const items: { record: SandboxRecord; state: E2bState }[] = [];
  for await (const record of query.order === "asc" ? oldestFirst(manager, after) : newestFirst(manager, after)) {
    const state = e2bStateOf(record);
    if (state === undefined || !matches(record, state, query, wanted)) continue;
    if (items.length < query.limit) items.push({ record, state });
    else return { items, nextToken: encodeCursor(items.at(-1)?.record ?? record) };
  }
  return { items, nextToken: undefined };
}

/**
 * The metadata that sandboxes must have. Clients encode keys and values, then a form of them, then the query; Fastify
 * has decoded the query.
 */
export function metadataFilter(text: string | undefined): readonly (readonly [string, string])[] {
  if (text === undefined || text === "") return [];
  return [...new URLSearchParams(text)].map(([key, value]) => [decoded(key), decoded(value)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new E2bError(400, "The metadata of the query is not encoded as E2B's clients encode it.");
  }
}

function matches(
  record: SandboxRecord,
  state: E2bState,
  { state: states, startedAfter, template }: E2bList,
  wanted: ReturnType<typeof metadataFilter>,
): boolean {
  if (states !== undefined && !states.includes(state)) return false;
  if (startedAfter !== undefined && Date.parse(record.created_at) < Date.parse(startedAfter)) return false;
  if (template !== undefined && templateOf(record) !== withoutTag(template)) return false;
  const metadata = metadataOf(record.labels);
  return wanted.every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value);
}

async function* newestFirst(manager: SandboxManager, after: ListPlace | undefined): AsyncGenerator<SandboxRecord> {
  for (let place = after; ;) {
    const { items, more } = await manager.list({}, { limit: READ_AT_ONCE, after: place });
    yield* items;
    place = items.at(-1);
    if (!more || place === undefined) return;
  }
}

async function* oldestFirst(manager: SandboxManager, after: ListPlace | undefined): AsyncGenerator<SandboxRecord> {
  const { items } = await manager.list({}, { limit: Infinity, after: undefined });
  for (const record of items.toReversed()) if (after === undefined || isLater(record, after)) yield record;
}

/** The order of lists is newest first, then lowest id; this is its reverse. */
function isLater(record: ListPlace, { created_at, id }: ListPlace): boolean {
  return record.created_at === created_at ? record.id < id : record.created_at > created_at;
}

function decodeToken(token: string): ListPlace {
  try {
    return decodeCursor(token);
  } catch (error) {
    if (error instanceof SandboxerError) throw new E2bError(400, "The nextToken does not belong to this list.");
    throw error;
  }
}
