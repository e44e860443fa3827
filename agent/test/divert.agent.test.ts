import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { agentBinary } from "./support/build.ts";

const start = () => spawn(agentBinary, ["divert", "test"], { env: {}, stdio: ["ignore", "ignore", "inherit", "ipc"] });

test("the helper closes connections that nobody redirected, and ends with its server", async () => {
  const helper = start();
  const [{ port }] = (await once(helper, "message")) as [{ port: number }];
  const passed: unknown[] = [];
  helper.on("message", (message) => passed.push(message));
  for (let count = 0; count < 3; count++) {
    const socket = connect(port, "127.0.0.1").resume();
    socket.on("error", () => {});
    await once(socket, "close");
  }
  expect(passed).toEqual([]);
  const exited = once(helper, "exit");
  helper.disconnect();
  expect(await exited).toEqual([0, null]);
});

test("the helper does nothing without a channel", async () => {
  const helper = spawn(agentBinary, ["divert", "test"], { env: {}, stdio: "ignore" });
  expect(await once(helper, "exit")).toEqual([2, null]);
});
