import { SandboxerError } from "@sandboxer/client";
import { expect, test } from "vitest";
import { PtyInput } from "../../../src/pages/sandbox/terminal/pty-input.ts";
import { isReport } from "../../../src/pages/sandbox/terminal/terminal-reports.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (data: Uint8Array): string => new TextDecoder().decode(data);
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

test("input without a connection waits for one, in order", async () => {
  const input = new PtyInput(() => {});
  const sent: string[] = [];
  input.write(encode("a"));
  input.write(encode("b"));
  input.connected(async (data) => void sent.push(decode(data)));
  await settled();
  input.write(encode("c"));
  await settled();
  expect(sent).toEqual(["ab", "c"]);
});

test("unsent input goes to the next connection; input that may have arrived is not repeated", async () => {
  let doubts = 0;
  const input = new PtyInput(() => (doubts += 1));
  const sent: string[] = [];
  input.connected(() => Promise.reject(new SandboxerError("wrong_state", "The process was detached.")));
  input.write(encode("kept"));
  await settled();
  input.disconnected();
  input.connected(() => Promise.reject(new SandboxerError("server_unreachable", "It broke on the way.")));
  await settled();
  input.disconnected();
  input.write(encode("next"));
  input.connected(async (data) => void sent.push(decode(data)));
  await settled();
  expect(sent).toEqual(["next"]);
  expect(doubts).toBe(1);
});

test("a terminal's reports are distinguished from keys", () => {
  const escape = "\u001B";
  const reports = ["[?1;2c", "[>0;276;0c", "[0n", "[12;40R", "[?2004;1$y", "]11;rgb:00/00/00", "P1$r0m", "[8;24;80t"];
  expect(reports.filter((report) => !isReport(escape + report))).toEqual([]);
  const keys = [
    "a",
    "\r",
    `${escape}[A`,
    `${escape}[1;5C`,
    `${escape}OP`,
    `${escape}[200~text`,
    `${escape}[15~`,
    escape,
  ];
  expect(keys.filter(isReport)).toEqual([]);
});
