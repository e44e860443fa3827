/** The areas of the changelog, in their order. A release may leave areas out. */
export const AREAS = [
  "Upgrading",
  "Sandboxes",
  "Saving",
  "Ownership and handoff",
  "API and SDK",
  "CLI",
  "Console",
  "Security",
  "Operations",
  "Development",
] as const;

export interface Section {
  readonly version: string;
  /** The day of the release, or `unreleased`. */
  readonly date: string;
  /** Everything below the heading. */
  readonly text: string;
}

const HEADING = /^## (\d+\.\d+\.\d+), (unreleased|\d{4}-\d{2}-\d{2})$/;

/** The newest section of a changelog. Fails when the changelog does not begin with one. */
export function newestSection(changelog: string): Section {
  const lines = changelog.split("\n");
  const first = lines.findIndex((line) => line.startsWith("## "));
  const [, version, date] = HEADING.exec(lines[first] ?? "") ?? [];
  if (version === undefined || date === undefined) {
    throw new Error("The changelog must begin with a heading like `## 1.2.3, unreleased`.");
  }
  const next = lines.findIndex((line, index) => index > first && line.startsWith("## "));
  const text = lines.slice(first + 1, next === -1 ? undefined : next);
  return { version, date, text: text.join("\n").trim() };
}

/** The problems of a section: entries outside an area, unknown or repeated areas, areas out of order or empty. */
export function problemsOf({ text }: Section): string[] {
  const lines = text.split("\n");
  const headings = lines.filter((line) => line.startsWith("### ")).map((line) => line.slice(4));
  const known: readonly string[] = AREAS;
  const inOrder = known.filter((area) => headings.includes(area));
  const beforeAreas = lines.slice(
    0,
    lines.findIndex((line) => line.startsWith("### ")),
  );
  const [, ...areas] = `\n${text}`.split("\n### ");
  const empty = areas.filter((area) => !area.includes("\n- ")).map((area) => area.split("\n")[0]);
  return [
    ...(headings.length === 0 ? ["It has no areas."] : []),
    ...headings.filter((heading) => !known.includes(heading)).map((heading) => `It has an unknown area: ${heading}.`),
    ...(headings.every((heading) => known.includes(heading)) && headings.join() !== inOrder.join()
      ? [`Its areas must appear once each, in this order: ${inOrder.join(", ")}.`]
      : []),
    ...beforeAreas.filter((line) => line.startsWith("- ")).map((line) => `This entry is in no area: ${line}`),
    ...empty.map((heading) => `The area ${heading} has no entries.`),
  ];
}

/** The changelog with its newest section dated. */
export function dated(changelog: string, { version }: Section, date: string): string {
  return changelog.replace(`## ${version}, unreleased`, `## ${version}, ${date}`);
}
