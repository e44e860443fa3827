import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { offersFor } from "../../actions/offered.ts";
import { sandboxTitle } from "../../format/names.ts";
import { Menu } from "../../ui/menu.tsx";

export function RowMenu({ record }: { readonly record: SandboxRecord }): JSX.Element {
  return (
    <Menu label={`Actions for ${sandboxTitle(record)}`} items={() => offersFor(record)}>
      ⋯
    </Menu>
  );
}
