import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { parseDocument, type Document } from "yaml";
import type { Io } from "../io.ts";
import { configPath, readConfigText } from "./config-file.ts";

/** Changes the contexts in the config file. Everything else in it is kept, including comments. */
export async function editContexts(io: Io, change: (document: Document) => void): Promise<void> {
  const path = configPath(io);
  if (path.endsWith(".toml")) {
    throw new SandboxerError("bad_request", `${path} is TOML, which sandboxer can read but not write.`, {
      hint: 'Edit the file by hand: [contexts.NAME] with url and api_key_file; current_context = "NAME".',
    });
  }
  const document = parseDocument((await readConfigText(path)) ?? "");
  const [problem] = document.errors;
  if (problem !== undefined) throw new SandboxerError("bad_request", `${path}: ${problem.message}`);
  change(document);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // Concurrent readers see the old file or the new one.
  const draft = `${path}.${process.pid}.new`;
  await writeFile(draft, document.toString({ lineWidth: 0 }), { mode: 0o600 });
  await rename(draft, path);
}
