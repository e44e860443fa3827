import type { Problem, ProfileEntry, ReadProfile } from "@sandboxer/server/profiles";
import { formatTable } from "./table.ts";

export interface ProfileCheck extends ReadProfile {
  readonly warnings: readonly string[];
}

export function profileJson({ profile, file, bundled, overrides }: ProfileEntry): object {
  return { ...profile, source: { file, bundled, overrides: overrides ?? null } };
}

export function formatProfiles(entries: readonly ProfileEntry[]): string {
  const rows = entries.map(({ profile, file, bundled }) => [
    profile.name,
    profile.extension ?? profile.backends?.join(", ") ?? "",
    profile.ttl?.default ?? profile.ttl?.max ?? "none",
    bundled ? "bundled" : file,
    (profile.description ?? "").trim().replaceAll(/\s+/g, " "),
  ]);
  return formatTable([["name", "backend", "ttl", "from", "description"], ...rows]);
}

export function checkJson({ file, profile, problems, warnings }: ProfileCheck): object {
  return {
    file,
    name: profile?.name ?? null,
    problems: problems.map(({ file: where, line, column, message }) => ({
      file: where,
      line: line ?? null,
      column: column ?? null,
      message,
    })),
    warnings,
  };
}

export function formatCheck(checks: readonly ProfileCheck[]): string {
  return checks
    .flatMap(({ file, profile, problems, warnings }) => [
      ...problems.map(placed),
      ...(profile === undefined ? [] : [`${file}: ${profile.name} is valid.`]),
      ...warnings.map((warning) => `${file}: warning: ${warning}`),
    ])
    .map((line) => `${line}\n`)
    .join("");
}

function placed({ file, line, column, message }: Problem): string {
  return [file, line, column]
    .filter((part) => part !== undefined)
    .join(":")
    .concat(`: ${message}`);
}
