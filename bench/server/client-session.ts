type ServerMessage = Readonly<Record<string, unknown>> & { readonly event: string };

/** A WebSocket client as a user would write one. Output is counted, and parsed only on request. */
export class ClientSession {
  readonly #socket: WebSocket;
  readonly #statuses: string[] = [];
  #wake = Promise.withResolvers<void>();
  #closed: number | undefined;
  #outputBytes = 0;
  #firstOutputMs: number | undefined;
  #lastOutputMs = 0;
  #onFirstOutput = Promise.withResolvers<void>();
  sandboxId = "";
  /** Called for each message that carries output. */
  onOutput: () => void = () => {};

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#onMessage(String(data)));
    socket.addEventListener("close", ({ code }) => {
      this.#closed = code;
      this.#notify();
    });
  }

  static async open(url: string): Promise<ClientSession> {
    const socket = new WebSocket(url);
    const session = new ClientSession(socket);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve(), { once: true });
      socket.addEventListener("error", () => reject(new Error(`No server at ${url}.`)), { once: true });
    });
    return session;
  }

  static async create(url: string, configuration: object = {}): Promise<ClientSession> {
    const session = await ClientSession.open(`${url}/create`);
    session.send(configuration);
    await session.status("RUNNING");
    return session;
  }

  static async attach(url: string, sandboxId: string): Promise<ClientSession> {
    const session = await ClientSession.open(`${url}/attach/${sandboxId}`);
    session.sandboxId = sandboxId;
    await session.status("RUNNING");
    return session;
  }

  /** Bytes of messages that carried output since the last execution began; see {@link ClientSession.execute}. */
  get outputBytes(): number {
    return this.#outputBytes;
  }

  /** Time from the first message with output to the last. */
  get outputMs(): number {
    return this.#lastOutputMs - (this.#firstOutputMs ?? this.#lastOutputMs);
  }

  get firstOutput(): Promise<void> {
    return this.#onFirstOutput.promise;
  }

  send(message: object): void {
    this.#socket.send(JSON.stringify(message));
  }

  start(language: "bash" | "python", code: string): void {
    this.#outputBytes = 0;
    this.#firstOutputMs = undefined;
    this.#onFirstOutput = Promise.withResolvers();
    this.send({ language, code });
  }

  async execute(language: "bash" | "python", code: string): Promise<void> {
    this.start(language, code);
    await this.status("EXECUTION_DONE");
  }

  async checkpoint(): Promise<void> {
    this.send({ action: "checkpoint" });
    await this.status("CHECKPOINTED");
  }

  async destroy(): Promise<void> {
    this.send({ action: "kill_sandbox" });
    await this.status("KILLED");
  }

  /** Waits for a status, and drops earlier messages. */
  async status(name: string): Promise<void> {
    const wanted = `SANDBOX_${name}`;
    while (!this.#statuses.includes(wanted)) {
      if (this.#closed !== undefined) throw new Error(`closed with ${this.#closed} before ${wanted}`);
      await this.#wake.promise;
    }
    this.#statuses.splice(0, this.#statuses.indexOf(wanted) + 1);
  }

  #onMessage(text: string): void {
    if (text.startsWith('{"event":"stdout"')) {
      this.#outputBytes += text.length;
      this.#lastOutputMs = performance.now();
      this.#firstOutputMs ??= this.#lastOutputMs;
      this.#onFirstOutput.resolve();
      this.onOutput();
      return;
    }
    const message = JSON.parse(text) as ServerMessage;
    if (message.event === "sandbox_id") this.sandboxId = String(message["sandbox_id"]);
    if (message.event === "status_update") this.#statuses.push(String(message["status"]));
    if (message.event === "error") process.stderr.write(`server: ${String(message["message"])}\n`);
    this.#notify();
  }

  #notify(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }
}
