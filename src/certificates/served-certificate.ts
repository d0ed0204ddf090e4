import type { KeyPair } from '../protocols/x509/index.ts';

/** A certificate that is kept in order, wherever it comes from. */
export interface ServedCertificate {
  /** To be used now; undefined while there is none that is valid. */
  current(): KeyPair | undefined;
  /** What there is, though it may have expired. */
  held(): KeyPair | undefined;
  /** Told each new pair after it is in use; connections made with the old one should go. */
  onRotated(told: (pair: KeyPair) => void): Disposable;
  /** Names or addresses of this node may have changed. Never waits. */
  look(): void;
  /** Why there is no good certificate, with what to do about it; undefined while all is well. */
  problem(): string | undefined;
  /** How things stand, in one line. */
  describe(): string;
  /** Keeps it in order until aborted. Once at a time. */
  run(signal: AbortSignal): Promise<never>;
}
