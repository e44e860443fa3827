import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../../lease/simulation/random.ts";
import type { Outcome } from "../checker/history.ts";
import type { Violation } from "../checker/violation.ts";
import { machineMs } from "../machine-clock.ts";
import { bodyOf, isMissing, isRefused, timesOf, type ExecResult } from "./answers.ts";
import { call, refusalOf, wordsOf, type Answer, type CallOptions } from "./call.ts";
import { checkSnapshot } from "./check-snapshot.ts";
import type { ClientContext } from "./client-context.ts";
import { LifeRecord } from "./life-record.ts";
import { READ, readShown, stepProgram } from "./programs.ts";

const STEP_PATIENCE_MS = [2_000, 8_000, 20_000] as const;
const PROBE_PATIENCE_MS = 20_000;
/** Longer than a save or a handoff may take. */
const LONG_PATIENCE_MS = 45_000;
const HASTY_MS = [5, 400] as const;
const RETRY_MS = [50, 500] as const;
/** The share of steps that go through a server that does not have the sandbox. */
const RELAYED_SHARE = 0.15;
/** The share of steps without an answer that are sent again, with the same key. */
const REPEATED_SHARE = 0.8;
/** How long a sandbox may be out of reach once all faults are over. */
const STUCK_MS = 60_000;
/** The same on a machine that does not let the servers run. */
const STARVED_MS = 10 * STUCK_MS;

interface Place {
  readonly server: number;
  readonly epoch: number;
}

/**
 * One sandbox as its client knows it: where it runs, what was asked of it, and whether what came of that was right. One
 * call goes after the other; only {@link probe} may run beside them.
 */
export class SandboxLife {
  readonly id: string;
  readonly record: LifeRecord;
  readonly #context: ClientContext;
  readonly #random: Random;
  /** At which epoch each server had it last. */
  readonly #epochs = new Map<number, number>();
  readonly #snapshots: string[] = [];
  #place: Place | undefined;
  /** The epoch at which the file was seen last. */
  #seenEpoch: number;
  #nextNumber = 1;
  #isOver = false;

  constructor(id: string, place: Place, sentMs: number, context: ClientContext, random: Random) {
    this.id = id;
    this.record = new LifeRecord(context);
    this.#context = context;
    this.#random = random;
    this.#place = place;
    this.#seenEpoch = place.epoch;
    this.#epochs.set(place.server, place.epoch);
    this.record.take({ kind: "created", ...place, sentMs, answeredMs: machineMs() });
  }

  /** It is missing, deleted or stuck: there is nothing more to do. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get steps(): number {
    return this.#nextNumber - 1;
  }

  get violations(): readonly Violation[] {
    return this.record.violations;
  }

  /** Whether the file was seen since the sandbox came to where it is: what is saved now is known. */
  get isSeen(): boolean {
    return this.#place !== undefined && this.#place.epoch === this.#seenEpoch;
  }

  /** Resumes it on any server. False if it has ended, or the signal aborts first. */
  async locate(signal: AbortSignal): Promise<boolean> {
    const sinceMs = machineMs();
    while (!signal.aborted && !this.#isOver) {
      const server = this.#anyServer();
      const answer = await this.#call(server, "resume", "POST", "/resume", { patienceMs: LONG_PATIENCE_MS });
      const resumed = bodyOf(answer, 200) as { epoch: number } | undefined;
      if (resumed !== undefined) {
        this.#place = { server, epoch: resumed.epoch };
        this.#epochs.set(server, resumed.epoch);
        return true;
      }
      this.#judgeResume(answer, server, sinceMs);
      if (!this.#isOver) await this.#pause(signal);
    }
    return false;
  }

  #judgeResume(answer: Answer, server: number, sinceMs: number): void {
    const { injector } = this.#context;
    const said = `Server ${server} says: ${wordsOf(answer)}`;
    const nowMs = machineMs();
    const patienceMs = injector.isStarvedSince(nowMs - STUCK_MS) ? STARVED_MS : STUCK_MS;
    const isHindered = injector.isDisturbedSince(answer.sentMs) || injector.isStarvedSince(answer.sentMs);
    if (isMissing(answer)) {
      this.record.take({ kind: "missing", said, atMs: nowMs });
      this.#isOver = true;
    } else if (nowMs - sinceMs > patienceMs && !injector.isDisturbedSince(nowMs - patienceMs)) {
      this.record.report("stuck", `It could not be resumed for ${patienceMs / 1000} s. ${said}`);
      this.#isOver = true;
    } else if (refusalOf(answer)?.details["refused"] === "timed out" && !isHindered) {
      this.record.report("stuck", `A living server does not hand it off. ${said}`);
    }
  }

