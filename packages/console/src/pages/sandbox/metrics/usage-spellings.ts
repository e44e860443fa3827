import { spell } from "../../../actions/sandbox-actions.ts";
import type { Spellings } from "../../../actions/spellings.ts";

export function usageSpellings(id: string): Spellings {
  return spell(["stats", id], ["console.log(await sandbox.usage());"], id, { method: "GET", path: "/usage" });
}
