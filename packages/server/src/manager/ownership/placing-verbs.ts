import type { ManagerContext } from "../context.ts";
import { notFound } from "../not-found.ts";
import { Room } from "../room.ts";
import { fittingServers, noServerFits } from "./fitting-servers.ts";
import { type OtherServer, ownerElsewhere } from "./owner-elsewhere.ts";
import { type Wanted, wantedByHead, wantedByRequest, wantedBySnapshot } from "./wanted.ts";

/** Which other servers may run a sandbox. */
export class PlacingVerbs extends Room<ManagerContext> {
  readonly byRequest = this.verb(wantedByRequest);
  readonly bySnapshot = this.verb(wantedBySnapshot);
  readonly servers = this.verb(fittingServers);
  readonly whyNone = this.verb(noServerFits);
  /** The other server that runs a sandbox. */
  readonly ownerOf = (sandboxId: string): Promise<OtherServer | undefined> => ownerElsewhere(this.context, sandboxId);

  async bySandbox(sandboxId: string): Promise<Wanted> {
    const head = await this.context.storedHead(sandboxId);
    if (head === undefined) throw notFound(sandboxId);
    return await wantedByHead(this.context, sandboxId, head);
  }
}
