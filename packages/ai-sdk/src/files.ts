import type { HarnessV1NetworkSandboxSession } from "@ai-sdk/harness";
import { type Sandbox, SandboxerError } from "@sandboxer/client";

type FileVerbs = Pick<
  HarnessV1NetworkSandboxSession,
  "readFile" | "readBinaryFile" | "readTextFile" | "writeFile" | "writeBinaryFile" | "writeTextFile"
>;

/** Files of a sandbox. Relative paths begin at its working directory. */
export function fileVerbs({ files }: Pick<Sandbox, "files">, workingDirectory: string): FileVerbs {
  const full = (path: string): string => (path.startsWith("/") ? path : `${workingDirectory}/${path}`);
  const readBinaryFile: FileVerbs["readBinaryFile"] = ({ path, abortSignal: signal }) =>
    unlessMissing(files.read(full(path), { signal }));
  return {
    readFile: ({ path, abortSignal: signal }) => unlessMissing(files.readStream(full(path), { signal })),
    readBinaryFile,
    readTextFile: async ({ encoding = "utf-8", startLine, endLine, ...rest }) => {
      const bytes = await readBinaryFile(rest);
      if (bytes === null) return null;
      return linesOf(new TextDecoder(encoding).decode(bytes), startLine, endLine);
    },
    writeFile: ({ path, content, abortSignal: signal }) => files.write(full(path), content, { signal }),
    writeBinaryFile: ({ path, content, abortSignal: signal }) => files.write(full(path), content, { signal }),
    writeTextFile: async ({ path, content, encoding = "utf-8", abortSignal: signal }) => {
      if (!Buffer.isEncoding(encoding)) throw new TypeError(`The encoding ${encoding} is unknown.`);
      await files.write(full(path), Buffer.from(content, encoding), { signal });
    },
  };
}

/** Lines from 1, both ends included; past the end means to the end. */
function linesOf(text: string, startLine = 1, endLine = Number.POSITIVE_INFINITY): string {
  if (startLine <= 1 && endLine === Number.POSITIVE_INFINITY) return text;
  return text
    .split("\n")
    .slice(Math.max(0, startLine - 1), endLine)
    .join("\n");
}

async function unlessMissing<Result>(reading: Promise<Result>): Promise<Result | null> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof SandboxerError && error.code === "file_not_found") return null;
    throw error;
  }
}
