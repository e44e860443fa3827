import { SandboxerError, type Profile } from "@sandboxer/protocol";
import { didYouMean } from "../support/nearest-name.ts";

/** The request's inputs with the profile's defaults. One that the profile does not declare is refused: it is a mistake. */
export function mergeInputs(profile: Profile, given: Readonly<Record<string, string>>): Record<string, string> {
  const declared = new Map(Object.entries(profile.inputs ?? {}));
  const unknown = Object.keys(given).filter((name) => !declared.has(name));
  if (unknown.length > 0) throw unknownInputs(profile, unknown, [...declared.keys()]);
  const missing = [...declared].filter(([name, input]) => input.required === true && !Object.hasOwn(given, name));
  if (missing.length > 0) {
    const named = missing.map(([name, { description }]) =>
      description === undefined ? name : `${name} (${description})`,
    );
    throw new SandboxerError("bad_request", `${profile.name} needs inputs that are missing: ${named.join(", ")}.`, {
      hint: `Give ${missing.map(([name]) => `inputs.${name}`).join(" and ")}.`,
      details: { missing: missing.map(([name]) => name), profile: profile.name },
    });
  }
  const defaults = [...declared].flatMap(([name, input]) =>
    input.default === undefined ? [] : [[name, input.default]],
  );
  return { ...Object.fromEntries(defaults), ...given };
}

function unknownInputs(profile: Profile, unknown: readonly string[], known: readonly string[]): SandboxerError {
  const [first = ""] = unknown;
  const list = unknown.map((name) => JSON.stringify(name.slice(0, 128))).join(", ");
  return new SandboxerError("bad_request", `${profile.name} has no inputs ${list}.${didYouMean(first, known)}`, {
    hint: known.length === 0 ? "It takes no inputs." : `Its inputs are ${known.join(", ")}.`,
    details: { unknown, profile: profile.name },
  });
}
