import { expect, test } from "vitest";
import { hierarchiesOfService } from "../../../src/backends/gvisor/service-cgroup.ts";

test("a systemd service is recognized by its cgroup, in every layout", () => {
  expect(hierarchiesOfService("0::/system.slice/sandboxer.service\n")).toEqual([
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
  ]);
  const both = "12:pids:/x.service\n1:name=systemd:/system.slice/sandboxer.service\n0::/\n";
  expect(hierarchiesOfService(both)).toEqual(["/sys/fs/cgroup/systemd"]);
  expect(hierarchiesOfService("0::/user.slice/user-0.slice/session-3.scope\n")).toHaveLength(2);
});

test("a container, or a process outside of systemd, is not a service", () => {
  expect(hierarchiesOfService("0::/\n")).toEqual([]);
  expect(hierarchiesOfService("1:name=systemd:/\n0::/docker/0123456789abcdef\n")).toEqual([]);
  expect(hierarchiesOfService("")).toEqual([]);
});
