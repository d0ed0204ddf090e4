import { Http2Error, maxWindowBytes } from './frames.ts';

/** How much may still be sent. May be negative: the peer can reduce windows that are in use. */
export class SendWindow {
  #left: number;

  constructor(left: number) {
    this.#left = left;
  }

  get left(): number {
    return this.#left;
  }

  spend(bytes: number): void {
    this.#left -= bytes;
  }

  /** Throws an Http2Error above the largest window. */
  grow(bytes: number): void {
    this.#left += bytes;
    if (this.#left > maxWindowBytes) {
      throw new Http2Error('FLOW_CONTROL_ERROR', 'The peer granted more than a window can hold');
    }
  }
}

/**
 * How much the peer may still send. Received bytes are granted again in portions of half the
 * window, so that a sender never waits for a fast reader, and small responses need no update.
 */
export class ReceiveWindow {
  readonly #size: number;
  #received = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** Throws an Http2Error if the window is exceeded. */
  receive(bytes: number): void {
    this.#received += bytes;
    if (this.#received > this.#size) {
      throw new Http2Error(
        'FLOW_CONTROL_ERROR',
        `The peer sent ${this.#received - this.#size} bytes more than it may`,
      );
    }
  }

  /** The size of the window update; 0 if none is due. */
  grant(): number {
    if (this.#received < this.#size / 2) return 0;
    const granted = this.#received;
    this.#received = 0;
    return granted;
  }
}
