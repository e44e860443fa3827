import { expect, test } from "vitest";
import { rangeOf } from "../../../../src/gateway/e2b/envd/byte-range.ts";
import { entryView, permissionText } from "../../../../src/gateway/e2b/envd/entry-view.ts";
import { metadataIn } from "../../../../src/gateway/e2b/envd/file-metadata.ts";
import { absolutePath } from "../../../../src/gateway/e2b/envd/paths.ts";
import { endEvent } from "../../../../src/gateway/e2b/envd/process-events.ts";
import { isExpired, signatureOf, type SignedFile } from "../../../../src/gateway/e2b/envd/signature.ts";
import { userNamed, userOfCall } from "../../../../src/gateway/e2b/envd/users.ts";

test("the signature of a file matches that of E2B's clients", () => {
  const file: SignedFile = { path: "hello.txt", operation: "read", user: "user", expiration: undefined };
  expect(signatureOf(file, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0")).toBe("v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
  expect(signatureOf({ ...file, expiration: "1" }, "t")).not.toBe(signatureOf(file, "t"));
});

test("a signature expires at its time, and one without a time never does", () => {
  const file = { path: "", operation: "read", user: "" } as const;
  expect(isExpired({ ...file, expiration: undefined }, 5_000)).toBe(false);
  expect(isExpired({ ...file, expiration: "6" }, 5_000)).toBe(false);
  expect(isExpired({ ...file, expiration: "4" }, 5_000)).toBe(true);
  expect(isExpired({ ...file, expiration: "never" }, 5_000)).toBe(true);
});

test("paths are below the home unless they are absolute", () => {
  const paths = ["", "~", "~/a", "a/b", "/etc/x", "./a/../b", "../../../x"];
  const absolute = paths.map((path) => absolutePath("/home/user", path));
  expect(absolute).toEqual([
    "/home/user",
    "/home/user",
    "/home/user/a",
    "/home/user/a/b",
    "/etc/x",
    "/home/user/b",
    "/x",
  ]);
  expect(() => absolutePath("/home/user", "~other/a")).toThrow("another user");
  expect(() => absolutePath("/home/user", "a\0b")).toThrow("NUL");
  expect(() => absolutePath("/home/user", "a/".repeat(3000))).toThrow("too long");
});

test("the user of a call is the name before the colon, and `user` is the sandbox's own", () => {
  const call = (text: string) => ({ headers: { authorization: `Basic ${Buffer.from(text).toString("base64")}` } });
  expect(userOfCall({ headers: {} })).toBeUndefined();
  expect(userOfCall(call("user:"))).toBeUndefined();
  expect(userOfCall(call("root:"))).toBe("root");
  expect(() => userNamed("0:0")).toThrow("invalid");
  expect(() => userNamed("a b")).toThrow("invalid");
});

test("permissions are written as Go writes them", () => {
  expect(permissionText("file", 0o644)).toBe("-rw-r--r--");
  expect(permissionText("folder", 0o755)).toBe("drwxr-xr-x");
  expect(permissionText("folder", 0o1777)).toBe("dtrwxrwxrwx");
  expect(permissionText("file", 0o4755)).toBe("urwxr-xr-x");
});

test("a link shows its target, and metadata without its prefix", () => {
  const view = entryView({
    name: "link",
    path: "/a/link",
    kind: "file",
    mode: 0o600,
    sizeBytes: 4,
    modifiedMs: Number.NaN,
    owner: "user",
    group: "1000",
    leadsTo: "/a/file",
    attributes: new Map([
      ["e2b.team", "x"],
      ["other", "y"],
    ]),
  });
  expect(view).toEqual({
    name: "link",
    path: "/a/link",
    type: "FILE_TYPE_FILE",
    size: "4",
    mode: 0o600,
    permissions: "Lrwxrwxrwx",
    owner: "user",
    group: "1000",
    modifiedTime: "1970-01-01T00:00:00.000Z",
    symlinkTarget: "/a/file",
    isSymlink: true,
    metadata: { team: "x" },
  });
});

test("metadata comes from headers, within limits", () => {
  expect([...metadataIn({ "x-metadata-team": "a b", host: "h" }).values]).toEqual([["team", "a b"]]);
  expect(() => metadataIn({ "x-metadata-a": "ü" })).toThrow("ASCII");
  expect(() => metadataIn({ "x-metadata-": "a" })).toThrow("empty");
  expect(() => metadataIn({ [`x-metadata-${"k".repeat(247)}`]: "a" })).toThrow("too long");
  expect(() => metadataIn({ "x-metadata-a": "v".repeat(4096) })).toThrow("larger");
});

test("the end of a process has its exit code or signal", () => {
  const end = (code: number | undefined, signal: number | undefined) =>
    endEvent({ exit: { code, signal, outputEnd: 0 } });
  expect(end(0, undefined)).toEqual({ event: { end: { exitCode: 0, exited: true, status: "exit status 0" } } });
  expect(end(3, undefined)).toMatchObject({ event: { end: { exitCode: 3, error: "exit status 3" } } });
  expect(end(undefined, 9)).toMatchObject({
    event: { end: { exitCode: -1, exited: false, status: "signal: killed" } },
  });
});

test("one range of bytes is understood", () => {
  expect(rangeOf("bytes=0-3", 10)).toEqual({ start: 0, length: 4 });
  expect(rangeOf("bytes=8-", 10)).toEqual({ start: 8, length: 2 });
  expect(rangeOf("bytes=-3", 10)).toEqual({ start: 7, length: 3 });
  expect(rangeOf("bytes=5-99", 10)).toEqual({ start: 5, length: 5 });
  expect(rangeOf("bytes=10-", 10)).toBe("unsatisfiable");
  expect(rangeOf("bytes=0-1,3-4", 10)).toBeUndefined();
  expect(rangeOf("bytes=3-1", 10)).toBeUndefined();
});
