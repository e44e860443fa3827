import { expect, test } from "vitest";
import { parseEngineAddress } from "../../../src/backends/docker/engine/address.ts";

test.each([
  ["unix:///var/run/docker.sock", { socketPath: "/var/run/docker.sock" }],
  ["tcp://10.0.0.7", { protocol: "http:", hostname: "10.0.0.7", port: 2375 }],
  ["tcp://engine:1234", { protocol: "http:", hostname: "engine", port: 1234 }],
  ["http://engine:1234/", { protocol: "http:", hostname: "engine", port: 1234 }],
  ["https://engine", { protocol: "https:", hostname: "engine", port: 2376 }],
  ["tcp://[::1]:2375", { protocol: "http:", hostname: "::1", port: 2375 }],
])("%s", (text, connection) => {
  expect(parseEngineAddress(text)).toEqual({ text, connection });
});

test.each([
  "",
  "docker.sock",
  "unix://",
  "unix://relative",
  "ssh://user@host",
  "npipe:////./pipe/x",
  "tcp://",
  "tcp://a/b",
])("%s is refused with what can be used", (text) => {
  expect(() => parseEngineAddress(text)).toThrow(
    expect.objectContaining({ code: "bad_request", hint: expect.stringContaining("unix:///PATH") }),
  );
});
