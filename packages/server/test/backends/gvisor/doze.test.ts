import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Doze } from "../../../src/backends/gvisor/doze.ts";

const AFTER_MS = 1000;

/** An agent and a kernel that record the calls to them. */
class Scene {
  usedMs = performance.now();
  busy = false;
  beats = true;
  /** The number of running processes. */
  running = 0;
  asked = 0;
  /** Called while the agent is checked. */
  meanwhile: () => void = () => {};
  readonly signals: string[] = [];
  readonly changes: boolean[] = [];
  readonly doze: Doze;

  constructor(afterMs = AFTER_MS) {
    this.doze = new Doze({ agent: this, afterMs, onChange: (dozing) => this.changes.push(dozing) });
    this.doze.meet({ signal: (signal) => this.signals.push(signal) > 0 });
    this.doze.begin();
  }

  async processTable(): Promise<readonly never[]> {
    this.asked += 1;
    this.meanwhile();
    return Array.from({ length: this.running }) as never[];
  }

  goOnBeating(): void {
    this.beats = true;
  }

  stopBeating(): boolean {
    const { beats } = this;
    this.beats = false;
    return beats;
  }

  /** As the connection does for each frame. */
  send(): void {
    this.usedMs = performance.now();
    this.doze.wake();
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a sandbox in which nothing runs", () => {
  test("is stopped after the time without a request, and continued before the next frame", async () => {
    const scene = new Scene();
    await vi.advanceTimersByTimeAsync(AFTER_MS - 1);
    expect(scene.signals).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect([scene.signals, scene.doze.dozing, scene.beats]).toEqual([["SIGSTOP"], true, false]);
    scene.send();
    expect([scene.signals, scene.doze.dozing, scene.beats]).toEqual([["SIGSTOP", "SIGCONT"], false, true]);
    await vi.advanceTimersByTimeAsync(AFTER_MS);
    expect([scene.signals.length, scene.changes]).toEqual([3, [true, false, true]]);
  });

  test("is not checked before the time since the last request has passed", async () => {
    const scene = new Scene();
    await vi.advanceTimersByTimeAsync(AFTER_MS / 2);
    scene.send();
    await vi.advanceTimersByTimeAsync(AFTER_MS - 1);
    expect([scene.asked, scene.signals]).toEqual([0, []]);
    await vi.advanceTimersByTimeAsync(1);
    expect(scene.signals).toEqual(["SIGSTOP"]);
  });

  test("stays awake if something was sent during the check", async () => {
    const scene = new Scene();
    scene.meanwhile = () => {
      vi.advanceTimersByTime(1);
      scene.send();
    };
    await vi.advanceTimersByTimeAsync(AFTER_MS);
    expect([scene.asked, scene.signals]).toEqual([1, []]);
  });

  test("stays awake while a reply is awaited, and if dozing is off", async () => {
    const [scene, never] = [new Scene(), new Scene(0)];
    scene.busy = true;
    await vi.advanceTimersByTimeAsync(10 * AFTER_MS);
    expect([scene.asked, scene.signals, never.asked, never.signals]).toEqual([0, [], 0, []]);
    scene.busy = false;
    await vi.advanceTimersByTimeAsync(AFTER_MS);
    expect(scene.signals).toEqual(["SIGSTOP"]);
  });
});

test("running processes keep it awake, and are checked ever more rarely", async () => {
  const scene = new Scene();
  scene.running = 1;
  await vi.advanceTimersByTimeAsync(31 * AFTER_MS);
  expect([scene.asked, scene.signals]).toEqual([5, []]);
  scene.running = 0;
  await vi.advanceTimersByTimeAsync(32 * AFTER_MS);
  expect(scene.signals).toEqual(["SIGSTOP"]);
});

describe("holders of a freeze", () => {
  test("can keep it awake", async () => {
    const scene = new Scene();
    await vi.advanceTimersByTimeAsync(AFTER_MS);
    scene.doze.keepAwake();
    await vi.advanceTimersByTimeAsync(10 * AFTER_MS);
    expect(scene.signals).toEqual(["SIGSTOP", "SIGCONT"]);
    scene.doze.letBe();
    await vi.advanceTimersByTimeAsync(AFTER_MS);
    expect(scene.signals).toEqual(["SIGSTOP", "SIGCONT", "SIGSTOP"]);
  });

  test("can keep it dozing, and frames sent meanwhile wake it afterwards", async () => {
    const scene = new Scene();
    expect(scene.doze.keepDozing()).toBe(false);
    await vi.advanceTimersByTimeAsync(AFTER_MS);
    expect(scene.doze.keepDozing()).toBe(true);
    scene.send();
    expect(scene.signals).toEqual(["SIGSTOP"]);
    scene.doze.letBe();
    expect(scene.signals).toEqual(["SIGSTOP", "SIGCONT"]);
  });
});

test("a paused sandbox is stopped, and continued when it is needed, with the same heartbeat", async () => {
  const [scene, silent] = [new Scene(), new Scene()];
  silent.stopBeating();
  for (const { doze } of [scene, silent]) doze.keepStopped();
  scene.send();
  expect([scene.signals, scene.doze.dozing, scene.beats]).toEqual([["SIGSTOP"], true, false]);
  for (const { doze } of [scene, silent]) doze.keepAwake();
  expect([scene.signals, scene.doze.dozing]).toEqual([["SIGSTOP", "SIGCONT"], false]);
  expect([scene.beats, silent.beats]).toEqual([true, false]);
});

test("a sandbox that has ended is left alone", async () => {
  const scene = new Scene();
  scene.meanwhile = () => scene.doze.end();
  await vi.advanceTimersByTimeAsync(10 * AFTER_MS);
  expect([scene.asked, scene.signals]).toEqual([1, []]);
});
