import { expect, test } from "vitest";
import { isRoot, startAgent } from "./support/agent.ts";
import { Type, u16, u32 } from "./support/wire.ts";

test("a terminal has a size, belongs to its user and is the controlling one", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell(
    "tty; stty size; test -O $(tty) && echo mine; echo direct > /dev/tty; ps -o tpgid= -p $$",
    { terminal: true, rows: 33, columns: 101 },
  );
  await agent.exit(id);
  const text = agent.text(id);
  expect(text).toMatch(/^\/dev\/pts\/\d+\r\n33 101\r\n/);
  if (isRoot) expect(text).toContain("mine\r\n");
  expect(text).toContain("direct\r\n");
  expect(agent.outputs(id).every((output) => output.stream === 1)).toBe(true);
});

test("RESIZE takes effect at once, with the signal", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.02; done", {
    terminal: true,
  });
  await agent.untilText(id, "ready");
  await agent.call(Type.resize, u32(id), u16(50), u16(132));
  await agent.untilText(id, "50 132");
  await agent.exit(id);
  expect(await agent.failure(Type.resize, u32(id), u16(1), u16(1))).toBe(3);
  const plain = await agent.spawn(["cat"]);
  expect(await agent.failure(Type.resize, u32(plain.id), u16(1), u16(1))).toBe(25);
});

test("input is echoed, STDIN_CLOSE is an end of file, and the terminal stays open", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("cat; echo first; cat; echo second", { terminal: true });
  await agent.stdin(id, "hello\n");
  await agent.untilText(id, "hello\r\nhello\r\n");
  await agent.call(Type.stdinClose, u32(id));
  await agent.untilText(id, "first");
  await agent.stdin(id, "again\n");
  await agent.untilText(id, "again\r\nagain\r\n");
  await agent.call(Type.stdinClose, u32(id));
  expect(await agent.exit(id)).toMatchObject({ code: 0 });
});

test("control characters reach the foreground job", async () => {
  const agent = await startAgent();
  const { id } = await agent.spawn(["bash", "--norc", "-i"], {
    terminal: true,
    environment: ["PATH=/usr/bin:/bin", "PS1=> "],
  });
  await agent.untilText(id, "> ");
  await agent.stdin(id, `sh -c "echo st''arted; exec sleep 1000"\n`);
  await agent.untilText(id, "started");
  await agent.stdin(id, "\x03");
  await agent.stdin(id, "echo rc=$?; exit\n");
  await agent.untilText(id, "rc=130");
  expect(await agent.exit(id)).toMatchObject({ code: 0 });
});

test("control characters are plain bytes for a program that turned signals off", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("stty -isig -echo; echo ready; head -n 1 | od -An -c", { terminal: true });
  await agent.untilText(id, "ready");
  await agent.stdin(id, "a\x03\x1c\x1ab\n");
  await agent.exit(id);
  expect(agent.text(id)).toContain("a 003 034 032   b  \\n");
});

test("input of a terminal that keeps it at a signal is not discarded", async () => {
  const agent = await startAgent();
  // A signal between a fork and an exec would be taken by the shell's handler in the child.
  const script = "trap 'read -r line; echo got $line; exit' INT; stty noflsh; sh -c 'echo ready; exec sleep 1000'";
  const { id } = await agent.shell(script, { terminal: true });
  await agent.untilText(id, "ready");
  await agent.stdin(id, "typed\n\x03");
  await agent.untilText(id, "got typed");
  expect(await agent.exit(id)).toMatchObject({ signal: 0 });
});

test("all output of a terminal that closes is logged", async () => {
  const agent = await startAgent();
  for (let round = 0; round < 10; round++) {
    const { id } = await agent.shell("stty -opost; head -c 50000 /dev/zero", { terminal: true });
    expect((await agent.exit(id)).end).toBe(50_000);
  }
});

test("a leader that closes its terminal neither ends nor spins the agent", async () => {
  const agent = await startAgent();
  const { id } = await agent.shell("exec 3<$(tty) </dev/null >/dev/null 2>&1 3<&-; sleep 0.3; exit 4", {
    terminal: true,
  });
  expect(await agent.exit(id)).toMatchObject({ code: 4 });
});
