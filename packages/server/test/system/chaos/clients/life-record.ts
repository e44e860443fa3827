import type { HistoryEvent } from "../checker/history.ts";
import { SandboxChecker } from "../checker/sandbox-checker.ts";
import type { Rule, Violation } from "../checker/violation.ts";
import { machineMs } from "../machine-clock.ts";
import { refusalOf, wordsOf, type Answer } from "./call.ts";
import type { ClientContext } from "./client-context.ts";
import { isExpected } from "./expected-codes.ts";

/** Calls that take longer are worth a look. */
const SLOW_MS = 25_000;
const KEPT_LINES = 400;
const SHOWN_NUMBERS = 12;

/** The requests to a sandbox, their outcomes, and the violations. */
export class LifeRecord {
  readonly #context: ClientContext;
  readonly #checker: SandboxChecker;
  readonly #lines: string[] = [];
  readonly #reported: Violation[] = [];

  constructor(context: ClientContext) {
    this.#context = context;
    this.#checker = new SandboxChecker(context.injector.injected);
  }

  get violations(): readonly Violation[] {
    return [...this.#checker.violations, ...this.#reported];
  }

  /** One line for each call and for each time that the sandbox showed its file. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** A call of a kind that the tally counts. An answer that no fault explains is a violation. */
  answered(kind: string, what: string, answer: Answer): void {
    const refusal = refusalOf(answer);
    this.#context.tally.add(kind, answer.kind === "answered" ? (refusal?.code ?? "done") : answer.kind);
    const elapsedMs = answer.answeredMs - answer.sentMs;
    this.#line(`${what}: ${wordsOf(answer)} (${Math.round(elapsedMs)} ms)`);
    if (elapsedMs > SLOW_MS) this.#context.say(`  ${Math.round(elapsedMs / 1000)} s for ${what}: ${wordsOf(answer)}`);
    if (refusal !== undefined && !isExpected(kind, refusal.code)) {
      this.report("unexpected answer", `${what}: ${wordsOf(answer)}`);
    }
  }

  take(event: HistoryEvent): void {
    if ("log" in event) this.#line(`  ${event.kind}: ${event.log.slice(-SHOWN_NUMBERS).join(" ")} ${event.broken}`);
    this.#checker.take(event);
  }

  report(rule: Rule, what: string): void {
    this.#reported.push({ rule, what });
  }

  #line(line: string): void {
    this.#lines.push(`${(machineMs() / 1000).toFixed(3)} ${line}`);
    if (this.#lines.length > KEPT_LINES) this.#lines.shift();
  }
}
