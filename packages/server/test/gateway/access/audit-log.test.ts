import { mkdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import { pino } from "pino";
import { expect, test } from "vitest";
import { AuditLog } from "../../../src/gateway/access/audit-log.ts";
import { ANONYMOUS } from "../../../src/gateway/access/principal.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

const LINE = { who: "anonymous", name: "anonymous", what: "create" };

function auditLog(file?: string) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  return { audit: new AuditLog({ log, file, clock: new FakeClock() }), lines };
}

function linesOf(file: string): unknown[] {
  const lines = readFileSync(file, "utf8").split("\n");
  expect(lines.pop()).toBe("");
  return lines.map((line) => JSON.parse(line) as unknown);
}

test("each action is one line in the log and in the file, which only its owner can read", async () => {
  const file = join(await temporaryFolder(), "audit.jsonl");
  const { audit, lines } = auditLog(file);
  audit.record({ who: ANONYMOUS, what: "create", sandboxId: "s", epoch: 3, outcome: "ok" });
  const line = { ...LINE, sandbox_id: "s", epoch: 3, outcome: "ok" };
  expect(lines).toEqual([{ level: 30, time: expect.any(Number) as number, audit: true, ...line, msg: "create: ok" }]);
  expect(linesOf(file)).toEqual([{ time: "2026-09-21T14:13:20.000Z", ...line }]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("the outcome comes from the error", async () => {
  const { audit, lines } = auditLog();
  const around = (error?: Error) =>
    audit.around({ who: ANONYMOUS, what: "create" }, async () => {
      if (error !== undefined) throw error;
      return "result";
    });
  expect(await around()).toBe("result");
  await expect(around(new SandboxerError("permission_denied", "no"))).rejects.toThrow("no");
  await expect(around(new Error("broken"))).rejects.toThrow("broken");
  expect(lines).toMatchObject([
    { ...LINE, outcome: "ok" },
    { ...LINE, outcome: "refused", code: "permission_denied" },
    { ...LINE, outcome: "failed", code: "internal" },
  ]);
  expect(JSON.stringify(lines)).not.toContain("broken");
});

test("a file that was moved is created again", async () => {
  const file = join(await temporaryFolder(), "audit.jsonl");
  const { audit } = auditLog(file);
  audit.record({ who: ANONYMOUS, what: "create", outcome: "ok" });
  renameSync(file, `${file}.1`);
  audit.record({ who: ANONYMOUS, what: "execute", outcome: "ok" });
  expect(linesOf(`${file}.1`)).toMatchObject([{ what: "create" }]);
  expect(linesOf(file)).toMatchObject([{ what: "execute" }]);
});

test("an unwritable file keeps the server from starting; a later failure is logged", async () => {
  const folder = join(await temporaryFolder(), "audit");
  const file = join(folder, "audit.jsonl");
  expect(() => auditLog(file)).toThrow(/audit file .* cannot be written/);
  mkdirSync(folder);
  const { audit, lines } = auditLog(file);
  renameSync(folder, `${folder}.away`);
  audit.record({ who: ANONYMOUS, what: "create", outcome: "ok" });
  expect(lines).toMatchObject([{ audit: true }, { level: 50, msg: "the audit file cannot be written" }]);
});
