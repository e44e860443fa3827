import { CommandExitError, Sandbox } from "e2b";
import { describe, expect, onTestFinished, test } from "vitest";
import { ServerProcess, whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { SmallInternet } from "../../../../../test/kit/small-internet.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The test of E2B's network options on gVisor is skipped: ${missing}`);

describe.skipIf(missing !== undefined)("E2B's network options on gVisor", () => {
  test("decide what programs reach, and change while they run", async () => {
    const internet = new SmallInternet(await temporaryFolder());
    await internet.open();
    onTestFinished(() => internet.close());
    const flags = ["--network-allow", "127.0.0.0/8", "--network-nameservers", internet.names.address];
    const server = await ServerProcess.start({ store: await temporaryFolder(), flags });
    const url = `${server.url.replace(/^ws/, "http")}/e2b`;
    const options = { apiKey: "any", apiUrl: url, sandboxUrl: url };

    /** Which of the two names answer. */
    const reached = async (sandbox: Sandbox): Promise<string[]> => {
      const pages = { web: `http://web.test:${internet.port}/`, apt: `http://apt.test:${internet.port}/Packages` };
      const answers = Object.entries(pages).map(async ([name, page]) => {
        const ran = await sandbox.commands.run(`curl -sSf ${page}`).catch((error: unknown) => error);
        if (!(ran instanceof CommandExitError)) expect(ran).toMatchObject({ exitCode: 0 });
        return ran instanceof CommandExitError ? [] : [name];
      });
      return (await Promise.all(answers)).flat();
    };
    const onlyWeb = { allowOut: ["web.test"], denyOut: ["0.0.0.0/0"] };
    const [usual, closed, listed, denied] = await Promise.all([
      Sandbox.create(options),
      Sandbox.create({ ...options, allowInternetAccess: false }),
      Sandbox.create({ ...options, network: onlyWeb }),
      Sandbox.create({ ...options, network: { denyOut: ["127.0.0.0/8"] } }),
    ]);
    expect(await Promise.all([usual, closed, listed, denied].map(reached))).toEqual([["web", "apt"], [], ["web"], []]);
    await Promise.all([closed.updateNetwork(onlyWeb), usual.updateNetwork({ denyOut: ["0.0.0.0/0"] })]);
    expect(await Promise.all([usual, closed].map(reached))).toEqual([[], ["web"]]);
    // The restrictions stay through a pause.
    await closed.pause();
    await closed.connect();
    expect(await reached(closed)).toEqual(["web"]);
  });
});
