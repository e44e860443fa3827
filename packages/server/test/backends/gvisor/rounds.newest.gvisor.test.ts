import { expect, test } from "vitest";
import type { SandboxHandle, SandboxProcess } from "../../../src/backends/backend.ts";
import {
  bash,
  countAbove,
  counter,
  finish,
  Follower,
  node,
  python,
  readText,
  run,
  start,
} from "../contract/programs.ts";
import { describeGvisor } from "./support/describe-gvisor.ts";
import { GvisorFixture } from "./support/fixture.ts";

const ROUNDS = 10;

/** Answers each line on its connection with a count, and keeps an unlinked file open. */
const SERVER = `
import os, socket
kept = open('/workspace/gone', 'w+'); os.unlink('/workspace/gone'); kept.write('kept;'); kept.flush()
listener = socket.create_server(('127.0.0.1', 7002)); print('listening', flush=True)
count = 0
while True:
    connection, _ = listener.accept()
    with connection, connection.makefile('rw') as lines:
        for line in lines:
            count += 1; kept.write(f'{count};'); kept.flush(); kept.seek(0)
            lines.write(f'{count} {line.strip()} {kept.read()}\\n'); lines.flush(); kept.seek(0, 2)
`;
/** Keeps one connection to the server inside, across all saves. */
const CLIENT = `
import socket, sys
lines = socket.create_connection(('127.0.0.1', 7002)).makefile('rw'); print('connected', flush=True)
for line in sys.stdin:
    lines.write(line); lines.flush(); print(lines.readline().strip(), flush=True)
`;
const NODE = "let n = 0; setInterval(() => require('fs').writeFileSync('/workspace/node', String(++n)), 200)";

describeGvisor("many rounds", (engine) => {
  const fixture = new GvisorFixture(engine);

  const find = async (handle: SandboxHandle, key: string): Promise<SandboxProcess> => {
    const process = (await handle.processes()).find((candidate) => candidate.key === key);
    if (process === undefined) throw new Error(`No process with the key ${key}.`);
    return process;
  };

  test(`${ROUNDS} rounds of saving and restoring a busy sandbox lose nothing`, async () => {
    let handle = await fixture.acquire();
    await start(handle, counter("/workspace/count"), { key: "counter" });
    await start(handle, node(NODE), { key: "node" });
    await new Follower(await start(handle, python(SERVER), { key: "server" })).until("listening");
    await new Follower(await start(handle, python(CLIENT), { key: "client" })).until("connected");
    const shell = await start(handle, ["bash", "--norc", "-i"], {
      key: "shell",
      pty: { rows: 24, columns: 80 },
      env: { PS1: "$ " },
    });
    await shell.writeStdin(Buffer.from("total=0; cd /tmp\n"));
    let [count, ticks] = [0, 0];

    for (let round = 1; round <= ROUNDS; round++) {
      const snapshot = await fixture.save(handle, false);
      await handle.destroy();
      handle = await fixture.restore(snapshot);

      count = await countAbove(handle, "/workspace/count", count);
      ticks = await countAbove(handle, "/workspace/node", ticks);
      const client = await find(handle, "client");
      await client.writeStdin(Buffer.from(`round-${round}\n`));
      const numbers = Array.from({ length: round }, (_, index) => `${index + 1};`).join("");
      await new Follower(client).until(`${round} round-${round} kept;${numbers}`);
      const terminal = await find(handle, "shell");
      await terminal.writeStdin(Buffer.from(`total=$((total+${round})); echo "sum=$total in $PWD"\n`));
      await new Follower(terminal).until(`sum=${(round * (round + 1)) / 2} in /tmp`);
    }

    const process = await find(handle, "counter");
    await process.signal(9, "group");
    const { stdout } = await finish(process);
    const lines = stdout.trim().split("\n").map(Number);
    expect(lines).toEqual(lines.map((_, index) => index + 1));
    expect(await readText(handle, "/run/sandboxer/generation")).toMatch(new RegExp(`^${ROUNDS}\\s*$`));
    await handle.destroy();
  });

  test("three concurrent forks of one image are three sandboxes", async () => {
    const handle = await fixture.acquire();
    const hook = '#!/bin/sh\necho "$SANDBOXER_GENERATION $(hostname)" >> /workspace/restored-log\n';
    await run(handle, bash("mkdir -p /workspace/.sandboxer"));
    await handle.files.write("/workspace/.sandboxer/restored", Buffer.from(hook), { mode: 0o755 });
    await start(handle, counter("/workspace/count"));
    await countAbove(handle, "/workspace/count", 2);
    const who = bash("hostname; cat /etc/machine-id; python3 -c 'import os; print(os.urandom(8).hex())'");
    const before = (await run(handle, who)).stdout;
    const snapshot = await fixture.save(handle);
    const forks = await Promise.all([1, 2, 3].map(() => fixture.restore(snapshot)));
    const identities = await Promise.all(forks.map(async (fork) => (await run(fork, who)).stdout.trim().split("\n")));
    for (const part of [0, 1, 2])
      expect(new Set([...identities, before.split("\n")].map((lines) => lines[part])).size).toBe(4);
    for (const [index, fork] of forks.entries()) {
      await countAbove(fork, "/workspace/count", await countAbove(fork, "/workspace/count", 0));
      await fork.files.write("/workspace/own", Buffer.from(String(index)));
      expect(await readText(fork, "/run/sandboxer/generation")).toMatch(/^1\s*$/);
      await expect
        .poll(() => readText(fork, "/workspace/restored-log").catch(() => ""))
        .toBe(`1 ${identities[index]?.[0]}\n`);
    }
    for (const [index, fork] of forks.entries()) expect(await readText(fork, "/workspace/own")).toBe(String(index));
    await Promise.all([handle, ...forks].map((each) => each.destroy()));
  });
});