  /** Lets its server move it to another one. */
  async handOff(): Promise<void> {
    const place = this.#place;
    const to = this.#anyServer();
    if (place === undefined || to === place.server) return;
    const answer = await this.#fenced(place, "handoff", "/handoff", { to: this.#urlOf(to) });
    const moved = bodyOf(answer, 200) as { sandbox: { epoch: number } } | undefined;
    this.#place = moved === undefined ? undefined : { server: to, epoch: moved.sandbox.epoch };
    if (moved !== undefined) this.#epochs.set(to, moved.sandbox.epoch);
  }

  /**
   * Writes the next number. A step without an answer may be repeated, wherever the sandbox is by then. Says whether it was
   * acknowledged.
   */
  async step(signal: AbortSignal): Promise<boolean> {
    const number = this.#nextNumber++;
    let outcome: Outcome = "refused";
    let sentMs: number | undefined;
    while (this.#place !== undefined || (await this.locate(signal))) {
      const place = this.#place;
      if (place === undefined) break;
      const answer = await this.#step(number, place);
      sentMs ??= answer.sentMs;
      const result = bodyOf(answer, 200) as ExecResult | undefined;
      if (result !== undefined) return this.#stepped(number, place, { ...timesOf(answer), sentMs }, result);
      if (!isRefused(answer)) outcome = "unknown";
      this.#place = undefined;
      if (signal.aborted || !this.#random.chance(REPEATED_SHARE)) break;
      await this.#pause(signal);
    }
    this.record.take({ kind: "step", number, outcome, sentMs: sentMs ?? machineMs(), answeredMs: machineMs() });
    return false;
  }

  #stepped(number: number, place: Place, times: ReturnType<typeof timesOf>, result: ExecResult): boolean {
    if (result.exit_code === 0) {
      this.#seenEpoch = place.epoch;
      const shown = readShown(result.stdout);
      this.record.take({ kind: "step", outcome: "acknowledged", number, ...place, ...times, ...shown });
      return true;
    }
    const said = `${result.stdout}${result.stderr}`;
    this.record.report("torn state", `Step ${number} ended with ${result.exit_code}: ${said}`);
    this.#isOver = true;
    return false;
  }

  /** Saves it, and stops it or lets it run. */
  async save(how: "pause" | "live"): Promise<void> {
    const place = this.#place;
    if (place === undefined) return;
    const body = how === "live" ? { leave_running: true } : {};
    const answer = await this.#fenced(place, how, "/checkpoint", body);
    const isSaved = bodyOf(answer, 200) !== undefined;
    if (isSaved) this.record.take({ kind: "saved", how, ...place, ...timesOf(answer) });
    if (!isSaved || how === "pause") this.#place = undefined;
  }

