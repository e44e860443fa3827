import { SandboxerError, type ErrorCode } from "@sandboxer/protocol/errors";
import { nearNames } from "../suggest.ts";

export interface Candidate {
  readonly id: string;
  readonly name?: string | null;
}

const SHOWN = 8;

/**
 * Finds the target by its id, its name, or a unique prefix of either. Anything else is an error that lists the
 * candidates; nothing is guessed.
 */
export function pick<Item extends Candidate>(
  given: string,
  candidates: readonly Item[],
  noun: string,
  notFound: ErrorCode,
): Item {
  const found =
    only(
      given,
      noun,
      candidates.filter(({ id }) => id === given),
    ) ??
    only(
      given,
      noun,
      candidates.filter(({ name }) => name === given),
    ) ??
    only(
      given,
      noun,
      candidates.filter(({ id, name }) => id.startsWith(given) || name?.startsWith(given) === true),
    );
  if (found !== undefined) return found;
  const names = candidates.flatMap(({ id, name }) => (name ? [name] : [id]));
  const near = nearNames(given, names);
  throw new SandboxerError(notFound, `There is no ${noun} "${given}".`, {
    ...(near.length === 0 ? {} : { hint: `Did you mean ${near.join(", ")}?` }),
    details: { given, suggestions: near },
  });
}

function only<Item extends Candidate>(given: string, noun: string, matches: readonly Item[]): Item | undefined {
  if (matches.length <= 1) return matches[0];
  const shown = matches.slice(0, SHOWN).map(({ id, name }) => (name ? `${name} (${id})` : id));
  const more = matches.length > SHOWN ? ` and ${matches.length - SHOWN} more` : "";
  throw new SandboxerError("bad_request", `"${given}" is ambiguous: ${matches.length} match.`, {
    hint: `Choose one ${noun}: ${shown.join(", ")}${more}.`,
    details: { given, matches: matches.map(({ id, name }) => ({ id, name: name ?? null })) },
  });
}
