import type { CriClient } from '../../src/cri/index.ts';

/** The runtime versions whose known differences the suite tests explicitly. */
export type Flavour = 'containerd-1.6' | 'containerd-1.7' | 'containerd-2';

/**
 * A container runtime to be tested by the contract suite, with the helpers that the suite needs.
 */
export interface Backend extends AsyncDisposable {
  readonly name: string;
  readonly flavour: Flavour;
  readonly cri: CriClient;
  /** An existing image with a busybox userland. */
  readonly image: string;
  /** The directory to which the runtime writes container logs. */
  readonly logRoot: string;
  /** The parent cgroup of the suite's sandboxes, which the back end removes. */
  readonly cgroupParent: string;
  /** Returns the end of the current millisecond of the runtime's wall clock, in nanoseconds. */
  nowNs(): bigint;
  /**
   * Waits until `check` returns a value, in virtual time if the back end has a virtual clock;
   * throws after a generous timeout.
   */
  until<T>(what: string, check: () => Promise<T | undefined>): Promise<T>;
  /** Returns the content of a log file; empty while the file does not exist. */
  readLog(path: string): Promise<string>;
  renameLog(from: string, to: string): Promise<void>;
  /** Kills the runtime; containers keep running. */
  kill(): Promise<void>;
  /** Starts the killed runtime again with its previous state. */
  revive(): Promise<void>;
}
