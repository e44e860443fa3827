import type { TargetedDragEvent } from "preact";
import { useEffect, useState } from "preact/hooks";

type DragListener = (event: TargetedDragEvent<HTMLDivElement>) => void;

interface Drop {
  /** Whether files are dragged over the place now. */
  readonly over: boolean;
  readonly handlers: {
    readonly onDragOver?: DragListener;
    readonly onDragLeave?: DragListener;
    readonly onDrop?: DragListener;
  };
}

/** A place where files can be dropped. */
export function useDrop(allowed: boolean, onDropped: (transfer: DataTransfer) => void): Drop {
  const [over, setOver] = useState(false);
  useEffect(() => {
    // Outside the place, the browser would leave the console and show the file.
    const refuse = (event: DragEvent): void => {
      if (event.defaultPrevented || !hasFiles(event.dataTransfer)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "none";
    };
    addEventListener("dragover", refuse);
    addEventListener("drop", refuse);
    return () => {
      removeEventListener("dragover", refuse);
      removeEventListener("drop", refuse);
    };
  }, []);
  if (!allowed) return { over: false, handlers: {} };
  return {
    over,
    handlers: {
      onDragOver: (event) => {
        if (!hasFiles(event.dataTransfer)) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave: ({ currentTarget, relatedTarget }) => {
        if (!(relatedTarget instanceof Node) || !currentTarget.contains(relatedTarget)) setOver(false);
      },
      onDrop: (event) => {
        if (!hasFiles(event.dataTransfer)) return;
        event.preventDefault();
        setOver(false);
        onDropped(event.dataTransfer);
      },
    },
  };
}

function hasFiles(transfer: DataTransfer | null): transfer is DataTransfer {
  return transfer?.types.includes("Files") === true;
}
