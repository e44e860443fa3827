import { expect, test } from "vitest";
import { findAccount } from "../../../src/backends/agent/accounts.ts";
import type { AgentFiles } from "../../../src/backends/agent/agent-files.ts";
import { SandboxUsers, variablesOf, type UserOptions } from "../../../src/backends/agent/sandbox-users.ts";
import { DEFAULT_ENVIRONMENT } from "../../../src/backends/agent/user-space.ts";
import { ScriptedAgent } from "./scripted-agent.ts";

const passwd = "root:x:0:0:root:/root:/bin/bash\nnode:x:1000:1000::/home/node:/bin/sh\nodd:x:7:7::relative:/bin/sh\n";
const group = "root:x:0:\nnode:x:1000:\nadm:x:4:syslog,node\nsudo:x:27:node\nempty:x:9:\n";

test("a user is found by name or number, with its groups", () => {
  const node = { name: "node", uid: 1000, gid: 1000, groups: [4, 27], home: "/home/node" };
  expect(findAccount({ passwd, group }, "node")).toEqual(node);
  expect(findAccount({ passwd, group }, "1000")).toEqual(node);
  expect(findAccount({ passwd, group }, "node:adm")).toEqual({ ...node, gid: 4, groups: [] });
  expect(findAccount({ passwd, group }, "node:65000")).toEqual({ ...node, gid: 65_000, groups: [] });
  expect(findAccount({ passwd, group }, "odd")).toMatchObject({ home: "/" });
  expect(findAccount({ passwd, group }, "4242")).toEqual({ name: "4242", uid: 4242, gid: 0, groups: [], home: "/" });
  expect(findAccount({ passwd: "", group: "" }, "0:0")).toMatchObject({ uid: 0, gid: 0 });
});

test("an unknown user or group is an error that lists the existing ones", () => {
  expect(() => findAccount({ passwd, group }, "nope")).toThrow(
    expect.objectContaining({ code: "bad_request", hint: expect.stringContaining("root, node, odd") as string }),
  );
  expect(() => findAccount({ passwd, group }, "node:nope")).toThrow('The sandbox has no group "nope".');
  expect(() => findAccount({ passwd: "", group: "" }, "root")).toThrow('The sandbox has no user "root".');
});

test.each([
  ["lines without fields", "\n\n:::::\nroot\nroot:x\n", ""],
  [
    "numbers that are none",
    "root:x:-1:0::/:\nroot:x:0x0:0::/:\nroot:x:99999999999:0::/:\nroot:x::::\n",
    "root:x:1e9:root\n",
  ],
  ["the number that means no user", "root:x:4294967295:0::/:\n", ""],
  ["control characters", "\u001b[31mred:x:5:5::/:\nro\0ot:x:0:0::/:\n", "\u001b[31m:x:5:root"],
  ["a line of a megabyte", `${"x".repeat(1_000_000)}:x:1:1::/:/\n`, ""],
])("files that code inside wrote cannot mislead: %s", (_, text, groups) => {
  expect(() => findAccount({ passwd: text, group: groups }, "root")).toThrow(
    expect.objectContaining({ code: "bad_request", hint: expect.not.stringContaining("\u001b") as string }),
  );
});

test("a user cannot be in more groups than the agent accepts", () => {
  const many = Array.from({ length: 5000 }, (_, index) => `g${index}:x:${index + 10}:root`).join("\n");
  expect(findAccount({ passwd, group: many }, "root").groups).toHaveLength(1024);
});

function usersOf(options: Partial<UserOptions>): SandboxUsers {
  const read = async function* (path: string): AsyncGenerator<Uint8Array> {
    yield Buffer.from(path === "/etc/passwd" ? passwd : group);
  };
  return new SandboxUsers({ read } as unknown as AgentFiles, { rootInside: true, ...options });
}

test.each([
  [{}, "/workspace", "/workspace"],
  [{ user: "node" }, "/home/node", "/home/node"],
  [{ user: "node", workingFolder: "/app" }, "/app", "/app"],
  [{ workingFolder: "/app" }, "/app", "/app"],
  [{ user: "root", workingFolder: "/" }, "/", "/root"],
  [{ user: "4242" }, "/", "/workspace"],
])("%j: programs start in %s, and captures take %s", async (options, folder, captured) => {
  const users = usersOf(options);
  expect([await users.workingFolder(), await users.workspaceFolder()]).toEqual([folder, captured]);
});

test("root needs permission, under any of its names", async () => {
  const users = usersOf({ rootInside: false });
  for (const user of ["root", "0", "0:1000", "root:adm"]) {
    await expect(users.account(user)).rejects.toMatchObject({ code: "permission_denied" });
  }
  expect(await users.account("node")).toMatchObject({ uid: 1000 });
});

test("a user has its own variables, and root's path has no folder of another user", () => {
  const account = { name: "root", uid: 0, gid: 0, groups: [], home: "/root" };
  const { PATH, ...rest } = variablesOf(account, DEFAULT_ENVIRONMENT);
  expect(rest).toEqual({ HOME: "/root", USER: "root", LOGNAME: "root" });
  expect(PATH).not.toContain("/workspace");
  expect(variablesOf({ ...account, uid: 5, home: "/srv" }, DEFAULT_ENVIRONMENT).PATH).toMatch(/^\/srv\/\.local\/bin:/);
});

test("an agent of an earlier release gets the old request, and unsupported settings are named", async () => {
  const agent = new ScriptedAgent();
  const started = agent.client.exec({ key: "a", argv: ["true"] });
  await agent.untilAsked(1);
  expect(agent.question(0).payload.readUInt8()).toBe(0);
  agent.refuse(0, 2);
  await expect(started).rejects.toMatchObject({ code: "file_not_found" });

  const others = agent.client.exec({ key: "b", argv: ["true"], user: "node" });
  await agent.untilAsked(3);
  agent.answer(1, Buffer.from(passwd));
  agent.answer(2, Buffer.from(group));
  // Each file is read to its end.
  await agent.untilAsked(5);
  agent.answer(3, Buffer.alloc(0));
  agent.answer(4, Buffer.alloc(0));
  await agent.untilAsked(6);
  agent.refuse(5, 74);
  await expect(others).rejects.toMatchObject({
    code: "not_supported",
    message: "This sandbox was created by an earlier release and cannot run as node.",
  });
});
