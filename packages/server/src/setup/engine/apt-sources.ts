/** An apt source of this machine with Debian's main archive. */
export interface DebianMirror {
  readonly uri: string;
  readonly keyring: string | undefined;
}

/** Debian's own suites; third-party repositories and Ubuntu have other names, and -security has no backports. */
const DEBIAN_SUITE = /^(bullseye|bookworm|trixie|forky|sid|stable|oldstable|testing|unstable)(-updates|-backports)?$/;

/** Finds the mirror in the text of one sources file: deb822 (`*.sources`) or one-line (`*.list`) style. */
export function findDebianMirror(fileName: string, text: string): DebianMirror | undefined {
  return fileName.endsWith(".sources") ? findInDeb822(text) : findInOneLine(text);
}

function findInDeb822(text: string): DebianMirror | undefined {
  for (const stanza of text.split(/\n\s*\n/)) {
    const fields = parseStanza(stanza);
    const uri = words(fields.get("uris"))[0];
    const wanted =
      fields.get("enabled") !== "no" &&
      words(fields.get("types")).includes("deb") &&
      words(fields.get("components")).includes("main") &&
      words(fields.get("suites")).some((suite) => DEBIAN_SUITE.test(suite));
    if (wanted && uri !== undefined) return { uri, keyring: asPath(fields.get("signed-by")) };
  }
  return undefined;
}

/** Field names in lower case. Comments inside a stanza are left out; lines that begin with a blank continue a field. */
function parseStanza(stanza: string): Map<string, string> {
  const fields = new Map<string, string>();
  let name = "";
  for (const line of stanza.split("\n")) {
    if (line.startsWith("#")) continue;
    const match = /^([A-Za-z][A-Za-z0-9-]*):(.*)$/.exec(line);
    if (match !== null) {
      name = (match[1] ?? "").toLowerCase();
      fields.set(name, (match[2] ?? "").trim());
    } else if (name !== "") {
      fields.set(name, `${fields.get(name) ?? ""} ${line.trim()}`.trim());
    }
  }
  return fields;
}

function findInOneLine(text: string): DebianMirror | undefined {
  for (const line of text.split("\n")) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line);
    if (match === null) continue;
    const [, options = "", uri = "", suite = "", components = ""] = match;
    if (!DEBIAN_SUITE.test(suite) || !words(components).includes("main")) continue;
    return { uri, keyring: asPath(/(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1]) };
  }
  return undefined;
}

/** Signed-By may contain a key or fingerprints; only a path is usable here. */
function asPath(signedBy: string | undefined): string | undefined {
  return signedBy?.startsWith("/") === true ? words(signedBy.replaceAll(",", " "))[0] : undefined;
}

function words(text: string | undefined): string[] {
  return (text ?? "").split(/\s+/).filter((word) => word !== "");
}
