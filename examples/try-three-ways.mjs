/**
 * Prepares a sandbox once, forks it three ways, tries something else in each, and keeps the best: what an agent does that
 * wants to look before it leaps. The forks begin with everything: files, memory, running programs.
 *
 *   node examples/try-three-ways.mjs [http://127.0.0.1:8080]
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const url = process.argv[2] ?? "http://127.0.0.1:8080";

if (typeof WebSocket === "undefined") {
  // Node older than 22: the repository brings a newer one.
  const node = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));
  process.exit(spawnSync(node, process.argv.slice(1), { stdio: "inherit" }).status ?? 1);
}

const { Sandbox, SandboxerError } = await import("@sandboxer/client");

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
