import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import type { AgentProcess } from "../../../src/backends/agent/agent-process.ts";
import { Request } from "../../../src/backends/agent/frame-types.ts";
import { PayloadReader, PayloadWriter } from "../../../src/backends/agent/payload.ts";
import { ScriptedAgent } from "./scripted-agent.ts";

interface Window {
  readonly seeks: boolean;
  readonly from: number;
  readonly acknowledged: number;
  readonly limit: number;
}

class AgentWithProcess extends ScriptedAgent {
  async start(): Promise<AgentProcess> {
    const starting = this.client.exec({ key: "a", argv: ["/bin/true"] });
    await this.untilAsked(1);
    this.answer(0, new PayloadWriter().u32(1).u32(100).u8(0).finish());
    return starting;
  }

  get windows(): readonly Window[] {
    return this.asked
      .filter(({ type }) => type === Request.window)
      .map(({ payload }) => {
        const fields = new PayloadReader(payload, true);
        fields.u32();
        return { seeks: fields.u8() === 1, from: fields.u64(), acknowledged: fields.u64(), limit: fields.u64() };
      });
  }
}

async function next(output: AsyncIterator<{ readonly data: Uint8Array }>): Promise<string | undefined> {
  const { value, done } = await output.next();
  return done === true ? undefined : Buffer.from(value.data).toString();
}

function reader(process: AgentProcess, from?: number) {
  return process.output(from === undefined ? {} : { from })[Symbol.asyncIterator]();
}

test("the first reader of a new process opens its window without waiting for a reply", async () => {
  const agent = new AgentWithProcess();
  const process = await agent.start();
  const first = next(reader(process));
  await agent.untilAsked(2);
  expect(agent.windows).toMatchObject([{ seeks: false, acknowledged: 0 }]);
  expect(agent.question(1).request).toBe(0);
  agent.tellOutput(1, 0, "hello");
  expect(await first).toBe("hello");
});

test("a reader that continues where the last one stopped asks the sandbox for nothing", async () => {
  const agent = new AgentWithProcess();
  const process = await agent.start();
  const old = reader(process);
  const first = next(old);
  await agent.untilAsked(2);
  agent.tellOutput(1, 0, "one");
  expect(await first).toBe("one");
  await old.return(undefined);
  const second = next(reader(process, 3));
  agent.tellOutput(1, 3, "two");
  expect(await second).toBe("two");
  expect(agent.windows).toHaveLength(1);
});

test("a reader seeks where output has passed that it wants", async () => {
  const agent = new AgentWithProcess();
  const process = await agent.start();
  const old = reader(process);
  const first = next(old);
  await agent.untilAsked(2);
  agent.tellOutput(1, 0, "one");
  expect(await first).toBe("one");
  await old.return(undefined);
  // Nobody reads it.
  agent.tellOutput(1, 3, "two");
  const again = next(reader(process, 3));
  await agent.untilAsked(3);
  expect(agent.windows.at(-1)).toMatchObject({ seeks: true, from: 3 });
  agent.answer(2, Buffer.alloc(0));
  agent.tellOutput(1, 3, "two");
  expect(await again).toBe("two");
});

test("a reader that comes while another one seeks does so too", async () => {
  const agent = new AgentWithProcess();
  const process = await agent.start();
  const old = next(reader(process));
  await agent.untilAsked(2);
  agent.tellOutput(1, 0, "one");
  await old;
  void next(reader(process, 0));
  await agent.untilAsked(3);
  const last = next(reader(process, 3));
  await agent.untilAsked(4);
  expect(agent.windows.slice(1)).toMatchObject([
    { seeks: true, from: 0 },
    { seeks: true, from: 3 },
  ]);
  agent.answer(2, Buffer.alloc(0));
  // For the reader that was replaced.
  agent.tellOutput(1, 0, "one");
  agent.answer(3, Buffer.alloc(0));
  agent.tellOutput(1, 3, "two");
  expect(await last).toBe("two");
});

test("a process that has ended before its reader came gives the rest of its output", async () => {
  const agent = new AgentWithProcess();
  const process = await agent.start();
  agent.tellExit(1, 3);
  const output = reader(process);
  const only = next(output);
  await agent.untilAsked(2);
  agent.tellOutput(1, 0, "all");
  expect(await only).toBe("all");
  expect(await next(output)).toBeUndefined();
});
