import { readFile } from "node:fs/promises";

const SOURCES = new URL("../../packages/client/src/", import.meta.url);

/** The classes of the SDK, and the files that they and what they extend are in. */
const CLASSES: Readonly<Record<string, readonly string[]>> = {
  Sandbox: ["sandbox.ts", "sandbox-handle.ts"],
  Sandboxer: ["sandboxer.ts"],
  Execution: ["process/execution.ts"],
  SandboxProcess: ["process/process.ts"],
  SandboxFiles: ["sandbox-files.ts"],
  Snapshots: ["snapshots.ts"],
  SandboxSession: ["session/sandbox-session.ts"],
};

/** A doc comment (maybe none) and a public member of a class, as our formatter writes them. */
const MEMBER =
  /^(?: {2}\/\*\*((?:(?!\*\/)[^])*)\*\/\n)? {2}((?:static |readonly |get |async )*\*?(?!(?:constructor|if|for|return)\b)[a-zA-Z]\w*[<(:][^]*?)(?:(?<![\s,(]) \{$|;$)/gm;

/** The public members of each class with their types and the first paragraph of their comments. */
export async function sdkMembers(): Promise<string> {
  const sections = await Promise.all(
    Object.entries(CLASSES).map(async ([name, files]) => {
      const texts = await Promise.all(files.map(async (file) => await readFile(new URL(file, SOURCES), "utf8")));
      return [`## ${name}`, "", "| member | |", "|---|---|", ...texts.flatMap(rowsOf)].join("\n");
    }),
  );
  return sections.join("\n\n");
}

function rowsOf(source: string): string[] {
  const body = source.slice(source.search(/^export class/m)).split(/^\}$/m)[0] ?? "";
  return [...body.matchAll(MEMBER)].map(([, comment = "", member = ""]) => {
    const signature = member
      .replaceAll(/\s+/g, " ")
      .replaceAll(/^(readonly|async) |(?<=static )async /g, "")
      .replaceAll(/([([]) |,? (?=[)\]])/g, "$1");
    const said = comment
      .replaceAll(/\s*\n\s*\*\s?/g, " ")
      .replaceAll(/\{@link (\w+)\}/g, "`$1`")
      .trim();
    return `| \`${signature.replaceAll("|", "\\|")}\` | ${said.replaceAll("|", "\\|")} |`;
  });
}
