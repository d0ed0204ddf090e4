import type { CriClient } from '../../src/cri/index.ts';

/** Known differences between runtimes that the suite spells out instead of hiding. */
export type Flavour = 'containerd-1.6' | 'containerd-1.7' | 'containerd-2';

/** A container runtime under the contract, and what the suite needs around it. */
export interface Backend extends AsyncDisposable {
  readonly name: string;
  readonly flavour: Flavour;
  readonly cri: CriClient;
  /** An image with a busybox userland that is there already. */
  readonly image: string;
  /** A folder the runtime writes container logs to. */
  readonly logRoot: string;
  /** The cgroup below which the suite's sandboxes go; the back end removes it. */
  readonly cgroupParent: string;
  /** The runtime's wall clock in nanoseconds, up to a millisecond ahead. */
  nowNs(): bigint;
  /** Waits until `check` answers something, in the time of this back end; throws after a generous limit. */
  until<T>(what: string, check: () => Promise<T | undefined>): Promise<T>;
  /** The content of a log file, empty while there is none. */
  readLog(path: string): Promise<string>;
  renameLog(from: string, to: string): Promise<void>;
  /** Ends the runtime without warning; containers live on. */
  kill(): Promise<void>;
  /** Starts it again with the state it had. */
  revive(): Promise<void>;
}
