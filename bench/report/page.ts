const TITLE = "# Benchmarks";
const MARK = /^<!-- measured: (\w+) -->$/m;

export const SECTIONS = ["engine", "handoff", "requests"] as const;
export type SectionName = (typeof SECTIONS)[number];

/** The page with the sections that were measured now; of the others what the page had. */
export function mergePage(present: string, measured: Readonly<Partial<Record<SectionName, string>>>): string {
  const sections = { ...sectionsOf(present), ...measured };
  const parts = SECTIONS.flatMap((name) => {
    const text = sections[name]?.trim();
    return text === undefined || text === "" ? [] : [`<!-- measured: ${name} -->\n${text}\n`];
  });
  return [`${TITLE}\n`, ...parts].join("\n");
}

/** What stands before the first mark belongs to the first section. */
function sectionsOf(page: string): Partial<Record<SectionName, string>> {
  const [before = "", ...marked] = page.split(MARK);
  const sections: Record<string, string> = { engine: before.replace(TITLE, "") };
  for (let index = 0; index + 1 < marked.length; index += 2) sections[marked[index] ?? ""] = marked[index + 1] ?? "";
  return sections;
}
