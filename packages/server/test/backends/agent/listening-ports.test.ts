import { expect, test } from "vitest";
import { parseSocketTable, withProcesses } from "../../../src/backends/agent/listening-ports.ts";

const row = (local: string, state: string): string =>
  `   4: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0        17 2 0000 0`;

test("listening sockets are read from the kernel's tables, whatever the address", () => {
  const table = [
    "  sl  local_address rem_address   st tx_queue rx_queue",
    row("0100007F:1F40", "0A"),
    row("00000000:0050", "0A"),
    row("0100007F:1F41", "01"),
    row("00000000000000000000000001000000:0BB8", "0A"),
    row("0000000000000000FFFF00000100007F:0BB9", "0A"),
    row("B80D0120000000000000000001000000:FFFF", "0A"),
  ];
  expect(parseSocketTable(table.join("\n"))).toEqual([
    { port: 8000, address: "127.0.0.1", inode: "17" },
    { port: 80, address: "0.0.0.0", inode: "17" },
    { port: 3000, address: "::1", inode: "17" },
    { port: 3001, address: "127.0.0.1", inode: "17" },
    { port: 65_535, address: "2001:db8::1", inode: "17" },
  ]);
  expect(parseSocketTable("0: 0100007F:1F40 0:0 0A")).toEqual([{ port: 8000, address: "127.0.0.1" }]);
});

test("a process is named if its descriptors can be read; the oldest of several that share a socket", async () => {
  const process = (pid: number) => ({
    pid,
    parentPid: 1,
    uid: 1000,
    state: "S",
    residentBytes: 0,
    cpuMs: 0,
    command: `c${pid}`,
  });
  const sockets = ["7", "8", "9"].map((inode, index) => ({ port: 8000 + index, address: "::", inode }));
  const links: Record<string, string[]> = {
    "/proc/2/fd": ["socket:[7]", "/dev/null"],
    "/proc/3/fd": ["socket:[7]", "socket:[8]"],
  };
  const list = async (path: string) => {
    const found = links[path];
    if (found === undefined) throw new Error("EACCES");
    return found.map((linkTarget) => ({ linkTarget }));
  };
  expect(await withProcesses([...sockets, { port: 80, address: "::" }], [2, 3, 4].map(process), list)).toEqual([
    { port: 8000, address: "::", process: { pid: 2, command: "c2" } },
    { port: 8001, address: "::", process: { pid: 3, command: "c3" } },
    { port: 8002, address: "::" },
    { port: 80, address: "::" },
  ]);
});

test("lines of another form are skipped", () => {
  expect(parseSocketTable("")).toEqual([]);
  expect(parseSocketTable(`${row("xyz:1F40", "0A")}\n${row("0100007F", "0A")}\n \n0: : : :\n`)).toEqual([]);
});
