import { describe, expect, test } from "vitest";
import { BridgeDecoder, type BridgeEvent, exitOf } from "../../../src/backends/daytona/exec/bridge-decoder.ts";

const TOKEN = "00ff00ff";
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const STARTED = `p 7 ${TOKEN} /tmp/.x`;

describe("the log of a program at Daytona", () => {
  test("decodes the same with and without the daemon's markers, however it is cut", () => {
    const lines = [
      STARTED,
      `o${base64("out ")}`,
      `e${base64("err")}`,
      "w",
      `o${base64(`put${TOKEN}`)}`,
      "x 3",
      `e${base64(TOKEN)}`,
    ];
    const expected = [
      { kind: "started", pid: 7, folder: "/tmp/.x" },
      { kind: "output", stream: "stdout", data: "out " },
      { kind: "output", stream: "stderr", data: "err" },
      { kind: "taken" },
      { kind: "output", stream: "stdout", data: "put" },
      { kind: "exited", code: 3, signal: undefined },
      { kind: "finished" },
    ];
    const plain = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    const marked = Buffer.from(lines.map((line) => `\u0001\u0001\u0001${line}\n`).join(""));
    for (const log of [plain, marked]) {
      for (const size of [1, 3, 1000]) expect(decode(log, size)).toEqual(expected);
    }
  });

  test("bytes that may be the beginning of the token are held back, and passed on if they are not", () => {
    const log = [STARTED, `o${base64("a00f")}`, `o${base64("e")}`].map((line) => `${line}\n`).join("");
    const output = decode(Buffer.from(log), 1000).filter(({ kind }) => kind === "output");
    expect(output).toMatchObject([{ data: "a" }, { data: "00fe" }]);
  });

  test("bytes that a hostile program writes to it are left out", () => {
    const log = `sh: 1: Killed\nx\np 1\n${STARTED}\np 8 ${TOKEN} /other\no!!!\nn elsewhere\nx 0\nx 9\n`;
    expect(decode(Buffer.from(log), 1000).map(({ kind }) => kind)).toEqual(["started", "exited"]);
  });

  test("a missing program or folder is reported", () => {
    expect(decode(Buffer.from("n program\nn folder\n"), 4)).toEqual([
      { kind: "missing", what: "program" },
      { kind: "missing", what: "folder" },
    ]);
  });

  test("exit codes of a shell are codes or signals", () => {
    expect([0, 1, 127, 137, 255].map(exitOf)).toEqual([
      { code: 0, signal: undefined },
      { code: 1, signal: undefined },
      { code: 127, signal: undefined },
      { code: undefined, signal: 9 },
      { code: 255, signal: undefined },
    ]);
  });
});

function decode(log: Buffer, size: number): { readonly kind: BridgeEvent["kind"] }[] {
  const decoder = new BridgeDecoder();
  const events: BridgeEvent[] = [];
  for (let at = 0; at < log.length; at += size) events.push(...decoder.push(log.subarray(at, at + size)));
  return events.map((event) => (event.kind === "output" ? { ...event, data: event.data.toString() } : event));
}
