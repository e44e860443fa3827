import { expect, test } from "vitest";
import { startCli } from "./support/run-cli.ts";

test("the network policy is set at creation, changed and shown, and a failed command leaves a hint", async () => {
  const cli = await startCli();
  const id = await cli.id(["create", "--name", "web", "--network", "PyPI.org,!bad.example"]);
  expect((await cli(["get", "web"])).out).toMatch(/^network +pypi.org,!bad.example$/m);
  expect((await cli(["network", "show", "web"])).out).toMatch(/^way +proxy$/m);
  const empty = await cli(["network", "log", "web"]);
  expect(empty).toMatchObject({ out: "", err: expect.stringContaining("No connection was refused.") });
  expect((await cli(["network", "set", "web", "none"])).out).toBe("none\n");
  expect(await cli.json(["network", "show", "web"])).toMatchObject({ policy: "none", way: "none" });
  const failed = await cli(["exec", "web", "--", "sh", "-c", "echo Could not resolve host: pypi.org; exit 6"]);
  expect(failed).toMatchObject({ code: 6, err: expect.stringContaining(`sandboxer network set ${id} open`) });
  const wrong = await cli(["network", "set", "web", "http://x"]);
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("domains, addresses and CIDRs") });
});
