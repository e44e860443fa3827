import { CloseCode } from "@sandboxer/protocol";
import type { Cause, Notice } from "../../manager/client.ts";
import type { Outbox } from "./outbox.ts";

/** Existing clients take DELETED as "do not reconnect", so that two of them do not fight over a sandbox. */
const HANDED_OVER = ["DELETING", "LOCK_RELEASING", "LOCK_RELEASED", "DELETED"] as const;

/** Reports in the protocol's words an event of the sandbox that the client did not request. */
export function sendNotice(outbox: Outbox, notice: Notice): void {
  switch (notice.type) {
    case "saving":
      if (notice.cause === "handoff") outbox.status("LOCK_RELEASE_REQUESTED");
      return outbox.status("CHECKPOINTING");
    case "saved":
      if (notice.cause === "handoff") HANDED_OVER.forEach((status) => outbox.status(status));
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
    case "rewinding":
      return outbox.status("RESTORING");
    case "rewound":
      return outbox.status("RUNNING");
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
