import { Http2Error } from './errors.ts';

export const defaultWindowBytes = 65_535;
export const largestWindowBytes = 0x7fff_ffff;

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