  async snapshot(): Promise<void> {
    const place = this.#place;
    if (place === undefined) return;
    const answer = await this.#fenced(place, "snapshot", "/snapshot", {});
    const taken = bodyOf(answer, 201) as { id: string } | undefined;
    if (taken === undefined) return void (this.#place = undefined);
    this.#snapshots.push(taken.id);
    this.record.take({ kind: "snapshot", snapshot: taken.id, ...place, ...timesOf(answer) });
  }

  /** Looks into a copy of one of its snapshots, if it has any. */
  async checkSnapshot(): Promise<void> {
    if (this.#snapshots.length === 0) return;
    await checkSnapshot(this.record, this.#random.pick(this.#snapshots), this.#urlOf(this.#anyServer()));
  }

  /** Asks every server that has had the sandbox, at the epoch at which it had it: at most one may answer. */
  async probe(): Promise<void> {
    const probes = [...this.#epochs].map(async ([server, epoch]) => {
      const url = `${this.#urlOf(server)}/v1/sandboxes/${this.id}/exec`;
      const headers = { "if-sandbox-epoch": String(epoch) };
      const answer = await call("POST", url, { body: { shell: READ }, headers, patienceMs: PROBE_PATIENCE_MS });
      this.record.answered("probe", `probe at ${server}, epoch ${epoch}`, answer);
      const result = bodyOf(answer, 200) as ExecResult | undefined;
      if (result?.exit_code !== 0) return;
      this.record.take({ kind: "read", server, epoch, ...timesOf(answer), ...readShown(result.stdout) });
    });
    await Promise.all(probes);
  }

  /** Deletes it for good, and sees that nobody brings it back. */
  async delete(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#isOver) {
      const answer = await this.#call(this.#anyServer(), "delete", "DELETE", "", { patienceMs: LONG_PATIENCE_MS });
      const isDone = answer.kind === "answered" && answer.status === 200;
      if (isMissing(answer)) this.record.take({ kind: "missing", said: wordsOf(answer), atMs: machineMs() });
      const outcome = isDone ? "acknowledged" : isRefused(answer) ? "refused" : "unknown";
      this.record.take({ kind: "deleted", outcome, ...timesOf(answer) });
      this.#isOver = isDone || isMissing(answer);
      if (!this.#isOver) await this.#pause(signal);
    }
    if (signal.aborted) return;
    const server = this.#anyServer();
    const answer = await this.#call(server, "resume", "POST", "/resume", { patienceMs: LONG_PATIENCE_MS });
    if (bodyOf(answer, 200) !== undefined) {
      this.record.report("resurrected sandbox", `Server ${server} has resumed it after it was deleted.`);
    }
  }

  async #step(number: number, place: Place): Promise<Answer> {
    const isRelayed = this.#random.chance(RELAYED_SHARE);
    const headers = {
      "if-sandbox-epoch": String(place.epoch),
      "idempotency-key": `${this.id}-${number}`,
      ...(isRelayed ? { "sandboxer-relay": "allow" } : {}),
    };
    const server = isRelayed ? this.#anyServer() : place.server;
    const patienceMs = this.#random.pick(STEP_PATIENCE_MS);
    const body = { shell: stepProgram(number) };
    return await this.#call(server, `step ${number}`, "POST", "/exec", { body, headers, patienceMs });
  }

  async #fenced({ server, epoch }: Place, what: string, path: string, body: object): Promise<Answer> {
    const headers = { "if-sandbox-epoch": String(epoch) };
    return await this.#call(server, what, "POST", path, { body, headers, patienceMs: LONG_PATIENCE_MS });
  }

  async #call(server: number, what: string, method: string, path: string, options: CallOptions): Promise<Answer> {
    const isHasty = this.#random.chance(this.#context.abortShare);
    const patienceMs = isHasty ? this.#random.between(...HASTY_MS) : options.patienceMs;
    const answer = await call(method, `${this.#urlOf(server)}/v1/sandboxes/${this.id}${path}`, {
      ...options,
      patienceMs,
    });
    const epoch = options.headers?.["if-sandbox-epoch"];
    const where = epoch === undefined ? `at ${server}` : `at ${server}, epoch ${epoch}`;
    this.record.answered(what.split(" ")[0] ?? "", `${what} ${where}`, answer);
    return answer;
  }

  #anyServer(): number {
    return Math.floor(this.#random.between(0, this.#context.slots.length));
  }

  #urlOf(server: number): string {
    return this.#context.slots[server]?.url ?? "";
  }

  async #pause(signal: AbortSignal): Promise<void> {
    await delay(this.#random.between(...RETRY_MS), undefined, { signal }).catch(() => {});
  }
}
