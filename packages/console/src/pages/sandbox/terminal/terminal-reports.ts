/**
 * A terminal's answers to queries of programs: its type, the cursor position, its colours and modes. When old output is
 * shown again, its queries were answered long ago, and new answers would arrive like typed input.
 */
// oxlint-disable-next-line no-control-regex
const REPORT = /^\u{1b}(?:\[[?>=]?[\d;]*(?:[cnRt]|\$y)|[\]P])/u;

export function isReport(data: string): boolean {
  return REPORT.test(data);
}
