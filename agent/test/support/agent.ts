import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach } from "vitest";
import { agentBinary } from "./build.ts";
import { Reader, Type, frame, list, str, u16, u32, u64, u8 } from "./wire.ts";

export type Frame = { type: number; request: number; payload: Buffer };
export type SpawnOptions = {
  key?: string;
  folder?: string;
  environment?: string[];
  terminal?: boolean;
  input?: boolean;
  rows?: number;
  columns?: number;
  uid?: number;
  /** Supplementary groups; absent: the request has none. */
  groups?: readonly number[];
  open?: boolean;
};

export class AgentError extends Error {
  readonly errno: number;
  constructor(errno: number, message: string) {
    super(`${errno}: ${message}`);
    this.errno = errno;
  }
}

export const isRoot = process.getuid?.() === 0;
const userId = isRoot ? 1000 : (process.getuid?.() ?? 1000);
const running = new Set<TestAgent>();

/** The agent's output, and the requests of PROTOCOL.md as methods. */
export class TestAgent {
  readonly child: ChildProcess;
  readonly events: Frame[] = [];
  stderr = "";
  private arrived: Buffer = Buffer.alloc(0);
  private nextRequest = 1;
  private readonly waiting = new Map<number, (reply: Frame) => void>();
  private readonly exited: Promise<number | null>;

