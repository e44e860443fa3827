import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { type BlockJob, type BlockResult, type BlockSession, BlockSessionWork } from "./block-jobs.ts";
import type { WorkerAnswer, WorkerMessage } from "./block-worker.ts";

/** Threads that were idle for this long are ended; the next job starts new ones. */
const IDLE_MS = 60_000;
const LARGEST_COUNT = 8;

/** The blocks of one image that is being written or read. */
export interface OpenSession {
  run(job: BlockJob): Promise<BlockResult>;
  close(): void;
}

interface Waiting {
  readonly sessionId: number;
  readonly job: BlockJob;
  readonly resolve: (result: BlockResult) => void;
  readonly reject: (error: Error) => void;
}

/** Threads that hash, compress and check blocks for all saves and loads of this process. */
export class BlockWorkers {
  readonly count = Math.min(availableParallelism(), LARGEST_COUNT);
  readonly #sessions = new Map<number, BlockSession>();
  readonly #waiting: Waiting[] = [];
  readonly #workers = new Set<BlockWorker>();
  #lastSessionId = 0;

  open(session: BlockSession): OpenSession {
    const sessionId = ++this.#lastSessionId;
    this.#sessions.set(sessionId, session);
    return {
      run: async (job) => await this.#run(sessionId, job),
      close: () => {
        this.#sessions.delete(sessionId);
        for (const worker of this.#workers) worker.forget(sessionId);
      },
    };
  }

  async #run(sessionId: number, job: BlockJob): Promise<BlockResult> {
    const { promise, resolve, reject } = Promise.withResolvers<BlockResult>();
    this.#waiting.push({ sessionId, job, resolve, reject });
    this.#dispatch();
    return await promise;
  }

  #dispatch(): void {
    try {
      this.#dispatchAll();
    } catch (error) {
      // No thread can be started: waiting callers get the error.
      for (const { reject } of this.#waiting.splice(0)) reject(error as Error);
    }
  }

  #dispatchAll(): void {
    while (this.#waiting.length > 0) {
      const worker = this.#freeWorker();
      const next = worker === undefined ? undefined : this.#waiting.shift();
      if (worker === undefined || next === undefined) return;
      const session = this.#sessions.get(next.sessionId);
      if (session === undefined) next.reject(new Error("The session was closed before its job began."));
      else {
        const settled = worker.run(next.sessionId, session, next.job).then(next.resolve, next.reject);
        void settled.finally(() => this.#dispatch());
      }
    }
  }

  #freeWorker(): BlockWorker | undefined {
    for (const worker of this.#workers) if (!worker.busy) return worker;
    if (this.#workers.size >= this.count) return undefined;
    const worker = new BlockWorker(IDLE_MS, () => this.#workers.delete(worker));
    this.#workers.add(worker);
    return worker;
  }
}

/** Runs the job in the caller's thread, for jobs too small for the overhead of another thread. */
export function openHere(session: BlockSession): OpenSession {
  const work = new BlockSessionWork(session);
  let isClosed = false;
  return {
    run: async (job) => {
      if (isClosed) throw new Error("The session was closed before its job began.");
      return work.run(job);
    },
    close: () => {
      isClosed = true;
      work.close();
    },
  };
}

class BlockWorker {
  readonly #thread = new Worker(new URL("block-worker.ts", import.meta.url));
  readonly #known = new Set<number>();
  readonly #idleMs: number;
  readonly #onEnd: () => void;
  #current: PromiseWithResolvers<BlockResult> | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(idleMs: number, onEnd: () => void) {
    this.#idleMs = idleMs;
    this.#onEnd = onEnd;
    this.#thread.on("message", (answer: WorkerAnswer) => this.#settle(answer));
    this.#thread.on("error", (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    this.#thread.on("exit", () => this.#fail(new Error("A thread that works on blocks has ended.")));
    this.#thread.unref();
  }

  get busy(): boolean {
    return this.#current !== undefined;
  }

  async run(sessionId: number, session: BlockSession, job: BlockJob): Promise<BlockResult> {
    clearTimeout(this.#idle);
    this.#current = Promise.withResolvers();
    // Only a busy thread keeps the process alive.
    this.#thread.ref();
    const { promise } = this.#current;
    if (!this.#known.has(sessionId)) this.#post({ kind: "open", sessionId, session });
    this.#known.add(sessionId);
    this.#post({ kind: "run", sessionId, job });
    return await promise;
  }

  forget(sessionId: number): void {
    if (this.#known.delete(sessionId)) this.#post({ kind: "close", sessionId });
  }

  #post(message: WorkerMessage): void {
    this.#thread.postMessage(message, []);
  }

  #settle(answer: WorkerAnswer): void {
    const current = this.#current;
    this.#current = undefined;
    this.#thread.unref();
    this.#idle = setTimeout(() => this.#end(), this.#idleMs);
    this.#idle.unref();
    if ("result" in answer) current?.resolve(answer.result);
    else current?.reject(Object.assign(new Error(answer.failure.message), { code: answer.failure.code }));
  }

  #fail(error: Error): void {
    this.#onEnd();
    this.#current?.reject(error);
    this.#current = undefined;
  }

  #end(): void {
    this.#onEnd();
    void this.#thread.terminate();
  }
}
