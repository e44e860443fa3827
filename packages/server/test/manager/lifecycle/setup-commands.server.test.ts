import { profileSchema, type SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { FakeBackend } from "../../../src/backends/fake/index.ts";
import { runSetup } from "../../../src/manager/lifecycle/setup-commands.ts";
import { ProfileCatalog } from "../../../src/profiles/profile-catalog.ts";
import { HttpClient, type ErrorAnswer } from "../../gateway/http/support.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";

const ENDLESS = "echo begun; sleep 600";

async function startEndless(): Promise<TestServer> {
  const profile = profileSchema.parse({ name: "endless", backends: ["fake"], isolation: "none", setup: [ENDLESS] });
  return startTestServer({
    profiles: new ProfileCatalog([{ profile, file: "test", bundled: false, overrides: undefined }]),
  });
}

test("a setup command that does not end has a limit, and the error names it", async () => {
  const spec = { env: {}, resources: {}, network: "none" } as const;
  const handle = await new FakeBackend().acquire({ sandboxId: "x", spec });
  const failure = await runSetup(handle, ["true", ENDLESS, "true"], { limitMs: 500 }).catch((error: unknown) => error);
  expect(failure as SandboxerError).toMatchObject({
    code: "sandbox_failed",
    message: `The setup command "${ENDLESS}" did not end within 0.5 s.`,
    details: { command: ENDLESS, exit_code: null, output: "begun\n" },
  });
});

test("a drain cancels a creation that does not end, and nothing is left of it", async () => {
  const server = await startEndless();
  const http = new HttpClient(server);
  const answer = http.call<ErrorAnswer>("POST", "/v1/sandboxes", { profile: "endless" });
  await eventually("it is being made", () => server.backend.runningCount === 1);
  await server.manager.drain();
  expect((await answer).body.error).toMatchObject({ code: "draining" });
  expect([server.manager.states(), server.backend.runningCount]).toEqual([{}, 0]);
  expect(await Array.fromAsync(server.durable.ownership.list() ?? [])).toEqual([]);
});
