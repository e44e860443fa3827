import { SandboxerError } from "@sandboxer/protocol";
import Fastify from "fastify";
import { pino } from "pino";
import { expect, test } from "vitest";
import { z } from "zod";
import { ConnectError } from "../../../../src/gateway/e2b/connect/connect-error.ts";
import { ConnectService } from "../../../../src/gateway/e2b/connect/connect-routes.ts";

test("every failure of the server is logged with its route, and those of a client are not", async () => {
  const lines: string[] = [];
  const app = Fastify();
  const service = new ConnectService(app, "test.Test", pino({}, { write: (line) => void lines.push(line) }));
  const failures = {
    Broken: new TypeError("a bug"),
    Closed: new ConnectError("internal", "stdin is closed"),
    Held: new SandboxerError("lease_held", "another server has it"),
    Gone: new SandboxerError("server_unreachable", "no answer"),
  };
  for (const [method, error] of Object.entries(failures)) {
    service.unary(method, z.object({}), async () => Promise.reject(error));
  }
  const answers: unknown[] = [];
  for (const method of Object.keys(failures)) {
    const { statusCode, body } = await app.inject({ method: "POST", url: `/test.Test/${method}`, payload: {} });
    answers.push([method, statusCode, (JSON.parse(body) as { code: string }).code]);
  }
  expect(answers).toEqual([
    ["Broken", 500, "internal"],
    ["Closed", 500, "internal"],
    ["Held", 400, "failed_precondition"],
    ["Gone", 503, "unavailable"],
  ]);
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ route: "/test.Test/Broken", err: { message: "a bug" } });
});
