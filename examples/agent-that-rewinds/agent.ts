/**
 * An agent that tries three fixes at once, and keeps the one that works. It follows a script, so it needs no model.
 *
 *   node examples/agent-that-rewinds/agent.ts
 *
 * It prepares a sandbox with a program and its tests, forks it three times, applies another fix in each fork, runs the
 * tests in all of them, and promotes the fork that passes: the sandbox continues with that state, under the same id. Every
 * step can be repeated, so the agent survives a server that is killed at any moment and started again.
 *
 * SANDBOXER_URL and SANDBOXER_API_KEY name the server.
 */
import { setTimeout as delay } from "node:timers/promises";
import { compareSandboxes, Sandbox, Sandboxer, SandboxerError } from "@sandboxer/client";

const BUGGY = "echo $(($1 - $1 * $2))";
const FIXES = ["echo $(($1 - $2))", "echo $(($1 * (100 - $2) / 100))", "echo $(($1 / 100 * $2))"];
const TESTS = `
for test in "200 10 180" "50 0 50" "80 25 60"; do
  set -- $test
  got=$(sh discount.sh $1 $2)
  [ "$got" = "$3" ] || { echo "$1 minus $2 % is $3, not $got"; exit 1; }
done
echo "3 tests passed"
`;
/** A program that keeps its number in memory alone. */
const HEART = "n=0; while true; do n=$((n + 1)); echo $n > /tmp/beats; sleep 0.1; done";
const GIVE_UP_MS = 300_000;

const { SANDBOXER_URL: url = "http://127.0.0.1:8080", SANDBOXER_API_KEY: apiKey } = process.env;
const client = new Sandboxer({ url, ...(apiKey === undefined ? {} : { apiKey }) });

const work = await lasting(prepare);
console.log(`prepared  ${work.id}: ${(await lasting(() => test(work))).stdout.trim()}`);

const forks = await lasting(fork);
console.log(`forked    ${forks.map(({ record }) => record.name).join(", ")}`);

const winner = await lasting(tryFixes);
console.log(`promoting ${winner.record.name}`);

const { sandbox } = await lasting(() => winner.promote({ discardOthers: true }));
const { exitCode, stdout } = await lasting(() => test(work));
console.log(`kept      ${sandbox.name}, ${sandbox.id}: ${stdout.trim()}`);
console.log(`alive     its program counted on, to ${await lasting(nextBeat)}`);
await lasting(() => work.destroy());
process.exitCode = exitCode ?? 1;

/** The sandbox with the bug. Its state is saved before anything depends on it. */
async function prepare(): Promise<Sandbox> {
  const sandbox = await Sandbox.acquire({ client, key: "agent-that-rewinds", name: "work" });
  await sandbox.files.write("/workspace/discount.sh", BUGGY);
  await sandbox.files.write("/workspace/test.sh", TESTS);
  if (!(await sandbox.processes()).some(({ state }) => state === "running"))
    await sandbox.spawn(HEART, { detach: true });
  await sandbox.checkpoint({ leaveRunning: true });
  return sandbox;
}

/** Three forks. A server that was killed may have created some of them. */
async function fork(): Promise<Sandbox[]> {
  const label = { agent: work.id };
  const found = await Array.fromAsync(Sandbox.list({ label: `agent=${work.id}` }, { client }));
  const alive = found.filter(({ record }) => record.state !== "destroyed");
  if (alive.length === FIXES.length)
    return alive.toSorted((a, b) => (a.record.name ?? "").localeCompare(b.record.name ?? ""));
  await Promise.all(alive.map((each) => each.destroy()));
  return work.fork({ count: FIXES.length, name: "fix", labels: label });
}

/** Another fix in each fork, then the tests in all of them. The fork that passes is saved. */
async function tryFixes(): Promise<Sandbox> {
  await Promise.all(forks.map((each, index) => each.files.write("/workspace/discount.sh", FIXES[index] ?? "")));
  const { items } = await compareSandboxes(forks, { command: "sh test.sh" });
  for (const { name, run, problems } of items) {
    if (run === null) throw new SandboxerError("server_unreachable", problems.join("; "));
    console.log(`${name}     exit ${run.exitCode}: ${run.stdout.trim()}`);
  }
  const best = forks[items.findIndex(({ run }) => run?.exitCode === 0)];
  if (best === undefined) throw new Error("No fix passes the tests.");
  await best.checkpoint({ leaveRunning: true });
  return best;
}

async function test(sandbox: Sandbox) {
  return await sandbox.exec("sh test.sh");
}

/** The number of the program, once it has grown. */
async function nextBeat(): Promise<string> {
  const read = async (): Promise<string> => (await work.files.readText("/tmp/beats")).trim();
  const before = await read();
  for (;;) {
    const now = await read();
    if (now !== "" && now !== before) return now;
    await delay(100);
  }
}

/** Repeats a step while the server is away. A request that is wrong is not repeated. */
async function lasting<Result>(step: () => PromiseLike<Result>): Promise<Result> {
  const startMs = performance.now();
  for (;;) {
    try {
      return await step();
    } catch (error) {
      const isOver = performance.now() - startMs > GIVE_UP_MS;
      if (!(error instanceof SandboxerError) || error.code === "bad_request" || isOver) throw error;
      console.error(`again     ${error.code}: ${error.message}`);
      await delay(500);
    }
  }
}
