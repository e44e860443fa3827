/**
 * The agent of agent.ts, over the Model Context Protocol: it knows nothing but tools, as an agent with a model does.
 *
 *   node examples/agent-that-rewinds/agent-over-mcp.ts
 *
 * SANDBOXER_URL and SANDBOXER_API_KEY name the server. Needs the package @modelcontextprotocol/client.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const BUGGY = "echo $(($1 - $1 * $2))";
const FIXES = ["echo $(($1 - $2))", "echo $(($1 * (100 - $2) / 100))", "echo $(($1 / 100 * $2))"];
const TESTS = `
for test in "200 10 180" "50 0 50" "80 25 60"; do
  set -- $test
  got=$(sh /tmp/discount.sh $1 $2)
  [ "$got" = "$3" ] || { echo "$1 minus $2 % is $3, not $got"; exit 1; }
done
echo "3 tests passed"
`;
const GIVE_UP_MS = 300_000;

const { SANDBOXER_URL: url = "http://127.0.0.1:8080", SANDBOXER_API_KEY: key } = process.env;
const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
const client = new Client({ name: "agent-that-rewinds", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit: { headers } }));

interface Ran {
  readonly exit_code: number | null;
  readonly output: string;
}

const work = await lasting(prepare);
console.log(`prepared  ${work}: ${(await lasting(() => test(work))).output.trim()}`);

const forks = await lasting(fork);
console.log(`forked    ${forks.length} times`);

const winner = await lasting(tryFixes);
if (winner === undefined) throw new Error("No fix passes the tests.");
console.log(`promoting fix ${forks.indexOf(winner) + 1}`);

const { before } = await lasting(() => call<{ before: string }>("promote", { winner, discard_others: true }));
const { exit_code, output } = await lasting(() => test(work));
console.log(`kept      ${work}: ${output.trim()}`);

await lasting(() => call("rewind", { sandbox_id: work, to: before, keep_present: false }));
console.log(`rewound   ${work}: ${(await lasting(() => test(work))).output.trim()}`);
await lasting(() => call("sandbox_destroy", { sandbox_id: work }));
await client.close();
process.exitCode = exit_code ?? 1;

/** The sandbox with the bug. A pause saves everything, and the next call resumes it. */
async function prepare(): Promise<string> {
  const { sandbox_id } = await call<{ sandbox_id: string }>("sandbox_open", { key: "agent-that-rewinds-over-mcp" });
  await call("file_write", { sandbox_id, path: "/tmp/discount.sh", content: BUGGY });
  await call("file_write", { sandbox_id, path: "/tmp/test.sh", content: TESTS });
  await call("sandbox_pause", { sandbox_id });
  return sandbox_id;
}

/** Three forks. A server that was killed may have created some of them. */
async function fork(): Promise<readonly string[]> {
  const { sandboxes } = await call<{ sandboxes: { sandbox_id: string; forked_from: string; state: string }[] }>(
    "sandbox_list",
  );
  const found = sandboxes.filter(({ forked_from, state }) => forked_from === work && state !== "destroyed");
  for (const { sandbox_id } of found) await call("sandbox_destroy", { sandbox_id });
  const { sandbox_ids } = await call<{ sandbox_ids: string[] }>("fork", { sandbox_id: work, count: FIXES.length });
  for (const sandbox_id of sandbox_ids) await call("sandbox_pause", { sandbox_id });
  return sandbox_ids;
}

/** Another fix in each fork, then the tests. The fork that passes is saved. */
async function tryFixes(): Promise<string | undefined> {
  let best: string | undefined;
  for (const [index, sandbox_id] of forks.entries()) {
    await call("file_write", { sandbox_id, path: "/tmp/discount.sh", content: FIXES[index] ?? "" });
    const ran = await test(sandbox_id);
    console.log(`fix ${index + 1}     exit ${ran.exit_code}: ${ran.output.trim()}`);
    if (ran.exit_code === 0) best = sandbox_id;
  }
  if (best !== undefined) await call("sandbox_pause", { sandbox_id: best });
  return best;
}

async function test(sandbox_id: string): Promise<Ran> {
  return call<Ran>("run", { sandbox_id, command: "sh /tmp/test.sh" });
}

/** The structured answer of a tool. */
async function call<Answer>(name: string, input: Record<string, unknown> = {}): Promise<Answer> {
  const { structuredContent, isError, content } = await client.callTool({ name, arguments: input });
  if (isError === true) throw new Error(`${name}: ${JSON.stringify(content)}`);
  return structuredContent as Answer;
}

/** Repeats a step while the server is away. */
async function lasting<Result>(step: () => Promise<Result>): Promise<Result> {
  const startMs = performance.now();
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (performance.now() - startMs > GIVE_UP_MS) throw error;
      console.error(`again     ${error instanceof Error ? error.message : String(error)}`);
      await delay(500);
    }
  }
}
