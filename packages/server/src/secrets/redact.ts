import type { Secret } from "./secret.ts";

/** What is shorter occurs everywhere, and hiding it would only show where. */
const SHORTEST = 4;

/** Replaces the values of secrets in a text, such as a line of a log, by their names; also as JSON writes them. */
export function redactSecrets(text: string, secrets: Iterable<Secret>): string {
  // Longest first: one value may be a part of another.
  const hidden = [...secrets]
    .map((secret) => ({ name: String(secret), value: secret.reveal() }))
    .filter(({ value }) => value.length >= SHORTEST)
    .toSorted((first, second) => second.value.length - first.value.length);
  let result = text;
  for (const { name, value } of hidden) {
    result = result.replaceAll(value, () => name).replaceAll(JSON.stringify(value).slice(1, -1), () => name);
  }
  return result;
}
