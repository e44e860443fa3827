import type { ComponentChildren, JSX } from "preact";
import "./table-region.css";

interface TableRegionProperties {
  readonly label: string;
  readonly columns: readonly string[];
  /** The rows. */
  readonly children: ComponentChildren;
}

/** A table that scrolls sideways by itself where the window is narrow. */
export function TableRegion({ label, columns, children }: TableRegionProperties): JSX.Element {
  return (
    <div class="table-region" tabIndex={0} role="region" aria-label={label}>
      <table>
        <caption class="visually-hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={index} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
