import { describe, expect, test } from "vitest";
import type { InjectedFault } from "./history.ts";
import { SandboxChecker } from "./sandbox-checker.ts";
import type { Rule } from "./violation.ts";

const A = 0;
const B = 1;

/** A history in the making: each call takes ten milliseconds, and comes after the one before. */
class Story {
  readonly faults: InjectedFault[] = [];
  readonly #checker = new SandboxChecker(this.faults);
  #nowMs = 0;

  constructor() {
    this.#checker.take({ kind: "created", server: A, epoch: 1, ...this.#call() });
  }

  step(number: number, log: readonly number[], { server = A, epoch = 1, broken = "" } = {}): this {
    this.#checker.take({
      kind: "step",
      outcome: "acknowledged",
      number,
      log,
      server,
      epoch,
      broken,
      ...this.#call(),
    });
    return this;
  }

  unanswered(number: number, outcome: "unknown" | "refused" = "unknown"): this {
    this.#checker.take({ kind: "step", outcome, number, ...this.#call() });
    return this;
  }

  read(log: readonly number[], { server = A, epoch = 1, sinceMs = 0 } = {}): this {
    const call = this.#call();
    this.#checker.take({ kind: "read", log, server, epoch, broken: "", ...call, sentMs: call.sentMs - sinceMs });
    return this;
  }

  saved(how: "pause" | "live" = "live", { server = A, epoch = 1 } = {}): this {
    this.#checker.take({ kind: "saved", how, server, epoch, ...this.#call() });
    return this;
  }

  snapshot(snapshot: string): this {
    this.#checker.take({ kind: "snapshot", snapshot, server: A, epoch: 1, ...this.#call() });
    return this;
  }

  restored(snapshot: string, log: readonly number[], broken = ""): this {
    this.#checker.take({ kind: "restored", snapshot, log, broken, ...this.#call() });
    return this;
  }

  missing(): this {
    this.#checker.take({ kind: "missing", said: "sandbox_not_found", atMs: this.#nowMs });
    return this;
  }

  deleted(outcome: "acknowledged" | "unknown" = "acknowledged"): this {
    this.#checker.take({ kind: "deleted", outcome, ...this.#call() });
    return this;
  }

  killed(server: number): this {
    return this.fault({ name: "kill", server, lossy: true });
  }

  fault(fault: Pick<InjectedFault, "name" | "server" | "lossy">): this {
    this.faults.push({ ...fault, fromMs: this.#nowMs, untilMs: this.#nowMs });
    return this;
  }

  get broken(): readonly Rule[] {
    return this.#checker.violations.map(({ rule }) => rule);
  }

  #call(): { sentMs: number; answeredMs: number } {
    this.#nowMs += 20;
    return { sentMs: this.#nowMs - 10, answeredMs: this.#nowMs };
  }
}

describe("histories that servers may produce", () => {
  test("every step follows the previous one, across a save and a handoff", () => {
    const story = new Story().step(1, [0, 1]).saved("pause").step(2, [0, 1, 2], { server: B, epoch: 2 });
    expect(story.broken).toEqual([]);
  });

  test("a step without an answer was executed, was not, or is executed late", () => {
    expect(new Story().unanswered(1).step(2, [0, 1, 2]).broken).toEqual([]);
    expect(new Story().unanswered(1).step(2, [0, 2]).broken).toEqual([]);
    expect(new Story().unanswered(1).step(2, [0, 2]).step(3, [0, 2, 1, 3]).broken).toEqual([]);
  });

  test("a killed server loses unsaved changes", () => {
    const story = new Story().step(1, [0, 1]).saved().step(2, [0, 1, 2]).killed(A);
    expect(story.step(3, [0, 1, 3], { server: B, epoch: 2 }).broken).toEqual([]);
  });

  test("a killed server loses a sandbox that was never saved", () => {
    expect(new Story().step(1, [0, 1]).killed(A).missing().broken).toEqual([]);
  });

  test("a deleted sandbox is missing", () => {
    expect(new Story().step(1, [0, 1]).saved().deleted().missing().broken).toEqual([]);
    expect(new Story().step(1, [0, 1]).saved().deleted("unknown").missing().broken).toEqual([]);
  });

  test("a copy of a snapshot has the content of the sandbox, with or without an unanswered step", () => {
    const story = new Story().step(1, [0, 1]).unanswered(2).snapshot("s").step(3, [0, 1, 2, 3]);
    expect(story.restored("s", [0, 1, 2]).restored("s", [0, 1, 2]).broken).toEqual([]);
    expect(new Story().step(1, [0, 1]).unanswered(2).snapshot("s").restored("s", [0, 1]).broken).toEqual([]);
  });

  test("a stopping server explains a loss once it has reported it", () => {
    const story = new Story().step(1, [0, 1]).fault({ name: "term", server: A, lossy: "undecided" });
    story.step(2, [0, 2], { server: B, epoch: 2 });
    expect(story.broken).toEqual([]);
    for (const fault of story.faults) fault.lossy = true;
    expect(story.broken).toEqual([]);
  });
});

describe("planted bugs", () => {
  test("a lost write without a fault", () => {
    expect(new Story().step(1, [0, 1]).step(2, [0, 2]).broken).toEqual(["lost write"]);
  });

  test("a lost write after a fault of another server", () => {
    expect(new Story().step(1, [0, 1]).killed(B).step(2, [0, 2]).broken).toEqual(["lost write"]);
  });

  test("a lost write that was requested after the fault", () => {
    expect(new Story().killed(A).step(1, [0, 1]).step(2, [0, 2]).broken).toEqual(["lost write"]);
  });

  test("a lost write after a fault that loses nothing, such as an unavailable store", () => {
    const story = new Story().step(1, [0, 1]).fault({ name: "down", server: "all", lossy: false });
    expect(story.step(2, [0, 2]).broken).toEqual(["lost write"]);
  });

  test("a lost write after an orderly stop that reported nothing", () => {
    const story = new Story().step(1, [0, 1]).fault({ name: "term", server: A, lossy: "undecided" });
    story.step(2, [0, 2], { server: B, epoch: 2 });
    for (const fault of story.faults) fault.lossy = false;
    expect(story.broken).toEqual(["lost write"]);
  });

  test("an acknowledged step that its own answer does not show", () => {
    expect(new Story().step(1, [0]).broken).toEqual(["lost write"]);
  });

  test("a double execution", () => {
    expect(new Story().step(1, [0, 1]).step(2, [0, 1, 2, 2]).broken).toEqual(["double execution"]);
    expect(new Story().unanswered(1).step(2, [0, 1, 2]).step(3, [0, 1, 2, 1, 3]).broken).toEqual(["double execution"]);
  });

  test("a refused step that was executed", () => {
    expect(new Story().unanswered(1, "refused").step(2, [0, 1, 2]).broken).toEqual(["unexplained write"]);
  });

  test("a number that nobody requested", () => {
    expect(new Story().step(1, [0, 7, 1]).broken).toEqual(["unexplained write"]);
  });

  test("a stale restore: an older state than the acknowledged save, even after a kill", () => {
    const saved = new Story().step(1, [0, 1]).saved().step(2, [0, 1, 2]).saved();
    expect(saved.killed(A).step(3, [0, 1, 3], { server: B, epoch: 2 }).broken).toEqual(["stale restore"]);
  });

  test("a stale restore: an older state than that of a handoff", () => {
    const moved = new Story().step(1, [0, 1]).step(2, [0, 1, 2], { server: B, epoch: 2 });
    expect(moved.killed(B).step(3, [0, 3], { server: A, epoch: 3 }).broken).toEqual(["stale restore"]);
  });

  test("a stale restore: a lost number comes back", () => {
    const lost = new Story().step(1, [0, 1]).saved().step(2, [0, 1, 2]).killed(A);
    lost.step(3, [0, 1, 3], { server: B, epoch: 2 }).killed(B);
    expect(lost.step(4, [0, 1, 2, 4], { server: A, epoch: 3 }).broken).toEqual(["stale restore"]);
  });

  test("a stale restore that only another reader sees", () => {
    const lost = new Story().step(1, [0, 1]).saved().step(2, [0, 1, 2]).killed(A);
    lost.step(3, [0, 1, 3], { server: B, epoch: 2 });
    expect(lost.read([0, 1, 2], { server: B, epoch: 2 }).broken).toEqual(["stale restore"]);
  });

  test("two owners: the old one executes after the new one has", () => {
    const story = new Story().step(1, [0, 1]).saved().step(2, [0, 1, 2], { server: B, epoch: 2 });
    expect(story.read([0, 1], { server: A, epoch: 1 }).broken).toEqual(["two owners"]);
  });

  test("two owners of one epoch", () => {
    const story = new Story().step(1, [0, 1]).saved().step(2, [0, 1, 2], { server: B, epoch: 1 });
    expect(story.broken).toEqual(["two owners"]);
  });

  test("not two owners: the old one was called before the new one had answered", () => {
    const story = new Story().step(1, [0, 1]).saved().step(2, [0, 1, 2], { server: B, epoch: 2 });
    expect(story.read([0, 1], { server: A, epoch: 1, sinceMs: 20 }).broken).toEqual([]);
  });

  test("two owners at different times: a stopped server acknowledges when it continues", () => {
    const story = new Story().step(1, [0, 1]).saved().fault({ name: "stop", server: A, lossy: true });
    // The other one had taken the sandbox over when this was sent.
    story.step(2, [0, 1, 2], { server: A, epoch: 1 });
    expect(story.step(3, [0, 1, 3], { server: B, epoch: 2 }).broken).toEqual(["lost write"]);
  });

  test("a snapshot with other content", () => {
    const story = (): Story => new Story().step(1, [0, 1]).unanswered(2).step(3, [0, 1, 3]).snapshot("s");
    expect(story().restored("s", [0, 1]).broken).toEqual(["wrong snapshot"]);
    expect(story().restored("s", [0, 1, 3, 4]).broken).toEqual(["wrong snapshot"]);
    expect(story().restored("s", [0, 1, 3, 2]).restored("s", [0, 1, 3]).broken).toEqual(["wrong snapshot"]);
  });

  test("memory and files that do not match", () => {
    const broken = "memory .0.1, file .0";
    expect(new Story().step(1, [0, 1], { broken }).broken).toEqual(["torn state"]);
    expect(new Story().step(1, [0, 1]).snapshot("s").restored("s", [0, 1], broken).broken).toEqual(["torn state"]);
  });

  test("a sandbox that is missing although it was saved, or although nothing happened", () => {
    expect(new Story().step(1, [0, 1]).saved().killed(A).missing().broken).toEqual(["missing sandbox"]);
    expect(new Story().step(1, [0, 1]).missing().broken).toEqual(["missing sandbox"]);
  });

  test("a deleted sandbox that answers", () => {
    expect(new Story().step(1, [0, 1]).deleted().read([0, 1]).broken).toEqual(["resurrected sandbox"]);
  });
});
