import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, onAbort, type Timer } from '../../lib/index.ts';
import { IdleTimer } from './idle-timer.ts';

export interface RelayOptions {
  readonly clock: Clock;
  /** How long both streams may be idle; 0 for no limit. */
  readonly idleMs: number;
}

/** After one stream has ended, the other must transfer data or end within this time. */
const lingerMs = 10_000;

/**
 * Relays bytes between two streams until both have ended, one breaks, both are idle for too long,
 * or the signal is aborted; then closes both. Each direction ends separately, and neither stream is
 * read faster than the other accepts.
 */
export function relay(one: Duplex, other: Duplex, options: RelayOptions, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      link?.[Symbol.dispose]();
      idle[Symbol.dispose]();
      for (const watch of watches) watch[Symbol.dispose]();
      for (const side of [one, other]) side.destroy();
      resolve();
    };
    const idle = new IdleTimer(options.clock, options.idleMs, finish);
    const watches = [one, other].map((side) => new StallWatch(options.clock, side));
    const link = signal.aborted ? undefined : onAbort(signal, finish);
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      from.on('data', () => {
        if (!to.destroyed) idle.touch();
      });
      // The time limit starts when the other stream has accepted all bytes of the ended one,
      // however slowly it reads.
      to.on('finish', () => idle.shorten(lingerMs));
      from.on('close', () => {
        if (to.destroyed) return finish();
        if (!from.readableEnded) idle.shorten(lingerMs);
        closeAfter(from, to);
      });
      from.on('error', () => {});
      from.pipe(to);
    }
    if (one.destroyed || other.destroyed || signal.aborted) finish();
  });
}

/**
 * Handles a closed stream: the bytes received from it are still relayed, even if writing to it
 * failed. If the stream broke, the other one is closed as soon as it has accepted all bytes in
 * flight, including those that are still being encrypted.
 */
function closeAfter(gone: Duplex, left: Duplex): void {
  // Further data of the remaining stream is discarded, but must be read so that its end is
  // detected.
  left.unpipe();
  left.resume();
  if (!gone.readableEnded) left.end(() => left.destroy());
}

const keepAliveMs = 15_000;
const checkMs = 5_000;
const nothing = new Uint8Array(0);

/**
 * Detects that the peer of a socket which is not being read is lost, because an unread socket
 * reports no error. While reading is paused, an empty write is attempted at intervals: it sends
 * nothing but fails on a broken connection. TCP keepalive breaks a connection whose peer is lost. A
 * connection with an idle peer stays open.
 */
class StallWatch implements Disposable {
  readonly #clock: Clock;
  readonly #socket: Socket | undefined;
  #timer: Timer | undefined;
  #isOver = false;

  /**
   * Only sockets are checked; a stream that is multiplexed over a connection ends with that
   * connection.
   */
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
    this.#timer = this.#clock.timer(checkMs, () => {
      this.#timer = undefined;
      this.#check();
    });
  }

  #check(): void {
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed || !socket.isPaused()) return;
    // No check is needed while bytes are in flight to the peer, because the kernel then detects a
    // lost peer, nor after the peer has ended its direction, because a time limit then applies.
    if (socket.writable && socket.writableLength === 0) socket.write(nothing);
    this.#arm();
  }
}
