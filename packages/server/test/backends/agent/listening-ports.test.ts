import { expect, test } from "vitest";
import { parseSocketTable } from "../../../src/backends/agent/listening-ports.ts";

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
    { port: 8000, address: "127.0.0.1" },
    { port: 80, address: "0.0.0.0" },
    { port: 3000, address: "::1" },
    { port: 3001, address: "127.0.0.1" },
    { port: 65_535, address: "2001:db8::1" },
  ]);
});

test("lines of another form are skipped", () => {
  expect(parseSocketTable("")).toEqual([]);
  expect(parseSocketTable(`${row("xyz:1F40", "0A")}\n${row("0100007F", "0A")}\n \n0: : : :\n`)).toEqual([]);
});
