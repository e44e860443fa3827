import { Sandbox } from "@sandboxer/client";
import { expect, test } from "vitest";
import { whyNoEngine } from "../../../test/kit/server/server-process.ts";
import { startConsole, type ConsoleOptions } from "./support/start-console.ts";
import { listenToBanners } from "./support/told.ts";
import { countTo, terminalText, untilTerminalShows } from "./support/terminal-text.ts";

const LAST = 120;
/** Fits on a terminal's screen, so that all of it can be read. */
const NUMBERS = countTo(LAST, 0.04);

async function expectCountAcrossMoves(options: ConsoleOptions): Promise<void> {
  const { page, client, servers, open, guard } = await startConsole({ ...options, instances: 2, path: false });
  const [here, other] = servers;
  if (here === undefined || other === undefined) throw new Error("There are two servers.");
  const sandbox = await Sandbox.create({ client, name: "counter" });
  (await sandbox.pty({ command: NUMBERS.command, rows: 24, columns: 80 })).detach();
  // The servers answer with it while the sandbox moves.
  guard.expectAnswer(409, new RegExp(`^/v1/sandboxes/${sandbox.id}/`));
  await open(`/sandboxes/${sandbox.id}`);
  await untilTerminalShows(page, ",10,");

  const owner = async (): Promise<string | null | undefined> => (await sandbox.refresh()).owner?.url;
  const told = await listenToBanners(page);
  await sandbox.handoff(other.url);
  const before = (await terminalText(page)).split(",").length;
  await untilTerminalShows(page, `,${before + 10},`);
  expect(await owner()).toBe(other.url);
  const { instanceId } = await other.client.info();
  expect((await told()).join("\n")).toContain(`Moving to server ${instanceId}`);

  const there = await Sandbox.attach(sandbox.id, { client: other.client });
  await there.handoff(here.url);
  await untilTerminalShows(page, `,${LAST},`);
  expect(await owner()).toBe(here.url);
  expect(await terminalText(page)).toBe(NUMBERS.shown);
  expect(new URL(page.url()).origin).toBe(here.url);
}

test("a terminal continues while its sandbox moves to another server and back, and every number appears once", () =>
  expectCountAcrossMoves({ backend: "fake", keys: "use" }));

test.skipIf(whyNoEngine() !== undefined)("on gVisor too", () => expectCountAcrossMoves({ backend: "gvisor" }));
