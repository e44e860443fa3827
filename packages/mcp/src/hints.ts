import { ERRORS, type ErrorCode, type SandboxerError } from "@sandboxer/protocol/errors";

/** Next steps in the words of the tools, in place of those that name commands of the CLI. */
const HINTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthorized: "Set SANDBOXER_API_KEY for `sandboxer mcp`, or send `Authorization: Bearer KEY` to /mcp.",
  sandbox_not_found: "Open one with sandbox_open, and use its sandbox_id.",
  sandbox_destroyed: "Open another one with sandbox_open, or fork one from a checkpoint.",
  snapshot_not_found: "Take a checkpoint first, or use the id or name of one that history lists.",
  process_not_found: "Its record was deleted some time after its end. Run the command again.",
  name_taken: "Choose another name for the checkpoint.",
  limit_reached: "Delete sandboxes that you do not need with sandbox_destroy.",
};

/** The hint of an error. A hint that was written for this case wins. */
export function hintOf({ code, hint }: SandboxerError): string {
  return hint === ERRORS[code].hint ? (HINTS[code] ?? hint) : hint;
}
