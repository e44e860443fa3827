import { SandboxerError } from "@sandboxer/protocol/errors";

/** The client library of a kind of bucket, which is optional to install. */
export async function loadLibrary<Library>(
  scheme: string,
  name: string,
  load: () => Promise<Library>,
): Promise<Library> {
  try {
    return await load();
  } catch (error) {
    throw new SandboxerError(
      "not_supported",
      `Stores at ${scheme}:// addresses need the package ${name}, which is not installed.`,
      {
        cause: error,
        hint: `Run: npm install ${name}`,
      },
    );
  }
}
