import { Http2Error, largestWindowBytes } from './frames.ts';

/** How much we may still send. It may be below zero: the other side can take back what it has not yet received. */
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

  /** Throws an Http2Error past the largest window there is. */
  grow(bytes: number): void {
    this.#left += bytes;
    if (this.#left > largestWindowBytes) {
      throw new Http2Error('FLOW_CONTROL_ERROR', 'The other side granted more than a window can hold');
    }
  }
}

/**
 * How much the other side may still send. What was received is granted anew in portions of half the window, so that the
 * sender never stands still while its data is wanted, and small answers need no grant at all.
 */
export class ReceiveWindow {
  readonly #size: number;
  #received = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** Throws an Http2Error for more than was granted. */
  receive(bytes: number): void {
    this.#received += bytes;
    if (this.#received > this.#size) {
      throw new Http2Error(
        'FLOW_CONTROL_ERROR',
        `The other side sent ${this.#received - this.#size} bytes more than it may`,
      );
    }
  }

  /** What to grant now; 0 is nothing yet. */
  grant(): number {
    if (this.#received < this.#size / 2) return 0;
    const granted = this.#received;
    this.#received = 0;
    return granted;
  }
}
