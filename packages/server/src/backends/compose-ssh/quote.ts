import { quoteForShell } from "../../support/shell-quote.ts";

/** As one line, for a shell that has `n` set to a newline and reads with `read -r`. */
export function quoteOnOneLine(argument: string): string {
  return quoteForShell(argument).replaceAll("\n", `'"$n"'`);
}
