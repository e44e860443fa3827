import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ImageRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { FakeRegistry } from "../../../server/test/images/support/fake-registry.ts";
import { madeImage, madeLayer, tarOf } from "../../../server/test/images/support/made-image.ts";
import { openLibrary } from "../../../server/test/images/support/open-library.ts";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

test("images are pulled, listed, imported, deleted and pruned", async () => {
  const registry = await FakeRegistry.start();
  const { httpUrl } = await startTestServer({ images: await openLibrary(registry) });
  const cli = async (...argv: string[]): Promise<{ code: number; out: string; err: string }> => {
    const io = fakeIo({ SANDBOXER_URL: httpUrl, XDG_CONFIG_HOME: "/nonexistent" });
    return { code: await runProgram(argv, io), out: io.out(), err: io.err() };
  };
  expect(await cli("images", "ls")).toMatchObject({ code: 0, err: expect.stringContaining("images pull") });
  const image = madeImage([await madeLayer([{ name: "hello", content: "hello" }])]);
  const name = registry.push(image);
  expect(await cli("images", "pull", name)).toMatchObject({ code: 0, out: `${name} ${image.digest}\n` });
  expect((await cli("images", "ls")).out).toMatch(new RegExp(`^${image.digest.slice(7, 19)} +${name} `, "m"));
  expect((await cli("images", "ls", "-q")).out).toBe(`${image.digest}\n`);
  const { items } = JSON.parse((await cli("images", "ls", "--json")).out) as { items: ImageRecord[] };
  expect(items).toMatchObject([{ digest: image.digest, names: [name] }]);

  const other = madeImage([await madeLayer([{ name: "other" }])]);
  const archive = join(await temporaryFolder(), "image.tar");
  const blobs = [...other.blobs, [other.digest, other.manifest] as const];
  const entries = blobs.map(([digest, content]) => ({ name: `blobs/sha256/${digest.slice(7)}`, content }));
  const index = { name: "index.json", content: JSON.stringify({ manifests: [{ digest: other.digest, size: 1 }] }) };
  await writeFile(archive, await tarOf([index, ...entries]));
  expect(await cli("images", "import", archive, "--name", "team/other:1")).toMatchObject({
    code: 0,
    out: expect.stringContaining(other.digest),
  });
  expect((await cli("images", "import", "/none.tar")).code).toBe(2);
  expect(await cli("images", "rm", "team/other:1")).toMatchObject({ code: 0, out: expect.stringContaining("freed") });
  expect((await cli("images", "rm", "team/other:1")).code).toBe(4);
  expect((await cli("images", "prune")).out).toMatch(/^1 image deleted/);
});
