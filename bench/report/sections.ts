/** The page's sections, in their order, with the groups of measurements in each. */
export interface Section {
  readonly title: string;
  readonly groups: readonly string[];
  readonly about: readonly string[];
}

export const SECTIONS: readonly Section[] = [
  {
    title: "Beside raw runsc",
    groups: ["create", "exec", "output", "checkpoint", "live-pause", "density"],
    about: [
      "The same work done by the server, over WebSocket, and by `runsc` alone: same engine, flags, sandbox configuration and",
      "machine, in alternating rounds.",
    ],
  },
  {
    title: "Beside Docker and others",
    groups: ["peers"],
    about: [
      "Each product does the same work once in each round, in an order that changes from round to round. All use the programs",
      "of this machine as their root filesystem and have no network. Docker is called through its engine's API, which is faster",
      "than the `docker` command; podman has no engine and is called as a command; `sandboxer` is called over WebSocket and HTTP.",
    ],
  },
  {
    title: "Code interpreter",
    groups: ["cell"],
    about: [
      "A cell in a waiting Python, compared with a new `python3 -c` for the same line, in the same sandbox and over the same API.",
    ],
  },
  {
    title: "Container images",
    groups: ["images"],
    about: [
      "An image of about 50 MB (packed) in a registry on the same machine. The first row starts without any part of it on the",
      "machine and ends with the first output of a program in it. In the second row the image is already there.",
    ],
  },
  {
    title: "Cost of saving",
    groups: ["savings", "forks"],
    about: [
      "sandboxer compared with itself: a second checkpoint with the first, ten forks with one image. Bytes are the size of the",
      "store's folder on the disk (`du`). Times are measured twice: with memory as it comes, and with memory at hand. A virtual",
      "machine that returns its free memory to its host pays for each page that it takes again, often more than for writing",
      "to it. Whether an image is written to memory that was just in use depends on what happened before. For memory at hand,",
      "a file of twice the size is written and removed right before each of the two checkpoints.",
    ],
  },
  {
    title: "Growth",
    groups: ["image-size", "live", "stored", "clients"],
    about: [
      "Both axes are logarithmic. Points are medians; the lines through them show the whole range of the repeats.",
    ],
  },
  {
    title: "Handoff",
    groups: ["handoff"],
    about: [
      "Two servers on one machine and one store; a program in the sandbox holds the memory, another prints every 20 ms. A client",
      "attaches at the other server. The rows are the time until RUNNING, and the longest time without a line of output. The raw",
      "side moves the same sandbox without servers: `runsc checkpoint`, one plain copy of the bytes on the same disk, `runsc",
      "restore`. MinIO runs on the same cores.",
    ],
  },
  {
    title: "Previews",
    groups: ["preview"],
    about: [
      "A Python web server in a sandbox is called through its preview URL. The other side is what the aim allows: the same",
      "request from inside the sandbox plus 5 ms, and a resume alone plus 50 ms.",
    ],
  },
  {
    title: "The network proxy",
    groups: ["proxy"],
    about: [
      "A program in a sandbox connects to a server on the host through the network proxy. The other side is a connection",
      "inside the sandbox, to a program there, which crosses gVisor's network stack but not the agent and the server.",
    ],
  },
  {
    title: "Requests to the store",
    groups: ["requests"],
    about: [
      "The requests of each operation, of all servers together. The last row is what an idle server requests anyway; it is not",
      "included in the others. On buckets these are HTTP requests, counted by a proxy in front of the real server; on a",
      "directory they are calls to the store, without the test at the start. A conditional write fails if another writer wrote",
      "meanwhile; a look asks only for the size. Images are small here: on buckets, larger ones take one write for each 16 MiB.",
      "The reads of a handoff grow with its time, because the newcomer reads four times per second. Lease time 15 s.",
    ],
  },
  {
    title: "Cost of standing still",
    groups: ["fleet"],
    about: [
      "Servers that hold sandboxes while nothing happens: their leases, checks of each other, bells, markers, and the choice of",
      "a collector. Their own code runs on a counting store in memory, with a lease time of 15 s; time passes as fast as",
      "the work is done. The aim is at most 300 GETs per second for 100 servers.",
    ],
  },
];
