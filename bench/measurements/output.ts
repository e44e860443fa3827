import type { Lab } from "../lab.ts";
import type { Aim, Comparison } from "../result.ts";
import { measurePair } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";

const AIM: Aim = { bound: "at least", ratio: 0.5 };
const MEGABYTE = 1_000_000;
const WRITE_BYTES = 64_000;

/** Lines of 100 characters, 64,000 bytes at a time. */
function program(bytes: number): string {
  return [
    "import os",
    `block = (b'x' * 99 + b'\\n') * ${WRITE_BYTES / 100}`,
    `for _ in range(${bytes / WRITE_BYTES}):`,
    "    view = memoryview(block)",
    "    while view: view = view[os.write(1, view):]",
  ].join("\n");
}

/** How fast the output of code reaches a client that only counts it. */
export async function measureOutput(lab: Lab): Promise<Comparison[]> {
  const bytes = (lab.quick ? 64 : 192) * MEGABYTE;
  lab.progress(`Output of ${bytes / MEGABYTE} MB`);
  const session = await ClientSession.create(lab.server.url);
  const ours = async (): Promise<number> => {
    await session.execute("python", program(bytes));
    if (session.outputBytes < bytes) throw new Error(`only ${session.outputBytes} bytes arrived`);
    return bytes / MEGABYTE / (session.outputMs / 1000);
  };
  const raw = async (): Promise<number> => {
    const container = await lab.raw.run({ args: ["python3", "-u", "-c", program(bytes)], asUser: true });
    const counted = await container.countOutput();
    await container.end();
    if (counted.bytes !== bytes) throw new Error(`only ${counted.bytes} bytes came out of runsc`);
    return bytes / MEGABYTE / ((counted.lastMs - counted.firstMs) / 1000);
  };
  const pair = await measurePair(lab.quick ? 2 : 5, ours, raw);
  await session.destroy();
  return [
    {
      id: "output",
      title: `Output of ${bytes / MEGABYTE} MB of text`,
      unit: "MB/s",
      ours: { what: "python to a WebSocket client that counts", summary: pair.ours },
      raw: { what: "python to a pipe out of runsc run", summary: pair.raw },
      aim: AIM,
    },
  ];
}
