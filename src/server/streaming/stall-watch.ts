import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../lib/index.ts';

const keepAliveMs = 15_000;
const lookAgainMs = 5_000;
const nothing = new Uint8Array(0);

/**
 * A socket that is not read, as what it says is not taken, does not tell that its peer is gone. So it is asked as long as
 * that lasts: a write of no bytes sends nothing and fails on a broken connection, and probes of the system break one
 * whose peer is gone without a word. A peer that merely waits is left alone, however long it does.
 */
export class StallWatch implements Disposable {
  readonly #clock: Clock;
  readonly #socket: Socket | undefined;
  #timer: Timer | undefined;
  #isOver = false;

  /** Only sockets are watched; streams within a connection share its fate. */
  constructor(clock: Clock, side: Duplex) {
    this.#clock = clock;
    this.#socket = side instanceof Socket ? side : undefined;
    this.#socket?.setKeepAlive(true, keepAliveMs);
    this.#socket?.on('pause', () => this.#arm());
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  #arm(): void {
    if (this.#isOver || this.#timer !== undefined) return;
    this.#timer = this.#clock.timer(lookAgainMs, () => {
      this.#timer = undefined;
      this.#look();
    });
  }

  #look(): void {
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed || !socket.isPaused()) return;
    // One with words under way is watched by the system, and one that was told our end has only so long to go on.
    if (socket.writable && socket.writableLength === 0) socket.write(nothing);
    this.#arm();
  }
}
