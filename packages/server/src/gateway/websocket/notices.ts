import { CloseCode } from "@sandboxer/protocol";
import type { Cause, Notice } from "../../manager/client.ts";
import type { Outbox } from "./outbox.ts";

/** Tells a client what happens to its sandbox without it having asked, in the protocol's words. */
export function sendNotice(outbox: Outbox, notice: Notice): void {
  switch (notice.type) {
    case "saving":
      return outbox.status("CHECKPOINTING");
    case "saved":
      outbox.status("CHECKPOINTED");
      return outbox.close(closeCodeOf(notice.cause));
    case "save_failed":
      outbox.error("CHECKPOINT_ERROR", notice.error);
      return outbox.close(CloseCode.applicationError);
    case "deleting":
      return outbox.status("DELETING");
    case "deleted":
      outbox.status("DELETED");
      return outbox.close(closeCodeOf(notice.cause));
    case "failed":
      outbox.error("ERROR", notice.error);
      return outbox.close(CloseCode.applicationError);
    case "lost":
      outbox.error("LOCK_RENEWAL_ERROR", notice.error);
      return outbox.close(CloseCode.applicationError);
  }
}

function closeCodeOf(cause: Cause): CloseCode {
  return cause === "drain" ? CloseCode.restarting : CloseCode.normal;
}
