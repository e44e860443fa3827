/**
 * What a terminal answers to programs that ask it something: who it is, where the cursor is, which colours and modes it
 * has. When old output is shown again, the questions in it were answered long ago, and the answers would arrive as if
 * somebody had typed them.
 */
// oxlint-disable-next-line no-control-regex
const REPORT = /^\u{1b}(?:\[[?>=]?[\d;]*(?:[cnRt]|\$y)|[\]P])/u;

export function isReport(data: string): boolean {
  return REPORT.test(data);
}
