import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startServer } from "../../src/main/index.ts";
import { parseConfig } from "../../src/main/config.ts";
import { closeFolder } from "../../src/support/private-folder.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";

const modeOf = (path: string): number => statSync(path).mode & 0o7777;

test("a server closes its data and cache directories to others, including those of an older release", async () => {
  const folder = await temporaryFolder();
  const [dataDirectory, cacheDirectory] = [join(folder, "data"), join(folder, "cache")];
  for (const path of [dataDirectory, join(dataDirectory, "images")]) mkdirSync(path, { mode: 0o755 });
  const flags = { backend: "fake", port: "0", dataDirectory, cacheDirectory, logLevel: "silent" };
  const config = parseConfig({ flags, env: {}, homeDirectory: folder });
  const server = await startServer(config, { report: () => {} });
  try {
    expect([modeOf(dataDirectory), modeOf(cacheDirectory)]).toEqual([0o700, 0o700]);
  } finally {
    await server.drain();
  }
});

test("a folder that everyone may use stays open", async () => {
  const folder = await temporaryFolder();
  chmodSync(folder, 0o1777);
  await closeFolder(folder);
  expect(modeOf(folder)).toBe(0o1777);
  await closeFolder(join(folder, "missing"));
});