  constructor(command: readonly string[] = [agentBinary]) {
    const [program, ...parameters] = command;
    this.child = spawn(program as string, parameters, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ASAN_OPTIONS: `detect_leaks=${isRoot ? 1 : 0}` },
    });
    this.exited = once(this.child, "close").then(([code]) => code as number | null);
    this.child.stdout?.on("data", (bytes: Buffer) => this.receive(bytes));
    this.child.stderr?.on("data", (bytes: Buffer) => (this.stderr += bytes));
    this.child.stdin?.on("error", () => {});
    running.add(this);
  }

  private receive(bytes: Buffer): void {
    this.arrived = this.arrived.length === 0 ? bytes : Buffer.concat([this.arrived, bytes]);
    while (this.arrived.length >= 4 && this.arrived.length >= 4 + this.arrived.readUInt32LE()) {
      const end = 4 + this.arrived.readUInt32LE();
      const message = {
        type: this.arrived.readUInt8(4),
        request: this.arrived.readUInt32LE(5),
        payload: this.arrived.subarray(9, end),
      };
      this.arrived = this.arrived.subarray(end);
      const waiter = this.waiting.get(message.request);
      this.waiting.delete(message.request);
      if (waiter) waiter(message);
      else this.events.push(message);
    }
  }

  /** Sends a request without waiting; the promise is its reply. */
  send(type: number, ...parts: Buffer[]): Promise<Frame> {
    const request = this.nextRequest++;
    this.child.stdin?.write(frame(type, request, Buffer.concat(parts)));
    return new Promise((resolve) => this.waiting.set(request, resolve));
  }

  async call(type: number, ...parts: Buffer[]): Promise<Buffer> {
    const reply = await this.send(type, ...parts);
    if (reply.type === Type.ok) return reply.payload;
    const reader = new Reader(reply.payload);
    throw new AgentError(reader.u32(), reader.str());
  }

  raw(bytes: Buffer): void {
    this.child.stdin?.write(bytes);
  }

  /** The errno of a call that must fail. */
  async failure(type: number, ...parts: Buffer[]): Promise<number> {
    const error: unknown = await this.call(type, ...parts).catch((reason: unknown) => reason);
    assert(error instanceof AgentError, "the call should have failed");
    return error.errno;
  }

  async until<T>(what: string, look: () => T | undefined | false, timeoutMs = 30_000): Promise<T> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      if (Date.now() > deadline) throw new Error(`no ${what} within ${timeoutMs} ms; stderr: ${this.stderr}`);
      await sleep(4);
    }
  }

  hello = (heartbeatMs = 0): Promise<Buffer> => this.call(Type.hello, u32(1), u32(heartbeatMs));
  ping = async (): Promise<void> => assert.equal((await this.call(Type.ping, Buffer.from("beat"))).toString(), "beat");

  async spawn(
    parameters: readonly string[],
    options: SpawnOptions = {},
  ): Promise<{ id: number; pid: number; existed: boolean }> {
    const flags = (options.terminal ? 1 : 0) | (options.input === false ? 2 : 0) | (options.groups ? 4 : 0);
    const environment = options.environment ?? ["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TERM=xterm"];
    const uid = options.uid ?? userId;
    const reader = new Reader(
      await this.call(
        Type.spawn,
        u8(flags),
        u16(options.rows ?? 24),
        u16(options.columns ?? 80),
        u32(uid),
        u32(uid),
        str(options.key ?? ""),
        str(options.folder ?? "/"),
        list(parameters),
        list(environment),
        ...(options.groups ? [u32(options.groups.length), ...options.groups.map(u32)] : []),
      ),
    );
    const result = { id: reader.u32(), pid: reader.u32(), existed: reader.u8() === 1 };
    if (options.open !== false) await this.window(result.id, { limit: 2 ** 50 });
    return result;
  }
  shell = (script: string, options: SpawnOptions = {}) => this.spawn(["sh", "-c", script], options);
  window = (
    id: number,
    { seek, acknowledged = 0, limit = 2 ** 50 }: { seek?: number; acknowledged?: number; limit?: number },
  ): Promise<Buffer> =>
    this.call(Type.window, u32(id), u8(seek === undefined ? 0 : 1), u64(seek ?? 0), u64(acknowledged), u64(limit));
  stdin = (id: number, bytes: string | Buffer): Promise<Buffer> => this.call(Type.stdin, u32(id), Buffer.from(bytes));
  signal = (id: number, number: number, scope = 0): Promise<Buffer> =>
    this.call(Type.signal, u32(id), u32(number), u8(scope));

  outputs(id: number): { stream: number; offset: number; bytes: Buffer }[] {
    const frames = this.events.filter((event) => event.type === Type.output && event.payload.readUInt32LE() === id);
    return frames.map(({ payload }) => ({
      stream: payload.readUInt8(4),
      offset: Number(payload.readBigUInt64LE(5)),
      bytes: payload.subarray(13),
    }));
  }
  text = (id: number, stream?: number): string =>
    Buffer.concat(
      this.outputs(id)
        .filter((output) => stream === undefined || output.stream === stream)
        .map((output) => output.bytes),
    ).toString();
  untilText = (id: number, text: string): Promise<true> =>
    this.until(`"${text}" in ${JSON.stringify(this.text(id))}`, () => this.text(id).includes(text));
  exits = (id: number): Frame[] =>
    this.events.filter((event) => event.type === Type.exit && event.payload.readUInt32LE() === id);
  async exit(id: number): Promise<{ code: number; signal: number; end: number }> {
    const reader = new Reader((await this.until("EXIT", () => this.exits(id)[0])).payload);
    reader.u32();
    return { code: reader.i32(), signal: reader.i32(), end: reader.u64() };
  }

  async processes() {
    const reader = new Reader(await this.call(Type.processes));
    return Array.from({ length: reader.u32() }, () => ({
      id: reader.u32(),
      pid: reader.u32(),
      exited: reader.u8() === 1,
      terminal: reader.u8() === 1,
      code: reader.i32(),
      signal: reader.i32(),
      start: reader.u64(),
      acknowledged: reader.u64(),
      end: reader.u64(),
      key: reader.str(),
    }));
  }

  async processTable() {
    const reader = new Reader(await this.call(Type.processTable));
    return Array.from({ length: reader.u32() }, () => ({
      pid: reader.u32(),
      parent: reader.u32(),
      uid: reader.u32(),
      state: String.fromCharCode(reader.u8()),
      resident: reader.u64(),
      cpuMs: reader.u64(),
      command: reader.str(),
    }));
  }

  /** End of file must end the agent with 0 and without a report of the sanitizers. */
  async end(expected = 0): Promise<void> {
    this.child.stdin?.end();
    const code = await this.exited;
    running.delete(this);
    assert.doesNotMatch(this.stderr, /Sanitizer|runtime error/);
    assert.equal(code, expected, this.stderr);
  }

  async ended(): Promise<number | null> {
    const code = await this.exited;
    running.delete(this);
    return code;
  }
}

export async function startAgent(command?: readonly string[]): Promise<TestAgent> {
  const agent = new TestAgent(command);
  await agent.until("READY", () => agent.events.some((event) => event.type === Type.ready));
  return agent;
}

afterEach(async () => {
  await Promise.all([...running].map((agent) => agent.end()));
});
