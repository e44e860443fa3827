import { execResultSchema, type ExecResult } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../../test/kit/server/test-server.ts";
import { SandboxClient } from "./support.ts";

const MIB = 1024 * 1024;
/** More than one answer of a test takes, and less than two. */
const BUDGET = { maxCollectedBytes: 4 * MIB };
const BIG = { shell: "head -c 3000000 /dev/zero", max_output_bytes: 16 * MIB };

function decoded({ stdout, stdout_encoding }: ExecResult): Buffer {
  return Buffer.from(stdout, stdout_encoding);
}

async function figure(server: TestServer, name: string): Promise<number> {
  const metrics = await (await fetch(`${server.httpUrl}/metrics`)).text();
  return Number(new RegExp(`^sandboxer_collected_output_${name} (\\d+)$`, "m").exec(metrics)?.[1]);
}

test("output that is not text is returned in base64, each stream separately", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const binary = await box.exec({ shell: "printf '\\xff\\x00a'; echo 'grüße' >&2" });
  expect(binary).toMatchObject({ stdout_encoding: "base64", stderr_encoding: "utf8", stderr: "grüße\n" });
  expect([...decoded(binary)]).toEqual([0xff, 0, 0x61]);
  const zeros = await box.exec({ shell: "head -c 3 /dev/zero" });
  expect(zeros).toMatchObject({ stdout_encoding: "base64", stdout: "AAAA", stderr_encoding: "utf8", stderr: "" });
  const coloured = await box.exec({ shell: "printf '\\x1b[1mbold\\x1b[0m\\x07'" });
  expect(coloured).toMatchObject({ stdout_encoding: "utf8", stdout: "\u001b[1mbold\u001b[0m\u0007" });
});

test("a requested encoding is used, even if it loses bytes", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const inText = await box.call<ExecResult>("POST", "/exec?encoding=utf8", { shell: "printf '\\xffa\\x00'" });
  expect(inText.body).toMatchObject({ stdout_encoding: "utf8", stdout: "\ufffda\u0000" });
  const inBase64 = await box.call<ExecResult>("POST", "/exec?encoding=base64", { shell: "printf a" });
  expect(inBase64.body).toMatchObject({ stdout_encoding: "base64", stdout: "YQ==" });
});

test("text that is cut in the middle of a character stays text", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const cut = await box.exec({ shell: "printf 'aüb'", max_output_bytes: 2 });
  expect(cut).toMatchObject({ stdout_encoding: "utf8", stdout: "a\ufffd", truncated: true });
});

test("large output arrives completely: text with its characters, and control characters without their cost in JSON", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const text = await box.exec({ shell: "yes 'grüße \"1\"' | head -c 600000" });
  const line = 'grüße "1"\n';
  expect(text.stdout_encoding).toBe("utf8");
  const whole = Buffer.from(line.repeat(60_000)).subarray(0, 600_000).toString("utf8");
  expect(text.stdout === whole).toBe(true);
  const response = await fetch(`${box.url}/exec`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ shell: "head -c 600000 /dev/zero; echo end >&2" }),
  });
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  const body = await response.text();
  expect(body.length).toBeLessThan(801_000);
  const answer = execResultSchema.parse(JSON.parse(body));
  expect(answer).toMatchObject({ exit_code: 0, truncated: false, stdout_encoding: "base64", stderr: "end\n" });
  expect(decoded(answer).equals(Buffer.alloc(600_000))).toBe(true);
});

test("all responses together hold no more than the budget plus one of them, and all complete", async () => {
  const server = await startTestServer(BUDGET);
  const boxes = await Promise.all(Array.from({ length: 8 }, () => SandboxClient.create(server)));
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, server.manager.processes.collected.heldBytes)), 1);
  const answers = await Promise.all(boxes.map((box) => box.exec(BIG))).finally(() => clearInterval(watch));
  for (const answer of answers) expect(decoded(answer)).toHaveLength(3_000_000);
  expect(most).toBeGreaterThan(3 * MIB);
  expect(most).toBeLessThanOrEqual(4 * MIB + 3_100_000 + 8 * 128 * 1024);
  await eventually("all memory is given back", () => server.manager.processes.collected.heldBytes === 0);
});

/** Two programs that hold what they have printed: the first fills the budget, the second goes beyond it. */
async function fillBudget(server: TestServer, signal: AbortSignal): Promise<SandboxClient> {
  const box = await SandboxClient.create(server);
  for (const bytes of [4 * MIB, MIB]) {
    const before = server.manager.processes.collected.heldBytes;
    const request = { ...BIG, shell: `head -c ${bytes} /dev/zero; read forever`, on_disconnect: "kill" };
    const headers = { "content-type": "application/json" };
    const answer = fetch(`${box.url}/exec`, { method: "POST", headers, body: JSON.stringify(request), signal });
    answer.catch(() => {});
    await eventually("its output is held", () => server.manager.processes.collected.heldBytes === before + bytes);
  }
  return box;
}

test("a program beyond the budget waits, small responses do not, and disconnected clients free their memory", async () => {
  const server = await startTestServer(BUDGET);
  const gone = new AbortController();
  const box = await fillBudget(server, gone.signal);
  const late = await SandboxClient.create(server);
  const waiting = late.exec(BIG);
  await eventually("it waits", async () => (await figure(server, "waiting")) === 1);
  expect(await figure(server, "limit_bytes")).toBe(4 * MIB);
  expect(await figure(server, "bytes")).toBe(5 * MIB + 128 * 1024);
  expect(await box.exec({ shell: "echo small" })).toMatchObject({ stdout: "small\n" });
  const [stuck] = await late.processes();
  expect(stuck).toMatchObject({ state: "running" });
  expect(stuck?.output_end).toBeLessThan(2 * MIB);
  gone.abort();
  expect(decoded(await waiting)).toHaveLength(3_000_000);
  await eventually("all memory is given back", async () => (await figure(server, "bytes")) === 0);
});

test("an answer that waits for memory ends when its sandbox is paused, and when it is deleted", async () => {
  const server = await startTestServer(BUDGET);
  const gone = new AbortController();
  await fillBudget(server, gone.signal);
  for (const [method, path, status] of [
    ["POST", "/checkpoint", 409],
    ["DELETE", "", 410],
  ] as const) {
    const late = await SandboxClient.create(server);
    const waiting = late.call("POST", "/exec", BIG);
    await eventually("it waits", () => server.manager.processes.collected.waiting === 1);
    expect((await late.call(method, path)).status).toBeLessThan(300);
    expect((await waiting).status).toBe(status);
    expect(server.manager.processes.collected.waiting).toBe(0);
  }
  gone.abort();
  await eventually("all memory is given back", () => server.manager.processes.collected.heldBytes === 0);
});
