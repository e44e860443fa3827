import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { IntegrityReport, ScrubStatus } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startCli } from "./support/run-cli.ts";

function flipMiddle(path: string): void {
  const bytes = readFileSync(path);
  const middle = bytes.byteLength >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

test("verify reports the damage, its effects and the next step, and exits with 7", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web"]);
  const id = await cli.id(["snapshot", "web", "--name", "before"]);
  await cli(["checkpoint", "web"]);
  const whole = await cli(["verify", "before"]);
  expect([whole.code, whole.out]).toEqual([0, expect.stringMatching(/^Saved states: 1 intact\. \d+ blocks? read, /)]);
  expect((await cli(["verify", "sandbox:web"])).out).toMatch(/^Saved states: 1 intact\./);
  const image = `snapshots/${id}/image.img`;
  flipMiddle(join(cli.server.store, image));
  const damaged = await cli(["verify", "before"]);
  expect([damaged.code, damaged.out]).toEqual([7, expect.stringContaining(image)]);
  expect(damaged.err).toContain("Take another snapshot while its sandbox runs");
  expect(await cli.json<IntegrityReport>(["verify", "before"])).toMatchObject({ ok: false, problems: [{ image }] });
  expect((await cli(["snapshots", "list"])).out).toMatch(/before +damaged/);

  const [checkpoint = ""] = readdirSync(join(cli.server.store, web, "checkpoints")).filter((name) =>
    name.endsWith(".img"),
  );
  expect((await cli(["verify", `web@${checkpoint}`])).code).toBe(0);
  expect((await cli(["verify", "web@checkpoint_1.img"])).err).toContain(`It has ${checkpoint}.`);
  expect((await cli(["verify", "nothing"])).code).toBe(4);
  await cli.id(["snapshots", "name", id, "web"]);
  expect(await cli(["verify", "web"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("Write snapshot:web or sandbox:web."),
  });
});

test("scrub reads a store through its server or without one", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const id = await cli.id(["snapshot", "web", "--name", "before"]);
  expect((await cli(["scrub", "--status"])).out).toMatch(/^state +idle\n(.*\n)*last full pass +never\n/);
  expect(await cli(["scrub"])).toMatchObject({ code: 0, out: expect.stringMatching(/^Saved states: 1 intact\./) });
  expect((await cli.json<ScrubStatus>(["scrub", "--status"])).last).toMatchObject({ ok: true });
  const image = `snapshots/${id}/image.img`;
  flipMiddle(join(cli.server.store, image));
  const direct = await cli(["scrub", "--store", cli.server.store, "--rate", "500"]);
  expect([direct.code, direct.out]).toEqual([7, expect.stringContaining(image)]);
  expect(await cli.json(["snapshots", "get", "before"])).toMatchObject({ state: "damaged" });
  flipMiddle(join(cli.server.store, image));
  expect(await cli.json(["scrub", "--no-limit"])).toMatchObject({ ok: true });
  expect(await cli.json(["scrub", "--rate", "0"])).toMatchObject({ ok: true });
  expect(await cli.json(["scrub", "--store", cli.server.store, "--rate", "0"])).toMatchObject({ ok: true });
  expect(await cli.json(["snapshots", "get", "before"])).toMatchObject({ state: "ready" });
  expect((await cli(["scrub", "--stop"])).code).toBe(0);
  const missing = await cli(["scrub", "--store", join(cli.folder, "nowhere")]);
  expect([missing.code, missing.err]).toEqual([10, expect.stringContaining("There is no store at")]);
});
