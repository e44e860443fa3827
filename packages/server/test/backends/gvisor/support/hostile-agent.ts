import { PassThrough } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import { AgentClient } from "../../../../src/backends/agent/agent-client.ts";
import { readListeningPorts } from "../../../../src/backends/agent/listening-ports.ts";
import { prepareUserSpace } from "../../../../src/backends/agent/prepare-user-space.ts";

/** An agent under the control of code inside: it sends anything. */
export class HostileAgent {
  readonly input = new PassThrough();
  readonly output = new PassThrough();
  readonly failures: SandboxerError[] = [];
  readonly client: AgentClient;

  readonly #rootInside: boolean;

  constructor(rootInside = false) {
    this.#rootInside = rootInside;
    this.input.resume();
    this.client = new AgentClient(this.input, this.output, {
      users: { workingFolder: "/", rootInside, gainsRights: rootInside },
      baseEnv: {},
      env: {},
      heartbeatMs: 0,
      onFailure: (error) => this.failures.push(error),
      onEnd: () => this.client.fail(new SandboxerError("sandbox_failed", "The agent is gone.")),
      chunksLast: true,
    });
  }

  /** Sends every kind of request, with the numbers 1, 2, … */
  askEverything(): Promise<unknown>[] {
    const { client } = this;
    const drain = async (key: string, user?: string): Promise<void> => {
      const process = await client.exec({ key, argv: ["x"], ...(user === undefined ? {} : { user }) });
      for await (const chunk of process.output()) process.acknowledge(chunk.offset + chunk.data.length);
      await process.exited;
    };
    const receive = async (): Promise<void> => {
      for await (const _ of (await client.connect(80)).data);
    };
    return [
      client.ping(),
      drain("k"),
      client.processes(),
      client.processTable(),
      receive(),
      client.freezeProcesses(),
      client.files.stat("/x"),
      client.files.list("/x"),
      Array.fromAsync(client.files.read("/x")),
      client.files.write("/x", new Uint8Array(10)),
      client.restored(1, "host"),
      client.start({ timeoutMs: 60_000 }),
      ...(this.#rootInside
        ? [
            drain("root", "root"),
            drain("named", "someone:0"),
            prepareUserSpace(client, false),
            readListeningPorts(client.rootFiles),
          ]
        : []),
    ];
  }
}
