import { expect, test } from "vitest";
import { EventLog } from "../../../../src/manager/observing/events/event-log.ts";
import { ExecutionEvents } from "../../../../src/manager/observing/events/execution-events.ts";
import { FakeClock } from "../../../lease/fake-clock.ts";

function world() {
  const clock = new FakeClock();
  const log = new EventLog(clock);
  return { clock, log, executions: new ExecutionEvents(clock, log), sandbox: { id: "s" } };
}

const started = (processId: string, command: string | string[] = "true") =>
  ({ processId, kind: "process", command }) as const;

test("the first hundred of a sandbox are recorded, then twenty a second; the others are counted", () => {
  const { clock, log, executions, sandbox } = world();
  const ends = Array.from({ length: 1000 }, (_, number) => executions.started(sandbox, started(String(number))));
  expect(log.after(undefined)).toHaveLength(100);
  for (const end of ends) end({ code: 0, signal: undefined, outputEnd: 0 });
  const ended = log.after(undefined).filter(({ type }) => type === "execution.ended");
  expect(ended).toHaveLength(100);
  expect(ended[0]?.data["omitted"]).toBe(900);
  expect(ended[1]?.data["omitted"]).toBe(0);
  clock.advance(1000);
  const before = log.end;
  for (let number = 0; number < 50; number += 1) executions.started(sandbox, started(`later-${number}`));
  expect(log.after(before)).toHaveLength(20);
  // Another sandbox has its own budget.
  executions.started({ id: "other" }, started("x"));
  expect(log.after(before)).toHaveLength(21);
});

test("only the beginning of a command is reported, and it stays data", () => {
  const { log, executions, sandbox } = world();
  executions.started(sandbox, started("a", ["echo", "<b>\u0000\n\u001b[31m", "x".repeat(100_000)]));
  executions.started(sandbox, started("b", `${"y".repeat(199)}😀`));
  executions.started(sandbox, started("c", []));
  const [first, second, third] = log.after(undefined).map(({ data }) => String(data["command"]));
  expect(first).toHaveLength(201);
  expect(first?.startsWith("echo <b>\u0000\n\u001b[31m xxx")).toBe(true);
  expect(second).toBe(`${"y".repeat(199)}\ufffd…`);
  expect(third).toBe("");
});

test("a restored execution has no start here, and one whose sandbox leaves has no exit", () => {
  const { clock, log, executions, sandbox } = world();
  const end = executions.continued(sandbox, "a");
  clock.advance(5000);
  end({ code: undefined, signal: 15, outputEnd: 7 }, true);
  executions.started(sandbox, started("b"))(undefined);
  expect(log.after(undefined).map(({ type, data }) => ({ type, ...data }))).toMatchObject([
    { type: "execution.continued", process_id: "a" },
    {
      type: "execution.ended",
      outcome: "exited",
      exit_code: null,
      signal: "SIGTERM",
      timed_out: true,
      elapsed_ms: null,
    },
    { type: "execution.started", process_id: "b" },
    { type: "execution.ended", process_id: "b", outcome: "left", exit_code: null, signal: null, elapsed_ms: 0 },
  ]);
});
