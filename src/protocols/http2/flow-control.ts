import { Http2Error, maxWindowBytes } from './frames.ts';

/**
 * The number of bytes that may still be sent. It may be negative, because the peer can reduce
 * windows that are in use.
 */
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

  /** Increases the window. Throws an Http2Error above the maximum window size. */
  grow(bytes: number): void {
    this.#left += bytes;
    if (this.#left > maxWindowBytes) {
      throw new Http2Error('FLOW_CONTROL_ERROR', 'The peer granted more than a window can hold');
    }
  }
}

/**
 * The number of bytes that the peer may still send. Received bytes are granted again in portions of
 * half the window, so that a sender never waits for a fast reader, and small responses need no
 * window update.
 */
export class ReceiveWindow {
  readonly #size: number;
  #received = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** Counts received bytes. Throws an Http2Error if the window is exceeded. */
  receive(bytes: number): void {
    this.#received += bytes;
    if (this.#received > this.#size) {
      throw new Http2Error(
        'FLOW_CONTROL_ERROR',
        `The peer sent ${this.#received - this.#size} bytes more than its window allows`,
      );
    }
  }

  /** The size of the window update that is due; 0 if none is due. */
  grant(): number {
    if (this.#received < this.#size / 2) return 0;
    const granted = this.#received;
    this.#received = 0;
    return granted;
  }
}
