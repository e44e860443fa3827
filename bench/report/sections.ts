/** The page's sections, in their order, and which groups of measurements each shows. */
export interface Section {
  readonly title: string;
  readonly groups: readonly string[];
  readonly about: readonly string[];
}

export const SECTIONS: readonly Section[] = [
  {
    title: "Beside raw runsc",
    groups: ["create", "exec", "output", "checkpoint", "density"],
    about: [
      "The same work by the server, over WebSocket, and by `runsc` alone: same engine, flags, sandbox configuration and",
      "machine, in alternating rounds.",
    ],
  },
  {
    title: "Beside Docker and others",
    groups: ["peers"],
    about: [
      "Each does the same work once in each round, in an order that changes from round to round. All use the programs of this",
      "machine as their root filesystem and have no network. Docker is asked through its engine's API, which is quicker than the",
      "`docker` command; podman has no engine and is called as a command; `sandboxer` is asked over WebSocket and HTTP.",
    ],
  },
  {
    title: "What saving costs",
    groups: ["savings", "forks"],
    about: [
      "Not beside others but beside itself: a second checkpoint against the first, ten forks against one image. Bytes are what",
      "the folder of the store takes up on the disk (`du`). Times are measured twice: with memory as it comes, and with memory",
      "at hand. A virtual machine that gives its free memory back to its host pays for each page that it takes again, often more",
      "than for writing to it, and whether an image is written to memory that was in use a moment ago depends on what happened",
      "before. For memory at hand, a file of twice the size is written and removed right before each of the two checkpoints.",
    ],
  },
  {
    title: "Growth",
    groups: ["image-size", "live", "stored", "clients"],
    about: ["Both axes are logarithmic. Points are medians, the lines through them the whole range over the repeats."],
  },
  {
    title: "Handoff",
    groups: ["handoff"],
    about: [
      "Two servers on one machine and one store; a program in the sandbox holds the memory, another prints every 20 ms. A client",
      "attaches at the server that does not have it. Until RUNNING, and the longest time in which nobody got a line. Beside it",
      "what moving the same sandbox takes without servers: `runsc checkpoint`, one plain copy of the bytes on the same disk,",
      "`runsc restore`. MinIO runs on the same cores.",
    ],
  },
  {
    title: "Requests to the store",
    groups: ["requests"],
    about: [
      "What each operation asks of the store, all servers together, without what a server asks for anyway, which is the last row.",
      "On buckets these are HTTP requests, counted by a proxy in front of the real server; on a directory they are calls to the",
      "store, without the probe at the start. A conditional write is one that fails if somebody else wrote meanwhile; a look",
      "asks for the size only. Images are small here: on buckets larger ones take one write for each 16 MiB. The reads of a",
      "handoff grow with the time it takes: whoever waits looks four times in a second. Lease time 15 s.",
    ],
  },
];
