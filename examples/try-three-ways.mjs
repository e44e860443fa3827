/**
 * Prepares a sandbox once, forks it three ways, tries something else in each fork, and keeps the best, as an agent would.
 * Each fork begins with everything: files, memory, running programs.
 *
 * Outside of the clone: npm install @sandboxer/client
 *
 *   node examples/try-three-ways.mjs [http://127.0.0.1:8080]
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const url = process.argv[2] ?? "http://127.0.0.1:8080";

if (typeof WebSocket === "undefined") {
  // Node older than 22: the clone brings a newer one.
  const node = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));
  if (existsSync(node)) process.exit(spawnSync(node, process.argv.slice(1), { stdio: "inherit" }).status ?? 1);
  console.error(`This example needs Node 22 or newer; this is ${process.version}.`);
  process.exit(1);
}

const { Sandbox, SandboxerError } = await import("@sandboxer/client").catch((error) => {
  if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  console.error("This example needs the SDK: npm install @sandboxer/client");
  process.exit(1);
});

try {
  const base = await Sandbox.create({ url, name: "prepared" });
  await base.exec("echo 10 > /tmp/best");
  console.log(`Prepared ${base.id}`);

  const forks = await base.fork({ count: 3, labels: { experiment: "three-ways" } });
  const results = await Promise.all(
    forks.map(async (fork, index) => {
      const factor = index + 2;
      const start = await fork.files.readText("/tmp/best");
      const { stdout } = await fork.exec(`echo $((${start.trim()} * ${factor})) > /tmp/best; cat /tmp/best`);
      console.log(`  times ${factor}: ${stdout.trim()}`);
      return { fork, score: Number(stdout) };
    }),
  );

  const [best, ...others] = results.toSorted((a, b) => b.score - a.score);
  await Promise.all([base, ...others.map(({ fork }) => fork)].map((sandbox) => sandbox.destroy()));
  console.log(`Kept the one with ${(await best.fork.files.readText("/tmp/best")).trim()}`);
  await best.fork.destroy();
} catch (error) {
  if (!(error instanceof SandboxerError)) throw error;
  console.error(`${error.message}\n${error.hint}`);
  process.exit(1);
}
