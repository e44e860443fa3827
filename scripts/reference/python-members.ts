import { readFile } from "node:fs/promises";

const SOURCE = new URL("../../clients/python/src/sandboxer/_sync.py", import.meta.url);

const CLASS = /^class (\w+):\n {4}"""([\s\S]*?)"""\n([\s\S]*?)(?=\n\n\nclass |\n*$(?![\s\S]))/gm;
/** A public member as the generator of the file writes it: maybe a decorator, the signature, a docstring. */
const MEMBER = /^((?: {4}@\w+\n)*) {4}def (?!_)(\w+)\(([\s\S]*?)\) -> ([^\n]*?):\n(?: {8}"""([\s\S]*?)"""\n)?/gm;

/** The classes of the Python SDK with their members, types and docstrings. */
export async function pythonMembers(): Promise<string> {
  const text = await readFile(SOURCE, "utf8");
  const sections = [...text.matchAll(CLASS)].map(([, name = "", about = "", body = ""]) => {
    const rows = [...body.matchAll(MEMBER)].map(([, decorators = "", member = "", given = "", type = "", said = ""]) =>
      rowOf(member, decorators, given, type, said),
    );
    return [`## ${name}`, "", line(about), "", "| member | |", "|---|---|", ...rows].join("\n");
  });
  return sections.join("\n\n");
}

function rowOf(member: string, decorators: string, given: string, type: string, said: string): string {
  if (decorators.includes("@property")) return row(`${member}: ${type}`, said);
  const parameters = given
    .split(/,\s*(?![^[]*\])/)
    .map((one) => one.trim())
    .filter((one) => one !== "" && one !== "self" && one !== "cls");
  const call = `${member}(${parameters.join(", ")})`;
  const name = decorators.includes("@classmethod") ? `classmethod ${call}` : call;
  return row(type === "None" ? name : `${name} -> ${type}`, said);
}

function row(signature: string, said: string): string {
  return `| \`${signature.replaceAll("builtins.", "").replaceAll("|", "\\|")}\` | ${line(said).replaceAll("|", "\\|")} |`;
}

function line(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("``", "`").trim();
}
